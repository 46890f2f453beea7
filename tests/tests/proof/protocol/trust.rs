//! Rule 45: a message counts only if its sender may send it.

use domain::batch::Failures;
use domain::message::{Action, Command, Delivery, Outcome, Receipt, Reply, SchedulerMessage};
use domain::ports::{DeadLetterOutcome, DeadLetterRecord, Records};
use domain::task::StepState;
use domain::trust::Senders;
use memory::faulty::Fault;
use tests::conformance::samples::{command, wake};
use tests::world::{World, now};

/// The agent inventory has queues of its own, and so has customs.
fn senders() -> Senders {
    let own = |agent: &str, sender: &str| (agent.into(), [sender.into()].into());
    Senders {
        system: ["api".into()].into(),
        agents: "agents".into(),
        own: [own("inventory", "of-inventory"), own("customs", "of-customs")].into(),
    }
}

fn tell(world: &World, sender: &str, message: SchedulerMessage) -> usize {
    let receipt = Receipt { message_id: format!("{} of {sender}", message.name()).into(), handle: "h".into() };
    let batch = vec![Delivery { receipt, receive_count: 1, parent: None, body: Ok(message) }];
    let Failures(again) =
        now(scheduler::handle_from(&world.ports, &world.instance("scheduler"), &senders(), sender, batch));
    again.len()
}

fn refused(world: &World) -> Vec<String> {
    let mut all: Vec<DeadLetterRecord> = now(Records::list(&world.memory, 100)).unwrap();
    assert!(all.iter().all(|record| record.outcome == DeadLetterOutcome::Refused && record.body.is_none()));
    all.sort_by(|one, other| one.message_id.cmp(&other.message_id));
    all.iter().map(|record| record.message_id.to_string()).collect()
}

#[test]
fn rule_45_what_a_sender_may_not_send_is_written_down_and_changes_nothing() {
    let world = World::new();
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    let reply = || SchedulerMessage::Reply(request.reply(Outcome::Done(request.order.clone())));
    let before = world.task(order_id);
    for sender in ["agents", "of-customs", "of-inventory", "somebody", ""] {
        assert_eq!((tell(&world, sender, command(1)), tell(&world, sender, wake(1))), (0, 0), "{sender}");
    }
    for sender in ["agents", "of-customs", "somebody", ""] {
        assert_eq!((tell(&world, sender, reply()), tell(&world, sender, reply())), (0, 0), "{sender}");
    }
    assert_eq!(world.task(order_id), before);
    assert!(world.lose_requests("payment").is_empty() && world.lose_scheduler_messages().is_empty());
    let mut expected = Vec::new();
    for kind in ["a command", "a reply", "a wake"] {
        let senders = ["", "agents", "of-customs", "of-inventory", "somebody"];
        let senders = senders.iter().filter(|sender| kind != "a reply" || **sender != "of-inventory");
        expected.extend(senders.map(|sender| format!("{kind} of {sender}")));
    }
    assert_eq!(refused(&world), expected, "each once, also if it comes again");
    assert_eq!(tell(&world, "of-inventory", reply()), 0);
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
}

#[test]
fn rule_45_replies_that_come_together_are_one_write_but_for_those_that_their_sender_may_not_give() {
    let world = World::new();
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    let reply = request.reply(Outcome::Done(request.order.clone()));
    let other = world.task(order_id).steps.iter().find(|step| *step.agent != *request.agent).unwrap().name.clone();
    let forged = Reply { step: other, ..reply.clone() };
    let delivery = |(name, reply): (&str, &Reply)| Delivery {
        receipt: Receipt { message_id: name.into(), handle: "h".into() },
        receive_count: 1,
        parent: None,
        body: Ok(SchedulerMessage::Reply(reply.clone())),
    };
    let batch = [("first", &forged), ("second", &reply), ("third", &reply)].map(delivery).into();
    let before = world.task(order_id).version;
    let instance = world.instance("scheduler");
    let Failures(again) = now(scheduler::handle_from(&world.ports, &instance, &senders(), "of-inventory", batch));
    assert_eq!((again.len(), world.task(order_id).version), (0, before + 1));
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
    assert_eq!(refused(&world), ["first"]);
}

#[test]
fn rule_45_the_system_may_send_everything() {
    let world = World::new();
    let order_id = world.claimed();
    let SchedulerMessage::Command(of_order) = command(1) else { unreachable!("it is a command") };
    let cancel = Command { order_id, action: Action::Cancel, ..of_order };
    assert_eq!(tell(&world, "api", SchedulerMessage::Command(cancel)), 0);
    assert_eq!(world.state(order_id), domain::task::ProcessState::Compensating);
    assert!(refused(&world).is_empty());
}

#[test]
fn rule_45_what_could_not_be_written_down_comes_again() {
    let world = World::new();
    world.claimed();
    world.ports.next("letters.set_letter", Fault::Fails);
    assert_eq!((tell(&world, "agents", command(1)), refused(&world).len()), (1, 0));
    assert_eq!((tell(&world, "agents", command(1)), refused(&world).len()), (0, 1));
}
