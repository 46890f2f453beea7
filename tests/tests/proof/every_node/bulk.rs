//! The supervisor's steps of bulk jobs.

use domain::bulk::{BulkAction, DryRun, Job, JobState, Spec};
use domain::id::OrderId;
use domain::ports::{Commit, Environment, Records, Seen};
use domain::redaction::Redaction;
use domain::task::{Direction, ProcessState, What, reason};
use supervisor::Settings;
use tests::conformance::samples;
use tests::world::{End, PATIENT, World, drive, now};

use super::node::{Node, Scene, with};

const HANDLER: &str = "bulk jobs";
const JOB: &str = "j1";
/// The number of orders in `Error`, and the number of canaries.
const ORDERS: u32 = 3;
const CANARIES: u32 = 1;

/// One run. A failed run is repeated by the next one.
fn tick(world: &World) {
    let (instance, settings) = (world.instance("supervisor"), Settings::default());
    let redaction = Redaction::default();
    let run = supervisor::bulk(&world.ports, &instance, &settings, &redaction);
    if let Some(Err(error)) = drive(&world.memory, &world.ports, run) {
        assert!(error.to_string().ends_with("unavailable"), "{error}");
    }
}

/// Rejected orders, whose service would now accept them.
pub(crate) fn failed() -> (World, Vec<OrderId>) {
    let world = with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
    let orders: Vec<OrderId> = (1..=ORDERS).map(|n| world.post(n)).collect();
    for _ in &orders {
        world.remote.declines("reserve", Direction::Forward);
    }
    world.run();
    for &order_id in &orders {
        assert_eq!(world.task(order_id).reason.as_ref().map(|reason| &*reason.code), Some(reason::REJECTED));
    }
    (world, orders)
}

/// Compensated orders, whose service would now accept them.
fn compensated() -> (World, Vec<OrderId>) {
    let world = with(PATIENT);
    let orders: Vec<OrderId> = (1..=ORDERS).map(|n| world.post(n)).collect();
    for _ in &orders {
        world.remote.declines("reserve", Direction::Forward);
    }
    world.run();
    for &order_id in &orders {
        assert_eq!(world.task(order_id).process_state, ProcessState::Compensated);
    }
    (world, orders)
}

/// Writes a job for all of them, in the state that `change` sets.
fn planned(world: &World, change: impl FnOnce(&Job) -> Job) {
    planned_to(world, BulkAction::Resubmit, change);
}

fn planned_to(world: &World, action: BulkAction, change: impl FnOnce(&Job) -> Job) {
    let spec: Spec = serde_json::from_str(r#"{"By":"ada","Reason":"mended","RatePerSecond":1}"#).expect("a job");
    let at = world.memory.now();
    let spec = Spec { action, canary: CANARIES, ..spec };
    let job = Job::plan(JOB.into(), spec, DryRun::default(), at).expect("a job");
    assert_eq!(
        now(world.memory.put(Seen::nothing(world.memory.now()), &change(&job))).expect("a store"),
        Commit::Committed
    );
}

fn started(job: &Job) -> Job {
    let at = job.planned_at;
    Job { version: 1, ..job.start("ada", "go", at).expect("a start") }
}

fn job(world: &World) -> Job {
    now(world.memory.get::<Job>(JOB)).expect("a store").expect("the job")
}

/// A scene of one supervisor run. After it, the job continues to its end, and each order was resubmitted exactly once.
fn ticked(world: World, orders: Vec<OrderId>) -> Scene {
    let scene = to_the_end(world);
    orders.iter().fold(scene, |scene, &order_id| scene.ends(order_id, End::Processed)).checked(move |world| {
        all_recovered(world);
        for &order_id in &orders {
            let task = world.task(order_id);
            let resubmitted = task.history.iter().filter(|line| matches!(line.what, What::Resubmitted)).count();
            assert_eq!(resubmitted, 1, "{:#?}", task.history);
        }
    })
}

/// The same, and each order was posted again.
fn ticked_again(world: World, orders: &[OrderId]) -> Scene {
    let ends = |scene: Scene, &order_id: &OrderId| {
        scene.ends(order_id, End::Compensated).ends(order_id.again(), End::Processed)
    };
    orders.iter().fold(to_the_end(world), ends).checked(all_recovered)
}

fn all_recovered(world: &World) {
    let job = job(world);
    assert_eq!((&job.state, job.tally.recovered, job.tally.failed_again), (&JobState::Done, u64::from(ORDERS), 0));
}

fn to_the_end(world: World) -> Scene {
    let scene = Scene::asked(world, |world| {
        tick(world);
        true
    });
    scene.then(|world| {
        for _ in 0..600 {
            if job(world).state.is_final() {
                return;
            }
            world.run();
            world.memory.advance(1_000);
            tick(world);
        }
        panic!("the job does not end: {:#?}", job(world));
    })
}

pub(crate) fn nodes() -> Vec<Node> {
    let node = |what, scene| Node { handler: HANDLER, what, scene };
    vec![
        node("the canaries are put on their way", || {
            let (world, orders) = failed();
            planned(&world, started);
            ticked(world, orders)
        }),
        node("the others follow", || {
            let (world, orders) = failed();
            planned(&world, started);
            tick(&world);
            world.run();
            world.memory.advance(1_000);
            ticked(world, orders)
        }),
        node("a command that nothing came of is sent again", || {
            let (world, orders) = failed();
            planned(&world, started);
            tick(&world);
            world.lose_scheduler_messages();
            world.memory.advance(16_000);
            ticked(world, orders)
        }),
        node("the last order is settled", || {
            let (world, orders) = failed();
            planned(&world, started);
            for _ in 0..ORDERS {
                tick(&world);
                world.run();
                world.memory.advance(1_000);
            }
            assert!(!job(&world).state.is_final());
            ticked(world, orders)
        }),
        node("the canaries are posted again", || {
            let (world, orders) = compensated();
            planned_to(&world, BulkAction::Again, started);
            ticked_again(world, &orders)
        }),
        node("the others are posted again", || {
            let (world, orders) = compensated();
            planned_to(&world, BulkAction::Again, started);
            tick(&world);
            world.run();
            world.memory.advance(1_000);
            ticked_again(world, &orders)
        }),
        node("a new order that nothing came of is sent again", || {
            let (world, orders) = compensated();
            planned_to(&world, BulkAction::Again, started);
            tick(&world);
            world.memory.advance(16_000);
            ticked_again(world, &orders)
        }),
        node("a job that waits for its start", || {
            let (world, orders) = failed();
            planned(&world, Clone::clone);
            let scene = Scene::asked(world, |world| {
                tick(world);
                true
            });
            orders.into_iter().fold(scene, |scene, order_id| scene.ends(order_id, End::Error(reason::REJECTED)))
        }),
        node("no order is left to resubmit", || {
            let world = with(PATIENT);
            planned(&world, started);
            Scene::asked(world, |world| {
                tick(world);
                true
            })
            .then(|world| {
                world.memory.advance(20_000);
                tick(world);
            })
            .checked(|world| assert_eq!(job(world).state, JobState::Done))
        }),
        node("an order that is not meant", || {
            let (world, orders) = failed();
            let spare = samples::order(ORDERS + 1);
            let other = world.post_order(spare);
            world.run();
            planned(&world, started);
            ticked(world, orders).ends(other, End::Processed)
        }),
    ]
}
