//! The settlement of dead letters.

use domain::batch::Failures;
use domain::json::Json;
use domain::message::{Action, Delivery, Outcome, Receipt, SchedulerMessage, Undecodable};
use domain::ports::{DeadLetter, DeadLetterOutcome, DeadLetterRecord, Records, SourceQueue};
use domain::task::reason;
use tests::conformance::samples;
use tests::world::{EXPIRED_MS, End, World, drive, now};

use super::node::{Node, Scene, claimed, command, order, stored, unhurried, world};

const HANDLER: &str = "dead letters";

fn leave(world: &World, queue: SourceQueue, message: &Json) {
    world.memory.leave_dead_letter(queue, message.text());
}

/// The dead letters are settled. At the end one record has this outcome. Operators were alerted if no order can report
/// it.
fn settled(world: World, outcome: DeadLetterOutcome) -> Scene {
    let alert = match outcome {
        DeadLetterOutcome::LostCommand => Some("OrderNeedsOperator"),
        DeadLetterOutcome::Unreadable => Some("DeadLetterUnreadable"),
        DeadLetterOutcome::Stored
        | DeadLetterOutcome::Held
        | DeadLetterOutcome::Stale
        | DeadLetterOutcome::NoOrder
        | DeadLetterOutcome::Refused => None,
    };
    Scene::fed(world, World::settle_dead_letters).checked(move |world| {
        let records: Vec<DeadLetterRecord> = now(Records::list(&world.memory, 10)).expect("letters");
        assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [outcome]);
        if let Some(kind) = alert {
            assert_eq!(told(world, kind), 1);
        }
    })
}

/// The number of dead letters of this kind with an alert to operators. Repeats do not count.
fn told(world: &World, kind: &str) -> usize {
    let events = world.memory.published().into_iter();
    let ids = events.filter(|event| &*event.kind == kind && event.id.starts_with("dead-letter/")).map(|event| event.id);
    ids.collect::<std::collections::BTreeSet<_>>().len()
}

/// An unreadable dead letter is left.
pub(crate) fn left_unreadable(world: &World) {
    world.memory.leave_dead_letter(SourceQueue::Scheduler, "{\"Wake\":");
}

pub(crate) fn nodes() -> Vec<Node> {
    let node = |what, scene| Node { handler: HANDLER, what, scene };
    vec![
        node("an order that was never stored: stored, and held", || {
            let world = world();
            leave(&world, SourceQueue::Submission, &Json::of(&order()));
            settled(world, DeadLetterOutcome::Stored).ends(order().order_id, End::Error(reason::DEAD_LETTER))
        }),
        node("an order that is stored", || {
            let world = world();
            let order_id = stored(&world);
            leave(&world, SourceQueue::Submission, &Json::of(&order()));
            settled(world, DeadLetterOutcome::Stale).ends(order_id, End::Processed)
        }),
        node("another document under a key that was used", || {
            let world = world();
            let order_id = stored(&world);
            let other = samples::order_with(1, r#"{"Item":"another"}"#);
            leave(&world, SourceQueue::Submission, &Json::of(&other));
            settled(world, DeadLetterOutcome::Stale).ends(order_id, End::Processed)
        }),
        node("a wake that its order still needs: held", || {
            let world = unhurried();
            let order_id = stored(&world);
            for wake in world.lose_scheduler_messages() {
                leave(&world, SourceQueue::Scheduler, &Json::of(&wake));
            }
            settled(world, DeadLetterOutcome::Held).ends(order_id, End::Error(reason::DEAD_LETTER))
        }),
        node("a request that its order still needs: held", || {
            let world = world();
            let order_id = claimed(&world);
            for request in world.lose_requests("inventory") {
                leave(&world, SourceQueue::Agent("inventory".into()), &Json::of(&request));
            }
            settled(world, DeadLetterOutcome::Held).ends(order_id, End::Error(reason::DEAD_LETTER))
        }),
        node("a reply that its order still needs: held", || {
            let world = world();
            let order_id = claimed(&world);
            world.serve("inventory");
            for reply in world.lose_scheduler_messages() {
                leave(&world, SourceQueue::Scheduler, &Json::of(&reply));
            }
            settled(world, DeadLetterOutcome::Held).ends(order_id, End::Error(reason::DEAD_LETTER))
        }),
        node("a request whose time is over", || {
            let world = world();
            let order_id = claimed(&world);
            for request in world.lose_requests("inventory") {
                leave(&world, SourceQueue::Agent("inventory".into()), &Json::of(&request));
            }
            world.memory.advance(EXPIRED_MS);
            settled(world, DeadLetterOutcome::Stale).ends(order_id, End::Processed)
        }),
        node("a reply for an order that is not there", || {
            let world = world();
            let reply = samples::request(9).reply(Outcome::Done(Json::of(&1)));
            leave(&world, SourceQueue::Scheduler, &Json::of(&SchedulerMessage::Reply(reply)));
            settled(world, DeadLetterOutcome::NoOrder)
        }),
        node("an operator's wish: tells operators", || {
            let world = world();
            let order_id = claimed(&world);
            leave(&world, SourceQueue::Scheduler, &Json::of(&command(&world, order_id, Action::Cancel)));
            settled(world, DeadLetterOutcome::LostCommand).ends(order_id, End::Processed)
        }),
        node("a body that nobody can read: tells operators", || {
            let world = world();
            left_unreadable(&world);
            settled(world, DeadLetterOutcome::Unreadable)
        }),
        node("a frame that nobody can read: tells operators", || {
            Scene::asked(world(), |world| {
                let receipt = Receipt { message_id: "m1".into(), handle: "h1".into() };
                let body = Err::<DeadLetter, _>(Undecodable { problem: "no frame".into() });
                let dead_letters = vec![Delivery { receipt, receive_count: 1, parent: None, body }];
                let instance = world.instance("supervisor");
                let settling = supervisor::dead_letters(&world.ports, &instance, dead_letters);
                drive(&world.memory, &world.ports, settling) == Some(Failures::default())
            })
            .checked(|world| {
                assert_eq!(told(world, "DeadLetterUnreadable"), 1);
                assert_eq!(now(Records::list::<DeadLetterRecord>(&world.memory, 10)).expect("letters").len(), 1);
            })
        }),
    ]
}
