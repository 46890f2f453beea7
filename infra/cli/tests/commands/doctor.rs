//! The doctor, on an instance that is well and on ones that are not.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::run::{HELD, Served, program, run};
use crate::stub::{Stub, answer};

/// The finding of a check.
fn finding(report: &Value, check: &str) -> (String, String) {
    let lines = report["Checks"].as_array().unwrap();
    let line = lines.iter().find(|line| line["Check"] == check).unwrap_or_else(|| panic!("{check} in {report}"));
    (line["State"].as_str().unwrap().to_owned(), line["Found"].as_str().unwrap().to_owned())
}

#[test]
fn an_instance_that_is_well_is_status_0_and_what_waits_for_an_operator_is_a_warning() {
    let served = Served::start();
    served.settled("{}");
    served.run(&["doctor"]).with_status(0).shows(&["ok       api: reachable", "ok       api: supervisor", "0 wrong"]);
    served.settled(HELD);
    let report = served.run(&["doctor", "-o", "json"]).with_status(0).json();
    assert_eq!(finding(&report, "orders in Error"), ("warning".to_owned(), "1".to_owned()));
    for check in ["reachable", "version", "clock", "workflows", "services", "supervisor", "dead letters"] {
        assert_eq!(finding(&report, check).0, "ok", "{check} in {report}");
    }
    assert_eq!(finding(&report, "stand-ins").0, "warning", "nothing real happens in a trial");
}

#[test]
fn an_instance_that_is_away_is_wrong_and_says_what_to_do() {
    let mut served = Served::start();
    served.kill();
    served.run(&["doctor"]).with_status(1).shows(&["wrong", "reachable", "is `stepwarden serve` running?"]);
}

#[test]
fn a_clock_that_is_off_is_wrong_and_what_the_caller_may_not_see_is_skipped() {
    let stub = Stub::start(|_, asked| {
        let date = httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(600));
        match asked.target.split('?').next() {
            Some("/health") => {
                answer("200 OK", &format!("date: {date}\r\n"), r#"{"Status": "ok", "Version": "0.0.9"}"#)
            }
            Some("/services") => answer("200 OK", "", r#"{"Services": []}"#),
            Some("/orders") => answer("200 OK", "", r#"{"Orders": []}"#),
            Some("/dead-letters") => answer("403 Forbidden", "", r#"{"message": "Forbidden"}"#),
            _ => answer("404 Not Found", "", r#"{"message": "Not Found"}"#),
        }
    });
    let report = run(program(&["doctor", "--api", &stub.url, "-o", "json"]), "").with_status(1).json();
    assert_eq!(finding(&report, "clock").0, "wrong");
    assert_eq!(finding(&report, "version").0, "warning");
    for (check, state) in [("workflows", "wrong"), ("supervisor", "wrong"), ("dead letters", "skipped")] {
        assert_eq!(finding(&report, check).0, state, "{check}");
    }
}

#[test]
fn a_data_directory_is_looked_at_while_it_is_in_use_and_after() {
    let mut served = Served::start();
    served.settled("{}");
    let data = served.data.path().to_str().unwrap().to_owned();
    let during = run(program(&["doctor", "--data", &data, "-o", "json"]), "").with_status(0).json();
    assert_eq!(finding(&during, "database").0, "ok");
    assert_eq!(finding(&during, "write-ahead log").0, "ok");
    assert!(finding(&during, "lock").1.starts_with("held by"), "{during}");
    served.kill();
    let after = run(program(&["doctor", "--data", &data, "-o", "json"]), "").with_status(0).json();
    assert_eq!(finding(&after, "lock").1, "nobody has it at the moment");
    let log = served.data.path().join("stepwarden.db-wal");
    std::fs::File::options().write(true).open(&log).unwrap().set_len(65 * 1024 * 1024).unwrap();
    let large = run(program(&["doctor", "--data", &data, "-o", "json"]), "").with_status(0).json();
    assert_eq!(finding(&large, "write-ahead log"), ("warning".to_owned(), "65 MB".to_owned()));
    std::fs::write(served.data.path().join("stepwarden.db"), "no database").unwrap();
    // What the killed process left beside it would make up for that.
    std::fs::remove_file(log).unwrap();
    let broken = run(program(&["doctor", "--data", &data]), "").with_status(1);
    broken.shows(&["wrong", "database", "backup"]);
    run(program(&["doctor", "--data", "/nowhere"]), "").with_status(1).shows(&["is no directory"]);
}

#[test]
fn without_the_aws_tool_a_stack_cannot_be_looked_at_and_that_is_said() {
    let served = Served::start();
    let mut command = served.command(&["doctor", "--stack", "stepwarden"]);
    command.env("PATH", "/nowhere");
    run(command, "").with_status(1).shows(&["no `aws` command line tool", "install it", "ok       api: reachable"]);
}

#[test]
fn a_stack_is_looked_at_through_the_aws_tool() {
    let served = Served::start();
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("aws");
    // A stack without anything in it, as the tool tells it.
    let script = "#!/bin/sh\ncase \"$1 $2\" in\n\
        'cloudformation describe-stacks') echo '{\"Stacks\": [{\"StackStatus\": \"UPDATE_ROLLBACK_COMPLETE\"}]}';;\n\
        'cloudformation list-stack-resources') echo '{\"StackResourceSummaries\": []}';;\n\
        'lambda list-event-source-mappings') ;;\n\
        *) echo \"An error occurred (AccessDenied): $*\" >&2; exit 254;;\nesac\n";
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = served.command(&["doctor", "--stack", "shop", "-o", "json"]);
    command.env("PATH", format!("{}:/bin:/usr/bin", folder.path().display()));
    let report = run(command, "").with_status(1).json();
    assert_eq!(finding(&report, "stack shop"), ("warning".to_owned(), "it is UPDATE_ROLLBACK_COMPLETE".to_owned()));
    assert!(finding(&report, "resources").1.contains("OrdersTable"), "{report}");
    assert_eq!(finding(&report, "schedule").0, "wrong");
}

#[tokio::test]
async fn a_database_is_checked_while_it_is_used_and_after_and_one_that_was_damaged_is_told() {
    let directory = tempfile::tempdir().unwrap();
    assert!(embedded::check(directory.path()).is_err(), "there is none yet");
    let engine = embedded::Engine::open(directory.path(), embedded::Options::default()).unwrap();
    let during = embedded::check(directory.path()).unwrap();
    assert!(during.faults.is_empty() && !during.is_older && during.schema > 0, "{during:?}");
    engine.close().await.unwrap();
    assert_eq!(embedded::check(directory.path()).unwrap(), embedded::Checked { log_bytes: 0, ..during.clone() });
    let file = std::fs::File::options().write(true).open(&during.file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 4_096], 4_096).unwrap();
    let damaged = embedded::check(directory.path());
    assert!(damaged.as_ref().map_or(true, |checked| !checked.faults.is_empty()), "{damaged:?}");
}

#[test]
fn who_may_see_nothing_but_the_health_is_told_so_and_not_that_all_is_well() {
    let stub = Stub::start(|_, asked| match asked.target.as_str() {
        "/health" => answer("200 OK", "", r#"{"Status": "ok", "Version": "0.0.9"}"#),
        _ => answer("403 Forbidden", "", r#"{"message": "Forbidden"}"#),
    });
    let denied = run(program(&["doctor", "--api", &stub.url]), "").with_status(6);
    denied.shows(&["authorisation", "not well", "7 could not be looked at"]);
}

/// What the doctor says of a stack with these resources, where the `aws` tool has these further answers and may see
/// nothing else.
fn told_of_stack(resources: &[(&str, &str, &str)], answers: &[(&str, Value)]) -> Value {
    let resources: Vec<Value> = resources
        .iter()
        .map(|(kind, name, id)| json!({"ResourceType": kind, "LogicalResourceId": name, "PhysicalResourceId": id}))
        .collect();
    let stack = [
        ("cloudformation describe-stacks --stack-name shop", json!({"Stacks": [{"StackStatus": "CREATE_COMPLETE"}]})),
        ("cloudformation list-stack-resources --stack-name shop", json!({ "StackResourceSummaries": resources })),
    ];
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("aws");
    let mut script = "#!/bin/sh\ncase \"$*\" in\n".to_owned();
    for (words, answer) in answers.iter().chain(&stack) {
        script.push_str(&format!("'{words}'*) printf '%s' '{answer}';;\n"));
    }
    script.push_str("*) echo \"An error occurred (AccessDenied): $*\" >&2; exit 254;;\nesac\n");
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let served = Served::start();
    let mut command = served.command(&["doctor", "--stack", "shop", "-o", "json"]);
    command.env("PATH", format!("{}:/bin:/usr/bin", folder.path().display()));
    run(command, "").with_status(1).json()
}

#[test]
fn functions_that_may_not_be_seen_are_not_blamed_on_queues_and_roles() {
    let report =
        told_of_stack(&[("AWS::Lambda::Function", "F", "s-api"), ("AWS::SQS::Queue", "Q", "https://q/1/s-q")], &[]);
    for check in ["function s-api", "queues", "schedule", "roles", "settings of the functions", "one build"] {
        assert_eq!(finding(&report, check).0, "skipped", "{check} in {report}");
    }
}

#[test]
fn a_table_of_an_earlier_stack_is_looked_at_under_the_name_in_the_outputs() {
    let outputs = json!([{"OutputKey": "JobsTableName", "OutputValue": "s-jobs"}]);
    let stack = json!({"Stacks": [{"StackStatus": "CREATE_COMPLETE", "Outputs": outputs}]});
    let report = told_of_stack(
        &[],
        &[
            ("cloudformation describe-stacks --stack-name shop", stack),
            (
                "dynamodb describe-table --table-name s-jobs",
                json!({"Table": {"TableName": "s-jobs", "TableStatus": "ACTIVE"}}),
            ),
        ],
    );
    assert_eq!(finding(&report, "table s-jobs"), ("ok".to_owned(), "active".to_owned()));
    assert!(!finding(&report, "resources").1.contains("JobsTable"), "{report}");
}

#[test]
fn a_queue_that_may_not_be_seen_is_not_blamed_on_the_one_whose_dead_letters_it_takes() {
    let policy = json!({"deadLetterTargetArn": "arn:s-dead"}).to_string();
    let report = told_of_stack(
        &[("AWS::SQS::Queue", "D", "https://q/1/s-dead"), ("AWS::SQS::Queue", "Q", "https://q/1/s-q")],
        &[
            ("lambda list-event-source-mappings", json!({})),
            (
                "sqs get-queue-attributes --queue-url https://q/1/s-q ",
                json!({"Attributes": {"QueueArn": "arn:s-q", "RedrivePolicy": policy}}),
            ),
        ],
    );
    for check in ["queue D", "queues"] {
        assert_eq!(finding(&report, check).0, "skipped", "{check} in {report}");
    }
    let checks: Vec<&str> =
        report["Checks"].as_array().unwrap().iter().filter_map(|line| line["Check"].as_str()).collect();
    assert!(!checks.contains(&"queue s-q") && !checks.contains(&"queue Q"), "{checks:?}");
}

#[test]
fn a_data_directory_and_an_api_are_both_looked_at_where_both_are_named() {
    let served = Served::start();
    let data = served.data.path().to_str().unwrap().to_owned();
    // No status: the supervisor of a server that has just started may not have run yet.
    let both = served.run(&["doctor", "--data", &data, "-o", "json"]).json();
    assert_eq!((finding(&both, "database").0, finding(&both, "reachable").0), ("ok".to_owned(), "ok".to_owned()));
    let one = run(program(&["doctor", "--data", &data, "-o", "json"]), "").with_status(0).json();
    assert!(one["Checks"].as_array().unwrap().iter().all(|line| line["Area"] == "data"), "{one}");
}
