//! What every command works with: the API, stdout, stderr, and who sits in front of it.

use std::io::{self, Write};

use domain::time::Timestamp;
use http::HeaderValue;
use serde::Serialize;
use serde_json::value::RawValue;
use wire::Command;

use super::dialogue::{self, Progress};
use super::error::CommandError;
use crate::args::{ApiArgs, CommandArgs, Format};
use crate::paint::Paint;
use crate::remote::{Environment, Remote, clock};

/// What is a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Somebody can answer.
    pub stdin: bool,
    /// Somebody looks at the results.
    pub stdout: bool,
    /// Somebody looks at what is said beside them.
    pub stderr: bool,
}

/// One command's surroundings.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) remote: Remote,
    pub(super) format: Format,
    pub(super) paint: Paint,
    pub(super) terminal: Terminal,
    user: Option<String>,
    yes: bool,
}

impl Context {
    pub(super) fn new(api: &ApiArgs, environment: Environment, terminal: Terminal) -> Result<Self, CommandError> {
        let paint = Paint { colours: terminal.stdout && !environment.no_colour };
        let user = environment.user.clone();
        let remote = Remote::new(api, environment)?;
        Ok(Self { remote, format: api.output, paint, terminal, user, yes: api.yes })
    }

    /// The time on this machine.
    pub(super) fn now(&self) -> Timestamp {
        clock::now()
    }

    pub(super) const fn is_json(&self) -> bool {
        matches!(self.format, Format::Json)
    }

    /// Prints a text that ends its lines itself.
    pub(super) fn print(&self, text: &str) -> Result<(), CommandError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Prints one line.
    pub(super) fn line(&self, text: &str) -> Result<(), CommandError> {
        self.print(&format!("{text}\n"))
    }

    /// Prints a value of JSON on a line of its own, as it was sent.
    pub(super) fn raw(&self, value: &RawValue) -> Result<(), CommandError> {
        self.line(&value.get().replace(['\n', '\r'], " "))
    }

    /// Says something beside the results.
    pub(super) fn note(&self, text: &str) {
        eprintln!("stepwarden: {text}");
    }

    /// Shows how something goes on, on stderr.
    pub(super) fn progress(&self) -> Progress {
        Progress::new(self.terminal.stderr)
    }

    /// An operator's command.
    pub(super) fn command(&self, command: &CommandArgs) -> Result<Command<'static>, CommandError> {
        Ok(Command { by: self.by(command)?.into(), reason: command.reason.clone().into() })
    }

    /// Who acts.
    pub(super) fn by(&self, command: &CommandArgs) -> Result<String, CommandError> {
        let by = command.by.as_ref().or(self.user.as_ref());
        by.cloned().ok_or_else(|| CommandError::Usage("who are you? Give --by NAME; no login name is known".to_owned()))
    }

    /// Whether to go on with what changes many. Without a terminal nobody can be asked, and `--yes` has to be given.
    ///
    /// # Errors
    /// [`CommandError::Usage`] without both.
    pub(super) fn may_go_on(&self, question: &str) -> Result<bool, CommandError> {
        if self.yes {
            return Ok(true);
        }
        self.can_ask(question)?;
        dialogue::yes(question, &mut io::stdin().lock(), &mut io::stderr())
            .map_err(|error| CommandError::Usage(format!("nobody could be asked: {error}")))
    }

    /// Fails where `may_go_on` would have nobody to ask, before anything is done.
    pub(super) fn can_ask(&self, what: &str) -> Result<(), CommandError> {
        if self.yes || (self.terminal.stdin && self.terminal.stderr) {
            return Ok(());
        }
        Err(CommandError::Usage(format!("{what} There is no terminal to ask on: give --yes to do it")))
    }
}

/// A body as the API takes it.
pub(super) fn body(shape: &impl Serialize) -> String {
    serde_json::to_string(shape).expect("texts and numbers make JSON")
}

/// The header that makes an action hold for one version only.
pub(super) fn if_match(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).expect("digits in quotes make a header")
}
