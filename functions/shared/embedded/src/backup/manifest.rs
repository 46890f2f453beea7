//! The manifest of a backup.

use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The manifest's name in a backup.
pub(super) const MANIFEST: &str = "backup.json";

/// What a backup is a copy of, and how to tell that it is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Manifest {
    /// When it was begun.
    pub taken_at: Timestamp,
    /// The version of the program that made it.
    pub program: String,
    /// The schema version of its database.
    pub schema: i64,
    /// The last transaction in it.
    pub transaction: u64,
    /// The size of its database.
    pub bytes: u64,
    /// The SHA-256 of its database, in hexadecimal.
    pub sha256: String,
}
