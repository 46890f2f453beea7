//! `stepwarden completions`: what a shell needs to complete the command line.

use clap::CommandFactory;

use super::error::CommandError;
use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;

pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stepwarden", &mut script);
    use std::io::Write as _;
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Fine)
}
