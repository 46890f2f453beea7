//! Rule 46: the records of others that may quote an erased order lose their texts before the order shows that it is erased.

use std::sync::Arc;

use domain::alert::Alert;
use domain::bulk::Job;
use domain::id::{CommandId, OrderId};
use domain::message::{Action, Command, SchedulerMessage};
use domain::order::ERASED;
use domain::ports::{Commit, Records, Seen, ServiceHealth};
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use memory::faulty::Fault;
use tests::conformance::samples::{NOON, health, job};

use tests::world::{ONE_DONE, World, now};

const JOB: &str = "01932b6d0c5f-0123456789abcdef";
const ALERT: &str = "service/bank/misconfigured";

fn command(world: &World, order_id: OrderId, action: Action, bulk: Option<Arc<str>>) {
    let (by, reason) = ("dpo".into(), if bulk.is_some() { "mended".into() } else { "letter 7".into() });
    world.tell_scheduler(SchedulerMessage::Command(Command {
        order_id,
        action,
        by,
        reason,
        command_id: CommandId::generate(Timestamp::default(), [action as u64, 0]),
        version: None,
        bulk,
        settle: None,
        take: None,
        step: None,
    }));
}

/// An order that a job resubmitted and that has ended; an outage in its time with its alert, and two jobs.
fn ended(world: &World) -> OrderId {
    let order_id = world.post(1);
    world.remote.declines("charge", Direction::Forward);
    world.remote.declines("charge", Direction::Undo);
    world.run();
    command(world, order_id, Action::Resubmit, Some(JOB.into()));
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let alert = Alert {
        cause: ALERT.into(),
        version: 1,
        since: NOON,
        text: "bank is misconfigured: HTTP 401".into(),
        to_do: "Mend it.".into(),
        count: 0,
        at_least: false,
        order_id: None,
        gone_since: None,
        ended_at: None,
        told: Vec::new(),
        telling_until: None,
    };
    let seen = Seen::nothing(NOON);
    now(async {
        assert_eq!(world.memory.put(seen, &health("bank", 1)).await.unwrap(), Commit::Committed);
        assert_eq!(world.memory.put(seen, &alert).await.unwrap(), Commit::Committed);
        assert_eq!(world.memory.put(seen, &job(JOB, 0)).await.unwrap(), Commit::Committed);
        assert_eq!(world.memory.put(seen, &job("another", 0)).await.unwrap(), Commit::Committed);
    });
    order_id
}

/// The texts of the outage, of its alert and of the two jobs.
fn texts(world: &World) -> [Arc<str>; 4] {
    now(async {
        let health: ServiceHealth = world.memory.get("bank").await.unwrap().unwrap();
        let alert: Alert = world.memory.get(ALERT).await.unwrap().unwrap();
        let one: Job = world.memory.get(JOB).await.unwrap().unwrap();
        let other: Job = world.memory.get("another").await.unwrap().unwrap();
        [health.outage.unwrap().problem, alert.text, one.spec.reason, other.spec.reason]
    })
}

#[test]
fn rule_46_outages_alerts_and_jobs_lose_their_texts_first_whichever_call_fails_or_is_the_last() {
    let gone = || [ERASED, ERASED, ERASED, "mended"].map(Arc::from);
    for fault in [Fault::Fails, Fault::AnswerLost, Fault::Conflicts, Fault::DiesBefore, Fault::DiesAfter] {
        for call in 0.. {
            let world = World::new();
            let order_id = ended(&world);
            command(&world, order_id, Action::Erase, None);
            world.ports.after_calls(call, fault);
            world.schedule();
            if world.task(order_id).erased_at.is_some() {
                assert_eq!(texts(&world), gone(), "{fault:?} at {call}");
            }
            let has_struck = world.ports.has_struck();
            world.until_redelivery();
            world.run();
            assert!(world.task(order_id).erased_at.is_some(), "{fault:?} at {call}");
            assert_eq!(texts(&world), gone(), "{fault:?} at {call}");
            if !has_struck {
                assert!(call > 6, "{fault:?}");
                break;
            }
        }
    }
}

#[test]
fn rule_46_an_erase_that_is_refused_takes_no_text() {
    let world = World::new();
    let order_id = ended(&world);
    let before = texts(&world);
    let open = world.post(2);
    assert_eq!(world.submit(), ONE_DONE);
    command(&world, open, Action::Erase, None);
    command(&world, OrderId::from_idempotency_key("nobody", "1"), Action::Erase, None);
    world.run();
    assert_eq!(texts(&world), before);
    assert!(world.task(order_id).erased_at.is_none());
}
