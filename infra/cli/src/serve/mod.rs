//! All functions in one process: the API on a socket, each queue feeding its handler, the supervisor on its schedule.
//!
//! Everything here is generic over the ports, so that a test can run it on what it likes.

mod bind;
mod functions;
mod hosts;
mod ports;
mod remotes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::ApiConfig;
use domain::message::{Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Source};
use domain::redaction::REDACTED_BY_DEFAULT;
use domain::workflow::{WorkflowError, Workflows};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use bind::{BindError, bind};
pub use hosts::{NotAHost, host_name};
pub use ports::Ports;
pub use remotes::{Remotes, RemotesError};

use crate::http_server::Server;
use crate::standin::{Service, StandIns};
use crate::stop::{self, Stopper};
use functions::Functions;
use hosts::Hosts;
use ports::StoppablePorts;

/// Who posts orders, as the API knows them. It listens on this machine and asks for no password.
const CALLER: &str = "local";
/// How long requests under way may go on after a stop, in milliseconds. Those that wait for an order end at once.
const REQUEST_GRACE_MS: u64 = 2_000;

/// The engine as this crate sees it: the ports, and the receiving end of each queue.
#[derive(Debug)]
pub struct Backend<P, S, C, R, D> {
    /// All ports.
    pub ports: Arc<P>,
    /// The submission queue.
    pub submissions: S,
    /// The scheduler queue.
    pub scheduler: C,
    /// The request queues of the agents, in the order of [`Service::ALL`].
    pub requests: [R; 3],
    /// What any of these queues gave up.
    pub dead_letters: D,
}

/// How it is run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many supervisors share the work; with none nobody looks after what is overdue.
    pub supervisors: u16,
    /// The pause between two runs of each.
    pub supervise_every: Duration,
    /// The reply channels that an order may name.
    pub reply_channels: Vec<Arc<str>>,
    /// The names of members whose values are not shown.
    pub redacted: Vec<String>,
    /// What the API may be called in `Host` besides this machine's own names, where it listens on this machine alone.
    pub allowed_hosts: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        let redacted = REDACTED_BY_DEFAULT.map(Into::into).to_vec();
        Self {
            supervisors: 1,
            supervise_every: Duration::from_secs(1),
            reply_channels: Vec::new(),
            redacted,
            allowed_hosts: Vec::new(),
        }
    }
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
    api_config: Server,
    waits: Stopper,
    functions: Stopper,
    loops: JoinSet<()>,
    stand_ins: Option<StandIns>,
}

/// Starts everything: the API on `listener`, the functions on `backend`, the agents towards `remotes`, and the
/// supervisors, each of which runs at once and then every `supervise_every`.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start<P, S, C, R, D>(
    listener: TcpListener,
    backend: Backend<P, S, C, R, D>,
    remotes: Remotes,
    setup: Setup,
) -> Result<Running, StartError>
where
    P: Ports,
    S: Source<Order> + 'static,
    C: Source<SchedulerMessage> + 'static,
    R: Source<Request> + 'static,
    D: Source<DeadLetter> + 'static,
{
    let Backend { ports, submissions, scheduler, requests, dead_letters } = backend;
    let Setup { supervisors, supervise_every, reply_channels, redacted, allowed_hosts } = setup;
    let workflows = Workflows::shipped()?;
    let (waits, waits_stop) = stop::pair();
    let known = ApiConfig::new(reply_channels).with_workflows(&workflows).redacting(redacted);
    let hosts = Hosts::of(listener.local_addr()?, &allowed_hosts);
    let api_config = api_config(listener, StoppablePorts { ports: ports.clone(), stop: waits_stop }, known, hosts)?;
    let (stopper, stop) = stop::pair();
    let mut functions = Functions { ports, workflows, stop, loops: JoinSet::new() };
    functions.submission(submissions);
    functions.scheduler(scheduler);
    for ((service, agent), queue) in Service::ALL.into_iter().zip(remotes.agents).zip(requests) {
        functions.agent(service, agent, queue);
    }
    functions.dead_letters(dead_letters);
    for number in 1..=supervisors {
        functions.supervisor(number, supervise_every);
    }
    Ok(Running { api_config, waits, functions: stopper, loops: functions.loops, stand_ins: remotes.stand_ins })
}

impl Running {
    /// Where the API listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.api_config.address()
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
        self.api_config.stop().await;
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

fn api_config<P: Ports>(
    listener: TcpListener,
    ports: StoppablePorts<P>,
    api_config: ApiConfig,
    hosts: Hosts,
) -> std::io::Result<Server> {
    let (ports, api_config, hosts) = (Arc::new(ports), Arc::new(api_config), Arc::new(hosts));
    Server::start(listener, api::BODY_BYTES_MAX, REQUEST_GRACE_MS, move |request| {
        let (ports, api_config, hosts) = (ports.clone(), api_config.clone(), hosts.clone());
        async move {
            match hosts.refuse(&request) {
                Some(refusal) => Ok(refusal),
                None => Ok(api::handle(&*ports, &api_config, CALLER, request).await),
            }
        }
    })
}
