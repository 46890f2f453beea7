//! The program `stepwarden`: names the engine and hands it to the library; no more than wiring.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use embedded::{Engine, Recovered, Requests, Scheduler, Submissions};
use stepwarden::args::{Cli, Command, DemoArgs, ServeArgs, ServiceArgs, StandInsArgs};
use stepwarden::demo::{self, Paint};
use stepwarden::serve::{self, Backend, Remotes, bind};
use stepwarden::signals::Signals;
use stepwarden::standin::{KEYS_SERVE, KEYS_UNLIMITED, Service, StandIns};
use stepwarden::{logs, one_line, open_files};

type Failed = Box<dyn Error>;

/// The pause between the supervisor's runs in the demo, as in `serve`.
const DEMO_SUPERVISE_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

fn main() -> ExitCode {
    let command = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(status) => return status,
    };
    run(command).unwrap_or_else(|error| {
        eprintln!("stepwarden: {}", one_line(&*error));
        ExitCode::from(2)
    })
}

fn run(command: Command) -> Result<ExitCode, Failed> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve(&args).await,
            Command::Demo(args) => demo(&args).await,
            Command::StandIns(args) => stand_ins(&args).await,
        }
    })
}

async fn serve(args: &ServeArgs) -> Result<ExitCode, Failed> {
    logs::start(logs::SERVE);
    let signals = Signals::catch()?;
    let remotes = Remotes::start(&args.services, KEYS_SERVE).await?;
    let listener = bind(args.host, args.port).await?;
    let engine = open(&args.data).await?;
    let running = serve::start(listener, backend(&engine), remotes, args.supervise_every)?;
    announce(&format!("listening on {}, data in {}", running.url(), args.data.display()));
    if let Some(stand_ins) = running.stand_ins() {
        announce(&format!("stand-ins on {}", stand_ins.url()));
    }
    signals.first().await;
    tracing::info!("stopping");
    running.stop().await;
    engine.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn demo(args: &DemoArgs) -> Result<ExitCode, Failed> {
    logs::start(logs::DEMO);
    let signals = Signals::catch()?;
    let temporary = if args.data.is_none() { Some(tempfile::tempdir()?) } else { None };
    let directory = args.data.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
    let remotes = Remotes::start(&ServiceArgs::default(), KEYS_UNLIMITED).await?;
    let stand_ins_url = remotes.stand_ins().map(StandIns::url).unwrap_or_default();
    let listener = bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await?;
    let engine = open(directory.unwrap_or(Path::new("."))).await?;
    let running = serve::start(listener, backend(&engine), remotes, DEMO_SUPERVISE_EVERY)?;
    let paint = Paint { colours: io::stdout().is_terminal() && !no_colour() };
    let (url, mut stdout) = (running.url(), io::stdout());
    let ended = tokio::select! {
        ended = demo::run(&url, &stand_ins_url, paint, &mut stdout) => ended.map(ExitCode::from),
        () = signals.first() => Ok(ExitCode::FAILURE),
    };
    running.stop().await;
    engine.close().await?;
    Ok(ended?)
}

async fn stand_ins(args: &StandInsArgs) -> Result<ExitCode, Failed> {
    logs::start(logs::SERVE);
    let signals = Signals::catch()?;
    let stand_ins = StandIns::start(bind(args.host, args.port).await?, args.remember)?;
    let urls = Service::ALL.map(|service| stand_ins.url_of(service));
    announce(&format!("stand-ins on {}", urls.join(", ")));
    signals.first().await;
    stand_ins.stop().await;
    Ok(ExitCode::SUCCESS)
}

async fn open(directory: &Path) -> Result<Engine, Failed> {
    let engine = Engine::open(directory, embedded::Options::default())?;
    let Recovered { submissions, wakes } = engine.recover().await?;
    if submissions + wakes > 0 {
        tracing::info!(accepted = submissions, under_way = wakes, "going on with orders from before");
    }
    Ok(engine)
}

fn backend(engine: &Engine) -> Backend<Engine, Submissions, Scheduler, Requests> {
    Backend {
        ports: Arc::new(engine.clone()),
        submissions: engine.submissions(),
        scheduler: engine.scheduler(),
        requests: Service::ALL.map(|service| engine.requests(service.name())),
    }
}

/// One line on stdout, for people and for scripts that wait for it. Nobody there to read it is no reason to stop.
fn announce(what: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "stepwarden: {what}").and_then(|()| stdout.flush());
}

#[expect(clippy::disallowed_methods, reason = "main reads the environment")]
fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
