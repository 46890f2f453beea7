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

/// What the doctor says of a stack, where the `aws` tool has these answers and may see nothing else, and its status.
fn told_of_stack(status: i32, answers: &[(&str, Value)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("aws");
    let mut script = "#!/bin/sh\ncase \"$*\" in\n".to_owned();
    for (words, answer) in answers {
        script.push_str(&format!("'{words} '*) printf '%s' '{answer}';;\n"));
    }
    script.push_str("*) echo \"An error occurred (AccessDenied): $*\" >&2; exit 254;;\nesac\n");
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let served = Served::start();
    served.settled("{}");
    let mut command = served.command(&["doctor", "--stack", "shop", "-o", "json"]);
    command.env("PATH", format!("{}:/bin:/usr/bin", folder.path().display()));
    run(command, "").with_status(status).json()
}

/// What the tool tells of a stack, with its nested one.
fn stack(status: &str) -> Vec<(&'static str, Value)> {
    let resource = |kind: &str, name: &str, id: &str| {
        json!({"ResourceType": kind, "LogicalResourceId": name, "PhysicalResourceId": id,
               "ResourceStatus": status})
    };
    let own =
        [resource("AWS::SQS::Queue", "AgentsQueue", "q"), resource("AWS::CloudFormation::Stack", "Alarms", "arn:a")];
    let nested = [resource("AWS::CloudWatch::Alarm", "Throttles", "shop-throttles")];
    vec![
        ("cloudformation describe-stacks --stack-name shop", json!({"Stacks": [{"StackStatus": status}]})),
        ("cloudformation list-stack-resources --stack-name shop", json!({"StackResourceSummaries": own})),
        ("cloudformation list-stack-resources --stack-name arn:a", json!({"StackResourceSummaries": nested})),
    ]
}

/// What it tells of the drift and the alarm.
fn drift_and_alarm(drifts: &Value, alarm: &str) -> [(&'static str, Value); 4] {
    let alarm = json!({"AlarmName": "shop-throttles", "AlarmDescription": "Too many. To do: ask for more.", "StateValue": alarm});
    [
        ("cloudformation detect-stack-drift --stack-name shop", json!({"StackDriftDetectionId": "d"})),
        (
            "cloudformation describe-stack-drift-detection-status --stack-drift-detection-id d",
            json!({"DetectionStatus": "DETECTION_COMPLETE"}),
        ),
        ("cloudformation describe-stack-resource-drifts --stack-name shop", json!({"StackResourceDrifts": drifts})),
        ("cloudwatch describe-alarms --alarm-names shop-throttles", json!({"MetricAlarms": [alarm]})),
    ]
}

#[test]
fn a_stack_that_nobody_changed_and_whose_alarms_are_quiet_is_well() {
    let report = told_of_stack(0, &[stack("UPDATE_COMPLETE"), drift_and_alarm(&json!([]), "OK").to_vec()].concat());
    for check in ["stack shop", "drift", "alarms"] {
        assert_eq!(finding(&report, check).0, "ok", "{check} in {report}");
    }
}

#[test]
fn a_change_by_hand_an_alarm_and_a_failed_deployment_are_told() {
    let difference = json!({"PropertyPath": "/VisibilityTimeout", "ExpectedValue": "180", "ActualValue": "30"});
    let drifts = json!([{"LogicalResourceId": "AgentsQueue", "StackResourceDriftStatus": "MODIFIED",
        "PropertyDifferences": [difference]}]);
    let report = told_of_stack(1, &[stack("UPDATE_FAILED"), drift_and_alarm(&drifts, "ALARM").to_vec()].concat());
    assert_eq!(finding(&report, "stack shop"), ("warning".to_owned(), "it is UPDATE_FAILED".to_owned()));
    for (check, words) in [
        ("resources", "failed: AgentsQueue, Alarms"),
        ("resource AgentsQueue", "/VisibilityTimeout is 30 and not 180"),
        ("alarm shop-throttles", "Too many"),
    ] {
        let (state, found) = finding(&report, check);
        assert!(state == "wrong" && found.contains(words), "{check} in {report}");
    }
}

#[test]
fn drift_and_alarms_that_may_not_be_seen_are_skipped_and_one_is_told_how_to_ask() {
    let report = told_of_stack(0, &stack("UPDATE_COMPLETE")[..2]);
    let (state, found) = finding(&report, "drift");
    assert!(
        state == "skipped" && found.contains("`aws cloudformation detect-stack-drift --stack-name shop`"),
        "{found}"
    );
    assert_eq!(finding(&report, "alarms").0, "skipped", "{report}");
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
