//! The commands about the whole system: bulk jobs, dead letters, the doctor, the console, completions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::api::{CommandArgs, When};
use super::period;

/// The actions of a bulk job.
const BULK_ACTIONS: [&str; 5] = ["resubmit", "cancel", "settle", "close", "again"];

/// `stepwarden bulk`
#[derive(Debug, Clone, Subcommand)]
pub enum BulkCommand {
    /// Plan a job that resubmits orders, confirm it, start it, and show its progress to the end
    Resubmit(PlanArgs),
    /// Plan a job that posts compensated orders again as new orders, confirm it, start it, and show its progress to the
    /// end. An order is posted again at most once. Without --reason-code, orders that were cancelled are meant too
    Again(PlanArgs),
    /// The same with another action: cancel, settle a step, or close
    Run(RunArgs),
    /// Plan a job: count the matching orders; nothing is done yet
    Plan(RunArgs),
    /// Start a planned job
    Start(JobActArgs),
    /// Cancel a job: it handles no further orders
    Cancel(JobActArgs),
    /// Show the status of a job
    Status {
        /// Job ID
        #[arg(value_name = "JOB")]
        job: String,
        /// Show the progress to the end
        #[arg(long)]
        watch: bool,
    },
    /// List jobs, newest first
    List {
        /// The most jobs to list: 1 to 100
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
    },
}

pub(super) const CONTEXT_HELP: &str = "\
A command calls the API of the first of these that is given: --api, STEPWARDEN_API, --context, STEPWARDEN_CONTEXT, the
current context, http://127.0.0.1:3000. The contexts are kept in stepwarden/contexts.toml, under XDG_CONFIG_HOME or
~/.config. A token is not kept there: it stays in STEPWARDEN_TOKEN.

  stepwarden context add prod --api https://ID.execute-api.REGION.amazonaws.com --profile night
  stepwarden context use prod
  stepwarden list --context test";

/// `stepwarden context`
#[derive(Debug, Clone, Subcommand)]
pub enum ContextCommand {
    /// List the contexts; * marks the current one
    List,
    /// Add a context: the URL of --api, and --auth, --region, --profile and --ca if its calls need them
    Add {
        /// Its name: letters, digits, `-`, `_` and `.`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make a context the current one
    Use {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a context
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// `stepwarden services`
#[derive(Debug, Clone, Subcommand)]
pub enum ServicesCommand {
    /// Say that the rejections of a service are right. It is held back no longer, and they count
    AcceptRejections(AcceptRejectionsArgs),
}

/// `stepwarden services accept-rejections`
#[derive(Debug, Clone, Args)]
pub struct AcceptRejectionsArgs {
    /// The service, as `stepwarden services` names it
    #[arg(value_name = "SERVICE")]
    pub service: String,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
}

/// What a job does with each order.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What is done with each order. `settle` ends the step that --step names: as done, or as undone if the order was
    /// being undone. `again` is for compensated orders, the others are for orders in Error
    #[arg(long, value_name = "ACTION", default_value = "resubmit", value_parser = BULK_ACTIONS)]
    pub action: String,
    /// The orders and the pace.
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// The orders that a job handles, and its pace.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Only orders with this Reason.Code, such as exhausted
    #[arg(long, value_name = "CODE")]
    pub reason_code: Option<String>,
    /// Only orders whose Reason names this step
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Only orders that failed, or were compensated, at this time or later: 2026-11-20T17:00:00Z, or 90m for 90 minutes
    /// ago
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub since: Option<When>,
    /// Only orders that failed, or were compensated, at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub until: Option<When>,
    /// Canary orders, handled first; the others wait for their outcome: 1 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub canary: Option<u32>,
    /// Time-out of a canary: 1s to 24h
    #[arg(long, value_name = "TIME", value_parser = period("1s", "24h"))]
    pub canary_timeout: Option<Duration>,
    /// Orders handled per second: 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: Option<u32>,
    /// Stop the job when more than this percentage fails again: 0 to 100
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub stop_at_failed_percent: Option<u8>,
}

/// `stepwarden bulk start` and `cancel`
#[derive(Debug, Clone, Args)]
pub struct JobActArgs {
    /// Job ID
    #[arg(value_name = "JOB")]
    pub job: String,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
}

/// `stepwarden dead-letters`
#[derive(Debug, Clone, Args)]
pub struct DeadLettersArgs {
    /// The most dead letters to list, last settled first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// List all stored dead letters
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

/// `stepwarden doctor`
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Also check the deployed stack of this name, through the `aws` command line tool: its state, its alarms and what was
    /// changed by hand
    #[arg(long, value_name = "NAME")]
    pub stack: Option<String>,
    /// Check this data directory of `serve`; the API is checked too if an option or a variable names it
    #[arg(long, value_name = "DIR", conflicts_with = "stack")]
    pub data: Option<PathBuf>,
}

/// `stepwarden console`
#[derive(Debug, Clone, Args)]
pub struct ConsoleArgs {
    /// Port of the console, on this machine only; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Open the console in the browser
    #[arg(long)]
    pub open: bool,
}

/// `stepwarden completions`
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `stepwarden numbers`
#[derive(Debug, Clone, Args)]
pub struct NumbersArgs {
    /// The span that ends now: 30m, 24h, 7d or 30d. Its points, such as the hours of 7d, are in `-o json`
    #[arg(long, default_value = "24h", value_parser = ["30m", "24h", "7d", "30d"])]
    pub last: String,
    /// A day of UTC instead: yesterday, today, or a date such as 2026-11-20 within the last 30 days. In another zone with
    /// its offset in whole hours: yesterday+01:00, 2026-11-20-05:00
    #[arg(long, conflicts_with = "last", value_name = "DAY")]
    pub day: Option<String>,
    /// Only this workflow. A name without numbers in the span is refused with the names that have some, as in the
    /// next two
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only this step, of any workflow or of the one that is given
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Only the steps that ask this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
}
