//! Many orders as one job.

use crate::run::{HELD, Served};

#[test]
fn a_job_is_planned_started_and_looked_at_one_by_one() {
    let served = Served::start();
    let held = [served.settled(HELD), served.settled(HELD)];
    let why = ["--reason", "mended"];
    let planned =
        served.run(&[&["bulk", "plan", "--reason-code", "compensation-failed", "-o", "json"], &why[..]].concat());
    let job = planned.with_status(0).json();
    assert_eq!((job["DryRun"]["Matching"].as_u64(), job["State"].as_str()), (Some(2), Some("Planned")));
    let id = job["JobID"].as_str().unwrap();
    served.run(&["bulk", "start", id, "--reason", "x"]).with_status(2).says(&["Resubmit 2 orders", "--yes"]);
    served.run(&["bulk", "start", id, "--reason", "x", "--yes"]).with_status(0).says(&["--watch"]);
    let ended = served.run(&["bulk", "status", id, "--watch"]).with_status(1);
    ended.shows(&["Done", "2 failed again"]).says(&["2 begun of 2"]);
    served.run(&["bulk", "start", id, "--reason", "x", "--yes"]).with_status(4).says(&["(409)", "bulk status"]);
    served.run(&["bulk", "list"]).with_status(0).shows(&[id, "ann", "mended"]);
    served.run(&["bulk", "status", "nobody"]).with_status(3).says(&["no job", "bulk list"]);
    for id in held {
        served.run(&["get", &id]).with_status(0).shows(&["resubmitted"]);
    }
}

#[test]
fn a_job_may_close_orders_or_settle_a_step() {
    let served = Served::start();
    let held = [served.settled(HELD), served.settled(HELD)];
    let run = |more: &[&str]| served.run(&[&["bulk", "run", "--reason", "refunded at the bank"], more].concat());
    run(&["--action", "settle", "--yes"]).with_status(2).says(&["Selector.Step", "must name the step"]);
    run(&["--action", "forget"]).with_status(2).says(&["resubmit, cancel, settle, close, again"]);
    run(&["--action", "close"]).with_status(2).says(&["--yes"]);
    run(&["--action", "close", "--yes"]).with_status(0).shows(&["Close", "Done"]).says(&["2 recovered"]);
    for id in held {
        served.run(&["get", &id]).with_status(0).shows(&["Closed", "refunded at the bank"]);
    }
}

#[test]
fn all_in_one_needs_a_yes_where_nobody_can_be_asked_and_shows_the_progress_to_the_end() {
    let served = Served::start();
    let args = ["bulk", "resubmit", "--reason-code", "exhausted", "--step", "charge-payment", "--reason", "it is back"];
    served.run(&args).with_status(2).says(&["--yes"]);
    assert_eq!(served.run(&["bulk", "list", "-o", "json"]).stdout, "", "nothing was planned");
    let none = served.run(&[&args[..], &["--yes"]].concat()).with_status(0);
    none.shows(&["No order matches"]);
    served.run(&["bulk", "list"]).with_status(0).shows(&["Cancelled"]);

    served.settled(HELD);
    let ended = served.run(&[
        "bulk",
        "resubmit",
        "--reason-code",
        "compensation-failed",
        "--since",
        "1h",
        "--canary",
        "1",
        "--rate",
        "50",
        "--reason",
        "mended",
        "--yes",
        "-o",
        "json",
    ]);
    assert_eq!(ended.status, 1, "{ended:?}");
    let job = ended.json();
    assert_eq!((job["Tally"]["FailedAgain"].as_u64(), job["Canary"].as_u64()), (Some(1), Some(1)));
    ended.says(&["because of compensation-failed", "1 match", "the job goes on without this program"]);
}

#[test]
fn compensated_orders_are_posted_again_by_one_job() {
    let served = Served::start();
    let declined = r#"{"StandIn": {"payment": {"Decline": "card_declined"}}}"#;
    let old = [served.settled(declined), served.settled(declined)];
    served.settled(HELD);
    let again = |more: &[&str]| {
        let args = ["bulk", "again", "--reason-code", "rejected", "--since", "1h", "--reason", "the card is back"];
        served.run(&[&args[..], more].concat())
    };
    again(&[]).with_status(2).says(&["posts again every order", "--yes"]);
    // The stand-in declines again.
    let ended = again(&["--canary", "2", "--stop-at-failed-percent", "100", "--yes"]).with_status(1);
    ended.shows(&["Again", "compensated orders, because of rejected, compensated since", "Done"]);
    ended.says(&["2 match", "2 failed again"]);
    let jobs = served.run(&["bulk", "list", "-o", "json"]).json();
    let job = format!("bulk {}: again of ", jobs["JobID"].as_str().unwrap());
    for id in &old {
        let document = served.run(&["get", id, "--document", "-o", "json"]).with_status(0).json();
        served.run(&["get", document["Again"].as_str().unwrap()]).with_status(0).shows(&["Compensated", id, &job]);
    }
    // Those two are posted again now, and the first two are not a second time.
    let ended = again(&["--stop-at-failed-percent", "100", "--yes", "-o", "json"]).with_status(1).json();
    assert_eq!((ended["DryRun"]["Matching"].as_u64(), ended["Tally"]["Begun"].as_u64()), (Some(4), Some(2)));
}
