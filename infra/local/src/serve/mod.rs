//! All functions in one process: the API on a socket, each queue feeding its handler, the supervisor on its schedule.
//!
//! The embedded engine is named here, so that each handler is compiled for one type of ports.

mod bind;
mod functions;
mod hosts;
mod remotes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::ApiConfig;
use domain::redaction::REDACTED_BY_DEFAULT;
use domain::workflow::{WorkflowError, Workflows};
use embedded::Engine;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use bind::{BindError, bind};
pub use hosts::{NotAHost, host_name};
pub use remotes::{RemoteSettings, Remotes, RemotesError};

use crate::http_server::Server;
use crate::standin::{Service, StandIns};
use crate::stop::{self, Stopper};
use functions::Functions;
use hosts::Hosts;

/// Who posts orders, as the API knows them. It listens on this machine and asks for no password.
const CALLER: &str = "local";
/// How long requests under way may go on after a stop, in milliseconds. Those that wait for an order end at once.
const REQUEST_GRACE_MS: u64 = 2_000;

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
    engine: Engine,
    api: Server,
    functions: Stopper,
    loops: JoinSet<()>,
    stand_ins: Option<StandIns>,
}

/// Starts everything: the API on `listener`, the functions on the queues of `engine`, the agents towards `remotes`, and the
/// supervisors, each of which runs at once and then every `supervise_every`.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start(listener: TcpListener, engine: &Engine, remotes: Remotes, setup: Setup) -> Result<Running, StartError> {
    let Setup { supervisors, supervise_every, reply_channels, redacted, allowed_hosts } = setup;
    let workflows = Workflows::shipped()?;
    let config = ApiConfig::new(reply_channels).with_workflows(&workflows).redacting(redacted);
    let hosts = Hosts::of(listener.local_addr()?, &allowed_hosts);
    let api = serve_api(listener, engine.clone(), config, hosts)?;
    let (stopper, stop) = stop::pair();
    let mut functions = Functions { engine: engine.clone(), workflows, stop, loops: JoinSet::new() };
    functions.submission();
    functions.scheduler();
    for (service, agent) in Service::ALL.into_iter().zip(remotes.agents) {
        functions.agent(service, agent);
    }
    functions.dead_letters();
    for number in 1..=supervisors {
        functions.supervisor(number, supervise_every);
    }
    let stand_ins = remotes.stand_ins;
    Ok(Running { engine: engine.clone(), api, functions: stopper, loops: functions.loops, stand_ins })
}

impl Running {
    /// Where the API listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.api.address()
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
    /// this the engine is no longer used and can be closed.
    pub async fn stop(mut self) {
        self.engine.end_waits();
        self.api.stop().await;
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

fn serve_api(listener: TcpListener, engine: Engine, config: ApiConfig, hosts: Hosts) -> std::io::Result<Server> {
    let shared = Arc::new((engine, config, hosts));
    Server::start(listener, api::BODY_BYTES_MAX, REQUEST_GRACE_MS, move |request| {
        let shared = shared.clone();
        async move {
            let (engine, config, hosts) = &*shared;
            match hosts.refuse(&request) {
                Some(refusal) => Ok(refusal),
                None => Ok(api::handle(engine, config, CALLER, request).await),
            }
        }
    })
}
