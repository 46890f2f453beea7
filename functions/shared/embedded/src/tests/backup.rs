//! Backups of a directory in use, and directories made of them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use domain::time::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{open, options, other_program, submit};
use crate::backup::with_limit;
use crate::directory::taken_at;
use crate::{
    BackupError, Engine, Manifest, OpenError, Options, Progress, Restored, Stage, Watch, back_up, check, restore,
};

const DATABASE: &str = "stepwarden.db";
const LEFT: &str = ".stepwarden-backup.part";

/// A folder with a running engine's data, and room for backups beside it.
struct Folder {
    folder: TempDir,
    engine: Engine,
}

impl Folder {
    /// The orders are in the log alone.
    async fn with(orders: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(&folder.path().join("data"));
        submit(&engine, 0..orders).await;
        Self { folder, engine }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn back_up(&self, name: &str) -> Result<Manifest, BackupError> {
        self.back_up_while(name, |_| true)
    }

    fn back_up_while(&self, name: &str, watch: impl FnMut(Progress) -> bool) -> Result<Manifest, BackupError> {
        watched(watch, |watch| back_up(&self.at("data"), &self.at(name), Timestamp::default(), watch))
    }

    /// All that is beside the data.
    fn left(&self) -> Vec<String> {
        let names =
            fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "data").collect()
    }
}

/// Works while `watch` says so.
fn watched<T>(mut watch: impl FnMut(Progress) -> bool, work: impl FnOnce(Watch<'_>) -> T) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let show = &mut |progress| flag.store(!watch(progress), Relaxed);
    work(Watch { show, stop: &stop })
}

fn restored(source: &Path, directory: &Path) -> Result<Restored, BackupError> {
    watched(|_| true, |watch| restore(source, directory, watch))
}

/// Another program commits a transaction of this many bytes.
fn write(connection: &Connection, bytes: usize) {
    let sql = "UPDATE transactions SET number = number + 1; INSERT INTO events (event_id, body) VALUES ('e', zeroblob(";
    connection.execute_batch(&format!("BEGIN; {sql}{bytes})); COMMIT")).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_backup_of_a_directory_in_use_goes_on_in_another_one_as_if_it_had_been_killed_then() {
    let running = Folder::with(3).await;
    let manifest = running.back_up("backup").unwrap();
    assert_eq!((manifest.transaction, running.left()), (3, vec!["backup".to_owned()]));
    submit(&running.engine, 3..5).await;

    let copy = running.at("copy");
    let restored = restored(&running.at("backup"), &copy).unwrap();
    assert_eq!((restored.transaction, restored.under_way, restored.manifest), (3, 3, Some(manifest)));
    assert_eq!(check(&copy).unwrap().loss, None);
    let modes = [copy.clone(), copy.join(DATABASE), running.at("backup"), running.at("backup/stepwarden.db")];
    assert_eq!(modes.map(|path| mode(&path)), [0o700, 0o600, 0o700, 0o600]);
    assert_eq!(mode(&running.at("backup/backup.json")), 0o600);
    let engine = open(&copy);
    assert_eq!(engine.recover().await.unwrap().submissions, 3);
    submit(&engine, 3..4).await;
    drop(engine);

    // A loss of the restored directory is told from then on.
    for file in [DATABASE, "stepwarden.db-wal"] {
        fs::remove_file(copy.join(file)).unwrap();
    }
    assert!(matches!(Engine::open(&copy, options()), Err(OpenError::Lost { .. })));
}

#[tokio::test]
async fn a_backup_is_of_one_moment_whatever_is_written_meanwhile_and_keeps_the_log_only_for_the_changes() {
    let running = Folder::with(2).await;
    let (other, mut before) = (other_program(&running.at("data")), 2);
    other.busy_timeout(Duration::ZERO).unwrap();
    // More than one block, so that the draft has pages of several moments.
    let insert = "INSERT INTO events (event_id, body) VALUES ('e', zeroblob(2000000)); PRAGMA wal_checkpoint(TRUNCATE)";
    other.execute_batch(insert).unwrap();
    let mut stages = Vec::new();
    let manifest = running.back_up_while("backup", |progress| {
        stages.push(progress.stage);
        write(&other, 10);
        before += u64::from(progress.stage == Stage::Copy);
        let is_busy = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)).unwrap();
        assert_eq!(is_busy, progress.stage == Stage::Changes, "only the last of the copying keeps the log");
        true
    });
    assert_eq!(manifest.unwrap().transaction, before);
    assert!(before > 3, "several blocks");
    stages.dedup();
    assert_eq!(stages, [Stage::Copy, Stage::Changes, Stage::Checksum, Stage::Check]);
    assert_eq!(restored(&running.at("backup"), &running.at("copy")).unwrap().transaction, before);
}

#[tokio::test]
async fn what_is_gone_while_a_backup_copies_is_in_no_page_of_it() {
    let running = Folder::with(1).await;
    let other = other_program(&running.at("data"));
    other.execute_batch("PRAGMA secure_delete = ON").unwrap();
    let secret = "what the draft still has";
    // The draft has it in its first block, and there is a second one.
    other.execute("INSERT INTO events (event_id, body) VALUES ('e', ?1)", [secret]).unwrap();
    other.execute("INSERT INTO events (event_id, body) VALUES ('f', zeroblob(2000000))", []).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let has_secret =
        |file: PathBuf| fs::read(file).unwrap().windows(secret.len()).any(|text| text == secret.as_bytes());
    let mut was_copied = false;
    let manifest = running.back_up_while("backup", |progress| {
        if progress.stage == Stage::Copy && progress.done > 0 && !was_copied {
            was_copied = has_secret(running.at(LEFT).join(DATABASE));
            other.execute_batch("DELETE FROM events").unwrap();
        }
        true
    });
    assert_eq!((manifest.is_ok(), was_copied), (true, true));
    assert!(!has_secret(running.at("backup").join(DATABASE)));
}

#[tokio::test]
async fn whoever_stops_a_backup_leaves_nothing_and_what_a_kill_left_goes_with_the_next_one() {
    let running = Folder::with(1).await;
    for stage in [Stage::Copy, Stage::Changes, Stage::Checksum, Stage::Check] {
        let stopped = running.back_up_while("backup", |progress| progress.stage != stage).unwrap_err();
        assert!(matches!(stopped, BackupError::Stopped), "{stopped}");
        assert_eq!(running.left(), Vec::<String>::new());
    }
    fs::create_dir(running.at(LEFT)).unwrap();
    for file in [DATABASE, "backup.json", "other"] {
        fs::write(running.at(LEFT).join(file), "left by a kill").unwrap();
    }
    let lock = File::open(running.at(LEFT)).unwrap();
    lock.lock().unwrap();
    assert!(matches!(running.back_up("backup"), Err(BackupError::UnderWay(_))));
    drop(lock);
    running.back_up("backup").unwrap();
    assert_eq!(running.left(), ["backup"]);
    assert_eq!(fs::read_dir(running.at("backup")).unwrap().count(), 2);
}

#[tokio::test]
async fn a_server_that_starts_gets_the_log_from_a_backup() {
    let running = Folder::with(1).await;
    let directory = running.at("data");
    let Folder { folder, engine } = running;
    // Directories with a log, which no process has.
    let stages = [Stage::Copy, Stage::Changes].map(|stage| (stage, folder.path().join(format!("{stage:?}"))));
    for (_, killed) in &stages {
        fs::create_dir(killed).unwrap();
        for file in [DATABASE, "stepwarden.db-wal", "stepwarden.transactions"] {
            fs::copy(directory.join(file), killed.join(file)).unwrap();
        }
    }
    drop(engine);
    for (stage, killed) in stages {
        let mut starting = None;
        let start = |progress: Progress| {
            if progress.stage == stage {
                starting.get_or_insert_with(|| {
                    let before = taken_at(&killed);
                    let directory = killed.clone();
                    let starting = thread::spawn(move || Engine::open(&directory, Options::default()).map(drop));
                    while taken_at(&killed) == before {
                        thread::yield_now();
                    }
                    starting
                });
            }
            true
        };
        let backup = folder.path().join("backup");
        let given_up = watched(start, |watch| back_up(&killed, &backup, Timestamp::default(), watch));
        assert!(matches!(given_up, Err(BackupError::ServerStarted)), "{stage:?}: {given_up:?}");
        starting.unwrap().join().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_backup_gives_up_before_the_log_or_the_copy_fills_a_disk() {
    let running = Folder::with(1).await;
    let other = other_program(&running.at("data"));
    let mut most = 0;
    let write = |progress: Progress| {
        most = progress.all;
        write(&other, usize::try_from(most).unwrap() + 1);
        true
    };
    let (data, backup) = (running.at("data"), running.at("backup"));
    let grown = watched(write, |watch| with_limit(&data, &backup, Timestamp::default(), 0, watch));
    assert!(matches!(grown, Err(BackupError::LogGrew(bytes)) if bytes > most), "{grown:?}");
    assert_eq!(running.left(), Vec::<String>::new());
    let full = crate::backup::has_room(running.folder.path(), u64::MAX / 2).unwrap_err().to_string();
    assert!(full.contains("there is no room in") && full.contains("use another disk"), "{full}");
}

#[tokio::test]
async fn a_backup_is_refused_where_it_has_no_place_or_nothing_to_copy() {
    let running = Folder::with(1).await;
    fs::create_dir(running.at("empty")).unwrap();
    assert!(matches!(running.back_up("empty"), Err(BackupError::Exists(_))));
    assert!(matches!(running.back_up("missing/backup"), Err(BackupError::NoPlace(_))));
    assert!(matches!(running.back_up(".."), Err(BackupError::Exists(_))));
    let (empty, backup) = (running.at("empty"), running.at("backup"));
    let nothing = watched(|_| true, |watch| back_up(&empty, &backup, Timestamp::default(), watch));
    assert!(matches!(nothing, Err(BackupError::NoData(_))));
    assert_eq!(running.left(), ["empty"]);
    other_program(&running.at("data")).pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(running.back_up("backup"), Err(BackupError::Open(OpenError::Newer { found: 99, .. }))));
}

#[tokio::test]
async fn f66_data_that_is_damaged_or_lacks_transactions_is_not_backed_up() {
    let running = Folder::with(20).await;
    let data = running.at("data");
    other_program(&data).execute("INSERT INTO jobs VALUES ('its index differs', 1, '{}')", []).unwrap();
    running.engine.close().await.unwrap();
    let number = fs::read_to_string(data.join("stepwarden.transactions")).unwrap();
    fs::write(data.join("stepwarden.transactions"), number.replace("20", "25")).unwrap();
    let lost = running.back_up("backup").unwrap_err();
    assert!(lost.to_string().contains("5 committed transactions are missing"), "{lost}");
    fs::write(data.join("stepwarden.transactions"), number).unwrap();
    let sound = fs::read(data.join(DATABASE)).unwrap();
    let mut other_index = sound.clone();
    let at = sound.windows(17).position(|text| text == b"its index differs").unwrap();
    other_index[at] = b'I';
    let mut no_page = sound.clone();
    no_page[sound.len() - 4_096..].fill(7);
    for damaged in [other_index, no_page] {
        fs::write(data.join(DATABASE), damaged).unwrap();
        let damaged = running.back_up("backup").unwrap_err();
        assert!(matches!(&damaged, BackupError::Damaged { file, .. } if file.starts_with(&data)), "{damaged}");
    }
    assert_eq!(running.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_backup_that_is_damaged_is_not_restored_and_the_directory_stays_without_data() {
    let running = Folder::with(20).await;
    running.back_up("backup").unwrap();
    let database = running.at("backup/stepwarden.db");
    let sound = fs::read(&database).unwrap();
    let mut flipped = sound.clone();
    let at = sound.windows(6).position(|text| text == b"\"Item\"").unwrap();
    flipped[at + 1] = b'X';
    for (damaged, words) in [(&flipped[..], "checksum"), (&sound[..sound.len() - 1], "checksum"), (&[], "checksum")] {
        fs::write(&database, damaged).unwrap();
        let refused = restored(&running.at("backup"), &running.at("copy")).unwrap_err();
        assert!(matches!(refused, BackupError::Damaged { .. }) && refused.to_string().contains(words), "{refused}");
    }
    // The same without a manifest: what SQLite sees.
    let bare = running.at("bare.db");
    for (damaged, words) in
        [(&sound[..sound.len() - 5_000], "damaged"), (b"not a database at all", "damaged"), (&[], "has no orders")]
    {
        fs::write(&bare, damaged).unwrap();
        let refused = restored(&bare, &running.at("copy")).unwrap_err().to_string();
        assert!(refused.contains(words) && refused.contains("bare.db"), "{refused}");
    }
    fs::write(&bare, &sound).unwrap();
    let restored = restored(&bare, &running.at("copy")).unwrap();
    assert_eq!((restored.transaction, restored.manifest), (20, None));
}

#[tokio::test]
async fn only_a_backup_is_restored_and_only_where_no_data_is() {
    let running = Folder::with(1).await;
    running.back_up("backup").unwrap();
    for (source, words) in [
        ("data", "has no readable backup.json"),
        ("data/stepwarden.db", "has a write-ahead log beside it"),
        ("nowhere", "has no database"),
    ] {
        let refused = restored(&running.at(source), &running.at("copy")).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    // Each of these would be read without an end.
    let manifest = running.at("backup/backup.json");
    let good = fs::read(&manifest).unwrap();
    for made in ["device", "pipe", "large"] {
        fs::remove_file(&manifest).unwrap();
        match made {
            "device" => std::os::unix::fs::symlink("/dev/zero", &manifest).unwrap(),
            "pipe" => {
                use rustix::fs::{CWD, FileType, Mode, mknodat};
                mknodat(CWD, &manifest, FileType::Fifo, Mode::RUSR, 0).unwrap();
            }
            _ => fs::write(&manifest, [good.clone(), vec![b' '; 64 * 1024]].concat()).unwrap(),
        }
        let refused = restored(&running.at("backup"), &running.at("copy")).unwrap_err().to_string();
        assert!(refused.contains("has no readable backup.json"), "{made}: {refused}");
    }
    fs::remove_file(&manifest).unwrap();
    fs::write(&manifest, good).unwrap();
    for file in [DATABASE, "stepwarden.db-wal", "stepwarden.transactions"] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(file), "").unwrap();
        let refused = restored(&running.at("backup"), directory.path()).unwrap_err();
        assert!(matches!(&refused, BackupError::HasData(_)) && refused.to_string().contains(file), "{refused}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
    let taken = tempfile::tempdir().unwrap();
    let lock = File::create(taken.path().join("stepwarden.lock")).unwrap();
    lock.lock().unwrap();
    let refused = restored(&running.at("backup"), taken.path());
    assert!(matches!(refused, Err(BackupError::Open(OpenError::Locked { .. }))));
    let half = tempfile::tempdir().unwrap();
    let part = half.path().join("stepwarden.part");
    fs::write(&part, "").unwrap();
    let refused = Engine::open(half.path(), options()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("restore the backup again"), "no empty database in the place of half a one: {refused}");
    assert!(!half.path().join(DATABASE).exists() && restored(&running.at("backup"), half.path()).is_ok());
    let newer = Connection::open(running.at("newer.db")).unwrap();
    newer.execute_batch("PRAGMA user_version = 99; CREATE TABLE tasks (watch); CREATE TABLE messages (x)").unwrap();
    let refused = restored(&running.at("newer.db"), &running.at("copy"));
    assert!(matches!(refused, Err(BackupError::Open(OpenError::Newer { found: 99, .. }))), "{refused:?}");
}
