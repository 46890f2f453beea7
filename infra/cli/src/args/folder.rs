//! The arguments of the commands on a configuration folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

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
    #[arg(long, value_name = "TIME", value_parser = period("0s", "90d"))]
    pub new_callback_key: Option<Duration>,
}
