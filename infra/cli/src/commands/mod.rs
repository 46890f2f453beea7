//! The commands that talk to an API: one file for each.
//!
//! Results go to stdout, everything else to stderr. How a command ended is its exit status ([`crate::exit`]). What must
//! never be here: a decision about an order. A command asks the API, which decides.

mod act;
mod ask;
mod bulk;
mod completions;
mod console;
mod context;
mod dead_letters;
mod doctor;
mod error;
mod follow;
mod get;
mod leases;
mod list;
mod overview;
mod progress;
mod query;
mod services;
mod submit;
mod watch;
mod workflows;

use domain::message::Action;

use crate::args::{ApiArgs, RemoteCommand};
use crate::exit::Exit;
use crate::remote::Environment;
use context::Context;
pub use context::Terminal;
pub use doctor::{DataCheck, DataFinding, DataState};
use error::CommandError;

/// Carries a command out and says on stderr what went wrong, if anything did. `check_data` looks at a data directory of
/// `serve`, for the doctor.
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
    if let RemoteCommand::Completions(args) = &command {
        return completions::run(args);
    }
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
        RemoteCommand::Bulk { command } => bulk::run(&context()?, &command).await,
        RemoteCommand::Overview => overview::run(&context()?).await,
        RemoteCommand::Services => services::run(&context()?).await,
        RemoteCommand::Leases => leases::run(&context()?).await,
        RemoteCommand::Workflows => workflows::run(&context()?).await,
        RemoteCommand::DeadLetters(args) => dead_letters::run(&context()?, &args).await,
        RemoteCommand::Doctor(args) => doctor::run(api, environment, terminal, &args, check_data).await,
        RemoteCommand::Console(args) => console::run(context()?, &args).await,
        RemoteCommand::Completions(args) => completions::run(&args),
    }
}
