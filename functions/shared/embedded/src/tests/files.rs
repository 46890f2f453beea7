//! What is in the data directory, and who may read it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use domain::json::Json;
use domain::ports::{HasStore, Store};

use super::{open, order, submit, task};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_reads_what_the_engine_creates() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/data");
    let engine = open(&directory);
    submit(&engine, 0..1).await;
    engine.ready().await.unwrap();
    let files = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let modes: BTreeMap<String, u32> =
        files.map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), mode(&file))).collect();
    for name in ["stepwarden.db", "stepwarden.db-wal", "stepwarden.db-shm", "stepwarden.lock"] {
        assert!(modes.contains_key(name), "{modes:?}");
    }
    assert!(modes.values().all(|mode| *mode == 0o600), "{modes:?}");
    assert_eq!((mode(&directory), mode(directory.parent().unwrap())), (0o700, 0o700));
}

#[tokio::test]
async fn a_directory_and_a_database_that_are_there_keep_their_modes() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o750)).unwrap();
    let database = directory.path().join("stepwarden.db");
    fs::write(&database, "").unwrap();
    fs::set_permissions(&database, Permissions::from_mode(0o640)).unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..1).await;
    let wal = directory.path().join("stepwarden.db-wal");
    assert_eq!([directory.path(), &database, &wal].map(mode), [0o750, 0o640, 0o640]);
}

#[tokio::test]
async fn a_page_ends_after_half_a_mib_of_tasks_and_the_pages_have_all() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for n in 0..20 {
        let order = order(n);
        let mut task = task(&order, 16);
        task.steps[0].output =
            Some(Json::document(format!(r#"{{"a":"{n}{}"}}"#, "x".repeat(100_000)).as_bytes()).unwrap());
        engine.store().insert(order.into(), task.into()).await.unwrap();
    }
    let (mut lengths, mut seen, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = engine.store().list(None, after.as_deref(), 100).await.unwrap();
        lengths.push(page.tasks.len());
        seen.extend(page.tasks.iter().map(|task| task.order_id));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!((lengths, seen.len()), (vec![6, 6, 6, 2], 20));
}
