//! A stored task without what decides nothing: no times but those that matter, no nonce, no history, no words. Versions
//! are left out as well: a worker knows whether what it read is still what is stored.

use std::cmp::Ordering;

use domain::order::Order;
use domain::task::{Attempt, Direction, Notice, NoticeKind, Pause, ProcessState, StepState, Transition, Watch, What};
use domain::time::Timestamp;
use domain::workflow::Workflow;

use super::bounds::{Clocks, STEPS};
use super::versions::place_of_task;

/// Milliseconds of a tick of the one clock.
pub const TICK_MS: u64 = 1_000;
/// How far a deadline is away that is to look far away, either way, where clocks show anything.
const FAR_MS: u64 = 3_600_000;
/// The time at which every decision is made.
const NOW: Timestamp = Timestamp::from_epoch_ms(1_000_000_000_000);
/// Version of every task that a decision is made on.
const VERSION: u64 = 1;
/// Added to the number of an alert, so that it is no version that a decision can give.
const ALERTS: u64 = 100;

/// The time at which every decision is made.
#[must_use]
pub const fn now() -> Timestamp {
    NOW
}

/// A step of a [`Task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// Where it is.
    pub state: StepState,
    /// Whether it is being taken back.
    pub undo: bool,
    /// The fencing token.
    pub attempt: u8,
    /// Failures counted.
    pub failures: u8,
    /// Whether it was claimed in this direction.
    pub started: bool,
    /// Whether the result of an attempt under way comes later, and is awaited.
    pub awaited: bool,
    /// Whether its line was dropped.
    pub dropped: bool,
    /// Ticks until `CompleteBy` of an attempt under way, not below that at which it is expired; 0 where clocks show
    /// anything.
    pub left: i8,
    /// Ticks until `NotBefore`, 0 when it is over or there is none; where clocks show anything 1 if there is one.
    pub waits: u8,
    /// Ticks until `MayRunUntil`, 0 when it is over or there is none; 0 where clocks show anything.
    pub runs: u8,
}

impl Step {
    /// Whether it has a deadline at all that a clock could be wrong about.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.state == StepState::Processing || self.waits > 0
    }

    /// Whether its undo is confirmed.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        self.undo && self.state == StepState::Processed
    }
}

/// Who looks after a [`Task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Care {
    /// Nobody.
    Nobody,
    /// The supervisor.
    Supervisor,
    /// The operator.
    Operator,
}

/// A stored task without what decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Task {
    /// The version that it is pinned to, by its place.
    pub version: u8,
    /// Where it is.
    pub state: ProcessState,
    /// In workflow order.
    pub steps: [Step; STEPS],
    /// Who looks after it. Where it is the supervisor it is due at any time: that covers every watch that is early.
    pub care: Care,
    /// Whether an operator keeps new steps from starting.
    pub paused: bool,
    /// Alerts that came up so far.
    pub alerts: u8,
    /// The alert that is not known to have been sent, by its number.
    pub owed: Option<u8>,
}

impl Task {
    /// Any total order will do: it only makes worlds comparable in which equal instances are at different things.
    fn key(&self) -> impl Ord + use<> {
        let step = |step: Step| {
            let is = (step.undo, step.started, step.awaited, step.dropped);
            (step.state as u8, is, step.attempt, step.failures, step.left, step.waits, step.runs)
        };
        (self.version, self.state as u8, self.steps.map(step), self.care as u8, self.paused, self.alerts, self.owed)
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Which deadlines seem to be over, by the step's place; what the one clock shows needs none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Late(pub [bool; STEPS]);

impl Task {
    /// The task of a new order.
    #[must_use]
    pub fn of(order: &Order, workflow: &Workflow, clocks: Clocks) -> Self {
        Self::abstracted(&domain::task::Task::new(order, workflow, 1, 0), None, clocks)
    }

    /// Leaves out what decides nothing. `before`: the task that a decision was made on.
    ///
    /// # Panics
    /// When the task is none of this model.
    #[must_use]
    pub fn abstracted(task: &domain::task::Task, before: Option<&Self>, clocks: Clocks) -> Self {
        let steps: Vec<Step> = task.steps.iter().map(|step| abstracted(step, clocks)).collect();
        let earlier = before.map_or(0, |before| before.alerts);
        let owed = task.unsent.iter().rev().find(|notice| notice.kind == NoticeKind::OrderNeedsOperator);
        let owed = owed.map(|notice| number(notice, earlier));
        Self {
            version: place_of_task(task),
            state: task.process_state,
            steps: steps.try_into().expect("as many steps as the workflow"),
            care: match task.watch {
                None => Care::Nobody,
                Some(Watch::Due(_) | Watch::Wait(_)) => Care::Supervisor,
                Some(Watch::Error(_)) => Care::Operator,
            },
            paused: task.paused.is_some(),
            alerts: earlier.max(owed.unwrap_or(0)),
            owed,
        }
    }

    /// A task that this one stands for, in which the deadlines of `late` are over at [`now`].
    #[must_use]
    pub fn concrete(&self, order: &Order, workflow: &Workflow, clocks: Clocks, late: Late) -> domain::task::Task {
        let mut task = domain::task::Task::new(order, workflow, 1, 0);
        task.version = VERSION;
        task.process_state = self.state;
        for ((index, step), stored) in self.steps.iter().enumerate().zip(&mut task.steps) {
            concrete(step, stored, clocks, late.0[index]);
        }
        let shard = 0;
        (task.watch, task.watch_at) = match self.care {
            Care::Nobody => (None, None),
            Care::Supervisor => (Some(Watch::Due(shard)), Some(NOW)),
            Care::Operator => (Some(Watch::Error(shard)), Some(NOW)),
        };
        let pause = || Pause { by: "operator".into(), reason: "model".into(), since: NOW, version: VERSION };
        task.paused = self.paused.then(pause);
        task.unsent = self.owed.map(alert).into_iter().collect();
        // A result that contradicts an end tells a person once, and changes nothing else: here it was told.
        let told = self.steps.iter().enumerate().flat_map(|(index, step)| {
            [Direction::Forward, Direction::Undo].map(|direction| {
                let of = Attempt { step: index, direction, number: step.attempt.into() };
                Transition {
                    at: NOW,
                    who: "model".into(),
                    what: What::Contradicted(of),
                    why: None,
                    command_id: None,
                    bulk: None,
                }
            })
        });
        task.history = told.collect();
        task
    }

    /// A tick of the one clock passes.
    pub fn tick(&mut self) {
        for step in &mut self.steps {
            if step.state == StepState::Processing {
                step.left = expired(i64::from(step.left) - 1);
            }
            step.waits = step.waits.saturating_sub(1);
            step.runs = step.runs.saturating_sub(1);
        }
    }
}

/// The notice of the alert of this number.
#[must_use]
pub fn alert(number: u8) -> Notice {
    Notice { kind: NoticeKind::OrderNeedsOperator, version: ALERTS + u64::from(number), resends: 0 }
}

/// The number of an alert: one that came up in this decision is the next.
#[must_use]
pub fn number(notice: &Notice, earlier: u8) -> u8 {
    notice.version.checked_sub(ALERTS).and_then(|number| u8::try_from(number).ok()).unwrap_or(earlier + 1)
}

/// Ticks until then; not below 0.
#[must_use]
pub fn ticks_until(at: Timestamp) -> u8 {
    u8::try_from(NOW.ms_until(at) / TICK_MS).unwrap_or(u8::MAX)
}

/// One tick of grace: what is over for longer is expired, and how long decides nothing.
fn expired(left: i64) -> i8 {
    i8::try_from(left.max(-1)).unwrap_or(i8::MAX)
}

fn abstracted(step: &domain::task::Step, clocks: Clocks) -> Step {
    let left = step.complete_by.map_or(0, |at| (at.epoch_ms() - NOW.epoch_ms()) / TICK_MS.cast_signed());
    let number = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
    Step {
        state: step.process_state,
        undo: step.direction == Direction::Undo,
        attempt: number(step.attempt),
        failures: number(step.failure_count),
        started: step.started_at.is_some(),
        awaited: step.is_awaited(),
        dropped: step.dropped,
        left: if clocks == Clocks::One { expired(left) } else { 0 },
        waits: match clocks {
            Clocks::One => step.not_before.map_or(0, ticks_until),
            Clocks::Any => u8::from(step.not_before.is_some()),
        },
        runs: if clocks == Clocks::One { step.may_run_until.map_or(0, ticks_until) } else { 0 },
    }
}

fn concrete(step: &Step, stored: &mut domain::task::Step, clocks: Clocks, is_late: bool) {
    let far = if is_late { NOW.minus_ms(FAR_MS) } else { NOW.plus_ms(FAR_MS) };
    let near = |ticks: i64| Timestamp::from_epoch_ms(NOW.epoch_ms() + ticks * TICK_MS.cast_signed());
    let at = |ticks: i64| if clocks == Clocks::One { near(ticks) } else { far };
    let is_claimed = step.state == StepState::Processing;
    stored.process_state = step.state;
    stored.direction = if step.undo { Direction::Undo } else { Direction::Forward };
    stored.dropped = step.dropped;
    stored.attempt = u32::from(step.attempt);
    stored.failure_count = u32::from(step.failures);
    stored.locked_by = is_claimed.then(|| "scheduler".into());
    stored.complete_by = is_claimed.then(|| at(i64::from(step.left)));
    stored.waits_until = step.awaited.then_some(far);
    stored.not_before = (step.waits > 0).then(|| at(i64::from(step.waits)));
    stored.may_run_until = (step.runs > 0).then(|| near(i64::from(step.runs)));
    stored.started_at = step.started.then_some(NOW);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::bounds::Bounds;
    use crate::model::decision::sample_order;
    use crate::model::versions::{COMPILED, Pinning, Versions};

    #[test]
    fn what_is_made_concrete_and_abstracted_again_is_the_same() {
        let versions = Versions::new(&Bounds::ONE, Pinning::Kept);
        let workflow = versions.at(COMPILED);
        let order = sample_order();
        for clocks in [Clocks::Any, Clocks::One] {
            let mut task = Task::of(&order, workflow, clocks);
            let timed = u8::from(clocks == Clocks::Any);
            task.state = ProcessState::Error;
            task.steps[0] =
                Step { state: StepState::Processing, attempt: 2, failures: 1, started: true, ..task.steps[0] };
            task.steps[1] = Step { undo: true, waits: 1, attempt: timed, runs: 2 * (1 - timed), ..task.steps[1] };
            (task.care, task.paused, task.alerts, task.owed) = (Care::Operator, true, 2, Some(2));
            for late in [Late([false; 2]), Late([true; 2]), Late([true, false])] {
                let concrete = task.concrete(&order, workflow, clocks, late);
                assert_eq!(Task::abstracted(&concrete, Some(&task), clocks), task, "{clocks:?} {late:?}");
            }
        }
    }
}
