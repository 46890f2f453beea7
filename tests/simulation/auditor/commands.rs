//! Operators' commands: rules 12 and 30.

use std::sync::Arc;

use domain::id::OrderId;
use domain::limits::{NOTES_MAX, SETTLES_WITHIN_MS_MAX};

use super::dossier::{Dossier, Past};
use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{OrderState, Record, SettledStep, StepSeen, StepState};

impl Auditor {
    /// A command is on the scheduler queue.
    pub(super) fn wished(&mut self, order: OrderId, action: &'static str, settled: Option<&SettledStep>) {
        let dossier = self.dossier(order);
        dossier.commands.insert(action);
        if let Some(SettledStep { step, way, output, is_skipped, is_dropped }) = settled {
            if *is_dropped {
                dossier.drops.insert(*step);
            } else if *is_skipped {
                dossier.skips.insert(*step);
            } else {
                dossier.settled.insert((*step, *way));
            }
            dossier.outputs.extend(output.map(|output| (*step, output)));
        }
    }

    /// A person's decision on a step is on the scheduler queue.
    pub(super) fn decided(&mut self, order: OrderId, step: usize, approves: bool) {
        let dossier = self.dossier(order);
        dossier.commands.insert(if approves { "Approve" } else { "Reject" });
        dossier.decided.insert((step, approves));
        let attempt = dossier.last.as_ref().and_then(|last| last.steps.get(step)).map_or(0, |step| step.attempt);
        dossier.questions.insert(step, attempt);
    }

    /// A note is on the scheduler queue.
    pub(super) fn note_queued(&mut self, order: OrderId, words: &Arc<str>, take: Option<bool>) {
        let dossier = self.dossier(order);
        dossier.commands.insert("Note");
        dossier.notes.insert(words.clone(), take);
    }

    /// A deleted note is in the history, unless the order ended before or is full of notes, or its operator takes the
    /// order on without having seen who has.
    pub(super) fn note_handled(&mut self, order: OrderId, words: &Arc<str>, looked_at: u64) -> Finding {
        let dossier = self.dossier(order);
        let Some(last) = &dossier.last else { return Ok(()) };
        let takes = dossier.notes.get(words).copied().flatten();
        let is_stale = takes.is_some() && last.taken_version > looked_at;
        let is_met = last.state.is_final() || is_stale || last.notes.len() >= NOTES_MAX || last.notes.contains(words);
        must(is_met, Invariant::Operator, || format!("the note {words:?} is let go, and is not written: {last}"))
    }

    /// An accepted command is on the scheduler queue, or was.
    pub(super) fn promised(&mut self, order: OrderId, action: &'static str) -> Finding {
        must(self.dossier(order).commands.contains(action), Invariant::Operator, || {
            format!("the {action} is accepted, and was never queued")
        })
    }

    /// A deleted command was carried out, or the order's state no longer allows it. `settles` is the step of a settle, and
    /// `clock_ms` is the handler's clock.
    pub(super) fn granted(
        &mut self,
        order: OrderId,
        action: &'static str,
        looked_at: u64,
        settles: Option<usize>,
        clock_ms: i64,
    ) -> Finding {
        let dossier = self.dossier(order);
        let Some(last) = &dossier.last else { return Ok(()) };
        // An order stays in `Error` while another of its steps is. By a clock that is behind, a call may still run.
        let is_at_work = |step: &StepSeen| {
            let in_flight_ms = step.complete_by_ms.map(|by_ms| by_ms.saturating_add_unsigned(SETTLES_WITHIN_MS_MAX));
            step.runs_until_ms.max(in_flight_ms).is_some_and(|until_ms| until_ms > clock_ms)
        };
        let decides = matches!(action, "Approve" | "Reject");
        let is_settled = settles.is_some_and(|index| {
            let flow = dossier.flow.as_ref().filter(|_| dossier.drops.contains(&index));
            if flow.is_some_and(|flow| !flow.may_be_dropped(dossier, index, last)) {
                return true;
            }
            let step = &last.steps[index];
            if decides {
                return step.state != StepState::Processing || dossier.questions.get(&index) < Some(&step.attempt);
            }
            step.state != StepState::Error || is_at_work(step)
        });
        let waits = action == "Close" && last.steps.iter().any(is_at_work);
        let is_met =
            is_settled || waits || dossier.past.range(looked_at..).any(|(_, past)| past.meets(action, looked_at));
        must(is_met, Invariant::Operator, || {
            format!("the {action} of who saw v{looked_at} is let go, and nothing came of it: {last}")
        })
    }
}

/// Notes stay as they are. A new one is the last, was queued, and is written once.
pub(super) fn notes_stay(dossier: &Dossier, before: &Record, after: &Record) -> Finding {
    let new = after.notes.strip_prefix(before.notes.as_slice());
    let is_kept = new.is_some_and(|new| match new {
        [] => true,
        [one] => dossier.notes.contains_key(one) && !before.notes.contains(one),
        _ => false,
    });
    must(is_kept, Invariant::Operator, || format!("the notes were {:?}, and are {:?}", before.notes, after.notes))
}

impl Past {
    /// Whether an order in this state satisfies the command for the seen version, or can no longer satisfy it. A newer
    /// error is not the one that the operator saw.
    fn meets(self, action: &str, looked_at: u64) -> bool {
        let has_ended = self.state.is_final();
        let is_in_error = self.state == OrderState::Error;
        let is_other_error = is_in_error && self.since > looked_at;
        match action {
            "Cancel" => has_ended || is_other_error || self.past_pivot || self.state == OrderState::Compensating,
            "Resubmit" | "Settle" | "Close" => !is_in_error || is_other_error,
            // Only the step says whether it is still asked for, or it was asked for again.
            "Approve" | "Reject" => has_ended || self.state == OrderState::Compensating || is_other_error,
            "Pause" => has_ended || is_in_error || self.paused,
            _ => has_ended || is_in_error || !self.paused,
        }
    }
}
