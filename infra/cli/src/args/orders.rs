//! The commands about orders: submit, get, list, watch, and the operator's commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::Settled;
use domain::task::ProcessState;

use super::api::{CommandArgs, WaitArgs, When};
use super::named;
use super::workflow::WorkflowName;

/// The shortest end of an order's ID that a command takes, in characters.
pub const END_CHARS_MIN: usize = 4;
/// The newest orders, and the newest orders in `Error`, among which an end is looked up.
pub const LOOKED_THROUGH_MAX: usize = 1_000;
const ID: &str = "Order ID, or its end: at least 4 hexadecimal characters, looked up among the 1000 newest orders and the \
                  1000 newest orders in Error";

/// `stepwarden submit`
#[derive(Debug, Clone, Args)]
pub struct SubmitArgs {
    /// File with the order's document, a JSON object; - reads stdin
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Idempotency key: the same key and document give the same order; default: a new key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Add the member CorrelationID to the document
    #[arg(long, value_name = "ID")]
    pub correlation: Option<String>,
    /// Add the member Priority to the document; high goes through the high-priority queue
    #[arg(long, value_name = "PRIORITY", value_parser = ["high", "normal"])]
    pub priority: Option<String>,
    /// Add the member ReplyChannel to the document
    #[arg(long, value_name = "NAME")]
    pub reply_channel: Option<String>,
    /// The time to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// `stepwarden get`
#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// The order
    #[arg(value_name = "ID", long_help = ID)]
    pub id: String,
    /// Show the posted document instead of the state
    #[arg(long, conflicts_with = "wait")]
    pub document: bool,
    /// The time to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Filter of orders. All given conditions must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filter")]
pub struct FilterArgs {
    /// Only orders in this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub state: Option<ProcessState>,
    /// Only orders with this Reason.Code, such as exhausted or rejected
    #[arg(long, value_name = "CODE")]
    pub reason: Option<String>,
    /// Only orders whose Reason names this step
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Only orders submitted at this time or later: 2026-11-20T17:00:00Z, or 90m for 90 minutes ago
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub since: Option<When>,
    /// Only orders submitted before this time
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub until: Option<When>,
    /// Only orders with this CorrelationID
    #[arg(long, value_name = "ID")]
    pub correlation: Option<String>,
    /// Only orders whose document has this field, such as /Customer/Email; with --value, this field with that value
    #[arg(long, value_name = "FIELD")]
    pub field: Option<String>,
    /// Only orders whose document has this value, such as ann@example.org, in --field or in any field
    #[arg(long, value_name = "TEXT")]
    pub value: Option<String>,
    /// Only orders of this workflow, or of one version of it: shop, shop/2
    #[arg(long, value_name = "NAME[/VERSION]")]
    pub workflow: Option<WorkflowName>,
    /// Only orders under way that wait for an answer of this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Only orders that were not finished at their deadline
    #[arg(long)]
    pub late: bool,
    /// Only orders that wait for an approval
    #[arg(long)]
    pub approval: bool,
    /// Only orders whose end a later result contradicts
    #[arg(long)]
    pub contradicted: bool,
}

/// `stepwarden list`
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// The most orders to list, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// List all orders
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// The columns of the table, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', default_value = "order,state,changed,where,why")]
    pub columns: Vec<Column>,
    /// Print the order IDs and nothing else: one a line, for other commands
    #[arg(short, long, conflicts_with = "columns")]
    pub quiet: bool,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterArgs,
}

pub(super) const EXPORT_HELP: &str = "\
Each line is an order as `get -o json` shows it: its state, its steps and its history, redacted. The order is that of
`list`: newest first. An order that changes meanwhile is shown as it was when it was read. It costs a call for each
order. After an error go on with --until and the SubmittedAt of the last line.

Examples:
  stepwarden export --since 24h > orders.ndjson
  stepwarden export --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --documents | gzip > november.ndjson.gz";

/// `stepwarden export`
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Add the document, redacted, as the member Document; costs one more call for each order
    #[arg(long)]
    pub documents: bool,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// A column of a list of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// Its ID; on a terminal the end, which every command takes
    Order,
    /// Its whole ID
    Id,
    /// Its state
    State,
    /// When it last changed
    Changed,
    /// When it was submitted
    Submitted,
    /// Its workflow and version
    Workflow,
    /// The step that it is at
    Where,
    /// Why it does not go on, or came undone
    Why,
    /// The last error of this step
    Error,
    /// The operator who has taken it on
    Taken,
}

/// `stepwarden watch`
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Orders; default: those that match the filter
    #[arg(value_name = "ID", long_help = format!("{ID}; default: the orders that match the filter"))]
    pub ids: Vec<String>,
    /// Continue until Ctrl-C, also when all orders are settled; with a filter, new orders are shown too
    #[arg(long)]
    pub follow: bool,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// `stepwarden resubmit`, `cancel`, `pause` and `resume`
#[derive(Debug, Clone, Args)]
pub struct ActArgs {
    /// The orders
    #[arg(value_name = "ID", required = true, long_help = ID)]
    pub ids: Vec<String>,
    /// By whom and why, and whether to wait.
    #[command(flatten)]
    pub how: HowArgs,
}

/// What every command on an order has.
#[derive(Debug, Clone, Args)]
pub struct HowArgs {
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Act only if the order still has this version, as `get` shows it
    #[arg(long, value_name = "N")]
    pub if_version: Option<u64>,
    /// The time to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

pub(super) const ERASE_HELP: &str = "\
Only an administrator erases, and only an order that is Processed, Compensated or Closed: close one in Error first. Ids,
states, times, codes and the name of the account that submitted it stay. The reason stays, too: do not name the person
there. Backups of before keep what they have. An order that was posted again (its AgainOf names this one) keeps the words
of this one: erase it too.

Example:
  stepwarden erase ID --by ada --reason 'request 4711'";

pub(super) const DECIDE_HELP: &str = "\
Examples:
  stepwarden list --approval                 the orders that wait for a decision
  stepwarden approve ID --by ann --reason 'within budget'
  stepwarden reject ID --step approve-hotel --by ann --reason 'too expensive' --wait
                                             one of several steps; then wait until the order is settled";

/// `stepwarden approve` and `reject`
#[derive(Debug, Clone, Args)]
pub struct DecideArgs {
    /// The orders, the person and the reason.
    #[command(flatten)]
    pub act: ActArgs,
    /// The step, where several of an order wait for an approval
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
}

/// `stepwarden settle`
#[derive(Debug, Clone, Args)]
pub struct SettleArgs {
    /// The order
    #[arg(value_name = "ID", long_help = ID)]
    pub id: String,
    /// The step, which is in Error
    #[arg(value_name = "STEP")]
    pub step: String,
    /// The effect: done if the step ran forward, undone if it was being undone; skipped, of an optional step; or dropped: its line is undone, and the order goes on
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    pub outcome: Settled,
    /// The step's output if it is done, for the steps after it: JSON, or @FILE; default: {}
    #[arg(long, value_name = "JSON", value_parser = output)]
    pub step_output: Option<Json>,
    /// By whom and why, and whether to wait.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `stepwarden note`
#[derive(Debug, Clone, Args)]
pub struct NoteArgs {
    /// The order
    #[arg(value_name = "ID", long_help = ID)]
    pub id: String,
    /// Take the order on: everybody sees that you work on it
    #[arg(long, conflicts_with = "let_go")]
    pub take: bool,
    /// Let the order go, for somebody else to take it on
    #[arg(long)]
    pub let_go: bool,
    /// By whom and what, and whether to wait.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `stepwarden again`
#[derive(Debug, Clone, Args)]
pub struct AgainArgs {
    /// The orders
    #[arg(value_name = "ID", required = true, long_help = ID)]
    pub ids: Vec<String>,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
    /// The time to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

fn output(text: &str) -> Result<Json, String> {
    let read = |path| std::fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"));
    let bytes = text.strip_prefix('@').map(read).transpose()?.unwrap_or_else(|| text.as_bytes().to_vec());
    Json::parse(&bytes, OUTPUT_BYTES_MAX).map_err(|fault| format!("is {fault}"))
}

fn state(text: &str) -> Result<ProcessState, String> {
    named(&ProcessState::ALL, ProcessState::name, text)
}

fn outcome(text: &str) -> Result<Settled, String> {
    named(&Settled::ALL, Settled::name, text)
}
