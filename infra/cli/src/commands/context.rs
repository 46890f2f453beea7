//! The context of every command: the API, stdout, stderr and the terminal.

use std::io::{self, Write};

use domain::time::Timestamp;
use local::terminal::escaped;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wire::Command;

use super::dialogue::{self, Progress};
use super::endpoint;
use super::error::CommandError;
use crate::args::{ApiArgs, CommandArgs, Format};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::{Answer, Call, Environment, Remote, clock};
use crate::show::order::Ids;

/// Which streams are terminals.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Stdin is a terminal.
    pub stdin: bool,
    /// Stdout is a terminal.
    pub stdout: bool,
    /// Stderr is a terminal.
    pub stderr: bool,
}

impl Terminal {
    /// Colours, if people read them.
    pub(super) const fn paint(self, environment: &Environment) -> Paint {
        Paint { colours: self.stdout && !environment.no_colour }
    }
}

/// The context of one command.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) remote: Remote,
    pub(super) format: Format,
    pub(super) paint: Paint,
    pub(super) terminal: Terminal,
    /// The name of the context that the API is from.
    name: Option<String>,
    user: Option<String>,
    yes: bool,
}

impl Context {
    pub(super) fn new(api: &ApiArgs, environment: Environment, terminal: Terminal) -> Result<Self, CommandError> {
        let paint = terminal.paint(&environment);
        let user = environment.user.clone();
        let (server, name) = endpoint::resolve(api, &environment)?;
        let remote = Remote::new(server, api.timeout, environment)?;
        let context = Self { remote, format: api.output, paint, terminal, name, user, yes: api.yes };
        if let (Some(name), None) = (&api.context, &context.name) {
            context.note(&format!("--context {name} is not used: --api or STEPWARDEN_API takes precedence"));
        }
        Ok(context)
    }

    /// Says which server is called, if a context chose it.
    pub(super) fn tell_server(&self) {
        if let Some(name) = &self.name {
            self.note(&format!("calling {} (context {name})", self.remote.target().url("")));
        }
    }

    /// The time on this machine.
    pub(super) fn now(&self) -> Timestamp {
        clock::now()
    }

    /// How a list shows the IDs of orders: a script gets them whole.
    pub(super) const fn ids(&self) -> Ids {
        if self.terminal.stdout { Ids::Ends } else { Ids::Whole }
    }

    pub(super) const fn is_json(&self) -> bool {
        matches!(self.format, Format::Json)
    }

    /// Prints a text.
    pub(super) fn print(&self, text: &str) -> Result<Exit, CommandError> {
        print(text)
    }

    /// Prints one line.
    pub(super) fn line(&self, text: &str) -> Result<Exit, CommandError> {
        self.print(&format!("{text}\n"))
    }

    /// Prints a JSON value on its own line, unchanged.
    pub(super) fn raw(&self, value: &RawValue) -> Result<Exit, CommandError> {
        self.line(&value.get().replace(['\n', '\r'], " "))
    }

    /// Shows an answer: the API's JSON to programs, words to people.
    pub(super) fn show<T: DeserializeOwned>(
        &self,
        answer: &Answer,
        words: impl FnOnce(T) -> String,
    ) -> Result<Exit, CommandError> {
        match self.is_json() {
            true => self.line(&answer.line()),
            false => self.print(&words(answer.read()?)),
        }
    }

    /// The same of what is at a path.
    pub(super) async fn show_path<T: DeserializeOwned>(
        &self,
        path: &str,
        words: impl FnOnce(T) -> String,
    ) -> Result<Exit, CommandError> {
        self.show(&self.remote.call(&Call::get(path)).await?, words)
    }

    /// Says something on stderr.
    pub(super) fn note(&self, text: &str) {
        dialogue::note(text);
    }

    /// Shows the progress on stderr.
    pub(super) fn progress(&self) -> Progress {
        Progress::new(self.terminal.stderr)
    }

    /// An operator's command, with an id of its own.
    pub(super) fn command(&self, command: &CommandArgs) -> Result<Command<'static>, CommandError> {
        let (by, reason) = (self.by(command)?.into(), command.reason.clone().into());
        Ok(Command { by, reason, command_id: Some(random()?.into()) })
    }

    /// The operator.
    pub(super) fn by(&self, command: &CommandArgs) -> Result<String, CommandError> {
        let by = command.by.as_ref().or(self.user.as_ref());
        by.cloned().ok_or_else(|| CommandError::usage("the login name is unknown; give --by NAME"))
    }

    /// Asks for confirmation of a change of many orders, and says so if nothing was done. Without a terminal, `--yes` is
    /// required.
    ///
    /// # Errors
    /// [`CommandError::Usage`] without both.
    pub(super) fn may_go_on(&self, question: &str) -> Result<bool, CommandError> {
        if self.yes {
            return Ok(true);
        }
        self.can_ask(question)?;
        let answer = dialogue::yes(question, &mut io::stdin().lock(), &mut io::stderr());
        let unread = |error| CommandError::usage(format!("the confirmation could not be read: {error}"));
        let may_go_on = answer.map_err(unread)?;
        if !may_go_on {
            self.note("nothing was done");
        }
        Ok(may_go_on)
    }

    /// Fails early if `may_go_on` could not ask.
    pub(super) fn can_ask(&self, what: &str) -> Result<(), CommandError> {
        if self.yes || (self.terminal.stdin && self.terminal.stderr) {
            return Ok(());
        }
        Err(CommandError::usage(format!("{what} There is no terminal for a confirmation: give --yes")))
    }
}

/// Prints a text that includes its line breaks, with escapes for what a text of others could do to the terminal. A value of
/// JSON stays the same.
pub(super) fn print(text: &str) -> Result<Exit, CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(escaped(text).as_bytes())?;
    stdout.flush()?;
    Ok(Exit::Fine)
}

/// What nobody else guesses or uses: 128 random bits.
pub(super) fn random() -> Result<String, CommandError> {
    #[expect(clippy::disallowed_methods, reason = "an id, a key or a secret of this process; no part of the protocol")]
    match [getrandom::u64(), getrandom::u64()] {
        [Ok(high), Ok(low)] => Ok(format!("{high:016x}{low:016x}")),
        _ => Err(CommandError::usage("this machine gives no random numbers")),
    }
}

/// A body as the API takes it.
pub(super) fn body(shape: &impl Serialize) -> String {
    serde_json::to_string(shape).expect("texts and numbers make JSON")
}

/// A line of JSON for each.
pub(super) fn json_lines(shapes: &[impl Serialize]) -> String {
    shapes.iter().map(|shape| body(shape) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_is_random_is_never_the_same() {
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[test]
    fn ids_are_shown_by_their_ends_on_a_terminal_alone() {
        let api = Cli::try_parse_from(["stepwarden", "list"]).unwrap().api;
        for (stdout, ids) in [(true, Ids::Ends), (false, Ids::Whole)] {
            let terminal = Terminal { stdin: true, stdout, stderr: true };
            assert_eq!(Context::new(&api, Environment::default(), terminal).unwrap().ids(), ids);
        }
    }
}
