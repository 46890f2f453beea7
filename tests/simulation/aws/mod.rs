//! The worlds of AWS: the real adapters of the functions, on a DynamoDB and an SQS behind a network that fails.
//!
//! Handlers, event sources, network and time are one thread under the seed. Below the handlers run the adapters that
//! ship, with the SDK's own retries and time-outs (`region`). Each instance of a function has clients of
//! its own, and a clock of its own. It may be killed in the middle. SQS delivers twice, late and in any order
//! (`sqs`), and its event source deletes what the function does not report as failed. The changes of tasks come to a
//! supervisor by their shards, in order, also again (`stream`). The rates of the faults are the seed's ([`plan`]). Customers and services are [outside](super::outside).

mod functions;
pub mod plan;
mod region;
mod sqs;
mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws::config::{Config, Function};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use self::functions::Instance;
use self::plan::Plan;
use self::region::Region;
use super::draw;
use super::engine::Outcome;
use super::outside::verdict::{are_over, look, numbers};
use super::outside::{Found, Outside, Scene, Seen, Shared, sleep};
use rehearsal::rng::Rng;
use rehearsal::setup::Setup;
use rehearsal::world::calm::bound_ms;

pub use region::FAULTS;

/// The default number of orders in a world.
pub const ORDERS: usize = 2;
/// The queues of the template.
const VISIBILITY_MS: u64 = 180_000;
const RECEIVES_MAX: u32 = 1_000;
/// The longest pause between two looks at the orders, in milliseconds.
const LOOK_MS: u64 = 30_000;

/// A world.
struct World {
    setup: Setup,
    plan: Plan,
    config: Config,
    outside: Shared,
    region: Mutex<Region>,
}

impl World {
    fn region(&self) -> MutexGuard<'_, Region> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.outside.lock().clock.now_ms()
    }
}

/// Runs the world of a seed with this number of orders, and keeps its trace or only the hash.
#[must_use]
pub fn run(seed: u64, orders: usize, keeps_lines: bool) -> Outcome {
    // The SDK's jitter.
    fastrand::seed(seed);
    let mut rng = Rng::new(seed);
    let setup = draw::setup(&mut rng, orders).0;
    let tick_ms = rng.pick(&[5_000, 20_000, 60_000]);
    outcome(seed, run_as(Setup { tick_ms, ..setup }, rng, keeps_lines, Plan::draw, None))
}

/// Follows a script in a world without faults of the platform.
#[must_use]
pub fn follow(scene: Scene, instances: usize) -> (Seen, Vec<Found>) {
    fastrand::seed(0);
    // The schedule of the template.
    let setup = Setup { tick_ms: 60_000, ..scene.setup(instances) };
    let outside = run_as(setup, Rng::new(0), false, |_, _| Plan::well(), Some(scene));
    (outside.seen, outside.violations)
}

/// Runs the world of a seed whose only fault is that DynamoDB carries nothing out for this time. Its queues deliver as
/// those of the template.
#[must_use]
pub fn run_through_outage(seed: u64, orders: usize, outage_ms: u64) -> Outcome {
    fastrand::seed(seed);
    let mut rng = Rng::new(seed);
    let mut setup = draw::setup(&mut rng, orders).0;
    (setup.visibility_ms, setup.receives_max) = (VISIBILITY_MS, RECEIVES_MAX);
    (setup.instances, setup.supervisors) = (1, 1);
    setup.posts_within_ms = 1_000;
    let from_ms = rng.between(2_000, 3_000);
    let setup = Setup { tick_ms: 600_000, ..setup };
    outcome(seed, run_as(setup, rng, false, |_, _| Plan::of_outage(from_ms, from_ms + outage_ms), None))
}

fn run_as(
    mut setup: Setup,
    mut rng: Rng,
    keeps_lines: bool,
    plan: impl FnOnce(&mut Rng, &Setup) -> Plan,
    scene: Option<Scene>,
) -> Outside {
    // Each service here has books of its own, and its client asks no other.
    setup.policies.iter_mut().for_each(|policy| policy.fallback.clear());
    let plan = plan(&mut rng, &setup);
    let config = Config::read(Function::Supervisor, |name| region::variable(name, setup.shards));
    let config = config.unwrap_or_else(|error| panic!("the configuration of a world: {error}"));
    let shared = Arc::new(setup.clone());
    let mut outside = Outside::new(rng, shared, keeps_lines);
    if let Some(scene) = scene {
        outside.follow(scene);
        outside.is_calm = true;
    }
    let outside = Shared::new(outside);
    let region = Mutex::new(Region::new(&config, &setup, plan, outside.clone()));
    let world = Arc::new(World { setup, plan, config, outside: outside.clone(), region });
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("a runtime without threads and sockets: {error}"));
    LocalSet::new().block_on(&runtime, live(&world));
    drop(runtime);
    drop(world);
    outside.into_inner()
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

async fn live(world: &Arc<World>) {
    world.outside.lock().clock.start();
    world.outside.lock().tell(&format!("starts: {:?}", world.plan));
    let mut running = functions::start(world);
    sleep(world.plan.calm_at_ms).await;
    world.outside.lock().is_calm = true;
    world.outside.lock().tell("faults stop");
    let truth = Instance::that_meets_no_fault(world);
    let since_ms = world.now_ms();
    let limit_ms = since_ms + 2 * bound_ms(&world.setup) + 3_600_000;
    let is_quiet = || world.region().is_quiet();
    let mut pause_ms = 1_000;
    while !(is_quiet() && are_over(&world.outside, &truth.ports, since_ms).await && is_quiet())
        && world.now_ms() < limit_ms
    {
        sleep(pause_ms).await;
        pause_ms = (2 * pause_ms).min(LOOK_MS);
    }
    running.shutdown().await;
    look(&world.outside, &truth.ports, is_quiet()).await;
    numbers(&world.outside, &truth.ports).await;
    world.outside.lock().clock.stop();
}
