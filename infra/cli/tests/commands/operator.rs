//! resubmit, cancel, pause, resume, and what is told of the whole.

use crate::run::{HELD, SLOW, Served, run};

#[test]
fn an_order_is_paused_resumed_and_cancelled_in_the_name_of_whoever_is_logged_in() {
    let served = Served::start();
    let order = r#"{"StandIn": {"inventory": {"SlowMs": 1500}}}"#;
    let id = served.accepted(order);
    served.reach(&id, "Processing");
    let paused = served.run(&["pause", &id, "--reason", "stock-taking", "--wait", "-o", "json"]).with_status(0).json();
    assert_eq!(
        (paused["Paused"]["By"].as_str(), paused["Paused"]["Reason"].as_str()),
        (Some("ann"), Some("stock-taking"))
    );
    served.run(&["pause", &id, "--reason", "again"]).with_status(4).says(&["paused", "(409)", "stepwarden get"]);
    let resumed = served.run(&["resume", &id, "--reason", "counted", "--by", "bob", "--wait"]).with_status(0);
    resumed.shows(&["Processed", "bob", "counted"]);
    served.run(&["cancel", &id, "--reason", "late"]).with_status(4).says(&["(409)"]);

    let held_up = served.accepted(r#"{"StandIn": {"inventory": {"SlowMs": 1000}}}"#);
    served.reach(&held_up, "Processing");
    served
        .run(&["pause", &held_up, "--reason", "x", "--wait"])
        .with_status(0)
        .shows(&["Paused     by ann", "stepwarden resume"]);
    // What may still be under way is not undone before its time is over, so the attempt is to end first.
    while served.run(&["get", &held_up, "-o", "json"]).json()["Steps"][0]["ProcessState"] != "Processed" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    served.run(&["cancel", &held_up, "--reason", "customer called", "--wait"]).with_status(0).shows(&["Compensated"]);
}

#[test]
fn a_compensated_order_is_posted_again_once() {
    let served = Served::start();
    let id = served.settled(r#"{"StandIn": {"payment": {"Decline": "card_declined"}}}"#);
    let again = served.run(&["again", &id, "--reason", "card replaced", "-o", "json"]).with_status(0).json();
    let again = again["OrderID"].as_str().unwrap();
    assert_ne!(again, id);
    // The stand-in declines again. The second command waits for the order of the first.
    let repeated = served.run(&["again", &id, "--reason", "was it posted?", "--wait"]).with_status(1);
    repeated.shows(&["Compensated", again, "card replaced"]);
    served.run(&["get", &id, "--document"]).with_status(0).shows(&["\"Again\"", again]);
    served.run(&["get", again, "--document"]).with_status(0).shows(&["\"AgainOf\"", &id]);
    let held = served.settled(HELD);
    served.run(&["again", &held, "--reason", "x"]).with_status(4).says(&["only an order that is Compensated", "(409)"]);
}

#[test]
fn rejections_are_accepted_only_of_a_service_that_is_held_back_for_them() {
    let served = Served::start();
    let accept = |service| served.run(&["services", "accept-rejections", service, "--reason", "sold out"]);
    accept("payment").with_status(4).says(&["does not wait because of its rejections", "(409)"]);
    accept("nobody").with_status(3).says(&["there is no service of this name", "(404)"]);
    served.run(&["services"]).with_status(0).shows(&["payment", "no failure yet (Closed)"]);
}

#[test]
fn a_resubmit_that_fails_again_is_not_taken_for_the_failure_before() {
    let served = Served::start();
    let held = served.settled(HELD);
    let again = served.run(&["resubmit", &held, "--reason", "mended?", "--wait"]).with_status(1);
    again.shows(&["Error", "resubmitted", "mended?", "the undo goes on"]);
}

#[test]
fn a_note_shows_who_has_taken_the_order_on() {
    let served = Served::start();
    let held = served.settled(HELD);
    let note = |more: &[&str]| {
        let args = ["note", &held, "--reason", "asked the bank", "--by", "ada", "--wait"];
        served.run(&[&args[..], more].concat())
    };
    let noted = note(&["--take"]).with_status(0);
    noted.shows(&["Taken on", "by ada", "taken on", "asked the bank", "Error"]);
    let again = ["note", &held, "--reason", "my turn", "--by", "bob", "--take", "--wait"];
    served.run(&again).with_status(0).says(&["ada has this order since", "it is taken from them"]);
    served.run(&["note", &held, "--reason", "mine again", "--by", "ada", "--take", "--wait"]).with_status(0);
    served.run(&["list", "--columns", "order,taken"]).with_status(0).shows(&["TAKEN ON BY", "ada"]);
    note(&[]).with_status(0);
    note(&["--take", "--let-go"]).with_status(2);
}

#[test]
fn an_order_that_will_never_end_by_itself_is_closed_as_it_is() {
    let served = Served::start();
    let held = served.settled(HELD);
    let close = || served.run(&["close", &held, "--reason", "refunded at the bank", "--by", "ada", "--wait"]);
    close().with_status(0).shows(&["Closed", "closed by ada: refunded at the bank"]);
    close().with_status(4).says(&["only an order in Error can be resubmitted or closed"]);
    served.run(&["list", "--state", "closed"]).with_status(0).shows(&["Closed"]);
}

#[test]
fn a_step_whose_undo_is_refused_is_settled_by_hand() {
    let served = Served::start();
    let held = served.settled(HELD);
    let settle = |step: &str, outcome: &str, more: &[&str]| {
        let args = ["settle", &held, step, "--outcome", outcome, "--reason", "back on the shelf", "--wait"];
        served.run(&[&args[..], more].concat())
    };
    settle("reserve-inventory", "done", &[]).with_status(4).says(&["no such step is in Error in that direction"]);
    settle("reserve-inventory", "undone", &["--step-output", "{}"]).with_status(2).says(&["Output", "(400)"]);
    settle("reserve-inventory", "done", &["--step-output", "{"]).with_status(2).says(&["--step-output"]);
    let settled = settle("reserve-inventory", "undone", &[]).with_status(0);
    settled.shows(&["Compensated", "undo of reserve-inventory settled", "back on the shelf"]);
}

#[test]
fn an_action_on_a_version_that_is_no_more_is_refused() {
    let served = Served::start();
    let held = served.settled(HELD);
    let version = served.run(&["get", &held, "-o", "json"]).json()["Version"].as_u64().unwrap();
    let stale = (version - 1).to_string();
    let refused = served.run(&["resubmit", &held, "--reason", "x", "--if-version", &stale]).with_status(4);
    refused.says(&["changed meanwhile", "(412)", "--if-version"]);
    let queued = served.run(&["resubmit", &held, "--reason", "x", "--if-version", &version.to_string()]).with_status(0);
    queued.shows(&[&held, "Resubmit is on its way"]);
}

#[test]
fn several_orders_need_a_yes_where_nobody_can_be_asked_and_one_that_fails_stops_no_other() {
    let served = Served::start();
    let ids = [served.accepted(SLOW), "nobody".to_owned(), served.accepted(SLOW)];
    served.reach(&ids[0], "Processing");
    served.reach(&ids[2], "Processing");
    let args = ["pause", &ids[0], &ids[1], &ids[2], "--reason", "x", "-o", "json"];
    let refused = served.run(&args).with_status(2);
    refused.says(&["Pause 3 orders?", "--yes"]);
    assert_eq!(refused.stdout, "");
    let done = served.run(&[&args[..], &["--yes"]].concat()).with_status(3);
    assert_eq!(done.lines().len(), 2);
    done.says(&["nobody: there is no order"]);
    for id in [&ids[0], &ids[2]] {
        served.run(&["pause", id, "--reason", "x", "--if-version", "1", "--yes"]).with_status(4);
    }
    served.run(&["pause", "a", "b", "--reason", "x", "--if-version", "1"]).with_status(2).says(&["--if-version"]);
}

#[test]
fn the_whole_is_told_as_tables_and_as_the_apis_own_json() {
    let served = Served::start();
    served.settled(HELD);
    served.settled("{}");
    for (command, words, member) in [
        ("overview", &["Error", "compensation-failed", "bulk resubmit", "payment"][..], "Counts"),
        ("numbers", &["order", "ship-order", "Now: ", "1 Processed"], "Points"),
        ("services", &["payment", "well (Closed)"], "Services"),
        ("leases", &["supervisor/run", "ago"], "Leases"),
        ("workflows", &["order", "1 (new orders, default)", "charge-payment", "compensate"], "Workflows"),
    ] {
        served.run(&[command]).with_status(0).shows(words);
        assert!(served.run(&[command, "-o", "json"]).with_status(0).json()[member].is_array(), "{command}");
    }
    let of_payment = ["numbers", "--workflow", "order", "--step", "charge-payment", "--service", "payment"];
    served.run(&of_payment).with_status(0).shows(&["charge-payment"]);
    let of_payment = served.run(&[&of_payment[..], &["-o", "json"]].concat()).with_status(0).json();
    let points = of_payment["Points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["Forward"].is_object()), "{of_payment}");
    served
        .run(&["numbers", "--service", "bank"])
        .with_status(3)
        .says(&["service bank", "inventory, payment, shipping"]);
    let ids = served.run(&["list", "-q"]).with_status(0).stdout.lines().count();
    assert_eq!(ids, 2);
    served.run(&["list", "--columns", "workflow,error"]).with_status(0).shows(&["WORKFLOW  LAST ERROR\norder/1"]);
    served.run(&["list", "--columns", "colour"]).with_status(2).says(&["colour", "workflow"]);
    served.run(&["dead-letters"]).with_status(0).shows(&["No dead letters."]);
    assert_eq!(served.run(&["dead-letters", "-o", "json"]).with_status(0).stdout, "");
}

#[test]
fn one_workflow_is_drawn_and_an_unknown_one_is_refused_with_the_names_there_are() {
    let served = Served::start();
    let drawing = "order, version 1 (new orders, default)\n\n\
                   ●  reserve-inventory  inventory\n│\n●  charge-payment     payment\n│\n\
                   ●  ship-order         shipping\n\nWORKFLOW";
    for name in ["order", "order/1"] {
        served.run(&["workflows", name]).with_status(0).shows(&[drawing, "compensate"]);
    }
    assert_eq!(served.run(&["workflows", "order", "-o", "json"]).with_status(0).json()["Version"], 1);
    for name in ["return", "order/2"] {
        served.run(&["workflows", name]).with_status(3).says(&["there is no workflow", name, "but order/1"]);
    }
    served.run(&["workflows", "order/x"]).with_status(2).says(&["is no version"]);
}

#[test]
fn whoever_has_no_name_is_asked_for_one() {
    let served = Served::start();
    let mut command = served.command(&["cancel", "x", "--reason", "y", "--by", ""]);
    command.env("USER", " ");
    run(command, "").with_status(2).says(&["By"]);
}
