//! The local commands, from opening the data directory to closing it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use config::apply::{self, Application, ApplyError};
use config::{Checked, DEPLOYMENT_FILE, DeploymentFile};
use domain::definition::{Catalogue, Deployment, installation};
use domain::ports::{HasRecords, PortError, Records};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use embedded::{Channel, Engine, OpenError, Options, Recovered};
use standins::Service;
use tokio::select;

use crate::alerts::Screen;
use crate::folder::{self, FolderError};
use crate::reply_channels::{BadChannel, ReplyChannel, ReplyChannels};
use crate::serve::{
    self, BindError, Callers, JwtSettings, Listen, ProxySettings, RemoteSettings, Remotes, RemotesError, Running,
    Setup, StartError, bind,
};
use crate::signals::Signals;
use crate::sinks::{BadSinks, Sinks, TOLD_MS_MAX};
use crate::stand_ins::{KEYS_SERVE, KEYS_UNLIMITED, StandIns};
use crate::tokens::TokensError;

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
    /// The file of tokens of callers.
    pub tokens: Option<PathBuf>,
    /// The issuer of tokens of callers.
    pub jwt: Option<JwtSettings>,
    /// The proxies that name callers.
    pub proxy: Option<ProxySettings>,
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
    /// Two reply channels have the same name.
    #[error(transparent)]
    Channel(#[from] BadChannel),
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// Other machines could do everything.
    #[error(
        "--host {0} lets other machines in, and they could do everything: give --tokens FILE (see `stepwarden token add \
         --help`), --jwt-issuer or --trusted-proxy; or --no-auth if something else keeps strangers out"
    )]
    OpenToAll(IpAddr),
    /// The agents cannot be built.
    #[error(transparent)]
    Remotes(#[from] RemotesError),
    /// The configuration folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The configuration folder contradicts what was applied before.
    #[error("{}: {source}", .folder.display())]
    Apply {
        /// The folder.
        folder: PathBuf,
        /// Why it is refused.
        source: ApplyError,
    },
    /// The sinks of alerts cannot be used.
    #[error(transparent)]
    Sinks(#[from] BadSinks),
    /// The API cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine cannot recover, or did not close.
    #[error(transparent)]
    Engine(#[from] PortError),
    /// Serving could not start.
    #[error(transparent)]
    Start(#[from] StartError),
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
    let Serving { listen, data, accept_loss, audit_days, json_logs, tokens, no_auth, config, setup, .. } = serving;
    let mut signals = Signals::catch()?;
    let callers = callers(tokens.as_deref(), serving.jwt, serving.proxy)?;
    if callers.are_all_trusted() && !no_auth && listen.lets_others_in() {
        return Err(RunError::OpenToAll(listen.host));
    }
    let config = match config {
        Some(folder) => Some((folder::check(&folder)?, folder)),
        None => None,
    };
    // A mistake on the command line is told before anything is made.
    ReplyChannels::start(&serving.reply_channels, serving.remotes.variable).await?;
    Remotes::start(&serving.remotes, KEYS_SERVE).await?;
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
    let Parts { channels, sinks, remotes } = match parts(&engine, config, serving.reply_channels, serving.remotes).await
    {
        Ok(parts) => parts,
        Err(error) => {
            engine.close().await?;
            return Err(error);
        }
    };
    let has_sinks = !sinks.names().is_empty();
    engine.set_channels(senders(&channels).chain(sinks_of(&sinks)).collect());
    let setup = Setup { reply_channels: channels.names(), sinks: sinks.names(), callers, ..setup };
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

/// The callers that one of these knows.
fn callers(
    tokens: Option<&Path>,
    jwt: Option<JwtSettings>,
    proxy: Option<ProxySettings>,
) -> Result<Callers, TokensError> {
    let mut callers = Callers::default();
    if let Some(file) = tokens {
        callers = callers.with_tokens(file)?;
    }
    if let Some(settings) = jwt {
        callers = callers.with_issuer(settings);
    }
    if let Some(settings) = proxy {
        callers = callers.with_proxy(settings);
    }
    Ok(callers)
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
        () = signals.next() => eprintln!("stepwarden: second signal, stopping at once"),
    }
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(IMPATIENT);
    });
    engine.close().await
}

/// What was applied through the API counts, and not the folder of the start.
#[derive(Debug, PartialEq, Eq)]
struct Older {
    applied_at: Timestamp,
    applied_by: Arc<str>,
    /// What applying the folder would change, or why it is refused.
    differences: Vec<String>,
}

impl Older {
    /// Says so on stdout, and what differs in the log.
    fn tell(&self, folder: &Path) {
        let Self { applied_at, applied_by, differences } = self;
        for difference in differences {
            tracing::warn!(difference, "not applied");
        }
        let folder = folder.display();
        announce(&format!(
            "{folder} is older, or another one, and is not applied: what {applied_by} applied on {applied_at} counts. To \
             see the difference, and to apply it: stepwarden apply {folder} --reason TEXT"
        ));
    }
}

/// What the settings name outside this process.
#[derive(Debug)]
struct Parts {
    channels: ReplyChannels,
    sinks: Sinks,
    remotes: Remotes,
}

/// The parts of the configuration that counts: of the folder, which is then applied, or else of what was applied. What was
/// applied refuses no start, so of its channels and sinks those that cannot be used are left out.
async fn parts(
    engine: &Engine,
    config: Option<(Checked, PathBuf)>,
    mut reply_channels: Vec<ReplyChannel>,
    mut remotes: RemoteSettings,
) -> Result<Parts, RunError> {
    let variable = remotes.variable;
    let mut counts = None;
    let mut sinks = BTreeMap::new();
    if let Some((checked, folder)) = config {
        match older(engine, &checked).await {
            Ok(None) => counts = Some((checked, folder)),
            Ok(Some(older)) => older.tell(&folder),
            Err(source) => return Err(RunError::Apply { folder, source }),
        }
    }
    if let Some((checked, folder)) = &counts {
        remotes.file = Some((folder.join(DEPLOYMENT_FILE).display().to_string(), checked.deployment_text.clone()));
        reply_channels.extend(checked.reply_channels.iter().map(|(name, channel)| ReplyChannel::of(name, channel)));
        sinks.clone_from(&checked.sinks);
    } else if let Some(deployment) = engine.records().get::<Deployment>(Deployment::KEY).await? {
        let applied = DeploymentFile::parse(&deployment.settings).unwrap_or_default();
        for (name, channel) in &applied.reply_channels {
            let channel = ReplyChannel::of(name, channel);
            let is_given = reply_channels.iter().any(|given| given.name() == &**name);
            match ReplyChannels::start(slice::from_ref(&channel), variable).await {
                Ok(_) if !is_given => reply_channels.push(channel),
                Ok(_) => {}
                Err(fault) => tracing::warn!("a reply channel that was applied is left out: {fault}"),
            }
        }
        for (name, sink) in applied.sinks {
            let sink = BTreeMap::from([(name, sink)]);
            match Sinks::start(&sink, variable).await {
                Ok(_) => sinks.extend(sink),
                Err(fault) => tracing::warn!("a sink of alerts that was applied is left out: {fault}"),
            }
        }
    }
    let channels = ReplyChannels::start(&reply_channels, variable).await?;
    channels.warn();
    let sinks = Sinks::start(&sinks, variable).await?;
    let remotes = Remotes::start(&remotes, KEYS_SERVE).await?;
    if let Some((checked, folder)) = counts {
        applied(engine, &checked).await.map_err(|source| RunError::Apply { folder, source })?;
    }
    Ok(Parts { channels, sinks, remotes })
}

/// Whether an operator applied another folder than this one since the last start (rule 22).
async fn older(engine: &Engine, checked: &Checked) -> Result<Option<Older>, ApplyError> {
    let before: Option<Deployment> = engine.records().get(Deployment::KEY).await?;
    let Some(Deployment { applied_at, applied_by, .. }) = before.filter(|before| !before.of_start) else {
        return Ok(None);
    };
    let differences = match apply::plan(engine, &catalogue()?, checked, &of_start()).await {
        Ok(plan) => plan.changes,
        Err(ApplyError::Refused(refusals)) => refusals.iter().map(ToString::to_string).collect(),
        Err(error) => return Err(error),
    };
    Ok((!differences.is_empty()).then_some(Older { applied_at, applied_by, differences }))
}

/// Applies the folder of the start. The same folder again changes nothing.
async fn applied(engine: &Engine, checked: &Checked) -> Result<(), ApplyError> {
    let plan = apply::apply(engine, &catalogue()?, checked, &of_start()).await?;
    for change in plan.changes {
        tracing::info!(change, "configuration applied");
    }
    for note in plan.notes {
        tracing::info!(note, "configuration");
    }
    Ok(())
}

/// Without a folder, the one that was applied last counts.
fn still_applies(Deployment { applied_at, default, workflows, .. }: &Deployment) -> String {
    let version = workflows.get(default).map_or_else(String::new, |choice| format!("/{}", choice.version));
    format!(
        "the configuration of {applied_at} still applies: new orders begin with {default}{version}; to change it: \
         stepwarden apply DIR --reason TEXT"
    )
}

fn catalogue() -> Result<Catalogue, PortError> {
    Ok(Catalogue::new(Workflows::shipped().map_err(|fault| PortError::refused("workflows", fault))?))
}

fn of_start() -> Application {
    Application { by: Deployment::BY_START.into(), share_percent: None, seen: None, earlier_key_ms: None }
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

/// The reply channels, as the engine's port.
fn senders(channels: &ReplyChannels) -> impl Iterator<Item = (Arc<str>, Channel)> {
    channels.names().into_iter().map(|name| {
        let (channels, channel) = (channels.clone(), name.clone());
        let send: Channel = Arc::new(move |event| {
            let (channels, channel) = (channels.clone(), channel.clone());
            Box::pin(async move { Ok(channels.send(&channel, &event).await?) })
        });
        (name, send)
    })
}

/// The sinks of alerts, as the engine's port.
fn sinks_of(sinks: &Sinks) -> impl Iterator<Item = (Arc<str>, Channel)> {
    sinks.names().into_iter().map(|name| {
        let (sinks, sink) = (sinks.clone(), name.clone());
        let send: Channel = Arc::new(move |event| {
            let (sinks, sink) = (sinks.clone(), sink.clone());
            Box::pin(async move { Ok(sinks.send(&sink, &event).await?) })
        });
        (name, send)
    })
}

/// Prints one line on stdout, for people and scripts. A closed stdout does not stop the program.
fn announce(what: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "stepwarden: {what}").and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use config::Folder;

    use super::*;

    /// What a start with this folder does, if the folder counts or not.
    async fn start(engine: &Engine, checked: &Checked) -> Option<Older> {
        let older = older(engine, checked).await.unwrap();
        if older.is_none() {
            applied(engine, checked).await.unwrap();
        }
        older
    }

    fn folder(url: &str, versions: &[u32]) -> Checked {
        let settings = format!("default = \"flow\"\n[agents.svc]\nurl = \"{url}\"\n");
        let mut files = vec![("stepwarden.toml".to_owned(), settings)];
        files.extend(versions.iter().map(|version| {
            let text = format!("name = \"flow\"\nversion = {version}\n[[step]]\nname = \"call\"\nagent = \"svc\"\n");
            (format!("workflows/flow-{version}.toml"), text)
        }));
        Folder::check(&files).unwrap()
    }

    async fn by_api(engine: &Engine, checked: &Checked) {
        let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
        apply::apply(engine, &Catalogue::new(Workflows::shipped().unwrap()), checked, &application).await.unwrap();
    }

    async fn url(engine: &Engine) -> String {
        let deployment: Option<Deployment> = engine.records().get(Deployment::KEY).await.unwrap();
        let settings = deployment.unwrap().settings;
        settings.split('"').nth(3).unwrap().to_owned()
    }

    #[tokio::test]
    async fn rule_22_a_start_takes_nothing_back_that_was_applied_since_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let (old, mended) = (folder("https://old", &[1]), folder("https://new", &[1, 2]));
        assert_eq!(start(&engine, &old).await, None);
        assert_eq!(start(&engine, &folder("https://edited", &[1])).await, None, "an edit before a start counts");
        assert_eq!(url(&engine).await, "https://edited");

        by_api(&engine, &mended).await;
        for (edited, difference) in [(&old, "agent svc"), (&folder("https://edited", &[1, 3]), "workflow flow/3")] {
            let older = start(&engine, edited).await.expect("what ada applied counts");
            assert_eq!(&*older.applied_by, "ada");
            assert!(older.differences.iter().any(|line| line.contains(difference)), "{older:?}");
            assert_eq!(url(&engine).await, "https://new");
        }

        assert_eq!(start(&engine, &mended).await, None, "the same as what was applied");
        assert_eq!(start(&engine, &folder("https://newer", &[1, 2])).await, None);
        assert_eq!(url(&engine).await, "https://newer");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_start_without_a_folder_names_the_one_that_still_applies() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        applied(&engine, &folder("https://old", &[1, 2])).await.unwrap();
        let deployment: Deployment = engine.records().get(Deployment::KEY).await.unwrap().unwrap();
        let at = deployment.applied_at;
        let words = still_applies(&deployment);
        let expected = format!("the configuration of {at} still applies: new orders begin with flow/2; to change it: ");
        assert!(words.starts_with(&expected), "{words}");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn rule_22_a_folder_that_does_not_count_asks_for_no_secret_and_gives_no_channel() {
        let of = |more: &str| {
            let settings = format!("[agents.svc]\nurl = \"https://svc\"\n{more}\n");
            Folder::check(&[("stepwarden.toml".to_owned(), settings)]).unwrap()
        };
        let old = of(
            "[agents.svc.auth]\nbearer = \"env:OLD\"\n[reply_channels]\nold = \"http://127.0.0.1:9\"\n[alerts.old]\nslack = \"env:OLD\"",
        );
        let signed = "{ url = \"http://127.0.0.1:9\", signature = { standard_webhooks = \"env:GONE\" } }";
        let new = of(&format!("[reply_channels]\nshop = \"http://127.0.0.1:9\"\ngone = {signed}"));
        let at_start = async |engine: &Engine, checked: Option<&Checked>| {
            let config = checked.map(|checked| (checked.clone(), PathBuf::from("conf")));
            parts(engine, config, Vec::new(), RemoteSettings::default()).await
        };
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        assert!(at_start(&engine, Some(&old)).await.unwrap_err().to_string().contains("env:OLD"), "it counts");
        by_api(&engine, &new).await;
        for config in [Some(&old), None] {
            let Parts { channels, sinks, .. } = at_start(&engine, config).await.unwrap();
            assert_eq!((channels.names(), sinks.names()), (vec!["shop".into()], vec![]));
        }
        assert!(at_start(&engine, Some(&new)).await.unwrap_err().to_string().contains("env:GONE"), "it counts");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn rule_22_a_start_is_not_refused_for_what_was_applied_since() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let old = folder("https://old", &[1]);
        applied(&engine, &old).await.unwrap();
        let more = [
            ("stepwarden.toml", "[agents.svc]\nurl = \"https://old\"\n[agents.gift]\nurl = \"https://gift\"\n"),
            ("workflows/flow-2.toml", "name = \"flow\"\nversion = 2\n[[step]]\nname = \"wrap\"\nagent = \"gift\"\n"),
        ];
        by_api(&engine, &Folder::check(&more.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap()).await;
        let older = start(&engine, &old).await.unwrap();
        assert!(older.differences[0].contains("no table [agents.gift]"), "{older:?}");
        engine.close().await.unwrap();
    }
}
