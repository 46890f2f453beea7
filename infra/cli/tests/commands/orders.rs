//! submit, get, list, watch.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::run::{HELD, SLOW, Served, run};

#[test]
fn an_order_is_submitted_with_a_key_and_shown() {
    let served = Served::start();
    let file = served.data.path().join("order.json");
    std::fs::write(&file, r#"{"Item": "mug", "Total": 1.10}"#).unwrap();
    let submitted = served.run(&["submit", file.to_str().unwrap(), "--key", "k-1"]).with_status(0);
    submitted.shows(&["Order  ", "Key    k-1"]);
    let again = served.run(&["submit", file.to_str().unwrap(), "--key", "k-1"]).with_status(0);
    assert_eq!(submitted.stdout.split_whitespace().nth(1), again.stdout.split_whitespace().nth(1), "one order");
    let id = again.stdout.split_whitespace().nth(1).unwrap();
    served.run(&["get", id, "--wait"]).with_status(0).shows(&["Processed", "charge-payment", "submitted"]);
    let document = served.run(&["get", id, "--document"]).with_status(0);
    document.shows(&["\"Total\": 1.10"]);
    assert_eq!(served.run(&["get", id, "--document", "-o", "json"]).json()["Document"]["Item"], "mug");
}

#[test]
fn who_waits_sees_each_change_and_gets_the_order_as_one_document() {
    let served = Served::start();
    let args = ["submit", "--wait", "--correlation", "c-7", "--priority", "high", "-o", "json"];
    let ended = run(served.command(&args), r#"{"StandIn": {"payment": {"SlowMs": 300}}}"#).with_status(0);
    let task = ended.json();
    assert_eq!((task["ProcessState"].as_str(), task["Priority"].as_str()), (Some("Processed"), Some("high")));
    ended.says(&["with the key stepwarden-", "inventory done", "payment under way", "Processed"]);
    let id = task["OrderID"].as_str().unwrap();
    assert_eq!(served.run(&["get", id, "--document", "-o", "json"]).json()["CorrelationID"], "c-7");
}

#[test]
fn an_order_that_ends_otherwise_is_status_1_and_one_that_takes_too_long_7() {
    let served = Served::start();
    let declined = r#"{"StandIn": {"payment": {"Decline": "card_declined"}}}"#;
    run(served.command(&["submit", "--wait"]), declined).with_status(1).shows(&["Compensated", "card_declined"]);
    let late = run(served.command(&["submit", "--wait=1s"]), SLOW).with_status(7);
    late.shows(&["Processing"]).says(&["nothing is lost", "--wait=5m"]);
}

#[test]
fn orders_are_listed_by_what_is_asked_for() {
    let served = Served::start();
    let held = served.settled(HELD);
    for number in 0..4 {
        served.settled(&format!(r#"{{"Number": {number}, "CorrelationID": "c-{number}"}}"#));
    }
    served.run(&["list"]).with_status(0).shows(&["ORDER", &held, "compensation-failed: "]);
    let all = served.run(&["list", "--all", "-o", "json"]).with_status(0).lines();
    assert_eq!(all.len(), 5);
    assert_eq!(served.run(&["list", "--limit", "2", "-o", "json"]).lines().len(), 2);
    for (filter, count) in [
        (&["--state", "error"][..], 1),
        (&["--state", "Processed", "--since", "1h"], 4),
        (&["--correlation", "c-2"], 1),
        (&["--reason", "compensation-failed", "--step", "reserve-inventory"], 1),
        (&["--field", "/Number", "--value", "3"], 1),
        (&["--field", "Number"], 4),
        (&["--since", "2999-01-01T00:00:00Z"], 0),
    ] {
        let args = [&["list", "--all", "-o", "json"], filter].concat();
        assert_eq!(served.run(&args).with_status(0).lines().len(), count, "{filter:?}");
    }
    served.run(&["list", "--state", "Compensating"]).with_status(0).shows(&["No orders."]);
    let unknown = served.run(&["list", "--workflow", "ordre"]).with_status(0);
    unknown.shows(&["No orders."]).says(&["there is no workflow ordre, but order"]);
    let unknown = served.run(&["list", "--service", "paymant"]).with_status(0);
    unknown.shows(&["No orders."]).says(&["there is no service paymant, but inventory, payment, shipping"]);
    for known in [["--workflow", "order"], ["--service", "payment"]] {
        let listed = served.run(&["list", known[0], known[1], "--state", "Closed"]);
        assert!(!listed.stderr.contains("there is no"), "{}", listed.stderr);
    }
}

#[test]
fn orders_are_exported_whole_one_a_line() {
    let served = Served::start();
    let held = served.settled(HELD);
    for number in 0..101 {
        let id = served.accepted(&format!(r#"{{"Number": {number}, "Total": 1.10, "Cvc": "123"}}"#));
        // It is on a queue first, and then in the list.
        served.run(&["get", &id]).with_status(0);
    }
    let orders = served.run(&["export", "--since", "1h"]).with_status(0).lines();
    assert_eq!(orders.len(), 102, "more than a page");
    let first = orders.iter().find(|order| order["OrderID"] == *held).unwrap();
    assert_eq!(*first, served.run(&["get", &held, "-o", "json"]).json(), "as get shows it");
    assert!(first["Steps"][0]["Output"].is_object() && first["History"].as_array().unwrap().len() > 3, "{first}");
    assert_eq!(served.run(&["export", "--until", "1h"]).with_status(0).stdout, "");
    let documents = served.run(&["export", "--field", "/Number", "--value", "7", "--documents"]).with_status(0);
    documents.shows(&[r#""Document":{"#, "1.10", "[redacted]"]);
    assert_eq!(documents.lines().len(), 1);
}

#[test]
fn orders_are_watched_to_their_end() {
    let served = Served::start();
    let (held, slow) = (served.settled(HELD), served.accepted(r#"{"StandIn": {"shipping": {"SlowMs": 400}}}"#));
    let watched = served.run(&["watch", &slow]).with_status(0);
    watched.shows(&[&slow, "ship-order under way", "Processed"]);
    let lines = served.run(&["watch", &held, &slow, "-o", "json"]).with_status(1).lines();
    assert_eq!(lines.len(), 2, "one of each, as they are: {lines:?}");
    served.run(&["watch", "--state", "Error"]).with_status(1).shows(&[&held]);
    served.run(&["watch", "--correlation", "nobody"]).with_status(0).says(&["no order matches"]);
}

#[test]
fn a_filter_is_watched_until_what_matched_is_settled() {
    let served = Served::start();
    let slow = served.accepted(r#"{"StandIn": {"shipping": {"SlowMs": 700}}}"#);
    served.reach(&slow, "Processing");
    let watched = served.run(&["watch", "--state", "Processing"]).with_status(0);
    watched.shows(&["Processing", "Processed"]);
}

#[test]
fn a_document_that_is_none_is_told_before_anything_is_posted() {
    let served = Served::start();
    for (text, words) in
        [("[1]", "stdin is no order"), ("{", "stdin is no order"), (r#"{"CorrelationID": "x"}"#, "leave out")]
    {
        let refused = run(served.command(&["submit", "-", "--correlation", "c"]), text).with_status(2);
        refused.says(&[words]);
        assert_eq!(refused.stdout, "");
    }
    served.run(&["submit", "/nowhere/order.json"]).with_status(2).says(&["/nowhere/order.json cannot be read"]);
    assert_eq!(served.run(&["list", "-o", "json"]).stdout, "");
}

#[test]
fn who_reads_no_further_ends_the_command_without_a_word() {
    let served = Served::start();
    for number in 0..30 {
        served.accepted(&format!(r#"{{"Number": {number}}}"#));
    }
    let mut process = served.command(&["watch", "--follow", "--since", "1h"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // The reader is gone with the line.
    for number in 30..60 {
        served.accepted(&format!(r#"{{"Number": {number}}}"#));
        std::io::stdout().flush().unwrap();
    }
    let output = process.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(141), ""));
}
