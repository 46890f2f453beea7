//! The program as a process: what it says and with which status it ends.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        Self::start_with(data, &[])
    }

    fn start_with(data: &Path, args: &[&str]) -> Self {
        let mut command = stepwarden(&["serve", "--port", "0", "--data", data.to_str().unwrap()]);
        let mut process = command.args(args).spawn().unwrap();
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
            "POST /orders HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{order}").as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
            .unwrap();
        stream
    }

    fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
}

/// The first line on stderr that begins so.
fn said(process: &mut Child, words: &str) -> String {
    let lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.into_iter().find(|line| line.contains(words)).unwrap()
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
    assert_eq!(
        said,
        format!(
            "stepwarden: port {port} is taken; choose another with --port: commands then need --api http://localhost:PORT\n"
        )
    );
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
fn a_faulty_configuration_is_shown_as_check_shows_it() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("shop");
    std::fs::create_dir_all(folder.join("workflows")).unwrap();
    let settings = "[agents.payment]\nurl = \"http://pay.example\"\ncolour = \"red\"\n";
    std::fs::write(folder.join("stepwarden.toml"), settings).unwrap();
    let step = "[[step]]\nname = \"pay\"\nagent = \"bakery\"\n";
    std::fs::write(folder.join("workflows/shop.toml"), format!("name = \"shop\"\nversion = 1\n{step}")).unwrap();
    let serve = |folder: &str| {
        let mut command = stepwarden(&["serve", "--port", "0", "--config", folder, "--data", "data"]);
        command.current_dir(directory.path());
        command
    };
    let output = serve("shop").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let begins = [
        "shop/stepwarden.toml:2:7: agents.payment.url is not encrypted",
        "shop/stepwarden.toml:3:1: agents.payment.colour",
        "shop/workflows/shop.toml:5:9: ",
    ];
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), begins.len()), "{said}");
    assert!(said.lines().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{said}");
    assert!(!directory.path().join("data").exists(), "nothing was made");
    let said = mistake(&mut serve("no-such-folder"));
    assert!(said.contains("no-such-folder"), "{said}");
}

#[test]
fn a_wrong_option_is_one_line_and_status_2() {
    let said = mistake(&mut stepwarden(&["serve", "--supervise-every", "soon"]));
    assert!(said.contains("--supervise-every"), "{said}");
}

#[test]
fn help_and_version_end_with_status_0_or_8_if_they_cannot_be_written() {
    for (args, words) in [(["--help"], "Exit status"), (["--version"], env!("CARGO_PKG_VERSION"))] {
        let output = stepwarden(&args).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(words), "{args:?}");
        #[cfg(target_os = "linux")]
        {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            assert_eq!(
                stepwarden(&args).stdout(full).output().unwrap().status.code(),
                Some(8),
                "a full disk: {args:?}"
            );
        }
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
    let mut plain = String::from("HTTP/1.1 202 ");
    while plain.starts_with("HTTP/1.1 202 ") {
        plain = answer(first.post("prefer: wait=20\r\nidempotency-key: plain\r\n", "{}"));
    }
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

#[test]
fn an_order_that_needs_an_operator_is_a_line_on_the_terminal_whoever_supervises() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = Served::start_with(directory.path(), &["--supervisors", "3"]);
    let undone_by_nobody = r#"{"StandIn": {"payment": {"Decline": "card_declined"},
                               "inventory": {"Undo": {"Decline": "not_reserved"}}}}"#;
    let failed = answer(served.post("prefer: wait=20\r\n", undone_by_nobody));
    assert!(failed.contains(r#""ProcessState":"Error""#), "{failed}");
    let id = failed.split(r#""OrderID":""#).nth(1).unwrap().split('"').next().unwrap();
    let alert = said(&mut served.process, "ALERT");
    for words in [id, "at reserve-inventory", "(compensation-failed)", "not_reserved", "stepwarden resubmit"] {
        assert!(alert.contains(words), "{words} in: {alert}");
    }
}

#[test]
fn every_service_is_listed_before_anything_failed() {
    let directory = tempfile::tempdir().unwrap();
    let listed = answer(Served::start(directory.path()).get("/services"));
    for service in ["inventory", "payment", "shipping"] {
        assert!(listed.contains(&format!(r#"{{"Service":"{service}","State":"Closed"}}"#)), "{listed}");
    }
}

#[test]
fn a_reply_channel_gets_the_status_messages_of_orders_that_name_it_and_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let shop = TcpListener::bind("127.0.0.1:0").unwrap();
    let channel = format!("shop=http://{}/replies", shop.local_addr().unwrap());
    let served = Served::start_with(directory.path(), &["--reply-channel", &channel]);
    let refused = answer(served.post("", r#"{"ReplyChannel": "shops"}"#));
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("ReplyChannel"), "{refused}");
    assert!(!refused.contains(r#"shop""#), "the known names are nobody's business: {refused}");

    let accepted = answer(served.post("", r#"{"ReplyChannel": "shop", "CorrelationID": "c-7"}"#));
    assert!(accepted.starts_with("HTTP/1.1 202 "), "{accepted}");
    let mut told = Vec::new();
    while !told.iter().any(|event: &String| event.contains("OrderProcessed")) {
        told.push(taken(&within_20_s(&shop)));
    }
    for event in &told {
        assert!(event.contains(r#""specversion":"1.0""#) && event.contains(r#""CorrelationID":"c-7""#), "{event}");
    }
}

#[test]
fn orders_of_one_cause_make_one_alert_for_a_sink_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let team = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = directory.path().join("shop");
    std::fs::create_dir(&folder).unwrap();
    let sink = format!("[alerts.team]\nslack = \"http://{}/team\"\n", team.local_addr().unwrap());
    std::fs::write(folder.join("stepwarden.toml"), sink).unwrap();
    let held = r#"{"StandIn": {"payment": {"Decline": "no"}, "inventory": {"Undo": {"Decline": "no"}}}}"#;
    let served = Served::start_with(directory.path(), &["--config", folder.to_str().unwrap()]);
    for _ in 0..5 {
        assert!(answer(served.post("", held)).starts_with("HTTP/1.1 202 "));
    }
    let told = taken(&within_20_s(&team));
    assert!(told.contains("Alert: order/compensation-failed/reserve-inventory"), "{told}");
    let output = stepwarden(&["alerts", "--api", &format!("http://{}", served.address)]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), said.lines().filter(|line| line.starts_with("order/")).count()), (Some(0), 2));
    assert!(said.contains("To do: Remove the cause at the service, then resubmit"), "{said}");
}

/// The next connection; a test that waits for one in vain shall fail, not hang.
fn within_20_s(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    for _ in 0..2_000 {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            return stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody connected");
}

/// The request on a connection, answered 204; the connection is closed, so that the next comes on another.
fn taken(mut stream: &TcpStream) -> String {
    let (mut lines, mut length) = (BufReader::new(stream), 0);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn two_reply_channels_of_one_name_are_one_line_and_status_2() {
    let data = tempfile::tempdir().unwrap();
    let mut command =
        stepwarden(&["serve", "--port", "0", "--reply-channel", "a=http://x", "--reply-channel", "a=http://y"]);
    assert_eq!(mistake(command.current_dir(data.path())), "stepwarden: --reply-channel a is given twice\n");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn an_outage_that_its_orders_do_not_fit_into_is_one_line_and_status_2() {
    let said = mistake(&mut stepwarden(&["outage", "--orders", "100", "--rate", "10", "--down", "5s"]));
    assert!(said.contains("--orders 100 at --rate 10 take 10000 ms"), "{said}");
}

#[test]
fn a_small_outage_meets_every_bar_and_says_so() {
    let output = stepwarden(&["outage", "--orders", "60", "--down", "4s", "--normal", "1s"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for (what, value) in [
        ("failure counts spent", "0 ok"),
        ("orders lost", "0 of 75 ok"),
        ("effects not exactly once", "0 ok"),
        ("busiest second after recovery", "to 1 ok"),
        ("every limit was met", ""),
    ] {
        let row = said.lines().find(|line| line.starts_with(what)).unwrap_or_default();
        let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(row.starts_with(what) && row.contains(value), "{what}: {said}");
    }
    for phase in ["outage", "recovery", "naive"] {
        assert!(said.contains(&format!(" s  {phase}")), "{phase} is shown live: {said}");
    }
}
