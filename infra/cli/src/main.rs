//! The program `stepwarden`: dispatches the command line to `local`, which serves, or to a command. Wiring only.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use local::folder::FolderError;
use local::run::{self, RunError, Serving};
use local::serve::{Callers, Listen, RemoteSettings, Setup};
use local::stand_ins::StandIns;
use local::terminal::tell;
use local::{open_files, traces};
use stepwarden::args::{
    ApiArgs, Cli, Command, DemoArgs, LogFormat, OutageArgs, RemoteCommand, ServeArgs, StandInsArgs,
};
use stepwarden::commands::{self, Terminal};
use stepwarden::exit::Exit;
use stepwarden::outage::Plan;
use stepwarden::remote::Environment;
use stepwarden::{Paint, demo, logs, one_line, outage};

/// Threads that look names up. A look-up that hangs keeps its thread.
const NAMES_AT_ONCE: usize = 512;

type Failed = Box<dyn Error>;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    run(cli).unwrap_or_else(|error| {
        tell(format_args!("stepwarden: {}", one_line(&*error)));
        ExitCode::from(2)
    })
}

fn run(Cli { api, command }: Cli) -> Result<ExitCode, Failed> {
    open_files::raise_limit();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().max_blocking_threads(NAMES_AT_ONCE).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve(*args).await,
            Command::Demo(args) => demo(&args).await,
            Command::Outage(args) => outage(&args).await,
            Command::StandIns(args) => stand_ins(&args).await,
            Command::Remote(command) => Ok(remote(command, &api).await),
        }
    })
}

async fn serve(args: ServeArgs) -> Result<ExitCode, Failed> {
    let (spans, problems) = traces::read(variable);
    start_logs(logs::SERVE, args.log_format, traces::layer(spans.as_ref()));
    problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    let sending = traces::Sending::start(spans);
    let callers = Callers::knowing(args.tokens.as_deref(), args.jwt(), args.proxy())?;
    let folder = args.config.clone().unwrap_or_default();
    let setup = Setup {
        supervisors: args.supervisors,
        supervise_every: args.supervise_every,
        redacted: args.redact,
        allowed_hosts: args.allowed_hosts,
        public_url: args.public_url,
        callers,
        orders_max: args.orders_max,
        post_rate: args.post_rate,
        paused: args.paused,
        ..Setup::default()
    };
    let serving = Serving {
        listen: Listen {
            host: args.host,
            port: (!args.no_port).then_some(args.port),
            tls: args.tls_cert.zip(args.tls_key),
            socket: args.socket,
        },
        data: args.data,
        accept_loss: args.accept_loss,
        audit_days: args.audit_days,
        json_logs: args.log_format == LogFormat::Json,
        reply_channels: args.reply_channels,
        remotes: args.services.settings(variable)?,
        no_auth: args.no_auth,
        config: args.config,
        setup,
    };
    let served = run::serve(serving).await;
    sending.stop().await;
    if let Err(RunError::Folder(FolderError::Faults(faults))) = &served {
        tell(commands::fault_lines(faults, &folder).trim_end());
        return Ok(Exit::Otherwise.into());
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

async fn demo(args: &DemoArgs) -> Result<ExitCode, Failed> {
    let remotes = RemoteSettings { settles_within_ms: Some(demo::SETTLES_WITHIN_MS), ..RemoteSettings::default() };
    try_out(args.data.as_deref(), &remotes, async |url, stand_ins, paint| {
        demo::run(url, stand_ins, paint, &mut io::stdout()).await
    })
    .await
}

async fn outage(args: &OutageArgs) -> Result<ExitCode, Failed> {
    let plan = Plan::new(args.orders, args.down, args.normal, args.rate)?;
    let remotes = RemoteSettings { release_max: Some(plan.release_max()), ..RemoteSettings::default() };
    try_out(args.data.as_deref(), &remotes, async |url, stand_ins, paint| {
        outage::run(url, stand_ins, &plan, paint, &mut io::stdout()).await
    })
    .await
}

/// Runs everything with stand-ins, until it is seen whether all is good or a signal interrupts that.
async fn try_out(
    data: Option<&Path>,
    remotes: &RemoteSettings,
    play: impl AsyncFnOnce(&str, &StandIns, Paint) -> io::Result<bool>,
) -> Result<ExitCode, Failed> {
    start_logs(logs::SHOW, LogFormat::Text, None);
    let paint = Paint { colours: io::stdout().is_terminal() && !Environment::read(variable).no_colour };
    let shown = run::show(data, remotes, async |running, stand_ins| play(running.url(), stand_ins, paint).await);
    Ok(if shown.await?.transpose()? == Some(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn stand_ins(args: &StandInsArgs) -> Result<ExitCode, Failed> {
    start_logs(logs::SERVE, LogFormat::Text, None);
    run::stand_ins(args.host, args.port, args.remember).await?;
    Ok(ExitCode::SUCCESS)
}

/// Signals are not caught: the command can end at any time.
async fn remote(command: RemoteCommand, api: &ApiArgs) -> ExitCode {
    start_logs(logs::SHOW, LogFormat::Text, None);
    let terminal = Terminal {
        stdin: io::stdin().is_terminal(),
        stdout: io::stdout().is_terminal(),
        stderr: io::stderr().is_terminal(),
    };
    commands::run(command, api, Environment::read(variable), terminal).await.into()
}

fn start_logs(usual: &str, format: LogFormat, traces: Option<trace::Layer>) {
    logs::start(variable("RUST_LOG").as_deref(), usual, format, traces);
}

#[expect(clippy::disallowed_methods, reason = "main reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
