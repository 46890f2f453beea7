//! The command about the tokens of callers.

use std::path::PathBuf;

use api::Role;
use clap::{Args, Subcommand};

pub(super) const TOKEN_HELP: &str = "\
A token is shown once, when it is added. The file has its hash alone. Several tokens may have one name, so that a new one
can be handed out before the old one is removed.

  stepwarden token add shop --role application --tokens tokens.toml
  stepwarden token add ada --role operator --role approver --tokens tokens.toml
  stepwarden serve --tokens tokens.toml
  STEPWARDEN_TOKEN=sw_... stepwarden list

Roles:
  application    posts orders, and reads its own
  viewer         reads everything
  operator       reads everything, and acts on orders, jobs and services
  approver       reads everything, and approves or rejects
  administrator  as an operator, and applies workflows and settings, and erases orders

Exit status: 0 done, 2 the file or the name cannot be used.";

/// `stepwarden token`
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Make a token, add it to the file, and print it
    Add {
        /// Who calls: the submitter of its orders, which alone reads them
        #[arg(value_name = "NAME")]
        name: String,
        /// What the caller may do: application, viewer, operator, approver or administrator (repeatable)
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<Role>,
        /// A reply channel that its orders may name (repeatable); all, unless given
        #[arg(long = "channel", value_name = "CHANNEL")]
        channels: Vec<String>,
        /// The file.
        #[command(flatten)]
        file: TokensFile,
    },
    /// List the tokens of the file, without the tokens themselves
    List {
        /// The file.
        #[command(flatten)]
        file: TokensFile,
    },
    /// Remove a token, or all tokens of a name
    Remove {
        /// The name, or the ID of `stepwarden token list`
        #[arg(value_name = "NAME|ID")]
        name: String,
        /// The file.
        #[command(flatten)]
        file: TokensFile,
    },
}

/// The file of tokens.
#[derive(Debug, Clone, Args)]
pub struct TokensFile {
    /// The file that `serve --tokens` reads
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
}

impl TokenCommand {
    /// The file.
    #[must_use]
    pub const fn file(&self) -> &TokensFile {
        let (Self::Add { file, .. } | Self::List { file } | Self::Remove { file, .. }) = self;
        file
    }
}
