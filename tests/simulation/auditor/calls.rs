//! Requests, replies and services: invariants 2, 5, 6, 9 and 11, and rules 2, 4 and 21.

use std::sync::Arc;

use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{Body, Ending, Try, Way};

impl Auditor {
    /// A request is for a claimed attempt only, and its budget does not exceed the time that remained when its
    /// sender read the task.
    pub(super) fn requested(&mut self, of: Try, complete_by_ms: i64, budget_ms: u64, clock_ms: i64) -> Finding {
        let claim = self.dossier(of.order).claims.get_mut(&(of.step, of.attempt));
        let Some(claim) = claim.filter(|claim| (claim.way, claim.complete_by_ms) == (of.way, complete_by_ms)) else {
            return Err((Invariant::Claims, format!("a request for {of}, which nobody claimed so")));
        };
        claim.requested = true;
        must(!self.dossier(of.order).ways(of.step).approval, Invariant::Approved, || {
            format!("a service is asked for {of}, on which people decide")
        })?;
        let left_ms = u64::try_from(complete_by_ms - clock_ms).unwrap_or(0);
        must(budget_ms <= left_ms, Invariant::Deadline, || {
            format!(
                "a request for {of} leaves {budget_ms} ms, and there were {left_ms} ms when its sender read the task"
            )
        })
    }

    /// An agent sends nothing after the deadline.
    pub(super) fn replied(
        &mut self,
        of: Try,
        (ending, output): (Ending, Option<u64>),
        by: &Arc<str>,
        clock_ms: i64,
    ) -> Finding {
        let dossier = self.dossier(of.order);
        dossier.replies.push((of, ending));
        if of.way == Way::Forward {
            dossier.outputs.extend(output.map(|output| (of.step, output)));
        }
        // What a service tells at the address of its call comes at any time (rule 38).
        if by.starts_with("api") {
            return Ok(());
        }
        let Some(limit_ms) = dossier.limit_ms(of, by) else {
            return Err((Invariant::Claims, format!("a reply to {of}, which nobody claimed")));
        };
        must(clock_ms < limit_ms, Invariant::Deadline, || {
            format!("a reply to {of}, {} ms after its deadline by the agent's clock", clock_ms - limit_ms)
        })
    }

    /// A request whose reply could not be sent is not deleted: the reply would be lost.
    pub(super) fn dismissed(&mut self, of: Try, by: u32, returned: usize) -> Finding {
        let unsent = self.dossier(of.order).unsent.remove(&(of.step, of.attempt, by)).unwrap_or(0);
        must(unsent <= returned, Invariant::SendBeforeAcknowledge, || {
            format!("a request for {of} is let go, and its reply could not be sent")
        })
    }

    /// Every call for a step carries the same key and the same body.
    pub(super) fn called(&mut self, of: Try, (key, body): (&Arc<str>, &Body), twins: usize) -> Finding {
        let keys = &mut self.dossier(of.order).keys;
        let first = keys.entry((of.step, of.way == Way::Undo)).or_insert_with(|| (key.clone(), body.clone()));
        must((&first.0, &first.1) == (key, body), Invariant::OneEffect, || {
            format!("{of} is called with key and body {:?}, and was with {first:?}", (key, body))
        })?;
        must(twins == 0, Invariant::OneEffect, || format!("{of} is called while {twins} such calls are under way"))
    }

    /// One agent alone calls for a step, in both directions (rule 21).
    pub(super) fn calls_alone(&mut self, of: Try, agent: usize) -> Finding {
        let first = *self.dossier(of.order).agents.entry(of.step).or_insert(agent);
        must(first == agent, Invariant::OneAgent, || {
            format!("{of} is called by agent {agent}, and the step was called by agent {first}")
        })
    }

    /// No call starts after the deadline minus the margin.
    pub(super) fn call_in_time(&mut self, of: Try, agent: usize, by: &Arc<str>, clock_ms: i64) -> Finding {
        let margin_ms = self.rules.margins_ms.get(agent).copied().unwrap_or(0);
        let Some(limit_ms) = self.dossier(of.order).limit_ms(of, by) else {
            return Err((Invariant::Claims, format!("a call for {of}, which nobody claimed")));
        };
        let late_ms = clock_ms - (limit_ms - self.dossier(of.order).margin_ms(of, by, margin_ms));
        must(late_ms < 0, Invariant::Deadline, || {
            format!("a call for {of} starts {late_ms} ms too late by the agent's clock")
        })
    }

    pub(super) fn effect(&mut self, of: Try) -> Finding {
        let before = self.dossier(of.order).effects(of.step);
        let has_raced = self.dossier(of.order).raced.contains(&of.step);
        let effects = self.dossier(of.order).effects.entry(of.step).or_default();
        let count = match of.way {
            Way::Forward => &mut effects.forward,
            Way::Undo => &mut effects.undo,
        };
        *count += 1;
        must(*count == 1, Invariant::OneEffect, || format!("{of} takes effect again"))?;
        must(of.way == Way::Undo || !before.undo_confirmed || has_raced, Invariant::NothingAfterUndo, || {
            format!("{of} takes effect after its undo was confirmed")
        })?;
        match of.way {
            Way::Forward => self.effect_in_sequence(of),
            Way::Undo => Ok(()),
        }
    }

    /// The predecessors of a step are done, at the services too.
    fn effect_in_sequence(&mut self, of: Try) -> Finding {
        let Some(dossier) = self.dossiers.get(&of.order) else { return Ok(()) };
        let flow = dossier.flow.as_ref();
        // It may be undone by now.
        let is_skipped = |step: usize| dossier.skipped.contains(&step);
        for step in flow.map(|flow| flow.all_before(of.step)).unwrap_or_default() {
            let is_decided = dossier.decided.contains(&(step, true));
            must(
                dossier.effects(step).confirmed || is_skipped(step) || is_decided || dossier.dropped.contains(&step),
                Invariant::Sequence,
                || format!("{of} takes effect, but step {step} before it was never confirmed"),
            )?;
        }
        Ok(())
    }

    pub(super) fn confirmed(&mut self, of: Try) -> Finding {
        let effects = self.dossier(of.order).effects.entry(of.step).or_default();
        match of.way {
            Way::Forward => effects.confirmed = true,
            Way::Undo => effects.undo_confirmed = true,
        }
        Ok(())
    }
}
