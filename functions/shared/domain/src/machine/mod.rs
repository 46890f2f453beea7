//! The state machine: how an event changes a task (rules 1 to 16, 19, 21, 23, 27, 30 to 40 and 46).
//!
//! [`decide`] takes a task, its workflow, an event, the time and the instance. It returns the task to write and the
//! messages that follow from it. It performs nothing, so it can run again at any time: the loser of a conditional
//! write reads again and decides again.
//!
//! The modules: `event` and `decision` have the types, and `turn` the working copy with the elementary moves (claim,
//! complete, fail, hold). `reply`, `sweep`, `dead_letter` and `operator` (with `settle`, `note`, `close`, `erase` and
//! `approval`) handle one kind of event each. `compensation` turns an order round, `lines` a line of it (rule 50), `skip`
//! ends the steps that need no call, `pivot` says when an order only goes forward, and `contradiction` when a result comes
//! against its end. `wait` has the long waits, `poll` the looks at a call that was taken on, `late` the deadline of the
//! order, and `watch` sets the next look at the task. `record` keeps what happened. `request` writes the message to an
//! agent, `preview` foresees it for an order that there is not, and `wanted` tells the agent whether its attempt is over.
//!
//! What must never happen here: a final state changes; an attempt is counted twice; an event that is not the
//! scheduler's claims a step; an effect does not follow from the committed state.

mod approval;
mod close;
mod compensation;
mod contradiction;
mod dead_letter;
mod decision;
mod erase;
mod event;
mod late;
mod lines;
mod note;
mod open_calls;
mod operator;
mod pivot;
mod poll;
mod preview;
mod record;
mod reply;
mod request;
mod settle;
mod skip;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod turn;
mod wait;
mod wanted;
mod watch;

pub use decision::{Decision, Dropped, Effect, Happened, Impossible, Refused, TooLarge, Verdict};
pub use event::{DeadLetterSubject, Event, Moment};
pub use preview::{Foreseen, Missing, Preview, Previewed};
pub use request::{look, request};
pub use wanted::{Wanted, child_wanted, wanted};

use crate::task::{Notice, ProcessState, Step, Task, reason};
use crate::workflow::Workflow;
use turn::Turn;

/// Applies `event` to `task`.
///
/// # Errors
/// [`Impossible`] if the record contradicts itself or the workflow. Nothing is changed then.
pub fn decide(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Result<Decision, Impossible> {
    decide_together(task, workflow, &[event], moment)
}

/// Applies events that arrived together to `task`, one after the other: they make one version. The decision has a verdict
/// for each of them.
///
/// # Errors
/// As [`decide`].
pub fn decide_together(
    task: &Task,
    workflow: &Workflow,
    events: &[Event<'_>],
    moment: Moment<'_>,
) -> Result<Decision, Impossible> {
    check(task, workflow)?;
    let mut turn = Turn::new(task, workflow, moment);
    for event in events {
        let verdict = turn.take(*event);
        turn.verdicts.push(verdict);
    }
    turn.follow_replies();
    Ok(turn.end())
}

/// The assumptions of `decide` about a stored task.
fn check(task: &Task, workflow: &Workflow) -> Result<(), Impossible> {
    let same_steps = task.steps.len() == workflow.steps.len()
        && task.steps.iter().zip(&workflow.steps).all(|(step, rule)| step.name == rule.name);
    if !same_steps || task.workflow != workflow.name || task.workflow_version != workflow.version {
        return Err(Impossible::OtherWorkflow { workflow: workflow.name.clone(), version: workflow.version });
    }
    // A counter that overflows starts again at 0, and a fencing token would repeat.
    let is_out = |count: fn(&Step) -> u32| task.steps.iter().any(|step| count(step) == u32::MAX);
    let counted_out = [
        ("Version", task.version == u64::MAX),
        ("Attempt", is_out(|step| step.attempt)),
        ("FailureCount", is_out(|step| step.failure_count)),
    ];
    if let Some((count, _)) = counted_out.into_iter().find(|(_, is_out)| *is_out) {
        return Err(Impossible::CountedOut { count });
    }
    match task
        .steps
        .iter()
        .find(|step| step.process_state == crate::task::StepState::Processing && step.complete_by.is_none())
    {
        Some(step) => Err(Impossible::ClaimWithoutDeadline { step: step.name.clone() }),
        None => Ok(()),
    }
}

impl Turn<'_> {
    fn take(&mut self, event: Event<'_>) -> Verdict {
        use ProcessState::{Closed, Compensated, Compensating, Error, Pending, Processed, Processing};

        let state = self.task.process_state;
        let verdict = match (event, state) {
            // A chain longer than the workflow's worst case is a loop.
            (Event::Wake { hops, .. }, Pending | Processing | Compensating) if hops > self.workflow.hops_max() => {
                self.cut_chain()
            }
            (Event::Wake { hops, redelivered }, Pending | Processing | Compensating) => self.wake(hops, redelivered),
            (Event::Wake { redelivered, .. }, Processed | Compensated | Closed | Error) => self.repeat_if(redelivered),
            (Event::Reply { reply, redelivered }, Pending | Processing | Compensating | Error) => {
                self.reply(reply, redelivered)
            }
            (Event::Reply { reply, redelivered }, Processed | Compensated | Closed) => {
                self.repeat_if(redelivered);
                self.tell_contradiction(reply);
                Verdict::Dropped(Dropped::Finished)
            }
            (Event::Sweep, Pending | Processing | Compensating) => self.sweep(),
            (Event::Sweep, Processed | Compensated | Closed | Error) => self.sweep_unsent(),
            (Event::Command { command, .. }, _) => self.command(command),
            (Event::DeadLetter { dead_letter }, Pending | Processing | Compensating) => self.dead_letter(dead_letter),
            (Event::DeadLetter { .. }, Processed | Error | Compensated | Closed) => Verdict::Nothing,
            (Event::Sent { notices }, _) => self.sent(notices),
        };
        if let (Event::Command { redelivered: true, .. }, Verdict::Refused(_)) = (event, &verdict) {
            // The first delivery may have carried out the command and died before it sent the messages that follow. No call
            // follows from an end.
            if state.is_final() { self.repeat_notices() } else { self.repeat(0) }
        }
        verdict
    }

    /// Claims the steps that are ready.
    fn wake(&mut self, hops: u32, redelivered: bool) -> Verdict {
        let first = self.task.process_state == ProcessState::Pending;
        self.believe_times();
        self.claim_ready(hops);
        if redelivered {
            self.wake_for_all_waiting(hops);
        } else {
            self.wake_for_new_waiting(hops);
            if self.claimed.is_empty() && !self.has_skipped {
                self.wake_again(hops);
            }
        }
        if first || redelivered {
            self.repeat_notices();
        }
        if redelivered {
            self.repeat_requests(hops);
        }
        self.verdict()
    }

    /// Sends again the messages that follow from a settled state, if an earlier delivery may have died before it sent
    /// them.
    fn repeat_if(&mut self, redelivered: bool) -> Verdict {
        if redelivered {
            self.repeat_notices();
        }
        Verdict::Nothing
    }

    /// Stops an order whose messages loop (rule 15).
    pub(super) fn cut_chain(&mut self) -> Verdict {
        let limit = self.workflow.hops_max();
        self.hold(reason::HOP_LIMIT, &format!("a chain of more than {limit} messages was cut"), None);
        Verdict::Taken
    }

    /// Removes notices that were sent.
    fn sent(&mut self, notices: &[Notice]) -> Verdict {
        let before = self.task.unsent.len();
        let is_sent = |owed: &Notice| notices.iter().any(|sent| (sent.kind, sent.version) == (owed.kind, owed.version));
        self.task.unsent.retain(|owed| !is_sent(owed));
        if self.task.unsent.len() == before {
            return Verdict::Nothing;
        }
        self.changed = true;
        Verdict::Taken
    }
}
