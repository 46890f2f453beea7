//! Which commands of an operator an order's state allows: what the state machine will say, asked before anything is queued.
//!
//! The scheduler decides; the order may have gone on by the time that it does. A test holds this mirror against
//! [`domain::machine::decide`] for every action and state.

use domain::machine::Refused;
use domain::message::Action;
use domain::task::{ProcessState, Task};

/// Why the state machine would refuse this action on the task as it is; nothing where it would take it.
pub(crate) const fn refused(action: Action, task: &Task) -> Option<Refused> {
    use ProcessState::{Compensated, Compensating, Error, Pending, Processed, Processing};

    match (action, task.process_state, task.paused.is_some()) {
        (Action::Resubmit, Error, _) => None,
        (Action::Resubmit, Pending | Processing | Processed | Compensating | Compensated, _) => {
            Some(Refused::NotInError)
        }
        (Action::Cancel, Pending | Processing | Error, _) => None,
        (Action::Cancel, Compensating, _) => Some(Refused::AlreadyCompensating),
        (Action::Pause, Pending | Processing | Compensating, false) => None,
        (Action::Pause, Pending | Processing | Compensating, true) => Some(Refused::AlreadyPaused),
        (Action::Pause, Error, _) => Some(Refused::InError),
        (Action::Resume, Pending | Processing | Compensating, true) => None,
        (Action::Resume, Pending | Processing | Compensating, false) | (Action::Resume, Error, _) => {
            Some(Refused::NotPaused)
        }
        (Action::Cancel | Action::Pause | Action::Resume, Processed | Compensated, _) => Some(Refused::Finished),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::machine::{Event, Moment, Verdict, decide};
    use domain::message::Command;
    use domain::time::Timestamp;
    use domain::workflow::Workflows;

    use super::*;
    use crate::testing::{pause, task_in};

    /// What the state machine itself says.
    fn machine_refuses(action: Action, task: &Task) -> Option<Refused> {
        let workflows = Workflows::shipped().unwrap();
        let workflow = workflows.get(&task.workflow, task.workflow_version).unwrap();
        let instance: Arc<str> = "scheduler-1".into();
        let moment = Moment { now: Timestamp::from_epoch_ms(1_000), instance: &instance, nonce: 1, draw: 1 };
        let (order_id, version) = (task.order_id, Some(task.version));
        let command = Command { order_id, action, by: "ada".into(), reason: "test".into(), version };
        let event = Event::Command { command: &command, redelivered: false };
        match decide(task, workflow, event, moment).unwrap().verdict {
            Verdict::Refused(refused) => Some(refused),
            Verdict::Taken | Verdict::Nothing | Verdict::Dropped(_) => None,
        }
    }

    #[test]
    fn the_api_refuses_what_the_state_machine_refuses_and_for_the_same_reason() {
        for action in [Action::Resubmit, Action::Cancel, Action::Pause, Action::Resume] {
            for state in ProcessState::ALL {
                for paused in [None, Some(pause())] {
                    let mut task = task_in("a", state);
                    task.paused = paused;
                    let is_paused = task.paused.is_some();
                    let expected = machine_refuses(action, &task);
                    assert_eq!(refused(action, &task), expected, "{action:?} in {state}, paused: {is_paused}");
                }
            }
        }
    }
}
