//! The end of an order's ID in place of the whole.

use crate::run::{HELD, Served, program, run};
use crate::stub::{Asked, Stub, answer};

const ONE: &str = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
const OTHER: &str = "01934b2e-1c5a-7d3f-8a21-5f0c0000e011";

/// An API whose newest orders are the one and many others, with the other one in `Error`.
fn orders(asked: &Asked) -> Option<String> {
    let order = |id: &str, state: &str| {
        format!(
            r#"{{"OrderID": "{id}", "Version": 2, "ProcessState": "{state}", "Steps": [], "History": [],
                "Workflow": "order", "WorkflowVersion": 1, "Priority": "normal", "Actions": [],
                "Situation": {{"Head": "", "Waits": false}}}}"#
        )
    };
    let list = |orders: &[String]| format!(r#"{{"Orders": [{}], "NextCursor": "c"}}"#, orders.join(","));
    let body = match asked.target.as_str() {
        target if target.starts_with("/orders?state=Error") => list(&[order(OTHER, "Error")]),
        target if target.starts_with("/orders?") => list(&[order(ONE, "Processed")]),
        _ => order(ONE, "Processed"),
    };
    answer("200 OK", "", &body)
}

#[test]
fn every_command_about_an_order_takes_the_end_of_its_id() {
    let served = Served::start();
    let held = served.settled(HELD);
    let declined = served.settled(r#"{"StandIn": {"payment": {"Decline": "card_declined"}}}"#);
    let (end, other) = (&held[28..], &declined[24..]);
    served.run(&["get", end]).with_status(0).shows(&[&held, "Error"]);
    served.run(&["get", &end.to_uppercase(), "--document"]).with_status(0).shows(&["mug"]);
    served.run(&["get", &held[19..]]).with_status(0).shows(&[&held]);
    served.run(&["watch", end, other]).with_status(1).shows(&[&held, &declined]);
    served.run(&["again", other, "--reason", "new card"]).with_status(0).shows(&[&declined]);
    let note = ["note", end, "--reason", "asked the bank", "--wait"];
    served.run(&note).with_status(0).shows(&["asked the bank"]);
    let settle = ["settle", end, "reserve-inventory", "--outcome", "done", "--reason", "x"];
    served.run(&settle).with_status(4).says(&["no such step is in Error"]);
    // One that is finished is refused: the API knows which one is meant.
    let both = served.run(&["pause", end, other, "--reason", "x", "--yes"]);
    both.with_status(4).says(&[&held, &declined]);
    served.run(&["close", end, "--reason", "refunded", "--wait"]).with_status(0).shows(&[&held, "Closed"]);
    served.run(&["get", "00000000"]).with_status(3).says(&["ends with 00000000", "give the whole ID"]);
    served.run(&["get", &end[5..]]).with_status(2).says(&["is too short", "at least its last 4 characters"]);
}

#[test]
fn a_whole_id_costs_no_call_and_an_end_at_most_twenty() {
    let stub = Stub::start(|_, asked| orders(asked));
    run(program(&["get", ONE, "--api", &stub.url]), "").with_status(0);
    assert_eq!(stub.asked().len(), 1);
    run(program(&["get", "4be011", "--api", &stub.url]), "").with_status(0).shows(&[ONE]);
    let asked = stub.asked();
    let lists = asked.iter().filter(|asked| asked.target.starts_with("/orders?")).count();
    assert_eq!((lists, asked.len()), (20, 22));
    assert!(asked.iter().filter(|asked| asked.target.contains('?')).all(|asked| asked.target.contains("limit=100")));
}

#[test]
fn an_end_of_several_orders_is_refused_with_all_of_them_and_nothing_is_done() {
    let stub = Stub::start(|_, asked| orders(asked));
    for args in [&["cancel", "e011"][..], &["resubmit", ONE, "e011", "--yes"], &["again", "e011"]] {
        let refused = run(program(&[args, &["--reason", "x", "--api", &stub.url]].concat()), "").with_status(2);
        refused.says(&["2 orders end with e011", &format!("{OTHER} (Error), {ONE} (Processed)")]);
    }
    assert!(stub.asked().iter().all(|asked| asked.method == "GET"));
}

#[test]
fn what_a_script_reads_has_whole_ids() {
    let served = Served::start();
    let held = served.settled(HELD);
    for args in [&["list"][..], &["list", "-q"], &["list", "--columns", "id"], &["watch", &held]] {
        served.run(args).shows(&[&held]);
    }
}
