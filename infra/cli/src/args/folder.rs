//! The arguments of the commands on a configuration folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::StatusCode;

use super::api::CommandArgs;
use super::period;
use super::workflow::share;

/// `stepwarden init`
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// The folder; it is made if it is missing, and must be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `stepwarden check`
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// The folder, with stepwarden.toml and workflows/
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}

pub(super) const TRY_HELP: &str = "\
The order is taken as the API takes it. For each step, and for its undo, you see the method, the URL, the headers and the
bytes of the body. A header with a secret shows where the secret is, never its value. Host, Content-Length and traceparent
are left out. The ID of the order is an example, always the same. http://NAME.invalid stands for a service without a url.

A step that sends something of an earlier answer needs that answer: --answer charge:200=answer.json. You see what it means
by the settings of the agent, and what `keep` keeps of it. charge/undo:404=FILE supposes the answer to the undo. An answer
200 for an approval approves. A file that begins with HTTP/, as `curl -i` writes it, has headers before the body.

Secrets that cannot be read here are named at the end. Those in ssm: and secretsmanager: are not looked at.

Exit status: 0 no step is unsendable, 1 the order is refused or a step is unsendable, 2 it could not be tried: a fault of
the folder, or a file that cannot be read.";

/// `stepwarden try`
#[derive(Debug, Clone, Args)]
pub struct TryArgs {
    /// The folder, with stepwarden.toml and workflows/
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The order, as it would be posted; - is stdin
    #[arg(value_name = "ORDER.json")]
    pub order: PathBuf,
    /// The workflow, in the place of the one that the order names
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Show this step alone
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
    /// Suppose that the service of a step answers with this status and the body in this file (repeatable)
    #[arg(long = "answer", value_name = "STEP:STATUS=FILE", value_parser = Supposed::parse)]
    pub answers: Vec<Supposed>,
    /// Print one JSON document, as --output json does
    #[arg(long)]
    pub json: bool,
}

pub(super) const PROBE_HELP: &str = "\
Probe a test system: the calls are real. They are made by the code of the agents, with keys of orders that are never posted, and
their IDs are shown. First you see each service with the most calls and effects there, and are asked. What was done is undone
at the end, where the step has an undo. A step that needs outputs of earlier steps has these called as well.

Each agent is probed by its first step that has an undo, or by those of --step. The series: the same call twice; twice at once;
repeated after the caller hung up; the same key with another body; the call under the key of another step; undo of what was
never done; undo twice; forward after undo; a wrong token.

For each assumption you see: holds; does not hold, with what was answered; or cannot tell, with what to look up. Effects are
not seen from outside: what tells is a value that the service makes for each of them, such as an id, and times. Settings to
paste, and rehearsal.toml, follow from it.

Exit status: 0 nothing is broken, 1 an assumption does not hold, 2 no call was made, or the first of a service was not done.";

/// `stepwarden probe`
#[derive(Debug, Clone, Args)]
pub struct ProbeArgs {
    /// The folder, with stepwarden.toml and workflows/
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The agents to probe; default: all of the workflow
    #[arg(value_name = "AGENT")]
    pub agents: Vec<String>,
    /// An order that the test system takes
    #[arg(long, value_name = "ORDER.json")]
    pub order: PathBuf,
    /// The workflow, in the place of the one that the order names
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Probe an agent by this step of it (repeatable)
    #[arg(long = "step", value_name = "STEP")]
    pub steps: Vec<String>,
    /// Say what would be called, and call nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write rehearsal.toml into the folder
    #[arg(long)]
    pub write: bool,
    /// Overwrite it
    #[arg(long, requires = "write")]
    pub force: bool,
}

pub(super) const REHEARSE_HELP: &str = "\
The handlers that ship carry orders through the folder's workflows and agents' settings, over services, network, clocks and
instances that are simulated. No call leaves the process. In a world of some orders nothing goes wrong, or a service is away, or
answers get lost, come late or twice, orders are cancelled, instances die. Then operators act, and each order is held against
what the services did: carried out twice, compensated and still carried out, processed and not carried out, stuck for good,
given up or late though nothing failed. What is found comes with its story, and the key to change: with it, the same worlds and
others ran again and were clean.

rehearsal.toml in the folder says how the services behave: --init writes it with every key and its default, and `stepwarden
probe` measures it. Without it they keep the rules, slow and flaky. In the orders, what `when` looks at is varied, so that each
branch is taken.

Without --seeds worlds run for up to 30 s. Ctrl-C ends them, and what was found is shown.

Exit status: 0 nothing goes wrong, 1 something does, 2 it did not run.";

/// `stepwarden rehearse`
#[derive(Debug, Clone, Args)]
pub struct RehearseArgs {
    /// The folder, with stepwarden.toml and workflows/
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The orders: one JSON document, or one a line; default: order.json of the folder
    #[arg(long, value_name = "FILE")]
    pub orders: Option<PathBuf>,
    /// Run this many worlds; default: as many as 30 s allow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub seeds: Option<u64>,
    /// Run this world alone
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    pub seed: Option<u64>,
    /// Show it action by action
    #[arg(long, requires = "seed")]
    pub trace: bool,
    /// What may go wrong: services, or clocks too, or instances, queues and stores too
    #[arg(long, value_enum, default_value_t = Assumed::All)]
    pub assume: Assumed,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write it as JUnit XML
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Print one JSON document, as --output json does
    #[arg(long)]
    pub json: bool,
    /// Write rehearsal.toml with a block for each agent, and run nothing
    #[arg(long, conflicts_with_all = ["seeds", "seed", "report", "junit"])]
    pub init: bool,
}

/// What may go wrong in a rehearsal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Assumed {
    /// Services, and the way to them.
    Services,
    /// Clocks too.
    Clocks,
    /// Instances, queues and stores too.
    All,
}

/// An answer that is supposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supposed {
    /// The step; with `/undo`, its undo.
    pub step: String,
    /// The status of the answer.
    pub status: StatusCode,
    /// The file with its body.
    pub file: PathBuf,
}

impl Supposed {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let parts = || {
            let (step, rest) = text.split_once(':')?;
            let (status, file) = rest.split_once('=')?;
            let status = status.parse().ok().filter(|status| (200..=599).contains(status))?;
            let status = StatusCode::from_u16(status).ok()?;
            let is_whole = !step.is_empty() && !file.is_empty();
            is_whole.then(|| Self { step: step.to_owned(), status, file: file.into() })
        };
        parts().ok_or("must be STEP:STATUS=FILE, such as charge:200=answer.json, with a status from 200 to 599")
    }
}

/// `stepwarden apply`
#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// The folder, with stepwarden.toml and workflows/
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
    /// The share of new orders that begin with new versions, in percent: 1 to 99; default: all
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub share: Option<u8>,
    /// Also make a new key of callback addresses (wait_within, webhooks), which signs after a minute. The addresses that
    /// the earlier keys signed count for this long: 7d, say, or 0s after a leak
    #[arg(long, value_name = "TIME", value_parser = period("0s", "400d"))]
    pub new_callback_key: Option<Duration>,
}
