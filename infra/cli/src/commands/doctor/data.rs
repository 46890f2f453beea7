//! A data directory of `stepwarden serve`: is it there, who has it, is there room, is the database sound?

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use embedded::{Checked, OpenError};
use rustix::fs::statvfs;

use super::finding::Finding;
use crate::one_line;

const LOCK: &str = "stepwarden.lock";
/// Below this the next orders may find no room.
const FREE_MB_WARNING: u64 = 1_024;
const FREE_MB_WRONG: u64 = 64;

/// All checks of a directory.
pub(super) fn look(directory: &Path) -> Vec<Finding> {
    if !directory.is_dir() {
        let found = format!("{} is no directory", directory.display());
        return vec![Finding::wrong("directory", found, "give the directory that `stepwarden serve --data` has")];
    }
    let mut findings =
        vec![Finding::ok("directory", directory.display().to_string()), room(directory), owner(directory)];
    findings.extend(engine(directory));
    findings
}

/// The engine's check of its database, as findings of the doctor.
fn engine(directory: &Path) -> [Finding; 2] {
    let checked = embedded::check(directory);
    let log_bytes = checked.as_ref().map_or(0, |checked| checked.log_bytes);
    [database(checked), log(log_bytes)]
}

fn log(bytes: u64) -> Finding {
    let found = format!("{} MB", bytes / (1024 * 1024));
    let to_do = "end the program that reads the database, such as `sqlite3` or a backup: it keeps the log from being \
                 emptied. Where `stepwarden serve` does not run, its next start empties the log";
    if bytes > embedded::LOG_BYTES_MAX {
        Finding::warning("write-ahead log", found, to_do)
    } else {
        Finding::ok("write-ahead log", found)
    }
}

fn database(checked: Result<Checked, OpenError>) -> Finding {
    const CHECK: &str = "database";
    const RESTORE: &str =
        "stop `stepwarden serve`, keep a copy of the directory, and restore the database from a backup";
    match checked {
        Ok(Checked { loss: Some(loss), .. }) => Finding::wrong(
            CHECK,
            loss.to_string(),
            "keep a copy of the directory; then restore a backup, or go on without them: `stepwarden serve --accept-loss`",
        ),
        Ok(checked) if !checked.faults.is_empty() => Finding::wrong(CHECK, checked.faults.join("; "), RESTORE),
        Ok(checked) if checked.is_older => Finding::ok(
            CHECK,
            format!("sound; schema version {} is brought up to date at the next start", checked.schema),
        ),
        Ok(checked) => Finding::ok(CHECK, format!("sound, schema version {}", checked.schema)),
        Err(error @ OpenError::Newer { .. }) => {
            Finding::wrong(CHECK, one_line(&error), "use the program that wrote it, or a newer one")
        }
        Err(error) => Finding::wrong(CHECK, one_line(&error), RESTORE),
    }
}

fn room(directory: &Path) -> Finding {
    let stat = match statvfs(directory) {
        Ok(stat) => stat,
        Err(error) => return Finding::skipped("disk", error.to_string()),
    };
    judge_room(stat.f_bavail.saturating_mul(stat.f_frsize) / (1024 * 1024))
}

fn judge_room(free_mb: u64) -> Finding {
    let found = format!("{free_mb} MB free");
    let to_do = "make room: an order that cannot be written is not accepted";
    match free_mb {
        0..FREE_MB_WRONG => Finding::wrong("disk", found, to_do),
        FREE_MB_WRONG..FREE_MB_WARNING => Finding::warning("disk", found, to_do),
        _ => Finding::ok("disk", found),
    }
}

/// Who has the directory. One process has it at a time; it is fine that nobody has it.
fn owner(directory: &Path) -> Finding {
    let path = directory.join(LOCK);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::ok("lock", "nobody ever had this directory");
        }
        Err(error) => return Finding::skipped("lock", format!("{}: {error}", path.display())),
    };
    // A shared lock, let go of at once: several doctors do not get in each other's way.
    match file.try_lock_shared() {
        Ok(()) => Finding::ok("lock", "nobody has it at the moment"),
        Err(TryLockError::WouldBlock) => {
            let who = holder(&file).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            Finding::ok("lock", format!("held by {who}"))
        }
        Err(TryLockError::Error(error)) => Finding::skipped("lock", error.to_string()),
    }
}

/// The process that holds a lock on a file, where the system tells (`/proc/locks`).
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, inode))
}

/// The process of a line such as `3: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF`, if it is about this file.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.iter().position(|word| word.split(':').count() == 3)?;
    let of_file = words.get(place)?.rsplit(':').next()?.parse::<u64>().ok()? == inode;
    let pid = words.get(place.checked_sub(1)?)?.parse().ok();
    pid.filter(|_| of_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    fn found(directory: &Path, check: &str) -> Finding {
        let all = look(directory);
        all.into_iter().find(|finding| finding.check == check).unwrap()
    }

    #[test]
    fn a_directory_that_is_not_there_is_all_there_is_to_say() {
        let directory = tempfile::tempdir().unwrap();
        let findings = look(&directory.path().join("gone"));
        assert_eq!((findings.len(), findings[0].state), (1, State::Wrong));
    }

    #[test]
    fn a_disk_with_less_than_1_gib_is_a_warning_and_with_less_than_64_mib_wrong() {
        let of = [0, 63, 64, 1_023, 1_024].map(|free_mb| judge_room(free_mb).state);
        assert_eq!(of, [State::Wrong, State::Wrong, State::Warning, State::Warning, State::Ok]);
        let directory = tempfile::tempdir().unwrap();
        assert!(found(directory.path(), "disk").found.ends_with(" MB free"));
    }

    #[test]
    fn the_holder_of_the_lock_is_named() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(found(directory.path(), "lock").found, "nobody ever had this directory");
        let lock = File::create(directory.path().join(LOCK)).unwrap();
        assert_eq!(found(directory.path(), "lock").found, "nobody has it at the moment");
        lock.try_lock().unwrap();
        let held = found(directory.path(), "lock");
        assert!(held.state == State::Ok && held.found.starts_with("held by"), "{held:?}");
        if Path::new("/proc/locks").exists() {
            assert_eq!(held.found, format!("held by process {}", std::process::id()));
        }
    }

    #[test]
    fn a_line_about_another_file_names_nobody() {
        let line = "3: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF";
        assert_eq!((holder_in(line, 131), holder_in(line, 132)), (Some(4242), None));
        assert_eq!(holder_in("", 131), None);
        assert_eq!(holder_in("3: -> FLOCK ADVISORY WRITE x fe:00:131 0 EOF", 131), None);
    }
}
