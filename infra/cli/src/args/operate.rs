//! The commands about all of it: bulk jobs, what the API tells of the whole, the doctor, the console, completions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::api::When;
use super::duration;
use super::orders::CommandArgs;

/// `stepwarden bulk`
#[derive(Debug, Clone, Subcommand)]
pub enum BulkCommand {
    /// Plan, ask, start, and show the progress to the end: all in one
    Resubmit(PlanArgs),
    /// Count the orders that match; nothing is resubmitted until the job is started
    Plan(PlanArgs),
    /// Start a planned job
    Start(JobActArgs),
    /// Put nothing more of a job on its way
    Cancel(JobActArgs),
    /// How a job stands
    Status {
        /// The job
        #[arg(value_name = "JOB")]
        job: String,
        /// Show the progress to the end
        #[arg(long)]
        watch: bool,
    },
    /// The newest jobs
    List {
        /// Jobs at most: 1 to 100
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
    },
}

/// Which orders in Error a job resubmits, and how carefully.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Who and why.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Only orders with this Reason.Code, such as exhausted
    #[arg(long, value_name = "CODE")]
    pub reason_code: Option<String>,
    /// Only orders whose Reason is about this step
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Only orders that failed at this time or later: 2026-11-20T17:00:00Z, or 90m for ninety minutes ago
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub since: Option<When>,
    /// Only orders that failed before this time
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub until: Option<When>,
    /// Orders that go first, while the others wait for how they fare: 1 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub canary: Option<u32>,
    /// How long a canary may take: 1s to 24h
    #[arg(long, value_name = "TIME", value_parser = canary_time)]
    pub canary_timeout: Option<Duration>,
    /// Orders resubmitted in a second: 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: Option<u32>,
    /// Stop when more than so many percent fail again: 0 to 100
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub stop_at_failed_percent: Option<u8>,
}

/// `stepwarden bulk start` and `cancel`
#[derive(Debug, Clone, Args)]
pub struct JobActArgs {
    /// The job
    #[arg(value_name = "JOB")]
    pub job: String,
    /// Who and why.
    #[command(flatten)]
    pub command: CommandArgs,
}

/// `stepwarden dead-letters`
#[derive(Debug, Clone, Args)]
pub struct DeadLettersArgs {
    /// Dead letters at most, the last settled first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// All that are kept
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

/// `stepwarden doctor`
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Also look at the deployed stack of this name, through the `aws` command line tool
    #[arg(long, value_name = "NAME")]
    pub stack: Option<String>,
    /// Look at this data directory of `serve`, and at no API unless --api or STEPWARDEN_API is given too
    #[arg(long, value_name = "DIR", conflicts_with = "stack")]
    pub data: Option<PathBuf>,
}

/// `stepwarden console`
#[derive(Debug, Clone, Args)]
pub struct ConsoleArgs {
    /// Port to serve the page on, on this machine only; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Open it in the browser
    #[arg(long)]
    pub open: bool,
}

/// `stepwarden completions`
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

fn canary_time(text: &str) -> Result<Duration, String> {
    duration(text, Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60), "1s to 24h")
}
