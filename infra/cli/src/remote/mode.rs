//! How a caller authenticates, as it is chosen.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How a caller authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// No authentication
    None,
    /// Sign with AWS credentials, from the environment or the `aws` command line tool
    Iam,
    /// Send the token in STEPWARDEN_TOKEN
    Bearer,
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}
