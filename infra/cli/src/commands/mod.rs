//! The commands that call an API.
//!
//! Results go to stdout, everything else to stderr. The outcome is the exit status ([`crate::exit`]). Never here: a
//! decision about an order. A command asks the API, which decides.

mod accept_rejections;
mod act;
mod again;
mod apply;
mod bulk;
mod check;
mod console;
mod context;
mod dead_letters;
mod dialogue;
mod doctor;
mod error;
mod follow;
mod get;
mod init;
mod list;
mod numbers;
mod overview;
mod query;
mod submit;
mod system;
mod watch;
mod workflows;

use std::io::Write as _;

use clap::CommandFactory;
use domain::message::Action;

use crate::args::{ApiArgs, Cli, CompletionsArgs, RemoteCommand, ServicesCommand};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::Environment;
pub use check::fault_lines;
use context::Context;
pub use context::Terminal;
pub use doctor::{DataCheck, DataFinding, DataState};
use error::CommandError;

/// Carries out a command, and reports an error on stderr. `check_data` checks a data directory of `serve`, for the doctor.
pub async fn run(
    command: RemoteCommand,
    api: &ApiArgs,
    environment: Environment,
    terminal: Terminal,
    check_data: DataCheck,
) -> Exit {
    match carried_out(command, api, environment, terminal, check_data).await {
        Ok(exit) => exit,
        Err(error) => {
            error.tell();
            error.exit()
        }
    }
}

async fn carried_out(
    command: RemoteCommand,
    api: &ApiArgs,
    environment: Environment,
    terminal: Terminal,
    check_data: DataCheck,
) -> Result<Exit, CommandError> {
    let context = || Context::new(api, environment.clone(), terminal);
    match command {
        RemoteCommand::Submit(args) => submit::run(&context()?, &args).await,
        RemoteCommand::Get(args) => get::run(&context()?, &args).await,
        RemoteCommand::List(args) => list::run(&context()?, &args).await,
        RemoteCommand::Watch(args) => watch::run(&context()?, &args).await,
        RemoteCommand::Resubmit(args) => act::run(&context()?, Action::Resubmit, &args).await,
        RemoteCommand::Cancel(args) => act::run(&context()?, Action::Cancel, &args).await,
        RemoteCommand::Pause(args) => act::run(&context()?, Action::Pause, &args).await,
        RemoteCommand::Resume(args) => act::run(&context()?, Action::Resume, &args).await,
        RemoteCommand::Close(args) => act::run(&context()?, Action::Close, &args).await,
        RemoteCommand::Settle(args) => act::settle(&context()?, &args).await,
        RemoteCommand::Note(args) => act::note(&context()?, &args).await,
        RemoteCommand::Again(args) => again::run(&context()?, &args).await,
        RemoteCommand::Bulk { command } => bulk::run(&context()?, &command).await,
        RemoteCommand::Overview => overview::run(&context()?).await,
        RemoteCommand::Numbers(args) => numbers::run(&context()?, &args).await,
        RemoteCommand::Services { command: None } => system::services(&context()?).await,
        RemoteCommand::Services { command: Some(ServicesCommand::AcceptRejections(args)) } => {
            accept_rejections::run(&context()?, &args).await
        }
        RemoteCommand::Alerts => system::alerts(&context()?).await,
        RemoteCommand::Leases => system::leases(&context()?).await,
        RemoteCommand::Workflows(args) => workflows::run(&context()?, &args).await,
        RemoteCommand::Init(args) => init::run(&args),
        RemoteCommand::Apply(args) => apply::run(&context()?, &args).await,
        RemoteCommand::Check(args) => {
            let colours = terminal.stdout && !environment.no_colour;
            check::run(&args, api.output, Paint { colours })
        }
        RemoteCommand::DeadLetters(args) => dead_letters::run(&context()?, &args).await,
        RemoteCommand::Doctor(args) => doctor::run(api, environment, terminal, &args, check_data).await,
        RemoteCommand::Console(args) => console::run(context()?, &args).await,
        RemoteCommand::Completions(args) => completions(&args),
    }
}

/// `stepwarden completions`: prints a shell completion script.
fn completions(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stepwarden", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Fine)
}
