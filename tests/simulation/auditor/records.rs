//! Writes of records: invariants 2, 3, 4, 6, 7, 8 and 10, and rules 3, 12 and 14.

use std::sync::Arc;

use domain::limits::{DEFERRAL_MS_MAX, SETTLES_WITHIN_MS_MAX};

use super::causes::has_cause;
use super::commands::notes_stay;
use super::dossier::{Claimed, Dossier, Past};
use super::late::{has_its_deadline, is_late_well};
use super::lines::goes_on_well;
use super::states::{absorbing, ended_well, has_alert, recorded, watched};
use super::ways::{applies, begins_well, is_gone, is_over, is_past_pivot};
use super::{Auditor, Finding, Flow, Invariant, must};
use rehearsal::seen::{Ending, OrderState, Record, StepSeen, StepState, Try, Way};

impl Auditor {
    pub(super) fn inserted(&mut self, fingerprint: &Arc<str>, record: &Record, by: u32, clock_ms: i64) -> Finding {
        let Self { rules, dossiers, at_ms, .. } = self;
        let at_ms = *at_ms;
        let dossier = dossiers.entry(record.order).or_default();
        must(dossier.last.is_none(), Invariant::Record, || "inserted a second time".to_owned())?;
        let Some(posted) = dossier.posted.iter().find(|posted| posted.fingerprint == *fingerprint) else {
            return Err((Invariant::Record, "its document is none that was posted under its name".to_owned()));
        };
        dossier.channel.clone_from(&posted.channel);
        dossier.begins_with(record.workflow)?;
        dossier.document = Some(posted.document);
        dossier.stored = Some((fingerprint.clone(), at_ms));
        dossier.elements.clone_from(&posted.elements);
        let flow = rules.workflows.get(&record.workflow);
        dossier.flow = flow.map(|flow| Arc::new(flow.of_order(&dossier.elements)));
        let flow = dossier.flow.clone();
        dossier.ways = flow.as_ref().map(|flow| flow.ways.clone()).unwrap_or_default();
        dossier.going_since_ms = at_ms;
        must((1..=2).contains(&record.version), Invariant::Record, || format!("a new order is not new: {record}"))?;
        begins_well(dossier, record)?;
        if let Some(flow) = &flow {
            must(record.steps.len() == flow.after.len(), Invariant::Lines, || {
                format!("it begins with other steps than its document has elements for: {record}")
            })?;
            has_its_deadline(flow, record)?;
            is_begun(flow, record)?;
        }
        let new = new(dossier, record);
        look(flow.as_deref(), dossier, [&new, record], clock_ms)?;
        dossier.keep(record, by, at_ms);
        Ok(())
    }

    pub(super) fn written(&mut self, record: &Record, by: u32, clock_ms: i64) -> Finding {
        let Self { dossiers, at_ms, jumped_until_ms, troubled_until_ms, .. } = self;
        let dossier = dossiers.entry(record.order).or_default();
        dossier.troubled_until_ms = *troubled_until_ms;
        let Some(before) = dossier.last.take() else {
            return Err((Invariant::Record, "a record without its order".to_owned()));
        };
        let was_going = matches!(before.state, OrderState::Pending | OrderState::Processing | OrderState::Compensating);
        let turned = before.state != record.state && record.state == OrderState::Compensating;
        if !was_going || turned || before.paused != record.paused {
            dossier.going_since_ms = *at_ms;
        }
        if before.state == OrderState::Error && record.state != OrderState::Error {
            dossier.left_error_ms = Some(*at_ms);
        }
        let flow = dossier.flow.clone();
        let finding = look(flow.as_deref(), dossier, [&before, record], clock_ms);
        // The ends of attempts that were read from a wrong clock say nothing (rule 23).
        if *at_ms < *jumped_until_ms {
            dossier.running_until_ms.clear();
        }
        dossier.keep(record, by, *at_ms);
        let is_undone = |step: &StepSeen| (step.way, step.state) == (Way::Undo, StepState::Processed);
        let steps = before.steps.iter().zip(&record.steps).enumerate();
        let new: Vec<usize> =
            steps.filter(|(_, (b, a))| !is_undone(b) && is_undone(a)).map(|(index, _)| index).collect();
        finding.and_then(|()| self.undone_without_calls(record, &new))
    }
}

impl Auditor {
    /// Undos that need no call wait for the calls of their steps like any others.
    fn undone_without_calls(&mut self, record: &Record, undone: &[usize]) -> Finding {
        for &step in undone {
            let of = Try { order: record.order, step, way: Way::Undo, attempt: record.steps[step].attempt };
            if self.dossier(record.order).has_no_undo(step) {
                self.undo_has_waited(of)?;
            }
        }
        Ok(())
    }
}

/// A new order that goes on has its first steps claimed in its insert, but for those that wait (rule 35).
fn is_begun(flow: &Flow, record: &Record) -> Finding {
    if !matches!(record.state, OrderState::Pending | OrderState::Processing) {
        return Ok(());
    }
    for (index, step) in record.steps.iter().enumerate() {
        let is_ready = flow.all_before(index).into_iter().all(|earlier| is_over(&record.steps[earlier]));
        let waits = flow.waits_ms[index] > 0 || step.waits_until_ms.is_some();
        must(step.state != StepState::Pending || !is_ready || waits, Invariant::Claims, || {
            format!("step {index} of a new order waits for nothing, and is not claimed: {record}")
        })?;
    }
    Ok(())
}

/// The version before the first one, which is not stored: the order is new, and nothing has happened yet.
fn new(dossier: &Dossier, record: &Record) -> Record {
    let state = |index| if applies(dossier, index) { StepState::Pending } else { StepState::Skipped };
    Record {
        version: record.version - 1,
        state: OrderState::Pending,
        reason: None,
        entered: None,
        paused: false,
        notes: Vec::new(),
        contradicted: 0,
        late_ms: None,
        watch_ms: record.complete_by_ms,
        unsent: Vec::new(),
        steps: (0..record.steps.len()).map(|index| StepSeen::new(state(index))).collect(),
        ..record.clone()
    }
}

impl Dossier {
    fn keep(&mut self, record: &Record, by: u32, at_ms: i64) {
        let since = record.reason.as_ref().map_or(0, |(_, since)| *since);
        if record.state.is_final() {
            self.final_since_ms.get_or_insert(at_ms);
        }
        let past_pivot = is_past_pivot(self, record, None);
        let was_late = self.is_late;
        self.is_late = record.late_ms.is_some();
        let is_found_late = self.is_late && !was_late;
        let is_awaited = |step: &StepSeen| step.state == StepState::Processing && step.waits_until_ms.is_some();
        let is_awaiting = record.steps.iter().any(is_awaited);
        let is_contradicted = record.contradicted > self.last.as_ref().map_or(0, |last| last.contradicted);
        let past = Past {
            state: record.state,
            since,
            paused: record.paused,
            past_pivot,
            is_awaiting,
            is_found_late,
            is_contradicted,
        };
        self.past.insert(record.version, past);
        for (index, step) in record.steps.iter().enumerate() {
            if let (StepState::Processing, Some(complete_by_ms)) = (step.state, step.complete_by_ms) {
                let claim = Claimed { way: step.way, complete_by_ms, by, at_ms, requested: false };
                self.claims.entry((index, step.attempt)).or_insert(claim);
            }
        }
        self.note_wanted(record, at_ms);
        let is_skipped = |(_, step): &(usize, &StepSeen)| step.state == StepState::Skipped;
        self.skipped.extend(record.steps.iter().enumerate().filter(is_skipped).map(|(index, _)| index));
        self.last = Some(record.clone());
    }
}

/// One write with its context.
fn look(flow: Option<&Flow>, dossier: &mut Dossier, [before, after]: [&Record; 2], clock_ms: i64) -> Finding {
    must(after.version == before.version + 1, Invariant::Record, || {
        format!("version {} follows version {}", after.version, before.version)
    })?;
    let is_same = before.workflow == after.workflow && before.steps.len() == after.steps.len();
    must(is_same, Invariant::Record, || "the order changed its workflow".to_owned())?;
    let Some(flow) = flow else {
        return Err((Invariant::Record, format!("there is no version {} of the workflow", after.workflow)));
    };
    absorbing(before, after)?;
    notes_stay(dossier, before, after)?;
    goes_on_well(dossier, before, after)?;
    let is_whole = |step: &StepSeen| step.way == Way::Undo && !step.dropped;
    dossier.is_undoing |= after.state == OrderState::Compensating || after.steps.iter().any(is_whole);
    let is_dropped = |(_, step): &(usize, &StepSeen)| step.dropped;
    dossier.dropped.extend(after.steps.iter().enumerate().filter(is_dropped).map(|(index, _)| index));
    for index in 0..after.steps.len() {
        let (b, a) = (&before.steps[index], &after.steps[index]);
        let of = Try { order: after.order, step: index, way: b.way, attempt: b.attempt };
        let endings = [Ending::Failed, Ending::Done, Ending::TooLarge, Ending::Deferred, Ending::Accepted];
        // An approval makes no call.
        let has_answered = dossier.ways(index).approval || endings.iter().any(|ending| dossier.has_reply(of, *ending));
        let longest_ms = flow.within_ms[index].saturating_add_unsigned(SETTLES_WITHIN_MS_MAX);
        // Each writer cuts what is too far ahead by its own clock (rule 23).
        if let Some(until_ms) = dossier.running_until_ms.get_mut(&index) {
            *until_ms = (*until_ms).min(clock_ms + longest_ms);
        }
        if (b.way, a.way, b.state) == (Way::Forward, Way::Undo, StepState::Processing) && !has_answered {
            let may_run = |until_ms: &i64| clock_ms < *until_ms && *until_ms <= clock_ms + longest_ms;
            let until_ms = b.complete_by_ms.filter(may_run);
            dossier.running_until_ms.extend(until_ms.map(|until_ms| (index, until_ms)));
        }
        let change = Change { flow, dossier, before, after, index, clock_ms };
        change.claim()?;
        change.counting()?;
        change.movers()?;
        change.output()?;
        if a.attempt > b.attempt && a.way == Way::Undo {
            dossier.running_until_ms.remove(&index);
        }
        if a.failures > b.failures {
            must(dossier.counted.insert((index, b.attempt)), Invariant::Counting, || {
                format!("attempt {} of step {index} is counted twice", b.attempt)
            })?;
        }
    }
    has_cause(flow, dossier, [before, after], clock_ms)?;
    ended_well(dossier, after)?;
    recorded(before, after)?;
    watched(flow, after)?;
    is_late_well(flow, dossier, [before, after], clock_ms)?;
    has_alert(dossier, after)
}

/// The change of one step in one write.
pub(super) struct Change<'a> {
    pub(super) flow: &'a Flow,
    pub(super) dossier: &'a Dossier,
    pub(super) before: &'a Record,
    pub(super) after: &'a Record,
    pub(super) index: usize,
    /// The writer's clock.
    pub(super) clock_ms: i64,
}

impl Change<'_> {
    pub(super) fn steps(&self) -> (&StepSeen, &StepSeen) {
        (&self.before.steps[self.index], &self.after.steps[self.index])
    }

    pub(super) fn of(&self, step: &StepSeen) -> Try {
        Try { order: self.after.order, step: self.index, way: step.way, attempt: step.attempt }
    }

    pub(super) fn has_turned(&self) -> bool {
        let (b, a) = self.steps();
        b.way != a.way
    }

    /// Invariants 2 and 6: the claimant and the time of a claim.
    fn claim(&self) -> Finding {
        let (b, a) = self.steps();
        let index = self.index;
        must(a.attempt >= b.attempt && a.attempt <= b.attempt + 1, Invariant::Claims, || {
            format!("step {index} goes from attempt {} to {}", b.attempt, a.attempt)
        })?;
        must(b.way == Way::Forward || a.way == Way::Undo, Invariant::NothingAfterUndo, || {
            format!("step {index} turns forward again")
        })?;
        if a.attempt == b.attempt {
            let is_held = a.state == StepState::Processing;
            let holder = |step: &StepSeen| (step.state, step.way, step.locked_by.clone(), step.complete_by_ms);
            return must(!is_held || holder(a) == holder(b), Invariant::Claims, || {
                format!("attempt {} of step {index} has another claimant or deadline", a.attempt)
            });
        }
        let is_whole = a.state == StepState::Processing && a.locked_by.is_some() && a.complete_by_ms.is_some();
        must(is_whole, Invariant::Claims, || format!("attempt {} of step {index} is no claim", a.attempt))?;
        must(!self.after.paused, Invariant::Operator, || format!("step {index} is claimed while the order is paused"))?;
        // A step that is deferred by zero time may be claimed in the same write.
        let is_given_back = self.dossier.has_reply(self.of(b), Ending::Deferred);
        must(b.state != StepState::Processing || self.has_turned() || is_given_back, Invariant::Claims, || {
            format!("step {index} is claimed while attempt {} is held", b.attempt)
        })?;
        self.patience()?;
        self.needs_a_call()?;
        self.sequence()
    }

    /// No claim before the back-off ends, nor, for an undo, before the forward attempt ends, by the writer's clock.
    fn patience(&self) -> Finding {
        let (b, _) = self.steps();
        let (index, clock_ms) = (self.index, self.clock_ms);
        let waits = b.state == StepState::Pending && !self.has_turned();
        // A time further ahead counts as over (rule 23).
        let latest_ms = clock_ms.saturating_add_unsigned(DEFERRAL_MS_MAX);
        let waits_until_ms =
            b.not_before_ms.filter(|until_ms| waits && *until_ms <= latest_ms && !self.is_answered_late());
        must(waits_until_ms.is_none_or(|until_ms| until_ms <= clock_ms), Invariant::Claims, || {
            format!("step {index} is claimed before its back-off is over")
        })?;
        must(self.has_waited(), Invariant::Claims, || format!("step {index} is claimed before its long wait is over"))?;
        self.calls_are_over()
    }

    /// No forward attempt was in flight at the turn that may still run, by the writer's clock.
    pub(super) fn calls_are_over(&self) -> Finding {
        let (_, a) = self.steps();
        let (index, clock_ms) = (self.index, self.clock_ms);
        let running_until_ms = self.dossier.running_until_ms.get(&index);
        let running_until_ms = running_until_ms.filter(|_| a.way == Way::Undo && !self.is_answered_late());
        must(running_until_ms.is_none_or(|until_ms| *until_ms <= clock_ms), Invariant::NothingAfterUndo, || {
            format!("the undo of step {index} is claimed while its forward attempt may still run")
        })
    }

    /// Whether the agent said how the forward attempt that was in flight at the turn ended. The undo waits no longer than
    /// for its calls then (rule 16): whether that was long enough, the books show.
    fn is_answered_late(&self) -> bool {
        let (b, _) = self.steps();
        let forward = Try { way: Way::Forward, ..self.of(b) };
        let ends = [Ending::Done, Ending::TooLarge, Ending::Failed, Ending::Deferred];
        b.way == Way::Undo && ends.into_iter().any(|ending| self.dossier.has_reply(forward, ending))
    }

    /// Whether the step waited longer, after too many failures (rule 39).
    fn was_longer(&self) -> bool {
        let (b, _) = self.steps();
        b.attempt > 0 && b.state == StepState::Pending && self.flow.longer_ms(self.index, b.failures) > 0
    }

    /// An operator ended its longer wait by a resubmit. Its failures are forgotten.
    fn is_longer_wait_ended(&self) -> bool {
        let (_, a) = self.steps();
        self.was_longer() && a.failures == 0 && self.dossier.commands.contains("Resubmit")
    }

    /// A first claim waits for as long as the workflow says, from the moment at which its step is ready (rule 35). A claim
    /// after a longer wait comes after its end (rule 39).
    fn has_waited(&self) -> bool {
        let (b, a) = self.steps();
        if self.was_longer() && !self.has_turned() {
            // The supervisor wrote its end at the failure, by the clock of that time.
            let is_over = b.waits_until_ms.is_none_or(|until_ms| until_ms <= self.clock_ms);
            return is_over || self.is_longer_wait_ended();
        }
        let wait_ms = self.flow.waits_ms[self.index];
        if a.way == Way::Undo || b.attempt > 0 || wait_ms == 0 {
            return true;
        }
        b.waits_until_ms.is_some_and(|until_ms| until_ms <= self.clock_ms)
    }

    /// Whether the whole order turns round, or has.
    fn has_turned_whole(&self) -> bool {
        matches!(self.after.state, OrderState::Compensating | OrderState::Compensated) || self.dossier.is_undoing
    }

    pub(super) fn sequence(&self) -> Finding {
        let (_, a) = self.steps();
        let index = self.index;
        let steps = &self.after.steps;
        match a.way {
            Way::Forward => {
                must(!steps[index].dropped, Invariant::Lines, || {
                    format!("step {index} of a dropped line is claimed: {}", self.after)
                })?;
                let mut before = self.flow.all_before(index).into_iter();
                must(
                    before.all(|earlier| is_over(&steps[earlier]) || steps[earlier].dropped),
                    Invariant::Sequence,
                    || format!("step {index} is claimed before what it comes after is processed: {}", self.after),
                )
            }
            Way::Undo => {
                // What comes after all lines goes on without one that was dropped.
                let goes_on =
                    |later: &usize| !self.has_turned_whole() && self.flow.line(*later) != self.flow.line(index);
                let is_later = |later: &usize| self.flow.all_before(*later).contains(&index) && !goes_on(later);
                let mut later = (0..steps.len()).filter(is_later);
                must(later.all(|later| is_gone(&steps[later])), Invariant::Sequence, || {
                    format!("the undo of step {index} is claimed before those after it are undone: {}", self.after)
                })
            }
        }
    }

    /// The output of a step is an agent's output, is stored with the step, and never changes.
    fn output(&self) -> Finding {
        let (b, a) = self.steps();
        let index = self.index;
        let is_done = (a.way, a.state) == (Way::Forward, StepState::Processed);
        must(a.output.is_some() || !is_done, Invariant::Record, || format!("what came of step {index} is not kept"))?;
        // One write may both complete a step and turn its direction, or the result may come just after the turn.
        if (b.way == Way::Undo && !self.is_answered_late()) || b.output.is_some() || a.output.is_none() {
            return must(a.output == b.output, Invariant::Record, || format!("what came of step {index} changed"));
        }
        if self.dossier.ways(index).approval {
            return self.is_decided(true);
        }
        let is_said = a.output.is_some_and(|output| self.dossier.outputs.contains(&(index, output)));
        must(is_said, Invariant::Record, || format!("what is kept as come of step {index}, nobody said"))
    }

    /// Invariant 4.
    fn counting(&self) -> Finding {
        let (b, a) = self.steps();
        let index = self.index;
        must(a.failures <= b.failures + 1, Invariant::Counting, || {
            format!("failures of step {index} go from {} to {}", b.failures, a.failures)
        })?;
        must(a.failures <= a.attempt, Invariant::Counting, || {
            format!("step {index} has {} failures in {} attempts", a.failures, a.attempt)
        })?;
        let begins_afresh = self.has_turned() || b.state == StepState::Error || self.is_undone_afresh();
        let may_reset = a.failures == 0 && (begins_afresh || self.is_longer_wait_ended());
        must(a.failures >= b.failures || may_reset, Invariant::Counting, || {
            format!("failures of step {index} go from {} to {}", b.failures, a.failures)
        })
    }

    /// Invariant 3: the cause of a step's change.
    fn movers(&self) -> Finding {
        let (b, a) = self.steps();
        let index = self.index;
        if self.has_turned() {
            // As it turns round, the undo of a line that was dropped before may be given up.
            let has_failed = self
                .after
                .reason
                .as_ref()
                .is_some_and(|(code, since)| **code == *"compensation-failed" && *since == self.after.version);
            let is_undone = matches!(self.after.state, OrderState::Compensating | OrderState::Compensated);
            let is_so = a.dropped || is_undone || has_failed;
            must(is_so, Invariant::Movers, || format!("step {index} turns round in {:?}", self.after.state))?;
            let is_undone = a.state == StepState::Processed;
            return if is_undone { self.may_be_undone_without_call() } else { Ok(()) };
        }
        if a.failures > b.failures {
            must(b.state == StepState::Processing, Invariant::Movers, || {
                format!("a failure of step {index} is counted, of which no attempt was under way")
            })?;
            return self.failure_is_real();
        }
        if a.attempt > b.attempt || a.state == b.state {
            return Ok(());
        }
        let of = self.of(b);
        match (b.state, a.state) {
            (_, StepState::Processed) if a.way == Way::Undo && self.dossier.has_no_undo(index) => {
                self.may_be_undone_without_call()
            }
            (StepState::Processing, StepState::Processed) if self.dossier.ways(index).approval => self.is_decided(true),
            (_, StepState::Processed) => self.success_is_real(of),
            (_, StepState::Skipped) => self.may_be_skipped(),
            (StepState::Processing, StepState::Pending | StepState::Error) => {
                let is_given_back = self.dossier.has_reply(of, Ending::Deferred) || self.is_undone_afresh();
                must(is_given_back, Invariant::Movers, || {
                    format!("{of} is given back, and nobody counted it or asked for that")
                })
            }
            (StepState::Error, StepState::Pending) => {
                let commands = &self.dossier.commands;
                let is_commanded = commands.contains("Resubmit") || (b.way == Way::Undo && commands.contains("Cancel"));
                must(is_commanded, Invariant::Movers, || {
                    format!("step {index} was given up and starts again, and nobody wished it")
                })
            }
            (StepState::Processed | StepState::Skipped, _) => {
                Err((Invariant::Movers, format!("step {index} was {:?} and is {:?} now", b.state, a.state)))
            }
            (StepState::Pending, StepState::Error) => {
                let over_ms = b.started_ms.map(|started_ms| started_ms + self.flow.horizons_ms[index]);
                must(over_ms.is_some_and(|over_ms| over_ms <= self.clock_ms), Invariant::Movers, || {
                    format!("step {index} is given up while nobody was at work on it, before its horizon")
                })
            }
            (StepState::Pending | StepState::Error, StepState::Processing)
            | (StepState::Pending, StepState::Pending)
            | (StepState::Processing, StepState::Processing)
            | (StepState::Error, StepState::Error) => Ok(()),
        }
    }
}
