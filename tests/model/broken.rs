//! State machines and stores that are broken on purpose: what the checker must find.

use domain::machine::{Decision, Effect, Event, Impossible, Moment, decide};
use domain::message::{Action, Outcome, Reply, Settled};
use domain::task::{Direction, NoticeKind, ProcessState, StepState, Task};
use domain::workflow::Workflow;

use super::action::Commit;
use super::bounds::{Bounds, Clocks, Shape};
use super::protocol::Protocol;
use super::versions::Pinning;

/// Something broken, and the invariant that has to be found broken.
pub struct Broken {
    /// What is wrong.
    pub name: &'static str,
    /// How the name of the property begins that does not hold.
    pub breaks: &'static str,
    protocol: fn() -> Protocol,
}

impl Broken {
    /// The world in which it is wrong.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        (self.protocol)()
    }
}

/// The least worlds in which each of them shows.
const SMALL: Bounds = Bounds { in_flight_max: 3, drains: false, ..Bounds::ONE };
const CANCELLED: Bounds = Bounds { commands: [0, 1, 0, 0, 0, 0, 0], ..SMALL };
const SETTLED: Bounds = Bounds { attempts: 1, commands: [1, 0, 0, 0, 1, 0, 0], ..SMALL };
const APPLIED: Bounds = Bounds { applies: true, ..SMALL };
const LINES: Bounds = Bounds { shape: Shape::Lines, attempts: 1, clocks: Clocks::One, ..SMALL };
const TWO_SCHEDULERS: Bounds = Bounds { schedulers: 2, supervisors: 0, ..CANCELLED };

/// All that is broken on purpose.
pub const ALL: [Broken; 22] = [
    Broken {
        name: "a failure counts whatever attempt it is of",
        breaks: "3:",
        protocol: || Protocol::with(SMALL, any_failure_counts),
    },
    Broken {
        name: "an attempt is used again at the next claim",
        breaks: "2:",
        protocol: || Protocol::with(SMALL, attempt_is_used_again),
    },
    Broken {
        name: "the store writes whatever it is given",
        breaks: "2:",
        protocol: || Protocol::new(TWO_SCHEDULERS).with_commit(Commit::Unconditional),
    },
    Broken {
        name: "who takes a call on has done it",
        breaks: "Processed",
        protocol: || Protocol::with(Bounds { callbacks: true, ..SMALL }, takes_accepted_for_done),
    },
    Broken { name: "a failure is counted twice", breaks: "4:", protocol: || Protocol::with(SMALL, counts_twice) },
    Broken {
        name: "a step does not wait for those before it",
        breaks: "6:",
        protocol: || Protocol::with(SMALL, starts_at_once),
    },
    Broken {
        name: "a step is undone before those after it",
        breaks: "6:",
        protocol: || Protocol::with(CANCELLED, undoes_at_once),
    },
    Broken {
        name: "a finished order can be cancelled",
        breaks: "7:",
        protocol: || Protocol::with(CANCELLED, cancels_what_is_processed),
    },
    Broken {
        name: "only steps that are known to be done are undone",
        breaks: "8:",
        protocol: || Protocol::with(CANCELLED, undoes_what_is_processed),
    },
    Broken {
        name: "messages are sent before the write",
        breaks: "6:",
        protocol: || Protocol::new(TWO_SCHEDULERS).with_commit(Commit::AfterSending),
    },
    Broken {
        name: "an undo does not wait for CompleteBy",
        breaks: "9:",
        protocol: || Protocol::with(Bounds { clocks: Clocks::One, ..CANCELLED }, undoes_too_early),
    },
    Broken {
        name: "an undo does not wait for calls under way",
        breaks: "9:",
        protocol: || Protocol::with(Bounds { clocks: Clocks::One, settles: 2, ..CANCELLED }, forgets_calls_under_way),
    },
    Broken {
        name: "a request that is sent again does not say so",
        breaks: "17:",
        protocol: || Protocol::with(Bounds { clocks: Clocks::One, settles: 2, ..SMALL }, sends_again_unmarked),
    },
    Broken {
        name: "a step that is tried again can be settled",
        breaks: "3:",
        protocol: || Protocol::with(SETTLED, settles_what_is_open),
    },
    Broken {
        name: "a settle counts for whatever step is in Error",
        breaks: "3:",
        protocol: || Protocol::with(SETTLED, settles_another_step),
    },
    Broken { name: "the alert is forgotten", breaks: "10:", protocol: || Protocol::with(SMALL, forgets_the_alert) },
    Broken {
        name: "an alert counts as sent before it is",
        breaks: "10:",
        protocol: || Protocol::with(SMALL, strikes_at_once),
    },
    Broken {
        name: "the supervisor does not wake anybody",
        breaks: "14, 15:",
        protocol: || Protocol::with(Bounds { drains: true, ..SMALL }, wakes_nobody),
    },
    Broken {
        name: "a line is dropped with the one beside it",
        breaks: "50:",
        protocol: || Protocol::with(LINES, drops_all_lines),
    },
    Broken {
        name: "a dropped line is not undone",
        breaks: "Processed",
        protocol: || Protocol::with(LINES, leaves_what_it_drops),
    },
    Broken {
        name: "the submission chooses the workflow again",
        breaks: "22:",
        protocol: || Protocol::new(APPLIED).with_pinning(Pinning::ForgottenBySubmission),
    },
    Broken {
        name: "the scheduler goes by the default, not by the pin",
        breaks: "22:",
        protocol: || Protocol::new(APPLIED).with_pinning(Pinning::ForgottenByScheduler),
    },
];

type Answer = Result<Decision, Impossible>;

fn any_failure_counts(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    if let Event::Reply { reply, redelivered } = event
        && matches!(reply.outcome, Outcome::Failed(_))
        && let Some((_, step)) = task.step(&reply.step)
    {
        let reply = &Reply { attempt: step.attempt, ..reply.clone() };
        return decide(task, workflow, Event::Reply { reply, redelivered }, moment);
    }
    decide(task, workflow, event, moment)
}

fn attempt_is_used_again(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| {
        for (after, before) in after.steps.iter_mut().zip(&task.steps) {
            after.attempt = if before.attempt > 0 { before.attempt } else { after.attempt };
        }
    })
}

fn counts_twice(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| {
        for (after, before) in after.steps.iter_mut().zip(&task.steps) {
            after.failure_count += u32::from(after.failure_count > before.failure_count);
        }
    })
}

fn takes_accepted_for_done(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let Event::Reply { reply, redelivered } = event else { return decide(task, workflow, event, moment) };
    let is_accepted = matches!(reply.outcome, Outcome::Accepted(_));
    let outcome = if is_accepted { Outcome::Done(domain::json::Json::of(&())) } else { reply.outcome.clone() };
    decide(task, workflow, Event::Reply { reply: &Reply { outcome, ..reply.clone() }, redelivered }, moment)
}

fn starts_at_once(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut workflow = workflow.clone();
    if task.process_state != ProcessState::Compensating {
        workflow.steps.iter_mut().for_each(|rule| rule.ancestors.clear());
    }
    decide(task, &workflow, event, moment)
}

fn undoes_at_once(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut workflow = workflow.clone();
    if task.process_state == ProcessState::Compensating {
        workflow.steps.iter_mut().for_each(|rule| rule.ancestors.clear());
    }
    decide(task, &workflow, event, moment)
}

fn cancels_what_is_processed(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut task = task.clone();
    if let Event::Command { command, .. } = event
        && command.action == Action::Cancel
        && task.process_state == ProcessState::Processed
    {
        task.process_state = ProcessState::Processing;
    }
    decide(&task, workflow, event, moment)
}

fn settles_what_is_open(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut task = task.clone();
    if let Event::Command { command, .. } = event
        && let Some(settle) = &command.settle
        && let Some(step) = task.steps.iter_mut().find(|step| step.name == settle.step)
        && step.direction == settle.outcome.direction()
        && step.process_state == StepState::Processing
    {
        step.process_state = StepState::Error;
        (step.locked_by, step.complete_by) = (None, None);
        task.process_state = ProcessState::Error;
    }
    decide(&task, workflow, event, moment)
}

fn settles_another_step(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let Event::Command { command, redelivered } = event else { return decide(task, workflow, event, moment) };
    let mut command = command.clone();
    let failed = task.steps.iter().find(|step| step.process_state == StepState::Error);
    if let (Some(settle), Some(step)) = (&mut command.settle, failed) {
        settle.step = step.name.clone();
        settle.outcome = if step.direction == Direction::Undo { Settled::Undone } else { Settled::Done };
    }
    decide(task, workflow, Event::Command { command: &command, redelivered }, moment)
}

fn undoes_what_is_processed(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut task = task.clone();
    // As if the others had been undone: whoever turns the order round finds nothing to do about them.
    if let Event::Command { command, .. } = event
        && command.action == Action::Cancel
        && matches!(task.process_state, ProcessState::Pending | ProcessState::Processing)
    {
        let unknown = |step: &&mut domain::task::Step| step.was_claimed() && step.process_state != StepState::Processed;
        for step in task.steps.iter_mut().filter(unknown) {
            (step.direction, step.process_state) = (Direction::Undo, StepState::Processed);
            (step.locked_by, step.complete_by, step.not_before) = (None, None, None);
        }
    }
    decide(&task, workflow, event, moment)
}

fn undoes_too_early(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| {
        for step in after.steps.iter_mut().filter(|step| step.direction == Direction::Undo) {
            step.not_before = None;
        }
    })
}

fn forgets_calls_under_way(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut workflow = workflow.clone();
    workflow.steps.iter_mut().for_each(|rule| rule.settles_within_ms = 0);
    decide(task, &workflow, event, moment)
}

fn sends_again_unmarked(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| {
        for (step, before) in after.steps.iter_mut().zip(&task.steps).filter(|(_, before)| before.complete_by.is_some())
        {
            step.may_run_until = before.may_run_until;
        }
    })
}

fn forgets_the_alert(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let decision = changed(decide(task, workflow, event, moment), |after| {
        after.unsent.retain(|notice| notice.kind != NoticeKind::OrderNeedsOperator);
    });
    decision.map(|mut decision| {
        decision.effects.retain(|effect| !matches!(effect, Effect::Alert(_)));
        decision
    })
}

fn strikes_at_once(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| after.unsent.clear())
}

fn wakes_nobody(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    decide(task, workflow, event, moment).map(|mut decision| {
        if matches!(event, Event::Sweep) {
            decision.effects.retain(|effect| !matches!(effect, Effect::Wake { .. }));
        }
        decision
    })
}

fn drops_all_lines(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    changed(decide(task, workflow, event, moment), |after| {
        let is_one = after.steps.iter().any(|step| step.dropped);
        after.steps.iter_mut().for_each(|step| step.dropped |= is_one);
    })
}

fn leaves_what_it_drops(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Answer {
    let mut workflow = workflow.clone();
    if task.process_state != ProcessState::Compensating {
        workflow.steps.iter_mut().for_each(|rule| rule.no_undo = true);
    }
    decide(task, &workflow, event, moment)
}

fn changed(decision: Answer, change: impl Fn(&mut Task)) -> Answer {
    decision.map(|mut decision| {
        decision.change.iter_mut().for_each(change);
        decision
    })
}
