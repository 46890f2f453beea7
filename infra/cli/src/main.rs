//! The program `stepwarden`: names the engine and hands it to the library; no more than wiring.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use embedded::{Channel, DeadLetters, Engine, OpenError, Options, Recovered, Requests, Scheduler, Submissions};
use stepwarden::alerts::Screen;
use stepwarden::args::{
    ApiArgs, Cli, Command, DemoArgs, OutageArgs, RemoteCommand, ServeArgs, ServiceArgs, StandInsArgs,
};
use stepwarden::commands::{self, DataFinding, Terminal};
use stepwarden::outage::{self, Plan};
use stepwarden::remote::Environment;
use stepwarden::reply_channels::ReplyChannels;
use stepwarden::serve::{self, Backend, Remotes, Running, Setup, bind};
use stepwarden::signals::Signals;
use stepwarden::standin::{KEYS_SERVE, KEYS_UNLIMITED, Service, StandIns};
use stepwarden::{Ending, Paint, demo, logs, one_line, open_files, traces};

type Failed = Box<dyn Error>;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    run(cli).unwrap_or_else(|error| {
        eprintln!("stepwarden: {}", one_line(&*error));
        ExitCode::from(2)
    })
}

fn run(Cli { api, command }: Cli) -> Result<ExitCode, Failed> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve(&args).await,
            Command::Demo(args) => demo(&args).await,
            Command::Outage(args) => outage(&args).await,
            Command::StandIns(args) => stand_ins(&args).await,
            Command::Remote(command) => Ok(remote(command, &api).await),
        }
    })
}

async fn serve(args: &ServeArgs) -> Result<ExitCode, Failed> {
    let (spans, problems) = traces::read(variable);
    logs::start(logs::SERVE, traces::layer(spans.as_ref()));
    problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    let sending = traces::Sending::start(spans);
    let signals = Signals::catch()?;
    let channels = ReplyChannels::new(&args.reply_channels)?;
    let remotes = Remotes::start(&args.services, KEYS_SERVE).await?;
    let listener = bind(args.host, args.port).await?;
    let screen = Screen::on(io::stderr())?;
    let options = Options {
        observer: Some(Arc::new(move |event| screen.show(event))),
        channels: senders(&channels).collect(),
        ..Options::default()
    };
    let engine = open(&args.data, options).await?;
    let ServeArgs { supervisors, supervise_every, .. } = *args;
    let redacted = args.redact.clone();
    let (reply_channels, allowed_hosts) = (channels.names(), args.allowed_hosts.clone());
    let setup = Setup { supervisors, supervise_every, reply_channels, redacted, allowed_hosts };
    let running = serve::start(listener, backend(&engine), remotes, setup)?;
    announce(&format!("listening on {}, data in {}", running.url(), args.data.display()));
    if let Some(stand_ins) = running.stand_ins() {
        announce(&format!("stand-ins on {}", stand_ins.url()));
    }
    signals.first().await;
    tracing::info!("stopping");
    running.stop().await;
    let closed = engine.close().await;
    sending.stop().await;
    closed?;
    Ok(ExitCode::SUCCESS)
}

async fn demo(args: &DemoArgs) -> Result<ExitCode, Failed> {
    let services = ServiceArgs::default();
    show(args.data.as_deref(), &services, async |running, stand_ins, paint| {
        Ok(demo::run(&running.url(), &stand_ins.url(), paint, &mut io::stdout()).await?)
    })
    .await
}

async fn outage(args: &OutageArgs) -> Result<ExitCode, Failed> {
    let plan = Plan::new(args)?;
    let services = ServiceArgs { release_max: Some(plan.release_max()), ..ServiceArgs::default() };
    show(args.data.as_deref(), &services, async |running, stand_ins, paint| {
        Ok(outage::run(&running.url(), stand_ins, &plan, paint, &mut io::stdout()).await?)
    })
    .await
}

/// Runs everything on a free port with stand-ins, on a temporary directory unless one is given, while something is shown.
async fn show(
    data: Option<&Path>,
    services: &ServiceArgs,
    play: impl AsyncFnOnce(&Running, &StandIns, Paint) -> Result<Ending, Failed>,
) -> Result<ExitCode, Failed> {
    logs::start(logs::SHOW, None);
    let signals = Signals::catch()?;
    let temporary = if data.is_none() { Some(tempfile::tempdir()?) } else { None };
    let directory = data.or(temporary.as_ref().map(tempfile::TempDir::path));
    let remotes = Remotes::start(services, KEYS_UNLIMITED).await?;
    let listener = bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await?;
    let engine = open(directory.unwrap_or(Path::new(".")), Options::default()).await?;
    let running = serve::start(listener, backend(&engine), remotes, Setup::default())?;
    let stand_ins = running.stand_ins().ok_or("there are no stand-ins")?;
    let paint = Paint { colours: io::stdout().is_terminal() && !no_colour() };
    let ended = tokio::select! {
        ended = play(&running, stand_ins, paint) => ended.map(ExitCode::from),
        () = signals.first() => Ok(ExitCode::FAILURE),
    };
    running.stop().await;
    engine.close().await?;
    ended
}

async fn stand_ins(args: &StandInsArgs) -> Result<ExitCode, Failed> {
    logs::start(logs::SERVE, None);
    let signals = Signals::catch()?;
    let stand_ins = StandIns::start(bind(args.host, args.port).await?, args.remember)?;
    let urls = Service::ALL.map(|service| stand_ins.url_of(service));
    announce(&format!("stand-ins on {}", urls.join(", ")));
    signals.first().await;
    stand_ins.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Signals are not caught: nothing here is left half done when it ends at once.
async fn remote(command: RemoteCommand, api: &ApiArgs) -> ExitCode {
    logs::start(logs::SHOW, None);
    let terminal = Terminal {
        stdin: io::stdin().is_terminal(),
        stdout: io::stdout().is_terminal(),
        stderr: io::stderr().is_terminal(),
    };
    commands::run(command, api, Environment::read(variable), terminal, check_data).await.into()
}

/// What the engine says of its database, as the doctor tells it.
fn check_data(directory: &Path) -> Vec<DataFinding> {
    const CHECK: &str = "database";
    const RESTORE: &str =
        "stop `stepwarden serve`, keep a copy of the directory, and restore the database from a backup";
    let finding = match embedded::check(directory) {
        Ok(checked) if !checked.faults.is_empty() => DataFinding::wrong(CHECK, checked.faults.join("; "), RESTORE),
        Ok(checked) if checked.is_older => DataFinding::ok(
            CHECK,
            format!("sound; schema version {} is brought up to date at the next start", checked.schema),
        ),
        Ok(checked) => DataFinding::ok(CHECK, format!("sound, schema version {}", checked.schema)),
        Err(error @ OpenError::Newer { .. }) => {
            DataFinding::wrong(CHECK, one_line(&error), "use the program that wrote it, or a newer one")
        }
        Err(error) => DataFinding::wrong(CHECK, one_line(&error), RESTORE),
    };
    vec![finding]
}

async fn open(directory: &Path, options: Options) -> Result<Engine, Failed> {
    let engine = Engine::open(directory, options)?;
    let Recovered { submissions, wakes, commands, dead_letters } = engine.recover().await?;
    if submissions + wakes + commands + dead_letters > 0 {
        let (accepted, under_way) = (submissions, wakes);
        tracing::info!(accepted, under_way, commands, dead_letters, "going on with orders from before");
    }
    Ok(engine)
}

fn backend(engine: &Engine) -> Backend<Engine, Submissions, Scheduler, Requests, DeadLetters> {
    Backend {
        ports: Arc::new(engine.clone()),
        submissions: engine.submissions(),
        scheduler: engine.scheduler(),
        requests: Service::ALL.map(|service| engine.requests(service.name())),
        dead_letters: engine.dead_letters(),
    }
}

/// The reply channels as the engine wants them.
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

/// One line on stdout, for people and for scripts that wait for it. Nobody there to read it is no reason to stop.
fn announce(what: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "stepwarden: {what}").and_then(|()| stdout.flush());
}

#[expect(clippy::disallowed_methods, reason = "main reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "main reads the environment")]
fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
