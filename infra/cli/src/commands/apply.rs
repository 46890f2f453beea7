//! `stepwarden apply`: brings a configuration folder to an API. It shows what changes, and asks.

use local::folder::{self, FolderError};
use wire::{ConfigurationFile, Configure, Configured};

use super::check;
use super::context::{Context, body};
use super::error::CommandError;
use crate::args::{ApplyArgs, CheckArgs};
use crate::exit::Exit;
use crate::remote::Call;

const PATH: &str = "/configuration";

pub(super) async fn run(context: &Context, args: &ApplyArgs) -> Result<Exit, CommandError> {
    let files = match folder::check(&args.folder).and_then(|_| folder::read(&args.folder)) {
        Ok(files) => files,
        Err(FolderError::Faults(_)) => {
            let folder = args.folder.clone();
            let found = check::run(&CheckArgs { folder }, context.format, context.paint);
            context.note("nothing was applied");
            return found;
        }
        Err(error @ FolderError::Unreadable { .. }) => return Err(CommandError::usage(error.to_string())),
    };
    let command = context.command(&args.command)?;
    let file =
        |(name, text): &(String, String)| ConfigurationFile { name: name.clone().into(), text: text.clone().into() };
    let mut configure = Configure {
        by: command.by,
        reason: command.reason,
        files: files.iter().map(file).collect(),
        share_percent: args.share,
        dry_run: true,
        version: None,
        earlier_callback_key_ms: args.new_callback_key.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let answer = context.remote.call(&Call::post(PATH.to_owned(), body(&configure))).await?;
    let planned: Configured<'static> = answer.read()?;
    for line in planned.changes.iter().chain(&planned.notes) {
        context.note(line);
    }
    if planned.changes.is_empty() {
        context.note("nothing changes; `stepwarden workflows choose` changes what new orders begin with");
        return Ok(Exit::Fine);
    }
    if !context.may_go_on("Apply this?")? {
        return Ok(Exit::Fine);
    }
    // What was shown is applied, or nothing.
    (configure.dry_run, configure.version) = (false, Some(planned.version));
    // A repeat after a lost answer finds that version gone, and changes nothing.
    let answer = context.remote.call(&Call::post(PATH.to_owned(), body(&configure))).await;
    let answer =
        answer.map_err(|error| CommandError::of_change(error, "the folder was applied", "stepwarden workflows"))?;
    if context.is_json() {
        return context.line(&answer.line());
    }
    context.note("applied");
    Ok(Exit::Fine)
}
