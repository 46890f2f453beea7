//! `stepwarden backup` and `stepwarden restore`. Never here: a call of an API.

use std::path::Path;

use local::backup::{self, BackupError, Failed, Manifest, OpenError, Progress, Restored, Stage};
use serde_json::json;
use tokio::signal::unix::SignalKind;

use super::context::{body, print};
use super::dialogue;
use super::error::CommandError;
use crate::args::{BackupArgs, Format, RestoreArgs};
use crate::exit::Exit;
use crate::one_line;
use crate::show::table::plain;

const MB: u64 = 1_000_000;

pub(super) async fn back_up(args: &BackupArgs, output: Format, is_terminal: bool) -> Result<Exit, CommandError> {
    let BackupArgs { destination, data } = args.clone();
    let mut shown = dialogue::Progress::new(is_terminal);
    let done = backup::back_up(data, destination, |progress| show(&mut shown, is_terminal, progress)).await;
    drop(shown);
    told(done, |manifest| match output {
        Format::Json => format!("{}\n", body(&manifest)),
        Format::Table => {
            let Manifest { transaction, schema, bytes, .. } = &manifest;
            let (from, to) = (shown_path(&args.data), shown_path(&args.destination));
            format!(
                "Backed up {from} to {to}: transaction {transaction}, schema version {schema}, {} MB, checked.\n",
                bytes.div_ceil(MB)
            )
        }
    })
}

pub(super) async fn restore(args: &RestoreArgs, output: Format, is_terminal: bool) -> Result<Exit, CommandError> {
    let RestoreArgs { source, data } = args.clone();
    let mut shown = dialogue::Progress::new(is_terminal);
    let done = backup::restore(source, data, |progress| show(&mut shown, is_terminal, progress)).await;
    drop(shown);
    told(done, |restored| match output {
        Format::Json => {
            let Restored { manifest, schema, transaction, under_way } = &restored;
            let mut json = json!({"Data": args.data.display().to_string(), "Schema": schema, "Transaction": transaction,
                                  "OrdersUnderWay": under_way});
            if let Some(manifest) = manifest {
                json["Backup"] = json!(manifest);
            }
            format!("{json}\n")
        }
        Format::Table => words(args, &restored),
    })
}

fn words(args: &RestoreArgs, restored: &Restored) -> String {
    let Restored { manifest, transaction, under_way, .. } = restored;
    let (from, to) = (shown_path(&args.source), shown_path(&args.data));
    let taken = match manifest {
        Some(manifest) => format!("of {}, its checksum is right", manifest.taken_at),
        None => "without a checksum".to_owned(),
    };
    format!(
        "Restored {from} ({taken}) to {to}: transaction {transaction}, {under_way} orders under way, checked.\n\n\
         Stop the old server, if it still runs. Then look at the orders; no service is called:\n  \
         stepwarden serve --data {to} --paused\n\
         Then start without --paused. Orders under way go on, and their services are called again, under the same keys.\n\
         An order that is past its deadline by then is late: with on_late = \"compensate\" it is undone, also if it was \
         finished after the backup.\nOrders that came after the backup are missing.\n"
    )
}

/// Without a terminal, one line for each stage.
fn show(shown: &mut dialogue::Progress, is_terminal: bool, progress: Progress) {
    let Progress { stage, done, all } = progress;
    let what = match stage {
        Stage::Copy => "copying",
        Stage::Changes => "copying what changed",
        Stage::Check => "checking",
        Stage::Checksum => "computing the checksum",
    };
    let size = format!("{} MB", all.div_ceil(MB));
    if is_terminal && stage != Stage::Check {
        shown.show(&format!("{what}: {} % of {size}", done.saturating_mul(100) / all.max(1)));
    } else {
        shown.show(&format!("{what} {size}"));
    }
}

/// Tells the result, or why there is none.
fn told<T>(done: Result<T, Failed>, words: impl FnOnce(T) -> String) -> Result<Exit, CommandError> {
    let failed = match done {
        Ok(done) => return print(&words(done)),
        Err(failed) => failed,
    };
    dialogue::note(&one_line(&failed));
    Ok(match failed {
        Failed::Signal(kind) if kind == SignalKind::terminate() => Exit::Terminated,
        Failed::Signal(_) => Exit::Interrupted,
        Failed::System(_) => Exit::Away,
        Failed::Backup(error) => exit(&error),
    })
}

const fn exit(error: &BackupError) -> Exit {
    match error {
        BackupError::Damaged { .. } | BackupError::Open(OpenError::Lost { .. }) => Exit::Otherwise,
        BackupError::NoData(_)
        | BackupError::Exists(_)
        | BackupError::NoPlace(_)
        | BackupError::UnderWay(_)
        | BackupError::HasData(_)
        | BackupError::NoBackup { .. }
        | BackupError::Open(
            OpenError::Locked { .. }
            | OpenError::HalfRestored { .. }
            | OpenError::Newer { .. }
            | OpenError::NotWritable { .. },
        ) => Exit::Usage,
        BackupError::NoRoom(_)
        | BackupError::LogGrew(_)
        | BackupError::ServerStarted
        | BackupError::Stopped
        | BackupError::File { .. }
        | BackupError::Open(OpenError::Database { .. } | OpenError::System(_)) => Exit::Away,
    }
}

fn shown_path(path: &Path) -> String {
    plain(&path.display().to_string())
}
