//! A data directory that lost something, or may not be written.

use std::fs;
use std::io::{Read, Write};
use std::mem::replace;
use std::net::TcpStream;

use tempfile::TempDir;

use crate::run::{Served, program, run};

const LOG: &str = "stepwarden.db-wal";

/// What a killed process left, with an order in its log. A process that rests for a second leaves an empty log.
fn killed_with_a_log() -> (TempDir, String) {
    loop {
        let mut served = Served::start();
        let id = served.settled("{}");
        served.kill();
        let data = replace(&mut served.data, tempfile::tempdir().unwrap());
        if fs::metadata(data.path().join(LOG)).unwrap().len() > 0 {
            return (data, id);
        }
    }
}

#[test]
fn f66_a_lost_log_is_red_for_the_doctor_and_refused_by_serve_until_the_loss_is_accepted() {
    let (data, id) = killed_with_a_log();
    fs::remove_file(data.path().join(LOG)).unwrap();
    let path = data.path().to_str().unwrap().to_owned();
    let missing = "committed transactions are missing: the database ends at transaction ";
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

/// The status line of an answer, and its body.
fn asked(served: &Served, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(served.url.trim_start_matches("http://")).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn f68_on_a_full_disk_the_process_is_alive_and_not_ready_and_what_is_stored_can_be_read() {
    let served = Served::start_with_small_files();
    let id = served.settled("{}");
    let large = format!(r#"{{"Item": "{}"}}"#, "x".repeat(30_000));
    // Neither its log nor its database can grow.
    let refused = |_| {
        let is_refused = run(served.command(&["submit", "-", "--timeout", "2s"]), &large).status != 0;
        Some(asked(&served, "/ready")).filter(|(status, _)| is_refused && status.contains(" 503 "))
    };
    let (_, body) = (0..100).find_map(refused).unwrap();
    assert!(body.contains("not ready: "), "{body}");
    assert!(asked(&served, "/health").0.contains(" 200 "));
    served.run(&["get", &id]).with_status(0);
    served.run(&["list"]).with_status(0);
    run(program(&["doctor", "--data", served.data.path().to_str().unwrap()]), "").shows(&["database: sound"]);
}

#[test]
fn a_paused_server_shows_its_data_and_carries_no_order_on() {
    let mut served = Served::start();
    let before = served.settled("{}");
    served.kill();
    let data = replace(&mut served.data, tempfile::tempdir().unwrap());
    let mut served = Served::start_in(data, &["--paused"]);
    served.run(&["get", &before]).with_status(0);
    let kept = served.accepted("{}");
    served.run(&["doctor"]).with_status(1).shows(&["paused: no order goes on", "start it without --paused"]);
    served.run(&["overview"]).with_status(0).shows(&["The server is paused"]);
    let (status, body) = asked(&served, "/ready");
    assert!(status.contains(" 503 ") && body.contains("not ready: paused"), "{status} {body}");
    served.run(&["get", &kept]).with_status(3);
    served.kill();
    let data = replace(&mut served.data, tempfile::tempdir().unwrap());
    Served::start_in(data, &[]).reach(&kept, "Processed");
}
