//! The commands that call an API.
//!
//! Results go to stdout, everything else to stderr. The outcome is the exit status ([`crate::exit`]). Never here: a
//! decision about an order. A command asks the API, which decides; `try` and `probe` ask its code.

mod act;
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
mod endpoint;
mod error;
mod export;
mod get;
mod ids;
mod init;
mod list;
mod numbers;
mod overview;
mod probe;
mod query;
mod rehearse;
mod schedules;
mod submit;
mod system;
mod token;
mod try_order;
mod watch;
mod workflows;

use clap::CommandFactory;
use domain::message::Action;

use crate::args::{ApiArgs, BulkCommand, Cli, CompletionsArgs, RemoteCommand, ServicesCommand};
use crate::exit::Exit;
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
    let paint = terminal.paint(&environment);
    let context = || Context::new(api, environment.clone(), terminal);
    // Of a command that changes something there.
    let changing = || context().inspect(Context::tell_server);
    match command {
        RemoteCommand::Submit(args) => submit::run(&changing()?, &args).await,
        RemoteCommand::Get(args) => get::run(&context()?, &args).await,
        RemoteCommand::List(args) => list::run(&context()?, &args).await,
        RemoteCommand::Export(args) => export::run(&context()?, &args).await,
        RemoteCommand::Watch(args) => watch::run(&context()?, &args).await,
        RemoteCommand::Resubmit(args) => act::run(&changing()?, Action::Resubmit, &args).await,
        RemoteCommand::Cancel(args) => act::run(&changing()?, Action::Cancel, &args).await,
        RemoteCommand::Pause(args) => act::run(&changing()?, Action::Pause, &args).await,
        RemoteCommand::Resume(args) => act::run(&changing()?, Action::Resume, &args).await,
        RemoteCommand::Close(args) => act::run(&changing()?, Action::Close, &args).await,
        RemoteCommand::Erase(args) => act::run(&changing()?, Action::Erase, &args).await,
        RemoteCommand::Approve(args) => act::decide(&changing()?, Action::Approve, &args).await,
        RemoteCommand::Reject(args) => act::decide(&changing()?, Action::Reject, &args).await,
        RemoteCommand::Settle(args) => act::settle(&changing()?, &args).await,
        RemoteCommand::Note(args) => act::note(&changing()?, &args).await,
        RemoteCommand::Again(args) => act::again(&changing()?, &args).await,
        RemoteCommand::Bulk { command: look @ (BulkCommand::Status { .. } | BulkCommand::List { .. }) } => {
            bulk::run(&context()?, &look).await
        }
        RemoteCommand::Bulk { command } => bulk::run(&changing()?, &command).await,
        RemoteCommand::Overview => overview::run(&context()?).await,
        RemoteCommand::Numbers(args) => numbers::run(&context()?, &args).await,
        RemoteCommand::Services { command: None } => system::services(&context()?).await,
        RemoteCommand::Services { command: Some(ServicesCommand::AcceptRejections(args)) } => {
            system::accept_rejections(&changing()?, &args).await
        }
        RemoteCommand::Alerts => system::alerts(&context()?).await,
        RemoteCommand::Leases => system::leases(&context()?).await,
        RemoteCommand::Schedules => schedules::run(&context()?).await,
        RemoteCommand::Workflows(args) if args.command.is_some() => workflows::run(&changing()?, &args).await,
        RemoteCommand::Workflows(args) => workflows::run(&context()?, &args).await,
        RemoteCommand::Init(args) => init::run(&args),
        RemoteCommand::Apply(args) => apply::run(&changing()?, &args).await,
        RemoteCommand::Check(args) => check::run(&args, api.output, paint),
        RemoteCommand::Try(args) => {
            let variable = environment.variable.unwrap_or(|_| None);
            Box::pin(try_order::run(&args, api.output, variable)).await
        }
        RemoteCommand::Probe(args) => {
            let variable = environment.variable.unwrap_or(|_| None);
            let asking = probe::Asking { format: api.output, yes: api.yes, terminal, variable };
            Box::pin(probe::run(&args, asking)).await
        }
        RemoteCommand::Rehearse(args) => Box::pin(rehearse::run(&args, api.output, terminal, paint)).await,
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

/// `stepwarden completions`: prints a shell completion script.
fn completions(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stepwarden", &mut script);
    context::print(&String::from_utf8_lossy(&script))
}
