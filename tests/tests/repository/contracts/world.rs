//! The messages of real orders, on ports in memory: every message is valid by its schema.

use std::collections::BTreeSet;

use agent::RejectionsPolicy;
use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::message::{Action, Command, Outcome, Request, SchedulerMessage, Settled, Settlement, decode};
use domain::order::Order;
use domain::ports::SourceQueue;
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use serde_json::Value;
use tests::conformance::samples;
use tests::world::{AGENTS, Act, PATIENT, World};

use super::read::{name_of, name_of_event, read, written};
use super::schemas::{Schemas, messages};

/// Checks every message.
struct Witness {
    schemas: Schemas,
    seen: BTreeSet<String>,
}

impl Witness {
    fn new() -> Self {
        Self { schemas: Schemas::closed(), seen: BTreeSet::new() }
    }

    fn see(&mut self, name: &str, message: &Value, variant: &str) {
        self.schemas.check(name, message).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(&read(name, message).unwrap(), message);
        self.seen.insert(format!("{name} {variant}").trim().to_owned());
    }

    fn see_scheduler_message(&mut self, message: &SchedulerMessage) {
        let variant = match message {
            SchedulerMessage::Wake(_) => "",
            SchedulerMessage::Reply(reply) => match reply.outcome {
                Outcome::Done(_) => "Done",
                Outcome::Failed(_) => "Failed",
                Outcome::Deferred(_) => "Deferred",
                Outcome::Retrying(_) => "Retrying",
                Outcome::Accepted(_) => "Accepted",
            },
            SchedulerMessage::Command(command) => command.action.name(),
            SchedulerMessage::Child(request) => request.direction.name(),
        };
        self.see(name_of(message), &written(message), variant);
    }

    fn see_request(&mut self, request: &Request) {
        self.see("request", &written(request), request.direction.name());
    }

    /// Runs the world until no message is in flight. Checks each message before its function gets it.
    fn follow(&mut self, world: &World) {
        for _ in 0..400 {
            world.submit();
            world.settle_dead_letters();
            for message in world.lose_scheduler_messages() {
                self.see_scheduler_message(&message);
                world.tell_scheduler(message);
            }
            world.schedule();
            for agent in AGENTS {
                for request in world.lose_requests(agent) {
                    self.see_request(&request);
                    world.ask_agent(agent, request);
                }
                world.serve(agent);
            }
            world.supervise();
            world.alert();
            world.memory.advance(7_000);
        }
        let notified = world.memory.notified().into_iter().map(|(_, event)| event);
        for event in notified.chain(world.memory.published()) {
            let reason: Value =
                event.data.member("Reason").map_or(Value::Null, |reason| serde_json::from_str(reason).unwrap());
            let variant = reason["Code"].as_str().unwrap_or_default().to_owned();
            self.see(&name_of_event(&event.kind), &written(&event), &variant);
        }
    }
}

fn order(n: u32) -> Order {
    Order { reply_channel: Some("shop".into()), ..samples::order(n) }
}

fn world(workflow: &str) -> World {
    let world = World::with(workflow);
    world.memory.register_channel("shop");
    world
}

fn command(world: &World, order_id: OrderId, action: Action) {
    world.tell_scheduler(SchedulerMessage::Command(command_of(world, order_id, action)));
}

fn command_of(world: &World, order_id: OrderId, action: Action) -> Command {
    let (by, reason) = ("ann".into(), "a test".into());
    let version = world.task(order_id).version;
    let command_id = CommandId::generate(Timestamp::default(), [version, action as u64]);
    let version = Some(version);
    Command { order_id, action, by, reason, command_id, version, bulk: None, settle: None, take: None, step: None }
}

fn post(witness: &mut Witness, world: &World, order: Order) -> OrderId {
    witness.see("submission", &written(&order), "");
    world.post_order(order)
}

/// Orders with all kinds of outcomes: one is processed, and one is compensated. One waits for an operator and is then
/// cancelled. One has a service that fails for a while, one is late, one is refused and one rejected by every call, and one has a missing channel. Dead letters are included.
fn play() -> Witness {
    let mut witness = Witness::new();

    let well = world(PATIENT);
    let processed = post(&mut witness, &well, order(1));
    witness.follow(&well);
    assert_eq!(well.state(processed), ProcessState::Processed);

    let declining = world(PATIENT);
    declining.remote.declines("ship", Direction::Forward);
    let undone = post(&mut witness, &declining, order(2));
    witness.follow(&declining);
    assert_eq!(declining.state(undone), ProcessState::Compensated);

    let holding = world(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
    holding.remote.declines("charge", Direction::Forward);
    let held = post(&mut witness, &holding, order(3));
    witness.follow(&holding);
    assert_eq!(holding.state(held), ProcessState::Error);
    for action in [Action::Pause, Action::Resume, Action::Resubmit, Action::Cancel] {
        command(&holding, held, action);
        witness.follow(&holding);
    }

    let noted = post(&mut witness, &holding, order(8));
    witness.follow(&holding);
    for take in [None, Some(true), Some(false)] {
        let note = Command { take, ..command_of(&holding, noted, Action::Note) };
        holding.tell_scheduler(SchedulerMessage::Command(note));
        witness.follow(&holding);
    }
    let mended = post(&mut witness, &holding, order(7));
    witness.follow(&holding);
    let settle = Settlement { step: "charge".into(), outcome: Settled::Done, output: Some(Json::of(&"4711")) };
    let settle = Command { settle: Some(settle), ..command_of(&holding, mended, Action::Settle) };
    holding.tell_scheduler(SchedulerMessage::Command(settle));
    witness.follow(&holding);
    assert_eq!(holding.state(mended), ProcessState::Processed);

    holding.remote.declines("reserve", Direction::Forward);
    let closed = post(&mut witness, &holding, order(9));
    witness.follow(&holding);
    command(&holding, closed, Action::Close);
    witness.follow(&holding);
    assert_eq!(holding.state(closed), ProcessState::Closed);

    let failing = world(PATIENT);
    failing.remote.always("charge", Act::Answers(agent::Answer::retry("down")));
    post(&mut witness, &failing, order(4));
    witness.follow(&failing);
    failing.remote.recovers("charge");
    witness.follow(&failing);

    let late = world(&format!("complete_within = \"1s\"\n{PATIENT}"));
    late.remote.always("charge", Act::Answers(agent::Answer::retry("down")));
    let order_id = post(&mut witness, &late, order(10));
    witness.follow(&late);
    assert!(late.task(order_id).late_since.is_some());

    let approval = "[[step]]\nname = \"approve\"\nkind = \"approval\"\nrole = \"manager\"\n";
    let asking = world(&PATIENT.replacen("[[step]]", &format!("{approval}[[step]]"), 1));
    let order_id = post(&mut witness, &asking, order(11));
    witness.follow(&asking);
    let decision = Command { step: Some("approve".into()), ..command_of(&asking, order_id, Action::Approve) };
    asking.tell_scheduler(SchedulerMessage::Command(decision));
    witness.follow(&asking);
    assert_eq!(asking.state(order_id), ProcessState::Processed);

    let child = "[[step]]\nname = \"gift\"\nkind = \"order\"\nworkflow = \"gift\"\nsend = {}\n";
    let gift = "name = \"gift\"\nversion = 1\n[[step]]\nname = \"wrap\"\nagent = \"inventory\"\nwait = \"1h\"\n";
    let making = World::with_all(&[&PATIENT.replacen("[[step]]", &format!("{child}[[step]]"), 1), gift]);
    making.memory.register_channel("shop");
    making.remote.declines("reserve", Direction::Forward);
    let order_id = post(&mut witness, &making, order(12));
    witness.follow(&making);
    let states = [order_id, order_id.child("gift")].map(|id| making.state(id));
    assert_eq!(states, [ProcessState::Compensated; 2]);

    for answer in [agent::Answer::misconfigured("HTTP 401"), agent::Answer::fail("not-found", "no such shop")] {
        let mut refusing = world(PATIENT);
        refusing.policy.health.failures_to_open = 1;
        refusing.policy.health.rejections = Some(RejectionsPolicy { answers_min: 1, ..RejectionsPolicy::default() });
        refusing.remote.always("charge", Act::Answers(answer));
        post(&mut witness, &refusing, order(4));
        witness.follow(&refusing);
    }

    let mute = World::with(PATIENT);
    post(&mut witness, &mute, order(5));
    witness.follow(&mute);

    let dead_letters = world(PATIENT);
    dead_letters.memory.leave_dead_letter(SourceQueue::Scheduler, "{\"Wake\":");
    dead_letters.memory.leave_dead_letter(SourceQueue::Agent("payment".into()), "no request");
    let lost = Command {
        order_id: order(6).order_id,
        action: Action::Cancel,
        by: "ann".into(),
        reason: "customer called".into(),
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    };
    let order_id = post(&mut witness, &dead_letters, order(6));
    witness.follow(&dead_letters);
    assert_eq!(order_id, lost.order_id);
    let lost = serde_json::to_string(&SchedulerMessage::Command(lost)).unwrap();
    assert!(decode::<SchedulerMessage>(lost.as_bytes()).is_ok());
    dead_letters.memory.leave_dead_letter(SourceQueue::Scheduler, &lost);
    witness.follow(&dead_letters);
    witness
}

#[test]
fn whatever_is_sent_on_the_way_of_real_orders_is_as_the_schemas_say() {
    let seen = play().seen;
    for name in messages() {
        assert!(seen.iter().any(|seen| seen.split(' ').next() == Some(&name)), "{name} was never sent: {seen:#?}");
    }
    for variant in [
        "reply Done",
        "reply Failed",
        "reply Deferred",
        "reply Retrying",
        "request Forward",
        "request Undo",
        "child Forward",
        "child Undo",
        "command Resubmit",
        "command Cancel",
        "command Pause",
        "command Resume",
        "command Settle",
        "command Approve",
        "order-needs-operator rejected",
        "order-compensated rejected",
    ] {
        assert!(seen.contains(variant), "{variant} was never sent: {seen:#?}");
    }
}
