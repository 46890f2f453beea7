//! The options of all commands that call an API.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::time::Timestamp;

use super::period;
use crate::remote::{AuthMode, Target};

const HEADING: &str = "API options";

/// The API, the caller, and the format of the answer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
pub struct ApiArgs {
    /// URL of the API: of `stepwarden serve`, or the output ApiUrl of a deployed stack, or unix:PATH for its --socket;
    /// default: that of the context, else http://127.0.0.1:3000
    #[arg(long, global = true, value_name = "URL", env = "STEPWARDEN_API", value_parser = Target::parse)]
    pub api: Option<Target>,
    /// The server of this name, which `stepwarden context add` keeps. Without --api and STEPWARDEN_API. Default:
    /// STEPWARDEN_CONTEXT, else the current context
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Authentication; default: `iam` for an API Gateway URL; elsewhere `bearer` if STEPWARDEN_TOKEN is set and the URL
    /// is https or of this machine, otherwise `none`
    #[arg(long, global = true, value_name = "HOW")]
    pub auth: Option<AuthMode>,
    /// AWS region for --auth iam, if the URL does not contain it
    #[arg(long, global = true, value_name = "REGION")]
    pub region: Option<String>,
    /// AWS profile for --auth iam, as the `aws` command line tool knows it
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Certificates (PEM) of the issuers to trust for an https URL, in the place of those of the system
    #[arg(long, global = true, value_name = "FILE", value_parser = absolute)]
    pub ca: Option<PathBuf>,
    /// Output format: a table, or the API's JSON (lists have one document per line)
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    /// Time-out of one request: 1s to 10m
    #[arg(long, global = true, value_name = "TIME", default_value = "30s", value_parser = period("1s", "10m"))]
    pub timeout: Duration,
    /// Do not ask for confirmation
    #[arg(long, global = true)]
    pub yes: bool,
}

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading
    Table,
    /// For programs
    Json,
}

/// The time to wait for an order: `--wait` alone, or with a time.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// Wait until the order is settled and show its progress; --wait waits at most 20s, --wait=5m at most 5 minutes
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20s",
          value_parser = period("1s", "24h"))]
    pub wait: Option<Duration>,
}

/// The operator and the reason. The order history keeps both; of a command without an order, the log does.
#[derive(Debug, Clone, Args)]
pub struct CommandArgs {
    /// Why: for the history of the order, or for the log if the command is about no order
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The operator's name; default: the login name
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// A point in time: absolute, or relative to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At this time.
    At(Timestamp),
    /// This long before now.
    Ago(Duration),
}

impl When {
    /// Takes `2026-11-20T17:00:00Z`, or `90m` for ninety minutes ago.
    ///
    /// # Errors
    /// A message that shows the expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ago) = humantime::parse_duration(text) {
            return Ok(Self::Ago(ago));
        }
        let at = serde_json::from_value(serde_json::Value::String(text.to_owned()));
        at.map(Self::At)
            .map_err(|_| "neither a time such as 2026-11-20T17:00:00Z nor how long ago, such as 90m".to_owned())
    }

    /// The point in time.
    #[must_use]
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.minus_ms(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// A context is used from any directory.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_a_date_or_how_long_ago() {
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        assert_eq!(When::parse("90m").unwrap().from(now), now.minus_ms(90 * 60 * 1_000));
        assert_eq!(When::parse("2026-11-20T17:26:43.007Z").unwrap().from(now), now);
        for text in ["yesterday", "2026-11-20", ""] {
            assert!(When::parse(text).unwrap_err().contains("90m"), "{text}");
        }
    }
}
