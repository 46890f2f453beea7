//! The command about the audit stream.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use domain::audit::Hash;

use super::api::When;

pub(super) const AUDIT_HELP: &str = "\
Each line is one JSON object: a version of an order with the lines of its history that are new, a command, or a record
that operators write. Each has a hash over itself and all before it. Nobody can change an entry without a change of all
hashes after it. Whoever can write the file could compute them anew, so keep the last hash in another place.

`Erased` in the place of a text is its digest: an administrator erased the order. The entry of that erase names it.

  stepwarden audit --data DIR --since 24h > audit.ndjson
  stepwarden audit --data DIR --verify
  stepwarden audit --data DIR --contains 4711:HASH

The server may run meanwhile. On AWS the stream is a log group; see infra/README.md.

Exit status: 0 as it was written, 1 altered, cut off or empty, 2 the directory cannot be read. After 1, keep a copy of
the directory as it is, and compare it with a backup.";

/// `stepwarden audit`
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Data directory of `serve`
    #[arg(long, value_name = "DIR", default_value = ".stepwarden")]
    pub data: PathBuf,
    /// Only entries of this time or later: 2026-11-20T17:00:00Z, or 90m for 90 minutes ago
    #[arg(long, value_name = "TIME", value_parser = When::parse, conflicts_with_all = ["verify", "contains"])]
    pub since: Option<When>,
    /// Print no entry, but whether all are as they were written
    #[arg(long)]
    pub verify: bool,
    /// The same as --verify, and whether this entry, noted earlier from --verify, is still in the stream
    #[arg(long, value_name = "NUMBER:HASH")]
    pub contains: Option<Noted>,
}

/// An entry that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Its number.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
}

impl FromStr for Noted {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let noted = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash.parse().ok()?)));
        let (seq, hash) = noted.ok_or("must be NUMBER:HASH, as `stepwarden audit --verify` prints it")?;
        Ok(Self { seq, hash })
    }
}
