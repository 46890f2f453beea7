//! All functions in one process: the API on a socket, handlers on their queues, the supervisor on its schedule.
//!
//! The embedded engine is named here, so that each handler is compiled for one type of ports.

mod bind;
mod callers;
mod functions;
mod http_api;
mod posts;
mod reads;
mod remotes;
mod room;
mod shares;
mod waits;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use agents::{Callbacks, Fleet};
use api::ApiConfig;
use domain::definition::Catalogue;
use domain::ports::PortError;
use domain::redaction::{REDACTED_BY_DEFAULT, Redaction};
use domain::workflow::Workflows;
use embedded::Engine;

pub use bind::{Listen, bind};
pub use callers::{Callers, JwtSettings, ProxySettings, TrustedPeer, issuer_url};
pub use remotes::{RemoteSettings, Remotes};

use crate::direct::{Direct, FollowUps};
use crate::hosts::{Hosts, PublicUrl};
use crate::http_server::{Listening, Server};
use crate::open_files;
use crate::stand_ins::StandIns;
use crate::stop::Loops;
use functions::{Functions, HANDLER_GRACE_MS};
use posts::Posts;
use reads::Reads;
use room::Room;

/// The settings.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Supervisors that share the work. With 0, overdue orders are not found.
    pub supervisors: u16,
    /// The pause between two runs of one supervisor.
    pub supervise_every: Duration,
    /// The registered reply channels.
    pub reply_channels: Vec<Arc<str>>,
    /// The channels of the sinks of alerts.
    pub sinks: Vec<Arc<str>>,
    /// Names of members whose values are redacted.
    pub redacted: Vec<String>,
    /// Further accepted names in `Host`, if the API listens on a loopback address.
    pub allowed_hosts: Vec<String>,
    /// The URL of the API for the services. `None`: its address.
    pub public_url: Option<PublicUrl>,
    /// Who may call the API.
    pub callers: Callers,
    /// Orders under way above which no new one is accepted.
    pub orders_max: u64,
    /// New orders of one known caller in a second.
    pub post_rate: u32,
    /// Only the API runs. Orders and commands are kept, and none goes on.
    pub paused: bool,
}

/// Far more than a machine carries out in an hour: each waits in memory.
pub const ORDERS_MAX: u64 = 1_000_000;
/// A quarter of what two cores carry out in a second.
pub const POST_RATE: u32 = 1_000;

impl Default for Setup {
    fn default() -> Self {
        let redacted = REDACTED_BY_DEFAULT.map(Into::into).to_vec();
        Self {
            supervisors: 1,
            supervise_every: Duration::from_secs(1),
            reply_channels: Vec::new(),
            sinks: Vec::new(),
            redacted,
            allowed_hosts: Vec::new(),
            public_url: None,
            callers: Callers::default(),
            orders_max: ORDERS_MAX,
            post_rate: POST_RATE,
            paused: false,
        }
    }
}

/// The running functions.
#[derive(Debug)]
pub struct Running {
    engine: Engine,
    api: Server,
    url: String,
    socket_url: Option<String>,
    agents: Arc<Fleet<Catalogue>>,
    catalogue: Catalogue,
    follow_ups: FollowUps,
    /// All loops but the scheduler's.
    loops: Loops,
    scheduler: Loops,
    stand_ins: Option<StandIns>,
    /// A read that was begun ends, also when its request is cancelled: others may wait for what it loads.
    _reads: Arc<Reads>,
}

/// Starts the API on what it listens on, the functions on the queues of `engine`, the agents of `remotes`, and the supervisors.
/// Each supervisor runs at once and then every `supervise_every`.
///
/// # Errors
/// The system's error; then nothing runs.
pub fn start(listening: impl Into<Listening>, engine: &Engine, remotes: Remotes, setup: Setup) -> io::Result<Running> {
    let listening = listening.into();
    let Setup { supervisors, supervise_every, reply_channels, sinks, redacted, orders_max, post_rate, paused, .. } =
        setup;
    let (mut allowed_hosts, public_url, callers) = (setup.allowed_hosts, setup.public_url, setup.callers);
    let (settle_within_ms, served) = (remotes.all_settle_within_ms(), remotes.served.clone());
    // A test of `domain` excludes that they are invalid.
    let shipped = Workflows::shipped().map_err(io::Error::other)?;
    let redaction = Redaction::of(&redacted);
    let catalogue = Catalogue::serving(shipped, None, settle_within_ms, Some(served)).redacting(redaction.clone());
    let (of_start, of_catalogue) = (engine.clone(), catalogue.clone());
    // So that `/health` knows at once whether a stand-in plays an agent.
    tokio::spawn(async move { of_catalogue.deployment(&of_start).await });
    let of_ready = engine.clone();
    let is_ready = move || {
        let engine = of_ready.clone();
        async move {
            if paused {
                Err(PortError::refused("ready", "paused: start it without --paused"))
            } else {
                let refused =
                    |error| PortError::unavailable("ready", format!("the system refuses what work needs: {error}"));
                open_files::spare().map_err(refused)?;
                engine.ready().await
            }
        }
    };
    let config = ApiConfig::new(reply_channels).with_catalogue(&catalogue).redacting(redacted);
    let (of_room, has_submitters) = (engine.clone(), !callers.are_all_trusted());
    let config = config
        .with_installation()
        .paused_if(paused)
        .with_stand_ins_if(remotes.stand_ins().is_some())
        .ready_if(is_ready)
        .with_room_if(move |submitter, bytes| {
            let room = Room { orders_max, has_submitters };
            room.has(of_room.under_way(), of_room.shares(submitter), bytes)
        });
    // A socket is only reached from this machine.
    let port = listening.address()?;
    let address = port.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    let socket_url = listening.socket.as_ref().map(|socket| format!("unix:{}", socket.path().display()));
    // Elsewhere any name is accepted until one is given.
    let is_checked = address.ip().to_canonical().is_loopback() || !allowed_hosts.is_empty();
    allowed_hosts.extend(public_url.as_ref().filter(|_| is_checked).map(|url| url.host().to_owned()));
    let hosts = Hosts::of(address, &allowed_hosts);
    let has_tls = listening.tls.is_some();
    let url = socket_url.clone().filter(|_| port.is_none());
    let url = url.unwrap_or_else(|| format!("{}://{address}", if has_tls { "https" } else { "http" }));
    let public_url = public_url.unwrap_or_else(|| PublicUrl::of(address, has_tls));
    let callbacks = Callbacks::below(public_url.as_str(), catalogue.clone());
    let agents = Arc::new(remotes.agents.applying(catalogue.clone()).called_back(callbacks));
    let reads = Arc::new(Reads::start()?);
    let (loops, scheduler) = (Loops::new(), Loops::new());
    let of_functions = catalogue.clone();
    let mut functions =
        Functions { engine: engine.clone(), catalogue: of_functions, redaction, sinks, loops, scheduler };
    let ports = Direct::new(engine.clone(), (!paused).then(|| functions.instance("submission")));
    let follow_ups = ports.follow_ups();
    let api = http_api::serve_api(
        listening,
        ports,
        config,
        hosts,
        (callers, Posts::with(post_rate)),
        reads.clone(),
        agents.clone(),
    )?;
    if !paused {
        functions.submission();
        functions.scheduler();
        functions.agents(&agents);
        functions.dead_letters();
        functions.alerts();
        functions.schedules();
        for number in 1..=supervisors {
            functions.supervisor(number, supervise_every);
        }
    }
    let (stand_ins, Functions { engine, loops, scheduler, .. }) = (remotes.stand_ins, functions);
    Ok(Running {
        engine,
        api,
        url,
        socket_url,
        agents,
        catalogue,
        follow_ups,
        loops,
        scheduler,
        stand_ins,
        _reads: reads,
    })
}

impl Running {
    /// The address of the API's port. Port 0 stands for none.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// The base URL of the API, without a slash at its end; that of its socket if it has no port.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of the API's socket, as commands take it.
    #[must_use]
    pub fn socket_url(&self) -> Option<&str> {
        self.socket_url.as_deref()
    }

    /// The stand-ins, if a service has no URL.
    #[must_use]
    pub const fn stand_ins(&self) -> Option<&StandIns> {
        self.stand_ins.as_ref()
    }

    /// The stand-ins, if they play an agent of what applies.
    pub async fn playing_stand_ins(&self) -> Option<&StandIns> {
        // What cannot be read is said where it is needed.
        let _ = self.catalogue.deployment(&self.engine).await;
        self.stand_ins().filter(|_| self.catalogue.has_played())
    }

    /// Stops in order (rule 25), within 8 s. First nothing new begins: no request, no call, no batch. Calls in flight
    /// finish and reply. Then the scheduler works off the replies. Afterwards the engine can be closed: what may still be
    /// sent for new orders is sent again by the next start.
    pub async fn stop(mut self) {
        self.engine.end_waits();
        self.agents.stop_calling();
        let posts_end = async {
            self.api.stop().await;
            self.follow_ups.wait(HANDLER_GRACE_MS).await;
        };
        tokio::join!(posts_end, self.loops.stop());
        self.scheduler.stop().await;
        if let Some(stand_ins) = self.stand_ins {
            stand_ins.stop().await;
        }
    }
}
