//! All functions in one process: the door on a socket, each queue feeding its handler, the supervisor on its schedule.
//!
//! Everything here is generic over the ports, so that a test can run it on what it likes.

mod bind;
mod ports;
mod remotes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agents::HttpAgent;
use api::Door;
use domain::instance::Instance;
use domain::message::{Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::Source;
use domain::workflow::{WorkflowError, Workflows};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use bind::{BindError, bind};
pub use ports::Ports;
pub use remotes::{Remotes, RemotesError};

use crate::event_source::{self, Drain};
use crate::http_server::Server;
use crate::standin::{Service, StandIns};
use crate::stop::{self, Stop, Stopper};
use crate::ticker;
use ports::DoorPorts;

/// Who posts orders, as the door knows them. It listens on this machine and asks for no password.
const CALLER: &str = "local";
/// How long requests under way may go on after a stop, in milliseconds. Those that wait for an order end at once.
const REQUEST_GRACE_MS: u64 = 2_000;
/// How long handlers under way may go on after a stop, in milliseconds. A call to a slow service is cut off then, and
/// made again with the same key after the next start.
const HANDLER_GRACE_MS: u64 = 3_000;
/// Batches of submissions at once. Each waits for the disk, and those that wait together share one sync.
const SUBMISSION_BATCHES_MAX: usize = 16;
/// Batches of the scheduler queue at once. More than for submissions, since an order passes here once for each step.
const SCHEDULER_BATCHES_MAX: usize = 32;
/// Batches of requests at once, for each agent. A batch stays in flight as long as its slowest call, so it takes many to
/// keep a slow service busy; at most ten calls for each of them are open at the same time.
const AGENT_BATCHES_MAX: usize = 64;

/// The engine as this crate sees it: the ports, and the receiving end of each queue.
#[derive(Debug)]
pub struct Backend<P, S, C, R> {
    /// All ports.
    pub ports: Arc<P>,
    /// The submission queue.
    pub submissions: S,
    /// The scheduler queue.
    pub scheduler: C,
    /// The request queues of the agents, in the order of [`Service::ALL`].
    pub requests: [R; 3],
}

/// Serving could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket is not what it was.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// A shipped workflow is wrong; a test of `domain` makes sure that none is.
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
}

/// Everything runs.
#[derive(Debug)]
pub struct Running {
    door: Server,
    waits: Stopper,
    functions: Stopper,
    loops: JoinSet<()>,
    stand_ins: Option<StandIns>,
}

/// Starts everything: the door on `listener`, the functions on `backend`, the agents towards `remotes`, and the supervisor,
/// which runs at once and then every `supervise_every`.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start<P, S, C, R>(
    listener: TcpListener,
    backend: Backend<P, S, C, R>,
    remotes: Remotes,
    supervise_every: Duration,
) -> Result<Running, StartError>
where
    P: Ports,
    S: Source<Order> + 'static,
    C: Source<SchedulerMessage> + 'static,
    R: Source<Request> + 'static,
{
    let Backend { ports, submissions, scheduler, requests } = backend;
    let workflows = Workflows::shipped()?;
    let (waits, waits_stop) = stop::pair();
    let door = door(listener, DoorPorts { ports: ports.clone(), stop: waits_stop })?;
    let (stopper, stop) = stop::pair();
    let mut functions = Functions { ports, workflows, stop, loops: JoinSet::new() };
    functions.submission(submissions);
    functions.scheduler(scheduler);
    for ((service, agent), queue) in Service::ALL.into_iter().zip(remotes.agents).zip(requests) {
        functions.agent(service, agent, queue);
    }
    functions.supervisor(supervise_every);
    Ok(Running { door, waits, functions: stopper, loops: functions.loops, stand_ins: remotes.stand_ins })
}

impl Running {
    /// Where the API listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// The base URL of the API, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The stand-ins, where a service has no URL of its own.
    #[must_use]
    pub const fn stand_ins(&self) -> Option<&StandIns> {
        self.stand_ins.as_ref()
    }

    /// Stops in order: first no new requests, then no new batches; what is under way may finish within its grace. After
    /// this nobody uses the ports any more, and the engine can be closed.
    pub async fn stop(mut self) {
        self.waits.stop();
        self.door.stop().await;
        self.functions.stop();
        while let Some(ended) = self.loops.join_next().await {
            if let Err(error) = ended {
                tracing::error!("a loop did not end well: {error}");
            }
        }
        if let Some(stand_ins) = self.stand_ins {
            stand_ins.stop().await;
        }
    }
}

fn door<P: Ports>(listener: TcpListener, ports: DoorPorts<P>) -> std::io::Result<Server> {
    let (ports, door) = (Arc::new(ports), Arc::new(Door::default()));
    Server::start(listener, api::BODY_BYTES_MAX, REQUEST_GRACE_MS, move |request| {
        let (ports, door) = (ports.clone(), door.clone());
        async move { Ok(api::handle(&*ports, &door, CALLER, request).await) }
    })
}

/// Starts the functions behind their event sources.
struct Functions<P> {
    ports: Arc<P>,
    workflows: Workflows,
    stop: Stop,
    loops: JoinSet<()>,
}

impl<P: Ports> Functions<P> {
    fn submission(&mut self, queue: impl Source<Order> + 'static) {
        let (ports, instance) = (self.ports.clone(), self.instance("submission"));
        let handle = move |batch| {
            let (ports, instance) = (ports.clone(), instance.clone());
            async move { submission::handle(&*ports, &instance, batch).await }
        };
        let drain = drain("submission", SUBMISSION_BATCHES_MAX);
        self.loops.spawn(event_source::run(drain, queue, handle, self.stop.clone()));
    }

    fn scheduler(&mut self, queue: impl Source<SchedulerMessage> + 'static) {
        let (ports, instance) = (self.ports.clone(), self.instance("scheduler"));
        let handle = move |batch| {
            let (ports, instance) = (ports.clone(), instance.clone());
            async move { scheduler::handle(&*ports, &instance, batch).await }
        };
        let drain = drain("scheduler", SCHEDULER_BATCHES_MAX);
        self.loops.spawn(event_source::run(drain, queue, handle, self.stop.clone()));
    }

    fn agent(&mut self, service: Service, agent: Arc<HttpAgent>, queue: impl Source<Request> + 'static) {
        let ports = self.ports.clone();
        let handle = move |batch| {
            let (ports, agent) = (ports.clone(), agent.clone());
            async move { agents::handle(&*ports, &agent, batch).await }
        };
        let drain = drain(service.name(), AGENT_BATCHES_MAX);
        self.loops.spawn(event_source::run(drain, queue, handle, self.stop.clone()));
    }

    fn supervisor(&mut self, every: Duration) {
        let (ports, instance) = (self.ports.clone(), self.instance("supervisor"));
        let tick = move || {
            let (ports, instance) = (ports.clone(), instance.clone());
            async move {
                match supervisor::handle(&*ports, &instance).await {
                    Ok(report) if report.taken > 0 || report.failed > 0 => tracing::info!(?report, "supervisor"),
                    Ok(_) => {}
                    Err(error) => tracing::warn!("the supervisor's run was cut short: {error}"),
                }
            }
        };
        self.loops.spawn(ticker::run("supervisor", every, HANDLER_GRACE_MS, tick, self.stop.clone()));
    }

    /// The process's id tells this run's claims from those of the run before.
    fn instance(&self, function: &str) -> Arc<Instance> {
        let name = format!("{function}-{}", std::process::id()).into();
        Arc::new(Instance { name, workflows: self.workflows.clone() })
    }
}

const fn drain(queue: &'static str, batches_max: usize) -> Drain {
    Drain { queue, batches_max, grace_ms: HANDLER_GRACE_MS }
}
