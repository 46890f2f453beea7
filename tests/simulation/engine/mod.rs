//! The worlds of the one-machine form: the real engine on a disk in memory, which loses power, fails and fills up.
//!
//! A world is a chain of lives of one process. In each life the real [`Engine`](embedded::Engine) is opened on what the
//! life before left on the disk, and the real handlers run behind the real event sources ([`process`]). Engine, handlers
//! and time are one thread under the seed: the writer is a task, and reads happen in place. A life ends by a power cut in
//! the middle of a write, a kill or a stop ([`plan`]). Customers and services are outside, and remember what they saw
//! ([`outside`](super::outside)). What they saw must be on the disk in every later life ([`verdict`]).

pub mod audit;
mod loss;
pub mod plan;
pub mod process;
pub mod verdict;

use std::path::PathBuf;
use std::sync::Arc;

use disk::Disk;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use self::plan::{Life, Plan};
use self::process::Ended;
use super::draw;
use super::outside::services::{AT_WORK, BUSY};
use super::outside::{Counts, Found, Outside, Scene, Seen, Shared};
use rehearsal::rng::Rng;
use rehearsal::setup::Setup;
use rehearsal::trace::Line;

/// Every fault. In enough worlds each one occurs.
pub const FAULTS: [&str; 22] = [
    "power off",
    "process killed",
    "process stopped",
    "no start",
    "wrong clock",
    "clock jumped",
    "unsynced write lost",
    "sync failed",
    "write failed",
    "read failed",
    "disk full",
    "log lost",
    "log cut",
    "loss refused",
    "call declined",
    "call refused for a while",
    "call without an answer",
    "late answer",
    AT_WORK,
    BUSY,
    "operator",
    "channel failed",
];

/// The result of one world.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The violations, in order.
    pub violations: Vec<Found>,
    /// Hash of all that was seen outside.
    pub hash: u64,
    /// Its duration, in milliseconds of its own clock.
    pub lasted_ms: i64,
    /// The count of each fault.
    pub counts: Counts,
    /// The trace, if requested.
    pub lines: Vec<Line>,
}

/// A world between two lives of its process.
pub struct World {
    disk: Disk,
    /// The power went off in the middle of a write.
    off: Arc<Notify>,
    outside: Shared,
    setup: Arc<Setup>,
}

impl World {
    fn folder(&self) -> PathBuf {
        self.disk.path("").into()
    }
}

/// Runs the world of a seed with this number of orders, and keeps its trace or only the hash.
#[must_use]
pub fn run(seed: u64, orders: usize, keeps_lines: bool) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut setup = draw::setup(&mut rng, orders).0;
    // Each service here has books of its own, and its client asks no other.
    setup.policies.iter_mut().for_each(|policy| policy.fallback.clear());
    let plan = Plan::draw(&mut rng);
    outcome(seed, run_as(setup, &plan, rng, keeps_lines, None))
}

/// Follows a script in a world without faults of the disk.
#[must_use]
pub fn follow(scene: Scene) -> (Seen, Vec<Found>) {
    let outside = run_as(scene.setup(1), &Plan::well(), Rng::new(0), false, Some(scene));
    (outside.seen, outside.violations)
}

fn run_as(setup: Setup, plan: &Plan, mut rng: Rng, keeps_lines: bool, scene: Option<Scene>) -> Outside {
    let setup = Arc::new(setup);
    let off = Arc::new(Notify::new());
    let disk = Disk::new(rng.bits());
    let notify = off.clone();
    disk.when_off(move || notify.notify_one());
    let mut outside = Outside::new(rng, setup.clone(), keeps_lines);
    if let Some(scene) = scene {
        outside.follow(scene);
    }
    let outside = Shared::new(outside);
    let world = Arc::new(World { disk, off, outside: outside.clone(), setup });
    for life in &plan.lives {
        if one_life(&world, life) == Ended::Over {
            verdict::end(&mut outside.lock());
            break;
        }
        if life.damage.is_some_and(|damage| loss::strike(&world, damage)) {
            break;
        }
    }
    let counts = world.disk.counts();
    drop(world);
    let mut outside = outside.into_inner();
    let of_disk = [
        ("unsynced write lost", counts.lost),
        ("sync failed", counts.syncs_failed),
        ("write failed", counts.writes_failed),
        ("read failed", counts.reads_failed),
        ("disk full", counts.full),
    ];
    of_disk.into_iter().for_each(|(what, times)| outside.counts.more(what, times));
    outside
}

fn outcome(seed: u64, outside: Outside) -> Outcome {
    Outcome {
        seed,
        violations: outside.violations,
        hash: outside.trace.hash(),
        lasted_ms: outside.clock.now_ms(),
        counts: outside.counts,
        lines: outside.trace.into_lines(),
    }
}

/// One life of the process, and what becomes of the disk.
fn one_life(world: &Arc<World>, life: &Life) -> Ended {
    {
        let outside = &mut *world.outside.lock();
        outside.clock.set_wrong(life.wrong_ms);
        outside.is_calm = life.is_calm();
        outside.has_started = false;
        outside.tell(&format!("starts: {life}"));
    }
    world.disk.fail(life.faults);
    world.disk.leave_room(life.room);
    if let Some(writes) = life.ends.after_writes() {
        world.disk.turn_off_after(writes);
    }
    let runtime = runtime();
    let ended = runtime.block_on(async {
        world.outside.lock().clock.start();
        let ended = process::live(world, life).await;
        world.outside.lock().clock.stop();
        ended
    });
    note(&mut world.outside.lock(), ended);
    let is_cut = ended == Ended::PowerOff;
    // What the process had in memory is gone, and nothing that is dropped here may still reach the disk.
    world.disk.turn_off();
    drop(runtime);
    if is_cut {
        world.disk.cut();
    } else {
        world.disk.turn_on();
    }
    // Without faults of the disk, a process that runs has recorded its transactions.
    let is_exact = !is_cut && ended != Ended::NotStarted && life.is_well() && world.outside.lock().has_started;
    loss::check(world, is_exact);
    audit::check(world);
    let pause_ms = world.outside.lock().rng.between(0, 20_000);
    world.outside.lock().clock.pass(pause_ms);
    ended
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap_or_else(|error| panic!("a runtime without threads and sockets: {error}"))
}

fn note(outside: &mut Outside, ended: Ended) {
    if outside.clock.wrong_ms != 0 {
        outside.counts.add("wrong clock");
    }
    match ended {
        Ended::PowerOff => outside.counts.add("power off"),
        Ended::Killed => outside.counts.add("process killed"),
        Ended::Stopped => outside.counts.add("process stopped"),
        Ended::NotStarted => outside.counts.add("no start"),
        Ended::Over => {}
    }
    outside.tell(&format!("ended: {ended:?}"));
}
