//! The arguments of the commands on a data directory.

use std::path::PathBuf;

use clap::Args;

pub(super) const BACKUP_HELP: &str = "\
Examples:
  stepwarden backup /backups/2026-11-25
  stepwarden backup /backups/2026-11-25 --data /var/lib/stepwarden -o json

The backup is a folder with the database, as of one transaction, and backup.json with its time, transaction and SHA-256.
It has its name only once it is complete, checked and on disk. It does not hold the file of tokens, the configuration
folder and the secrets: keep copies of these, too.
While it copies, the write-ahead log of the server grows by what is written meanwhile. The backup is given up if the log
grows beyond 1 GiB and the size of the database, if a disk has less than 64 MiB left, or if a server starts on the data.

Exit status: 0 done, 1 the data is damaged, 2 refused before anything was done, 5 given up.";

pub(super) const RESTORE_HELP: &str = "\
Examples:
  stepwarden restore /backups/2026-11-25 --data /var/lib/stepwarden-restored
  stepwarden serve --data /var/lib/stepwarden-restored --paused

Orders that came after the backup are missing. Orders that were under way go on as soon as a server starts without
--paused: their services are called again, under the same idempotency keys. See to it that the old server is stopped.

Exit status: 0 done, 1 the backup is damaged, 2 refused before anything was done, 5 given up.";

/// `stepwarden backup`
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// The backup: a new folder, in one that is there
    #[arg(value_name = "DEST")]
    pub destination: PathBuf,
    /// The data directory of `serve`, which may run meanwhile
    #[arg(long, value_name = "DIR", default_value = ".stepwarden")]
    pub data: PathBuf,
}

/// `stepwarden restore`
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// The backup; or a database file that another program copied, such as `sqlite3` with .backup
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// The new data directory: it has no data, and is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}
