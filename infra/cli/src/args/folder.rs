//! The arguments of the commands on a configuration folder.

use std::path::PathBuf;

use clap::Args;

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
