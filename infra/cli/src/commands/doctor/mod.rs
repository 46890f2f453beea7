//! `stepwarden doctor`: is all well, and if not, what is to be done? One line for each check.
//!
//! It only looks. What must never be here: a change of anything.

mod api;
mod clock;
mod data;
mod finding;
mod stack;

use super::context::{Context, Terminal, print};
use super::dialogue::Progress;
use super::endpoint;
use super::error::CommandError;
use crate::args::{ApiArgs, DoctorArgs, Format};
use crate::exit::Exit;
use crate::remote::{Environment, Server};
use api::Seen;
use finding::Report;

/// Carries out the checks that are asked for. The status is that of the worst finding.
pub(super) async fn run(
    api: &ApiArgs,
    environment: Environment,
    terminal: Terminal,
    args: &DoctorArgs,
) -> Result<Exit, CommandError> {
    let paint = terminal.paint(&environment);
    let mut report = Report::default();
    let mut progress = Progress::new(terminal.stderr);
    if let Some(directory) = &args.data {
        report.section("data", data::look(directory));
    }
    let is_named = api.api.is_some() || api.context.is_some() || environment.context.is_some();
    if args.data.is_none() || is_named {
        if terminal.stderr {
            progress.show("looking at the API …");
        }
        let seen = match Context::new(api, environment.clone(), terminal) {
            Ok(context) => api::look(&context).await,
            // Without credentials for the API the rest can be looked at all the same.
            Err(CommandError::Remote(error)) if args.stack.is_some() || args.data.is_some() => Seen::nothing(&error),
            Err(error) => return Err(error),
        };
        report.is_denied = seen.is_denied;
        report.section("api", seen.findings);
        if let Some(stack) = &args.stack {
            if terminal.stderr {
                progress.show("looking at the stack …");
            }
            let (Server { api: target, region, profile, .. }, _) = endpoint::resolve(api, &environment)?;
            let region = region.as_deref().or(target.region());
            report.section("stack", stack::look(stack, region, profile.as_deref()).await);
        }
    }
    drop(progress);
    let text = match api.output {
        Format::Json => report.json(),
        Format::Table => report.text(paint),
    };
    print(&text)?;
    Ok(report.exit())
}
