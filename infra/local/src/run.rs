//! The local commands, from opening the data directory to closing it.

mod configured;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::definition::{Deployment, installation};
use domain::ports::{HasRecords, PortError, Records};
use embedded::{DATABASE, Engine, OpenError, Options, Recovered};
use standins::Service;
use tokio::select;

use crate::BadSetting;
use crate::alerts::Screen;
use crate::folder::{self, FolderError};
use crate::open_files;
use crate::reply_channels::{self, ReplyChannel};
use crate::serve::{self, Listen, RemoteSettings, Remotes, Running, Setup, bind};
use crate::signals::Signals;
use crate::sinks::TOLD_MS_MAX;
use crate::stand_ins::{KEYS_UNLIMITED, StandIns};
use crate::terminal::tell;
use crate::webhook::Channels;
use configured::{Parts, parts, still_applies};

/// The exit status after a third signal: 128 plus the number of SIGINT.
const IMPATIENT: i32 = 130;

/// The settings of `stepwarden serve`.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Where the API listens.
    pub listen: Listen,
    /// The data directory.
    pub data: PathBuf,
    /// Whether to start although committed transactions are missing.
    pub accept_loss: bool,
    /// The days for which the audit stream is kept. `None`: for ever.
    pub audit_days: Option<u32>,
    /// Whether alerts are lines of JSON.
    pub json_logs: bool,
    /// The reply channels.
    pub reply_channels: Vec<ReplyChannel>,
    /// The remote services.
    pub remotes: RemoteSettings,
    /// Whether other machines may call without a token.
    pub no_auth: bool,
    /// The configuration folder that is applied at the start. `None`: what was applied before, or what ships.
    pub config: Option<PathBuf>,
    /// All other settings. The names of the reply channels are filled in.
    pub setup: Setup,
}

/// A local command failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A signal handler, a thread, a temporary directory or a socket failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// The configuration folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine cannot recover, or did not close.
    #[error(transparent)]
    Engine(#[from] PortError),
}

/// Said where alerts go to no sink.
pub const NO_SINK: &str =
    "no sink of alerts is configured, so nobody is told of an alert: see [alerts.NAME] in stepwarden.toml";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Runs everything until the process gets a signal.
///
/// # Errors
/// [`RunError`]; its message is one line.
pub async fn serve(serving: Serving) -> Result<(), RunError> {
    let Serving { listen, data, accept_loss, audit_days, json_logs, no_auth, config, setup, .. } = serving;
    let mut signals = Signals::catch()?;
    open_files::are_enough()?;
    if setup.callers.are_all_trusted() && !no_auth && listen.lets_others_in() {
        let host = listen.host;
        return Err(BadSetting(format!(
            "--host {host} lets other machines in, and they could do everything: give --tokens FILE (see `stepwarden token \
             add --help`), --jwt-issuer or --trusted-proxy; or --no-auth if something else keeps strangers out"
        ))
        .into());
    }
    let config = match config.map(|folder| (folder::check(&folder), folder)) {
        // Without data nothing was applied that could count instead.
        Some((Err(fault), _)) if !data.join(DATABASE).exists() => return Err(fault.into()),
        config => config,
    };
    let mut channels = Channels::new();
    // A mistake on the command line is told before anything is made.
    reply_channels::start(&mut channels, &serving.reply_channels, serving.remotes.variable).await?;
    let listening = listen.open().await?;
    let screen = Screen::on(io::stderr(), json_logs)?;
    let options = Options {
        accept_loss,
        audit_kept_ms: audit_days.map(|days| u64::from(days) * DAY_MS),
        observer: Some(Arc::new(move |event| screen.show(event))),
        // Each channel has a shorter time-out of its own.
        channel_ms: TOLD_MS_MAX,
        ..Options::default()
    };
    let engine = open(&data, options).await?;
    // Before the first order, so that each backup of one has it.
    installation(&engine).await?;
    let before = match config {
        Some(_) => None,
        None => engine.records().get(Deployment::KEY).await?,
    };
    let Parts { channels, sinks, remotes } = match parts(&engine, config, channels, serving.remotes).await {
        Ok(parts) => parts,
        Err(error) => {
            engine.close().await?;
            return Err(error);
        }
    };
    let has_sinks = !sinks.is_empty();
    let [reply_channels, of_sinks] = [&channels, &sinks].map(|channels| channels.keys().cloned().collect());
    let setup = Setup { reply_channels, sinks: of_sinks, ..setup };
    engine.set_channels(channels.into_iter().chain(sinks).collect());
    let paused = setup.paused;
    let running = serve::start(listening, &engine, remotes, setup)?;
    announce(&format!("listening on {}, data in {}", running.url(), data.display()));
    if let Some(url) = running.socket_url().filter(|url| *url != running.url()) {
        announce(&format!("also listening on {url}"));
    }
    if let Some(stand_ins) = running.playing_stand_ins().await {
        announce(&format!("stand-ins on {}", stand_ins.url()));
    }
    if let Some(before) = before {
        announce(&still_applies(&before));
    }
    if !has_sinks {
        announce(NO_SINK);
    }
    if paused {
        announce("paused: no order goes on and no service is called; to go on, start it without --paused");
    }
    signals.next().await;
    Ok(stop(running, &engine, signals).await?)
}

/// Runs everything on a free port with stand-ins until `play` ends. The data is in `data`, or in a temporary directory.
/// Returns `None` if a signal came first.
///
/// # Errors
/// [`RunError`]; its message is one line.
pub async fn show<T>(
    data: Option<&Path>,
    remotes: &RemoteSettings,
    play: impl AsyncFnOnce(&Running, &StandIns) -> T,
) -> Result<Option<T>, RunError> {
    let mut signals = Signals::catch()?;
    let temporary = if data.is_none() { Some(tempfile::tempdir()?) } else { None };
    let directory = data.or(temporary.as_ref().map(tempfile::TempDir::path));
    let remotes = Remotes::start(remotes, KEYS_UNLIMITED).await?;
    let listener = bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await?;
    let engine = open(directory.unwrap_or(Path::new(".")), Options::default()).await?;
    let running = serve::start(listener, &engine, remotes, Setup::default())?;
    let stand_ins = running.stand_ins().ok_or(io::Error::other("there are no stand-ins"))?;
    let played = select! {
        played = play(&running, stand_ins) => Some(played),
        () = signals.next() => None,
    };
    stop(running, &engine, signals).await?;
    Ok(played)
}

/// Runs only the stand-ins until the process gets a signal. Each service keeps its newest `keys_max` keys.
///
/// # Errors
/// [`RunError`]; its message is one line.
pub async fn stand_ins(host: IpAddr, port: u16, keys_max: usize) -> Result<(), RunError> {
    let mut signals = Signals::catch()?;
    let stand_ins = StandIns::start(bind(host, port).await?, keys_max)?;
    let urls = Service::ALL.map(|service| stand_ins.url_of(service));
    announce(&format!("stand-ins on {}", urls.join(", ")));
    signals.next().await;
    stand_ins.stop().await;
    Ok(())
}

/// Stops in order (rule 25). A signal cancels all work, and only the writer closes. One more ends the process: committed
/// data is safe anyway.
async fn stop(running: Running, engine: &Engine, mut signals: Signals) -> Result<(), PortError> {
    tracing::info!("stopping");
    select! {
        () = running.stop() => {}
        () = signals.next() => tell("stepwarden: second signal, stopping at once"),
    }
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(IMPATIENT);
    });
    engine.close().await
}

async fn open(directory: &Path, options: Options) -> Result<Engine, RunError> {
    let engine = Engine::open(directory, options)?;
    let Recovered { submissions, wakes, commands, dead_letters } = engine.recover().await?;
    if submissions + wakes + commands + dead_letters > 0 {
        let (accepted, under_way) = (submissions, wakes);
        tracing::info!(accepted, under_way, commands, dead_letters, "recovered unfinished work");
    }
    Ok(engine)
}

/// Prints one line on stdout, for people and scripts. A closed stdout does not stop the program.
pub(crate) fn announce(what: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "stepwarden: {what}").and_then(|()| stdout.flush());
}
