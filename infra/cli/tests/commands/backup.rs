//! backup and restore, as processes beside a server.

use std::fs;
use std::path::Path;

use crate::run::{Ended, HELD, Served, limited, program, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn back_up(served: &Served, to: &Path) -> Ended {
    run(program(&["backup", text(to), "--data", text(served.data.path())]), "")
}

#[test]
fn a_backup_of_a_running_server_is_restored_and_shown_by_a_paused_one() {
    let mut served = Served::start();
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backup = folder.path().join("backup");
    let (held, slow) = (served.settled(HELD), served.accepted(crate::run::SLOW));
    served.reach(&slow, "Processing");
    back_up(&served, &backup).with_status(0).shows(&["Backed up ", "transaction ", "checked."]);
    let after = served.settled("{}");
    served.kill();

    let args = ["restore", text(&backup), "--data", text(copy.path())];
    let restored = run(program(&args), "").with_status(0);
    restored.shows(&["its checksum is right", "1 orders under way", "--paused", "Stop the old server"]);
    run(program(&args), "").with_status(2).says(&["is there already: rename the directory"]);
    let served = Served::start_in(copy, &["--paused"]);
    served.run(&["get", &held]).with_status(0).shows(&["Error"]);
    served.run(&["get", &slow]).with_status(0).shows(&["Processing"]);
    served.run(&["get", &after]).with_status(3);
    run(program(&["doctor", "--data", text(served.data.path())]), "").shows(&["database: sound"]);
}

#[test]
fn both_say_as_json_what_they_did() {
    let served = Served::start();
    served.settled("{}");
    let folder = tempfile::tempdir().unwrap();
    let (backup, copy) = (folder.path().join("backup"), folder.path().join("copy"));
    let args = ["backup", text(&backup), "--data", text(served.data.path()), "-o", "json"];
    let manifest = run(program(&args), "").with_status(0).json();
    assert_eq!(manifest["Sha256"].as_str().unwrap().len(), 64);
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(backup.join("backup.json")).unwrap()).unwrap();
    assert_eq!(manifest, stored);
    let restored = run(program(&["restore", text(&backup), "--data", text(&copy), "-o", "json"]), "").with_status(0);
    let restored = restored.json();
    assert_eq!((&restored["Backup"], &restored["OrdersUnderWay"]), (&manifest, &0.into()));
}

#[test]
fn what_is_refused_is_status_2_what_is_damaged_1_and_what_is_given_up_5() {
    let served = Served::start();
    served.settled("{}");
    let folder = tempfile::tempdir().unwrap();
    let (backup, copy) = (folder.path().join("backup"), folder.path().join("copy"));
    let args = ["backup", text(&backup), "--data", text(served.data.path())];
    let given_up = run(limited("-f 16", &args), "").with_status(5);
    assert_eq!(given_up.stderr.lines().filter(|line| !line.ends_with(" MB")).count(), 1, "{given_up:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of it");
    back_up(&served, &backup).with_status(0);
    back_up(&served, &backup).with_status(2).says(&["exists: give another name"]);
    run(program(&["backup", text(&copy), "--data", text(folder.path())]), "").with_status(2).says(&["has no data"]);
    fs::write(backup.join("stepwarden.db"), "damaged").unwrap();
    let restored = run(program(&["restore", text(&backup), "--data", text(&copy)]), "").with_status(1);
    restored.says(&["is damaged", "checksum differs"]);
}
