//! The arguments of the commands on a configuration folder.

use std::path::PathBuf;

use clap::Args;

use super::orders::CommandArgs;
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
}
