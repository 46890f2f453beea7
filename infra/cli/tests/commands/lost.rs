//! Answers that are lost: what is made again, what is not, and what is told of what nobody knows.

use crate::run::{program, run};
use crate::stub::{Stub, answer};

const CONFLICT: &str =
    r#"{"type": "/problems/state-conflict", "title": "T", "status": 409, "detail": "it is finished"}"#;

const CANCEL: [&str; 5] = ["cancel", "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "--reason", "late", "--api"];

#[test]
fn a_command_whose_answer_was_lost_is_sent_again_with_the_same_id() {
    let stub = Stub::start(|number, _| match number {
        0 => None,
        _ => {
            let queued = r#"{"OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "Action": "Cancel", "CommandID": "c",
                "ProcessState": "Compensated"}"#;
            answer("202 Accepted", "", queued)
        }
    });
    run(program(&[&CANCEL[..], &[&stub.url]].concat()), "").with_status(0).shows(&["Cancel is on its way"]);
    let bodies: Vec<String> = stub.asked().iter().map(|asked| asked.body.clone()).collect();
    assert!(bodies.len() == 2 && bodies[0] == bodies[1] && bodies[0].contains("CommandID"), "{bodies:?}");
}

#[test]
fn where_the_repeat_is_refused_it_is_not_known() {
    let stub = Stub::start(|number, _| (number > 0).then(|| answer("409 Conflict", "", CONFLICT)).flatten());
    let unsure = run(program(&[&CANCEL[..], &[&stub.url]].concat()), "").with_status(4);
    unsure.says(&[
        "it is not known whether 01934b2e-1c5a-7d3f-8a21-5f0c9f4be011 was cancelled",
        "it is finished",
        "stepwarden get 01934b2e-1c5a-7d3f-8a21-5f0c9f4be011",
    ]);
}

#[test]
fn a_refusal_of_the_first_try_is_a_refusal() {
    let stub = Stub::start(|_, _| answer("409 Conflict", "", CONFLICT));
    let refused =
        run(program(&["cancel", "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "--reason", "late", "--api", &stub.url]), "")
            .with_status(4);
    assert!(!refused.stderr.contains("not known") && stub.asked().len() == 1, "{refused:?}");
}

#[test]
fn a_job_whose_start_was_lost_is_known_by_who_started_it() {
    let job = |started: &str| {
        format!(
            r#"{{"JobID": "j-1", "Version": 2, "State": "Running", "Action": "Resubmit", "By": "ann", "Reason": "r", {started}
                "DryRun": {{"Matching": 2, "Complete": true, "Message": ""}}, "PlannedAt": "2026-11-20T17:00:00.000Z",
                "Since": "2026-11-20T17:00:00.000Z", "Selector": {{}}, "Canary": 5, "CanaryTimeoutMs": 1000, "RatePerSecond": 10,
                "StopAtFailedPercent": 20, "UnderWay": 0, "Waiting": 0,
                "Tally": {{"Begun": 0, "Recovered": 0, "FailedAgain": 0, "PassedOver": 0}}}}"#
        )
    };
    for (told, status) in [(r#""StartedBy": "ann: back","#, 0), (r#""StartedBy": "bob: back","#, 4)] {
        let job = job(told);
        let stub = Stub::start(move |number, asked| match (asked.method.as_str(), number) {
            ("POST", 1) => None,
            ("POST", _) => answer("412 Precondition Failed", "", r#"{"type": "/problems/version-changed"}"#),
            _ => answer("200 OK", "", &job),
        });
        let args = ["bulk", "start", "j-1", "--reason", "back", "--yes", "--api", &stub.url];
        let ended = run(program(&args), "").with_status(status);
        let is_unsure = ended.stderr.contains("it is not known whether the job j-1 was started");
        assert_eq!(is_unsure, status == 4, "{ended:?}");
    }
}

#[test]
fn a_plan_is_not_made_twice() {
    let stub = Stub::start(|_, _| None);
    let args = ["bulk", "plan", "--reason", "back", "--api", &stub.url];
    run(program(&args), "").with_status(5).says(&["it is not known whether the job was planned", "bulk list"]);
    assert_eq!(stub.asked().len(), 1);
}

#[test]
fn an_api_that_goes_away_after_it_may_have_seen_an_order_leaves_it_unknown() {
    // It takes one connection, drops it, and listens no more. It keeps its port, so no other test gets it.
    let port = tokio::net::TcpSocket::new_v4().unwrap();
    port.set_reuseaddr(true).unwrap();
    port.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = std::net::TcpListener::bind(port.local_addr().unwrap()).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let mut byte = [0];
        std::io::Read::read(&mut listener.accept().unwrap().0, &mut byte).unwrap()
    });
    let lost = run(program(&["submit", "--key", "k-1", "--api", &url]), "{}").with_status(5);
    assert_eq!(seen.join().unwrap(), 1);
    lost.says(&["not known whether the order was accepted", "--key k-1"]);
}

#[test]
fn an_order_whose_repeat_is_not_let_in_or_whose_answer_nobody_can_read_may_be_accepted() {
    for status in ["403 Forbidden", "429 Too Many Requests"] {
        let refusal = answer(status, "retry-after: 0\r\n", r#"{"message": "no"}"#);
        let stub = Stub::start(move |number, _| if number == 0 { None } else { refusal.clone() });
        let lost = run(program(&["submit", "--key", "k-2", "--api", &stub.url]), "{}");
        lost.says(&["not known whether the order was accepted", "--key k-2"]);
    }
    let stub = Stub::start(|_, _| answer("200 OK", "", "<html>welcome</html>"));
    let lost = run(program(&["submit", "--key", "k-3", "--api", &stub.url]), "{}").with_status(5);
    lost.says(&["not known whether the order was accepted", "is --api the URL of a Stepwarden API?", "--key k-3"]);
}

#[test]
fn an_order_that_was_never_let_in_is_not_accepted() {
    let stub = Stub::start(|_, _| answer("429 Too Many Requests", "retry-after: 0\r\n", r#"{"message": "no"}"#));
    let refused = run(program(&["submit", "--key", "k-4", "--api", &stub.url]), "{}").with_status(5);
    assert!(!refused.stderr.contains("not known") && stub.asked().len() > 1, "{refused:?}");
}

#[test]
fn an_order_whose_answer_cannot_be_written_is_accepted_and_its_key_is_told() {
    let stub = Stub::start(|_, _| {
        answer("202 Accepted", "", r#"{"OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "ProcessState": "Pending"}"#)
    });
    for format in ["table", "json"] {
        let mut command = program(&["submit", "--key", "k-9", "--api", &stub.url, "-o", format]);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let ended = run(command, "{}").with_status(8);
        ended.says(&[
            "accepted as 01934b2e-1c5a-7d3f-8a21-5f0c9f4be011, with the key k-9",
            "done, but the output could not be written",
        ]);
    }
}
