//! A data directory that lost something, or may not be written.

use std::fs;
use std::io::{Read, Write};
use std::mem::replace;
use std::net::TcpStream;

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
    let is_refused = |_| run(served.command(&["submit", "-", "--timeout", "2s"]), &large).status != 0;
    assert!((0..100).any(is_refused), "its log cannot grow");
    let (status, body) = asked(&served, "/ready");
    assert!(status.contains(" 503 ") && body.contains("not ready: "), "{status} {body}");
    assert!(asked(&served, "/health").0.contains(" 200 "));
    served.run(&["get", &id]).with_status(0);
    served.run(&["list"]).with_status(0);
    run(program(&["doctor", "--data", served.data.path().to_str().unwrap()]), "").shows(&["database: sound"]);
}
