//! One life of the process: the engine, and the handlers behind their event sources, as `stepwarden serve` has them.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::Agent;
use api::ApiConfig;
use domain::batch::Failures;
use domain::instance::Instance;
use domain::message::Delivery;
use domain::ports::{Environment, HasStore, Source, Store};
use domain::time::Timestamp;
use embedded::{
    Engine, EngineEvents, EngineQueues, EngineRecords, EngineStore, OpenError, Options, QueueOptions, Simulated,
};
use futures_util::FutureExt;
use local::direct::Direct;
use local::event_source::{self, Drain};
use local::stop::Loops;
use local::ticker;
use supervisor::Settings;
use tokio::select;

use super::loss::Beside;
use super::plan::{Ends, Life};
use super::{World, verdict};
use crate::simulation::outside::verdict::{are_over, look, numbers};
use crate::simulation::outside::{CHANNEL, Client, Shared, may_act, perform, post, sleep};
use crate::simulation::shapes::AGENTS;
use rehearsal::world::calm::bound_ms;

/// Batches in flight of each queue.
const BATCHES_MAX: usize = 4;
/// The grace of handlers after a stop, in milliseconds.
const GRACE_MS: u64 = 3_000;

const DRAIN: Drain = Drain { queue: "queue", batches_max: BATCHES_MAX, grace_ms: GRACE_MS, until_empty: false };

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The power was cut.
    PowerOff,
    /// The process was killed.
    Killed,
    /// The process was asked to stop, and did.
    Stopped,
    /// The disk did not let it start.
    NotStarted,
    /// Every order has ended, or should have.
    Over,
}

/// The ports of all handlers.
#[derive(Clone)]
pub(super) struct Ports {
    engine: Engine,
    clock: Clock,
}

/// Time and chance of the world.
#[derive(Clone)]
pub(super) struct Clock(Shared);

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        self.0.lock().clock.wall()
    }

    async fn sleep(&self, ms: u64) {
        sleep(ms).await;
    }

    fn random(&self) -> u64 {
        self.0.lock().rng.bits()
    }
}

domain::has_parts!([] Ports {
    HasStore, Store = EngineStore, store: |ports| ports.engine.store();
    HasQueues, Queues = EngineQueues, queues: |ports| ports.engine.queues();
    HasEvents, Events = EngineEvents, events: |ports| ports.engine.events();
    HasRecords, Records = EngineRecords, records: |ports| ports.engine.records();
    HasEnvironment, Environment = Clock, environment: |ports| &ports.clock;
});

impl Ports {
    pub(super) fn store(&self) -> &EngineStore {
        self.engine.store()
    }

    /// Whether no message is left.
    pub(super) fn is_quiet(&self) -> bool {
        let stats = self.engine.stats();
        stats.submissions + stats.scheduler + stats.requests + stats.dead_letters == 0
    }
}

/// Lives until the end of this life.
pub(super) async fn live(world: &Arc<World>, life: &Life) -> Ended {
    // A life that ended before it could wait for the power left its signal.
    let _ = world.off.notified().now_or_never();
    let ports = match start(world).await {
        Ok(ports) => ports,
        Err(_) if world.disk.is_off() => return off(life),
        Err(error) => {
            if let Some(OpenError::Lost { loss, .. }) = error.downcast_ref() {
                let words = format!("a start is refused, and nothing was lost: {loss}");
                world.outside.lock().complain("rule 24", None, &words);
            }
            // A sync that failed may spoil a file that is being created. Nobody was promised anything yet.
            let is_spoilt = !world.outside.lock().ever_started && world.disk.counts().syncs_failed > 0;
            if life.is_calm() && is_spoilt {
                world.outside.lock().tell("the database was spoilt when it was created");
                return Ended::NotStarted;
            }
            if life.is_calm() {
                let words = format!("it does not start on a disk that is well: {error}");
                world.outside.lock().complain("14", None, &words);
                return Ended::Over;
            }
            return Ended::NotStarted;
        }
    };
    {
        let outside = &mut *world.outside.lock();
        (outside.has_started, outside.ever_started) = (true, true);
    }
    verdict::start(world, &ports).await;
    numbers(&world.outside, &ports).await;
    let running = Running::start(world, &ports);
    let outside = world.outside.clone();
    let started_ms = outside.lock().clock.now_ms();
    let at = async {
        match life.ends {
            Ends::PowerOffAt(ms) | Ends::KilledAt(ms) | Ends::StoppedAt(ms) => sleep(ms).await,
            Ends::PowerOffIn(_) | Ends::KilledIn(_) => sleep(600_000).await,
            Ends::Never => {
                // A command that ends between the two looks may begin an order again, which then waits without a message.
                while !(ports.is_quiet() && are_over(&outside, &ports, started_ms).await && ports.is_quiet())
                    && waited_ms(&outside, started_ms) < limit_ms(world)
                {
                    sleep(1_000).await;
                }
            }
        }
    };
    select! {
        biased;
        () = world.off.notified() => return off(life),
        () = jump(&outside, life) => {}
        () = at => {}
    }
    match life.ends {
        Ends::PowerOffAt(_) | Ends::PowerOffIn(_) => Ended::PowerOff,
        Ends::KilledAt(_) | Ends::KilledIn(_) => Ended::Killed,
        Ends::StoppedAt(_) => {
            running.stop(&ports).await;
            Ended::Stopped
        }
        Ends::Never => {
            look(&world.outside, &ports, ports.is_quiet()).await;
            numbers(&world.outside, &ports).await;
            Ended::Over
        }
    }
}

/// Lets the wall clock jump once. Never returns.
async fn jump(outside: &Shared, life: &Life) {
    if let Some((at_ms, wrong_ms)) = life.jump {
        sleep(at_ms).await;
        let outside = &mut *outside.lock();
        outside.tell(&format!("the clock jumps: {wrong_ms} ms wrong from now on"));
        outside.counts.add("clock jumped");
        outside.clock.set_wrong(wrong_ms);
    }
    pending::<()>().await;
}

/// The disk stopped in the middle of a write.
const fn off(life: &Life) -> Ended {
    match life.ends {
        Ends::KilledIn(_) | Ends::KilledAt(_) => Ended::Killed,
        Ends::PowerOffIn(_) | Ends::PowerOffAt(_) | Ends::StoppedAt(_) | Ends::Never => Ended::PowerOff,
    }
}

fn waited_ms(outside: &Shared, started_ms: i64) -> i64 {
    outside.lock().clock.now_ms() - started_ms
}

/// The time in which every order ends. Messages and attempts of before may be hidden until their time-out.
fn limit_ms(world: &World) -> i64 {
    2 * bound_ms(&world.setup) + 3_600_000
}

async fn start(world: &Arc<World>) -> Result<Ports, Box<dyn std::error::Error>> {
    let engine = open(world, false)?;
    let recovered = engine.recover().await?;
    world.outside.lock().tell(&format!("recovered: {recovered:?}"));
    Ok(Ports { engine, clock: Clock(world.outside.clone()) })
}

/// Opens the engine on what is on the disk.
pub(super) fn open(world: &Arc<World>, accept_loss: bool) -> Result<Engine, OpenError> {
    let (setup, outside) = (&world.setup, world.outside.clone());
    let queue = QueueOptions { receives_max: setup.receives_max, visibility_ms: setup.visibility_ms };
    let now = outside.clone();
    let (observed, told) = (outside.clone(), outside.clone());
    let sizes = [(0, 0), (0, 3_970), (20_000, 0), (20_000, 3_970)];
    let (live_max, whole_bytes) = outside.lock().rng.pick(&sizes);
    let options = Options {
        submissions: queue,
        scheduler: QueueOptions { receives_max: 100, ..queue },
        live_max,
        whole_bytes,
        observer: Some(Arc::new(move |event| observed.lock().heard(event))),
        channels: [(CHANNEL.into(), channel(told))].into(),
        now: Some(Arc::new(move || now.lock().clock.wall())),
        simulated: Some(Simulated { vfs: disk::VFS, number: Arc::new(Beside::of(world)) }),
        accept_loss,
        ..Options::default()
    };
    Engine::open(&world.folder(), options)
}

fn channel(outside: Shared) -> embedded::Channel {
    Arc::new(move |event| {
        let outside = outside.clone();
        Box::pin(async move {
            let mut outside = outside.lock();
            let is_refused =
                outside.scene.as_ref().is_some_and(|scene| (scene.refuses)(&event, outside.clock.now_ms()));
            if is_refused || outside.strikes("channel failed", 1_000) {
                return Err("away".into());
            }
            outside.heard(&event);
            Ok(())
        })
    })
}

/// The functions behind their event sources, the supervisor, and the customers.
struct Running {
    /// All but the scheduler's.
    loops: Loops,
    scheduler: Loops,
    stopping: Arc<AtomicBool>,
}

impl Running {
    fn start(world: &Arc<World>, ports: &Ports) -> Self {
        let mut running = Self { loops: Loops::new(), scheduler: Loops::new(), stopping: Arc::default() };
        running.functions(world, ports);
        // Without an instance orders wait on the queue, as they do while the program is paused.
        let is_direct = world.outside.lock().rng.pick(&[true, true, true, false]);
        let direct = Direct::new(ports.clone(), is_direct.then(|| instance(world, "submission")));
        for number in 0..world.setup.orders {
            let (outside, ports) = (world.outside.clone(), direct.clone());
            running.loops.spawn(|stop| async move {
                select! {
                    biased;
                    () = stop.requested() => {}
                    () = customer(&outside, &ports, number) => {}
                }
            });
        }
        if world.outside.lock().scene.is_some() {
            let (outside, ports) = (world.outside.clone(), direct);
            running.loops.spawn(|stop| async move {
                select! {
                    biased;
                    () = stop.requested() => {}
                    () = perform(&outside, &ports) => {}
                }
            });
        }
        running
    }

    /// In the order of rule 25.
    async fn stop(mut self, ports: &Ports) {
        ports.engine.end_waits();
        self.stopping.store(true, Ordering::Relaxed);
        self.loops.stop().await;
        self.scheduler.stop().await;
        // What it could not write is not acknowledged.
        let _ = ports.engine.close().await;
    }

    fn functions(&mut self, world: &Arc<World>, ports: &Ports) {
        let setup = &world.setup;
        let (engine, at) = (&ports.engine, instance(world, "submission"));
        feed(&mut self.loops, engine.submissions(), ports, move |ports, batch| {
            let at = at.clone();
            async move { submission::handle(&ports, &at, batch).await }
        });
        let at = instance(world, "scheduler");
        let scheduled = ports.clone();
        let handle = move |batch| {
            let (at, ports) = (at.clone(), scheduled.clone());
            async move { scheduler::handle(&ports, &at, batch).await }
        };
        let source = engine.scheduler();
        self.scheduler.spawn(|stop| event_source::run(Drain { until_empty: true, ..DRAIN }, source, handle, stop));
        let at = instance(world, "dead-letters");
        feed(&mut self.loops, engine.dead_letters(), ports, move |ports, batch| {
            let at = at.clone();
            async move { supervisor::dead_letters(&ports, &at, batch).await }
        });
        for (place, name) in AGENTS.into_iter().enumerate() {
            let (outside, client) = (world.outside.clone(), Arc::<str>::from(name));
            let make = move || Client { outside: outside.clone(), agent: client.clone() };
            let agent = Agent::new(name, setup.policies[place].clone(), make);
            let agent = agent.unwrap_or_else(|error| panic!("the policy of a world makes sense: {error}"));
            let agent = Arc::new(agent.stopped_by(self.stopping.clone()));
            feed(&mut self.loops, engine.requests(name), ports, move |ports, batch| {
                let agent = agent.clone();
                async move { agent::handle(&ports, &agent, batch).await }
            });
        }
        let settings = Settings { tick_ms: setup.tick_ms, ..Settings::default() };
        let (at, supervised) = (instance(world, "supervisor"), ports.clone());
        let tick = move || {
            let (at, ports) = (at.clone(), supervised.clone());
            async move {
                // The next run retries what this one could not do.
                let _ = supervisor::handle(&ports, &at, &settings).await;
                let _ = supervisor::services(&ports).await;
            }
        };
        let every = Duration::from_millis(setup.tick_ms);
        self.loops.spawn(|stop| ticker::run("supervisor", every, GRACE_MS, tick, stop));
        let ports = ports.clone();
        let tick = move || {
            let ports = ports.clone();
            async move { drop(supervisor::alerts(&ports, &[]).await) }
        };
        self.loops.spawn(|stop| ticker::run("alerts", Duration::from_secs(10), GRACE_MS, tick, stop));
    }
}

fn instance(world: &World, name: &str) -> Arc<Instance> {
    let (setup, name) = (&world.setup, format!("{name}-{}", world.outside.lock().rng.bits()).into());
    Arc::new(Instance { name, catalogue: setup.catalogue(&setup.shape.first), shards: setup.shards })
}

/// Feeds a handler from a queue.
fn feed<M, S, Handle, Handling>(loops: &mut Loops, source: S, ports: &Ports, handle: Handle)
where
    M: Send + 'static,
    S: Source<M> + 'static,
    Handle: Fn(Ports, Vec<Delivery<M>>) -> Handling + Send + Sync + 'static,
    Handling: Future<Output = Failures> + Send + 'static,
{
    let ports = ports.clone();
    loops.spawn(|stop| event_source::run(DRAIN, source, move |batch| handle(ports.clone(), batch), stop));
}

/// A customer posts until its order is accepted, then looks at it now and then. An operator may act on it.
async fn customer(outside: &Shared, ports: &Direct<Ports>, number: usize) {
    let config = ApiConfig::new([CHANNEL]);
    loop {
        let Some(order) = post(outside, ports, &config, number).await else { continue };
        // Otherwise it is not stored yet, or the disk fails.
        if let Ok(Some(task)) = ports.store().task(order).await {
            outside.lock().see(&task);
        }
        may_act(outside, ports, &config, order).await;
    }
}
