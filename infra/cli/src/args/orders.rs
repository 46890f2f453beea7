//! The commands about orders: submit, get, list, watch, and what an operator does to one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::task::ProcessState;

use super::api::{WaitArgs, When};

/// `stepwarden submit`
#[derive(Debug, Clone, Args)]
pub struct SubmitArgs {
    /// The order's document, a JSON object; - reads it from stdin
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The Idempotency-Key: posted again with the same key, the same document gives the same order; without one, one is
    /// made
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Adds the member CorrelationID to the document
    #[arg(long, value_name = "ID")]
    pub correlation: Option<String>,
    /// Adds the member Priority to the document
    #[arg(long, value_name = "PRIORITY")]
    pub priority: Option<PriorityArg>,
    /// Adds the member ReplyChannel to the document
    #[arg(long, value_name = "NAME")]
    pub reply_channel: Option<String>,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// The priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PriorityArg {
    /// Before the others
    High,
    /// As usual
    Normal,
}

/// `stepwarden get`
#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// The order
    #[arg(value_name = "ID")]
    pub id: String,
    /// Show the document that was posted, instead of how far it is
    #[arg(long, conflicts_with = "wait")]
    pub document: bool,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Which orders. All that is given must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which orders")]
pub struct FilterArgs {
    /// In this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub state: Option<ProcessState>,
    /// With this Reason.Code, such as exhausted or rejected
    #[arg(long, value_name = "CODE")]
    pub reason: Option<String>,
    /// Whose Reason is about this step
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Submitted at this time or later: 2026-11-20T17:00:00Z, or 90m for ninety minutes ago
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub since: Option<When>,
    /// Submitted before this time
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub until: Option<When>,
    /// With this CorrelationID
    #[arg(long, value_name = "ID")]
    pub correlation: Option<String>,
    /// Whose document has this field, such as /Customer/Email; with --value, this field with that value
    #[arg(long, value_name = "FIELD")]
    pub field: Option<String>,
    /// Whose document has this value in a field, in --field if that is given
    #[arg(long, value_name = "TEXT")]
    pub value: Option<String>,
}

/// `stepwarden list`
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Orders at most, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// All of them, however many
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Which orders.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// `stepwarden watch`
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// The orders; without any, those that match
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Go on when all of them are settled, until Ctrl-C: with a filter, orders that come are shown too
    #[arg(long)]
    pub follow: bool,
    /// Which orders.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// `stepwarden resubmit`, `cancel`, `pause` and `resume`
#[derive(Debug, Clone, Args)]
pub struct ActArgs {
    /// The orders
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Who and why.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Only if the order is still of this version, as `get` shows it
    #[arg(long, value_name = "N")]
    pub if_version: Option<u64>,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Who acts, and why. Both go into the order's history.
#[derive(Debug, Clone, Args)]
pub struct CommandArgs {
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Who; without it the login name
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

fn state(text: &str) -> Result<ProcessState, String> {
    let named = ProcessState::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(text));
    named.ok_or_else(|| format!("must be one of {}", ProcessState::ALL.map(ProcessState::name).join(", ")))
}
