//! A data directory that lost something, or may not be written.

use std::fs;
use std::mem::replace;

use crate::run::{Served, program, run};

#[test]
fn f66_a_lost_log_is_red_for_the_doctor_and_refused_by_serve_until_the_loss_is_accepted() {
    let mut served = Served::start();
    let id = served.settled("{}");
    served.kill();
    let data = replace(&mut served.data, tempfile::tempdir().unwrap());
    fs::remove_file(data.path().join("stepwarden.db-wal")).unwrap();
    let path = data.path().to_str().unwrap().to_owned();
    let missing = "committed transactions are missing: the database ends at transaction 0 of ";
    let looked = run(program(&["doctor", "--data", &path]), "").with_status(1);
    looked.shows(&["wrong", missing, "restore a backup"]);
    let refused = run(program(&["serve", "--port", "0", "--data", &path]), "").with_status(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    refused.says(&[missing, "--accept-loss"]);

    let mut served = Served::start_in(data, &["--accept-loss"]);
    served.run(&["get", &id]).with_status(3);
    let id = served.settled("{}");
    served.kill();
    let data = replace(&mut served.data, tempfile::tempdir().unwrap());
    let served = Served::start_in(data, &[]);
    served.run(&["get", &id]).with_status(0);
}
