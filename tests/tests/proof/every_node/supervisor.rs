//! The supervisor's runs over due orders.

use std::collections::BTreeSet;

use domain::alert::{Alert, GONE_MS, TELLING_MS};
use domain::id::OrderId;
use domain::lease::acquired;
use domain::limits::{RESENDS_BEFORE_ALERT, SETTLES_WITHIN_MS_DEFAULT};
use domain::message::Action;
use domain::ports::{Commit, Environment, Record, Records, Seen};
use domain::task::{Direction, reason};
use supervisor::Settings;
use tests::world::{Act, BACKED_OFF_MS, EXPIRED_MS, End, PATIENT, World, drive, now};

use super::node::{CHANNEL, Node, Scene, claimed, command, steps_done, stored, with, world};

use Direction::Forward;

const HANDLER: &str = "supervisor";

/// The time after which a wake counts as lost, and a notice is sent again.
const LOST_MS: u64 = 31_000;

/// One run. A failed run is repeated by the next one.
pub(crate) fn sweep(world: &World) {
    let (instance, settings) = (world.instance("supervisor"), Settings::default());
    if let Some(Err(error)) = drive(&world.memory, &world.ports, supervisor::handle(&world.ports, &instance, &settings))
    {
        assert!(error.to_string().ends_with("unavailable"), "{error}");
    }
}

/// One look for causes. A failed one is repeated by the next one.
fn looked(world: &World) {
    let sinks = [CHANNEL.into()];
    let look = supervisor::alerts(&world.ports, &sinks);
    if let Some(Err(error)) = drive(&world.memory, &world.ports, look) {
        assert!(error.to_string().ends_with("unavailable"), "{error}");
    }
}

/// Looks again, the first time after that in which a killed look may still tell.
fn looked_later(world: &World) {
    for _ in 0..3 {
        world.memory.advance(TELLING_MS + 1);
        looked(world);
    }
}

/// The types of the events about alerts that the bus and the channel took, each once.
fn told(world: &World) -> (BTreeSet<String>, BTreeSet<String>) {
    let alerts = |kinds: Vec<String>| kinds.into_iter().filter(|kind| kind.starts_with("Alert")).collect();
    let bus = world.memory.published().iter().map(|event| event.kind.to_string()).collect();
    let channel = world.memory.notified().iter().map(|(_, event)| event.kind.to_string()).collect();
    (alerts(bus), alerts(channel))
}

/// An order that waits for an operator.
fn held() -> (World, OrderId) {
    let world = with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
    world.remote.declines("reserve", Forward);
    let order_id = claimed(&world);
    steps_done(&world, &["inventory"]);
    (world, order_id)
}

fn swept(world: World) -> Scene {
    Scene::asked(world, |world| {
        sweep(world);
        true
    })
}

/// A step that is given up at its first failure.
fn impatient(remedy: &str) -> World {
    let text = PATIENT.replace("max_failures = 3", "max_failures = 1");
    with(&text.replace("on_exhausted = \"hold\"", &format!("on_exhausted = {remedy:?}")))
}

/// The first attempt's request is lost, and its time is over.
fn expired(world: &World) -> OrderId {
    let order_id = claimed(world);
    world.lose_requests("inventory");
    world.memory.advance(EXPIRED_MS);
    order_id
}

pub(crate) fn nodes() -> Vec<Node> {
    let node = |what, scene| Node { handler: HANDLER, what, scene };
    vec![
        node("nothing is due", || {
            let world = world();
            let order_id = claimed(&world);
            swept(world).ends(order_id, End::Processed)
        }),
        node("an attempt that expired: counts it and wakes later", || {
            let world = world();
            let order_id = expired(&world);
            swept(world).ends(order_id, End::Processed).checked(move |world| {
                assert_eq!(world.step(order_id, "reserve").attempt, 2, "counted once, made again once");
            })
        }),
        node("the last failure: asks an operator", || {
            let world = impatient("hold");
            let order_id = expired(&world);
            swept(world).ends(order_id, End::Error(reason::EXHAUSTED))
        }),
        node("the last failure: turns the order round", || {
            let world = impatient("compensate");
            let order_id = expired(&world);
            swept(world).ends(order_id, End::Compensated)
        }),
        node("the last failure of an undo: asks an operator", || {
            let world = impatient("hold");
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            world.tell_scheduler(command(&world, order_id, Action::Cancel));
            world.schedule();
            world.lose_requests("payment");
            world.memory.advance(EXPIRED_MS + SETTLES_WITHIN_MS_DEFAULT);
            world.schedule();
            world.lose_requests("payment");
            world.memory.advance(EXPIRED_MS);
            swept(world).ends(order_id, End::Error(reason::COMPENSATION_FAILED))
        }),
        node("an attempt found expired so late that the clock may be wrong", || {
            let world = with(&PATIENT.replace(
                "[[step]]\nname = \"reserve\"",
                "[supervision]\ndoubt_after = \"90s\"\n[[step]]\nname = \"reserve\"",
            ));
            let order_id = expired(&world);
            world.memory.advance(600_000);
            swept(world).ends(order_id, End::Processed)
        }),
        node("a wake that was lost", || {
            let world = world();
            let order_id = stored(&world);
            world.lose_scheduler_messages();
            world.memory.advance(LOST_MS);
            swept(world).ends(order_id, End::Processed)
        }),
        node("a status message that was not sent", || {
            let world = world();
            world.memory.is_down("events.");
            let order_id = claimed(&world);
            world.memory.advance(LOST_MS);
            world.memory.is_up("events.");
            swept(world).ends(order_id, End::Processed).checked(|world| {
                let told: Vec<_> = world.memory.notified().into_iter().map(|(_, event)| event.kind).collect();
                assert!(told.iter().any(|kind| &**kind == "OrderReceived"), "{told:?}");
            })
        }),
        node("an alert that was not sent", || {
            let world = with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
            world.remote.declines("reserve", Forward);
            world.memory.is_down("events.");
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            world.memory.advance(LOST_MS);
            world.memory.is_up("events.");
            swept(world).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("a reply channel that is gone: tells operators", || {
            let world = world();
            world.memory.unregister_channel(CHANNEL);
            let order_id = claimed(&world);
            for agent in ["inventory", "payment", "shipping"] {
                steps_done(&world, &[agent]);
            }
            let resends = |world: &World| world.task(order_id).unsent.iter().map(|notice| notice.resends).max();
            while resends(&world) < Some(RESENDS_BEFORE_ALERT - 1) {
                world.memory.advance(LOST_MS);
                world.supervise();
            }
            let due = world.task(order_id).watch_at.expect("a watch");
            world.memory.advance(world.memory.now().ms_until(due));
            swept(world)
                .then(|world| {
                    // After the lease of the killed run, and after the time for a repeated alert.
                    for _ in 0..4 {
                        world.memory.advance(16_000);
                        world.supervise();
                    }
                    let alerts = world.memory.published();
                    assert!(alerts.iter().any(|event| &*event.kind == "ReplyChannelFailing"), "{alerts:?}");
                    world.memory.register_channel(CHANNEL);
                })
                .ends(order_id, End::Processed)
        }),
        node("two orders of one shard, one of them with two steps that expired", || {
            let world = with(&PATIENT.replace("after = [\"charge\"]", "after = [\"reserve\"]"));
            let one = claimed(&world);
            steps_done(&world, &["inventory"]);
            let other = world.post(2);
            world.submit();
            world.schedule();
            for agent in ["inventory", "payment", "shipping"] {
                world.lose_requests(agent);
            }
            world.memory.advance(EXPIRED_MS + BACKED_OFF_MS);
            swept(world).ends(one, End::Processed).ends(other, End::Processed)
        }),
        node("a cause that began: tells the bus and a sink", || {
            let (world, order_id) = held();
            let scene = Scene::asked(world, |world| {
                looked(world);
                true
            });
            scene.then(looked_later).ends(order_id, End::Error(reason::REJECTED)).checked(|world| {
                let began = BTreeSet::from(["AlertBegan".to_owned()]);
                assert_eq!(told(world), (began.clone(), began));
            })
        }),
        node("a cause that is over: tells the bus and a sink", || {
            let (world, order_id) = held();
            looked(&world);
            world.tell_scheduler(command(&world, order_id, Action::Cancel));
            world.end_all(&[(order_id, End::Compensated)]);
            looked(&world);
            world.memory.advance(GONE_MS);
            let scene = Scene::asked(world, |world| {
                looked(world);
                true
            });
            scene.then(looked_later).ends(order_id, End::Compensated).checked(|world| {
                let both = BTreeSet::from(["AlertBegan".to_owned(), "AlertEnded".to_owned()]);
                assert_eq!(told(world), (both.clone(), both));
                let alerts: Vec<Alert> = now(world.memory.list(usize::MAX)).expect("a store");
                assert!(alerts.iter().all(Alert::is_over), "{alerts:?}");
            })
        }),
        node("a leader that holds the shard already", || {
            let world = world();
            world.remote.next("reserve", Forward, Act::Hangs);
            let order_id = expired(&world);
            let lease = acquired(None, "supervisor/00", "another", world.memory.now(), 15_000).expect("it is free");
            let held = now(world.memory.put(Seen::nothing(world.memory.now()), &lease));
            assert_eq!(held.expect("a store"), Commit::Committed);
            swept(world).ends(order_id, End::Processed)
        }),
    ]
}
