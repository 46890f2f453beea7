//! Stored records, and what is decided from them.

use domain::bulk::{Job, Spec};
use domain::id::CommandId;
use domain::machine::{DeadLetterSubject, Event, Moment, decide};
use domain::message::{Acceptance, Action, Command, Deferral, Failure, Outcome, Reply, Trouble};
use domain::order::Order;
use domain::ports::{DeadLetterRecord, Memo, ServiceHealth};
use domain::task::{Direction, Task};
use domain::time::Timestamp;
use domain::workflow::{Workflow, Workflows};

use super::round_trip;
use crate::world::{AGENTS, PATIENT};

/// What is read as a record is written as one that is read as the same; and of a task, whatever is in it, something is
/// decided at every event, or it is refused as impossible.
pub(super) fn run(input: &[u8]) {
    round_trip::<Order>(input);
    round_trip::<Memo>(input);
    round_trip::<DeadLetterRecord>(input);
    round_trip::<Spec>(input);
    round_trip::<Job>(input);
    if let Some(health) = round_trip::<ServiceHealth>(input) {
        let next = health.backoff.next(u64::MAX);
        assert!(next.total_retries >= health.backoff.total_retries);
    }
    if let Some(task) = round_trip::<Task>(input) {
        let workflows = Workflows::parse(&[PATIENT], "order", &AGENTS).expect("a workflow");
        check(&task, workflows.current());
    }
}

fn check(task: &Task, workflow: &Workflow) {
    let deadlines = task.steps.iter().flat_map(|step| [step.complete_by, step.not_before, step.started_at]);
    let times = deadlines.flatten().chain(task.watch_at).chain([Timestamp::default()]);
    // Times that no clock shows are written as the nearest that can be.
    let shown = i64::from(u32::MAX) * 1_000;
    let times = times.filter(|at| (-shown..=shown).contains(&at.epoch_ms()));
    let times: Vec<Timestamp> = times.flat_map(|at| [at.minus_ms(1), at.plus_ms(600_000)]).collect();
    for event in events(task) {
        for &now in &times {
            let instance = "fuzz".into();
            let moment = Moment { now, instance: &instance, nonce: 7, draw: u64::MAX };
            let Ok(decision) = decide(task, workflow, event.as_event(), moment) else { continue };
            if let Some(after) = decision.change {
                assert_eq!(after.version, task.version + 1);
                let stored = serde_json::to_vec(&after).expect("a record");
                assert_eq!(round_trip::<Task>(&stored), Some(after));
            }
        }
    }
}

/// An event with what it refers to.
enum Happening {
    Wake(bool),
    Reply(Reply),
    Sweep,
    Command(Command),
    DeadLetter(DeadLetterSubject),
    Sent,
}

impl Happening {
    fn as_event(&self) -> Event<'_> {
        match self {
            Self::Wake(redelivered) => Event::Wake { hops: 0, redelivered: *redelivered },
            Self::Reply(reply) => Event::Reply { reply, redelivered: true },
            Self::Sweep => Event::Sweep,
            Self::Command(command) => Event::Command { command, redelivered: true },
            Self::DeadLetter(dead_letter) => Event::DeadLetter { dead_letter },
            Self::Sent => Event::Sent { notices: &[] },
        }
    }
}

fn events(task: &Task) -> Vec<Happening> {
    let mut events = vec![Happening::Wake(false), Happening::Wake(true), Happening::Sweep, Happening::Sent];
    for action in [Action::Resubmit, Action::Cancel, Action::Pause, Action::Resume, Action::Note] {
        let (order_id, version) = (task.order_id, Some(task.version));
        events.push(Happening::Command(Command {
            order_id,
            action,
            by: "ada".into(),
            reason: "a test".into(),
            command_id: CommandId::generate(Timestamp::default(), [version.unwrap_or_default(), action as u64]),
            version,
            bulk: None,
            settle: None,
            take: None,
            step: None,
        }));
    }
    events.push(Happening::DeadLetter(DeadLetterSubject::Wake));
    for step in &task.steps {
        let (name, attempt) = (step.name.clone(), step.attempt);
        for direction in [Direction::Forward, Direction::Undo] {
            events.push(Happening::DeadLetter(DeadLetterSubject::Attempt { step: name.clone(), direction, attempt }));
            let failure = Failure { code: "no".into(), message: "for good".into() };
            for outcome in [
                Outcome::Done(domain::json::Json::of(&1)),
                Outcome::Failed(failure),
                Outcome::Deferred(Deferral::after(u64::MAX)),
                Outcome::Deferred(Deferral { wait_ms: 0, fallback: Some(vec!["".into(), "another".into()]) }),
                Outcome::Retrying(Trouble { problem: "HTTP 503".into() }),
                Outcome::Accepted(Acceptance::default()),
            ] {
                let (order_id, step) = (task.order_id, name.clone());
                let may_run_until = Some(Timestamp::from_epoch_ms(i64::MAX));
                let hops = u32::MAX;
                let call_ms = Some(u64::MAX);
                let reply = Reply { order_id, step, direction, attempt, outcome, hops, may_run_until, call_ms };
                events.push(Happening::Reply(reply));
            }
        }
    }
    events
}
