//! The program as a process: what it says and with which status it ends.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn stepwarden(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["INVENTORY_URL", "PAYMENT_URL", "SHIPPING_URL", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command
}

/// Runs to the end; status 2 and one line on stderr are what a mistake gives.
fn mistake(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!((said.lines().count(), said.starts_with("stepwarden: ")), (1, true), "{said}");
    said
}

/// A served instance, killed at the end of the test if it still runs.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(data: &Path) -> Self {
        let mut process = stepwarden(&["serve", "--port", "0", "--data", data.to_str().unwrap()]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("stepwarden: listening on http://").unwrap().split(',').next().unwrap().to_owned();
        Self { process, address }
    }

    fn post(&self, headers: &str, order: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = order.len();
        let head = format!(
            "POST /orders HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{order}").as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        stream
    }

    fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_taken_port_is_one_line_and_status_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = tempfile::tempdir().unwrap();
    let said = mistake(stepwarden(&["serve", "--port", &port]).current_dir(data.path()));
    assert_eq!(said, format!("stepwarden: port {port} is taken; choose another with --port\n"));
}

#[test]
fn a_data_directory_that_cannot_be_used_is_one_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let said = mistake(&mut stepwarden(&["serve", "--port", "0", "--data", file.to_str().unwrap()]));
    assert!(said.contains("cannot be written") && said.contains("file"), "{said}");
}

#[test]
fn a_data_directory_in_use_is_one_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let _first = Served::start(directory.path());
    let said = mistake(&mut stepwarden(&["serve", "--port", "0", "--data", directory.path().to_str().unwrap()]));
    assert!(said.contains("in use by another process"), "{said}");
}

#[test]
fn bad_service_urls_are_one_line_and_status_2() {
    let data = tempfile::tempdir().unwrap();
    let mut command = stepwarden(&["serve", "--port", "0"]);
    let said = mistake(command.current_dir(data.path()).env("PAYMENT_URL", "nonsense").env("SHIPPING_URL", "ftp://x"));
    assert!(said.contains("PAYMENT_URL") && said.contains("SHIPPING_URL"), "{said}");
    assert!(!said.contains("INVENTORY_URL"), "{said}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_wrong_option_is_one_line_and_status_2() {
    let said = mistake(&mut stepwarden(&["serve", "--supervise-every", "soon"]));
    assert!(said.contains("--supervise-every"), "{said}");
}

#[test]
fn help_and_version_end_with_status_0() {
    for (args, words) in [(["--help"], "Exit status"), (["--version"], env!("CARGO_PKG_VERSION"))] {
        let output = stepwarden(&args).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(words), "{args:?}");
    }
}

#[test]
fn a_stop_answers_whoever_waits_and_the_next_start_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Served::start(directory.path());
    let slow = r#"{"StandIn": {"inventory": {"SlowMs": 60000}}}"#;
    let waiting = first.post("prefer: wait=20\r\nidempotency-key: slow\r\n", slow);
    // Once its order is shown, the request that waits has been taken.
    while !answer(first.get("/orders?state=Processing")).contains("OrderID") {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let plain = answer(first.post("prefer: wait=20\r\nidempotency-key: plain\r\n", "{}"));
    assert!(plain.starts_with("HTTP/1.1 200 ") && plain.contains("Processed"), "{plain}");
    first.terminate();
    let told = answer(waiting);
    assert!(told.starts_with("HTTP/1.1 202 "), "accepted, and not finished: {told}");
    assert_eq!(first.process.wait().unwrap().code(), Some(0));

    let second = Served::start(directory.path());
    let again = answer(second.post("idempotency-key: plain\r\n", "{}"));
    assert!(again.contains(r#""ProcessState":"Processed""#), "{again}");
    let under_way = answer(second.post("idempotency-key: slow\r\n", slow));
    assert!(under_way.contains(r#""ProcessState":"P"#) && !under_way.contains("Processed"), "{under_way}");
}
