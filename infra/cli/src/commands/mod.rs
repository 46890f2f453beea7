//! The commands that call an API.
//!
//! Results go to stdout, everything else to stderr. The outcome is the exit status ([`crate::exit`]). Never here: a
//! decision about an order. A command asks the API, which decides.

mod accept_rejections;
mod act;
mod again;
mod apply;
mod audit;
mod backup;
mod bulk;
mod check;
mod console;
mod context;
mod contexts;
mod dead_letters;
mod dialogue;
mod doctor;
mod error;
mod export;
mod follow;
mod get;
mod ids;
mod init;
mod list;
mod numbers;
mod overview;
mod query;
mod submit;
mod system;
mod token;
mod watch;
mod workflows;

use std::io::Write as _;

use clap::CommandFactory;
use domain::message::Action;

use crate::args::{ApiArgs, BulkCommand, Cli, CompletionsArgs, RemoteCommand, ServicesCommand};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::Environment;
pub use check::fault_lines;
use context::Context;
pub use context::Terminal;
use error::CommandError;

/// Carries out a command, and reports an error on stderr.
pub async fn run(command: RemoteCommand, api: &ApiArgs, environment: Environment, terminal: Terminal) -> Exit {
    match carried_out(command, api, environment, terminal).await {
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
) -> Result<Exit, CommandError> {
    let changes = changes(&command);
    let paint = Paint { colours: terminal.stdout && !environment.no_colour };
    let context = || {
        let context = Context::new(api, environment.clone(), terminal)?;
        if changes {
            context.tell_server();
        }
        Ok::<_, CommandError>(context)
    };
    match command {
        RemoteCommand::Submit(args) => submit::run(&context()?, &args).await,
        RemoteCommand::Get(args) => get::run(&context()?, &args).await,
        RemoteCommand::List(args) => list::run(&context()?, &args).await,
        RemoteCommand::Export(args) => export::run(&context()?, &args).await,
        RemoteCommand::Watch(args) => watch::run(&context()?, &args).await,
        RemoteCommand::Resubmit(args) => act::run(&context()?, Action::Resubmit, &args).await,
        RemoteCommand::Cancel(args) => act::run(&context()?, Action::Cancel, &args).await,
        RemoteCommand::Pause(args) => act::run(&context()?, Action::Pause, &args).await,
        RemoteCommand::Resume(args) => act::run(&context()?, Action::Resume, &args).await,
        RemoteCommand::Close(args) => act::run(&context()?, Action::Close, &args).await,
        RemoteCommand::Erase(args) => act::run(&context()?, Action::Erase, &args).await,
        RemoteCommand::Approve(args) => act::decide(&context()?, Action::Approve, &args).await,
        RemoteCommand::Reject(args) => act::decide(&context()?, Action::Reject, &args).await,
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
        RemoteCommand::Check(args) => check::run(&args, api.output, paint),
        RemoteCommand::Context { command } => contexts::run(&command, api, &environment, paint),
        RemoteCommand::Token { command } => token::run(&command, api.output, paint),
        RemoteCommand::Audit(args) => audit::run(&args, api.output),
        RemoteCommand::Backup(args) => backup::back_up(&args, api.output, terminal.stderr).await,
        RemoteCommand::Restore(args) => backup::restore(&args, api.output, terminal.stderr).await,
        RemoteCommand::DeadLetters(args) => dead_letters::run(&context()?, &args).await,
        RemoteCommand::Doctor(args) => doctor::run(api, environment, terminal, &args).await,
        RemoteCommand::Console(args) => console::run(context()?, &args).await,
        RemoteCommand::Completions(args) => completions(&args),
    }
}

/// Whether the command changes something at the API.
fn changes(command: &RemoteCommand) -> bool {
    match command {
        RemoteCommand::Submit(_)
        | RemoteCommand::Resubmit(_)
        | RemoteCommand::Cancel(_)
        | RemoteCommand::Pause(_)
        | RemoteCommand::Resume(_)
        | RemoteCommand::Settle(_)
        | RemoteCommand::Approve(_)
        | RemoteCommand::Reject(_)
        | RemoteCommand::Note(_)
        | RemoteCommand::Close(_)
        | RemoteCommand::Erase(_)
        | RemoteCommand::Again(_)
        | RemoteCommand::Apply(_) => true,
        RemoteCommand::Bulk { command } => match command {
            BulkCommand::Resubmit(_) | BulkCommand::Again(_) | BulkCommand::Run(_) | BulkCommand::Plan(_) | BulkCommand::Start(_) | BulkCommand::Cancel(_) => true,
            BulkCommand::Status { .. } | BulkCommand::List { .. } => false,
        },
        RemoteCommand::Services { command } => command.is_some(),
        RemoteCommand::Workflows(args) => args.command.is_some(),
        RemoteCommand::Get(_)
        | RemoteCommand::List(_)
        | RemoteCommand::Export(_)
        | RemoteCommand::Watch(_)
        | RemoteCommand::Overview
        | RemoteCommand::Numbers(_)
        | RemoteCommand::Alerts
        | RemoteCommand::Leases
        | RemoteCommand::Init(_)
        | RemoteCommand::Check(_)
        | RemoteCommand::DeadLetters(_)
        | RemoteCommand::Doctor(_)
        // It says where it is when it starts.
        | RemoteCommand::Console(_)
        | RemoteCommand::Context { .. }
        | RemoteCommand::Token { .. }
        | RemoteCommand::Audit(_)
        | RemoteCommand::Backup(_)
        | RemoteCommand::Restore(_)
        | RemoteCommand::Completions(_) => false,
    }
}

/// `stepwarden completions`: prints a shell completion script.
fn completions(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stepwarden", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Fine)
}
