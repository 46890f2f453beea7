//! What goes wrong, each with its status and with what to do.

use crate::run::{Served, limited, program, run};
use crate::stub::{Stub, answer};

#[test]
fn an_api_that_is_not_there_is_status_5_with_what_to_do() {
    let mut served = Served::start();
    served.kill();
    for args in [&["list"][..], &["get", "x"], &["cancel", "x", "--reason", "y"], &["overview"]] {
        served.run(args).with_status(5).says(&[&served.url, "is `stepwarden serve` running?", "--api"]);
    }
    let submitted = run(served.command(&["submit"]), "{}").with_status(5);
    assert!(!submitted.stderr.contains("it is not known"), "nobody can have seen it: {submitted:?}");
}

#[test]
fn f70_a_server_with_too_few_open_files_does_not_start_and_says_how_to_raise_the_limit() {
    let data = tempfile::tempdir().unwrap();
    let refused = run(limited("-n 47", &["serve", "--data", data.path().to_str().unwrap(), "--port", "0"]), "");
    refused.with_status(2).says(&["47 open files", "it needs 48 or more", "ulimit -n"]);
}

#[test]
fn a_busy_api_is_asked_again_after_the_time_that_it_names_and_with_the_same_key() {
    let stub = Stub::start(|number, _| match number {
        0 => answer("503 Service Unavailable", "retry-after: 0\r\n", "{}"),
        1 => None,
        _ => answer(
            "202 Accepted",
            "",
            r#"{"OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "ProcessState": "Pending"}"#,
        ),
    });
    run(program(&["submit", "--api", &stub.url]), "{}").with_status(0).shows(&["01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"]);
    let asked = stub.asked();
    assert_eq!(asked.len(), 3);
    let key = asked[0].header("idempotency-key").unwrap();
    assert!(asked.iter().all(|asked| asked.header("idempotency-key") == Some(key)), "{asked:?}");
}

#[test]
fn a_status_is_the_same_where_nobody_reads_stderr() {
    for (args, status) in [(&["overview", "--api", "http://127.0.0.1:9"][..], 5), (&["no-such-command"], 2)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = program(args).stderr(writer).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{args:?}");
    }
}

#[test]
fn an_api_that_stays_busy_is_given_up_and_the_key_is_told() {
    let stub = Stub::start(|_, _| {
        let problem = r#"{"type": "/problems/unavailable", "title": "T", "status": 503, "detail": "not now"}"#;
        answer("503 Service Unavailable", "retry-after: 0\r\n", problem)
    });
    let given_up = run(program(&["submit", "--key", "k-9", "--api", &stub.url]), "{}").with_status(5);
    given_up.says(&["not known whether the order was accepted", "not now", "--key k-9", "stepwarden doctor"]);
    assert_eq!(stub.asked().len(), 4);
}

#[test]
fn each_refusal_has_its_status_and_says_what_to_do() {
    for (status, body, expected, words) in [
        ("401 Unauthorized", r#"{"message": "Unauthorized"}"#, 6, "--auth iam"),
        ("403 Forbidden", r#"{"message": "Forbidden"}"#, 6, "--auth bearer"),
        ("404 Not Found", r#"{"message": "Not Found"}"#, 5, "is --api right?"),
        ("500 Internal Server Error", "", 5, "stepwarden doctor"),
        ("200 OK", "<html>", 5, "is --api the URL of a Stepwarden API?"),
    ] {
        let body = body.to_owned();
        let stub = Stub::start(move |_, _| answer(status, "", &body));
        run(program(&["list", "--api", &stub.url]), "").with_status(expected).says(&[words]);
    }
}

#[test]
fn a_token_is_sent_as_it_is_unless_none_is_asked_for() {
    let stub = Stub::start(|_, _| answer("200 OK", "", r#"{"Services": []}"#));
    let mut command = program(&["services", "--api", &stub.url, "--auth", "bearer"]);
    command.env("STEPWARDEN_TOKEN", "t-1");
    run(command, "").with_status(0);
    let mut command = program(&["services", "--api", &stub.url, "--auth", "none"]);
    command.env("STEPWARDEN_TOKEN", "t-1");
    run(command, "").with_status(0);
    let sent: Vec<_> = stub.asked().iter().map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("Bearer t-1".to_owned()), None]);
    run(program(&["services", "--api", &stub.url, "--auth", "bearer"]), "").with_status(6).says(&["STEPWARDEN_TOKEN"]);
}

#[test]
fn a_wrong_command_line_is_status_2_in_one_line() {
    for (args, words) in [
        (&["list", "--api", "localhost:3000"][..], "begins with http://"),
        (&["list", "--state", "Done"], "Processed"),
        (&["list", "--since", "yesterday"], "90m"),
        (&["get"], "<ID>"),
        (&["get", "x", "--wait=0s"], "1s to 24h"),
        (&["resubmit", "x"], "--reason"),
        (&["list", "-o", "xml"], "json"),
        (&["completions", "tcsh"], "bash"),
        (&["services", "--auth", "iam"], "--region"),
        (&["services", "--auth", "iam", "--region", "x", "--api", "http://192.0.2.1"], "without TLS"),
        (&["services", "--auth", "bearer", "--api", "http://192.0.2.1"], "STEPWARDEN_TOKEN"),
    ] {
        let ended = run(program(args), "");
        assert!(matches!(ended.status, 2 | 6), "{ended:?}");
        ended.says(&[words]);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}

#[test]
fn completions_are_made_for_every_shell_and_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        run(program(&["completions", shell]), "").with_status(0).shows(&["stepwarden", "dead-letters", "resubmit"]);
    }
}

#[test]
fn the_help_shows_every_exit_status() {
    for args in [&["--help"][..], &["submit", "--help"], &["doctor", "--help"]] {
        run(program(args), "").with_status(0).shows(&["Exit status", "not authorised", "settled in time"]);
    }
}

const ORDER: &str = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";

#[test]
fn a_page_of_somebody_between_is_no_success_whatever_its_status() {
    for args in [&["cancel", ORDER, "--reason", "x"][..], &["note", ORDER, "--reason", "x"], &["get", ORDER]] {
        let stub = Stub::start(|_, _| answer("200 OK", "content-type: text/html\r\n", "<html>Sign in first"));
        run(program(&[args, &["--api", &stub.url]].concat()), "").with_status(5).says(&["unexpected answer"]);
    }
}

#[test]
fn what_a_server_sends_in_the_place_of_json_or_of_a_name_does_nothing_to_the_terminal() {
    let escape = "\u{1b}]0;title\u{7}\u{9b}31m";
    let name = r"A\u001b]0;title\u0007\u009b31m";
    let services = format!(
        r#"{{"Services":[{{"Service":"{name}","State":"{name}","FailuresInARow":1,"Problem":"{name}","ToDo":"{name}"}}]}}"#
    );
    let problem = format!(r#"{{"type":"/problems/{name}","title":"T","status":409,"detail":"{name}"}}"#);
    let definition = format!(r#"{{"Name":"a","Version":1,"Text":"{name}","AppliedAt":"2026-11-20T17:26:43Z"}}"#);
    for (status, body, args) in [
        ("200 OK", escape, &["services", "-o", "json"][..]),
        ("200 OK", escape, &["get", ORDER, "--document"]),
        ("200 OK", &services, &["services"]),
        ("200 OK", &services, &["services", "-o", "json"]),
        ("200 OK", &definition, &["workflows", "a/1", "--text"]),
        ("409 Conflict", &problem, &["cancel", ORDER, ORDER, "--reason", "x", "--yes"]),
    ] {
        let body = body.to_owned();
        let stub = Stub::start(move |_, _| answer(status, "", &body));
        let ended = run(program(&[args, &["--api", &stub.url]].concat()), "");
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']) && ended.status != 101, "{args:?}: {ended:?}");
    }
}
