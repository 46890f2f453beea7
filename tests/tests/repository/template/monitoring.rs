//! The alarms: every deployed resource has its alarms.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::cloudformation::{Template, root};

const NAME: &str = "${AWS::StackName}";
const EARLIER: [&str; 3] = ["-inventory", "-payment", "-shipping"];

/// What the alarms of a metric are about: the names behind the stack's, `-submission` and so on.
fn watched(alarms: &Template, metric: &str) -> BTreeSet<String> {
    let alarms = alarms.of_kind("AWS::CloudWatch::Alarm").into_iter();
    let of_metric = alarms.filter(|alarm| alarm.properties["MetricName"] == metric);
    of_metric
        .map(|alarm| alarm.properties["Dimensions"][0]["Value"]["Fn::Sub"].as_str().unwrap().replace("${Name}", ""))
        .collect()
}

/// The names behind the stack's of all resources of a kind that satisfy a condition.
fn deployed(template: &Template, kind: &str, property: &str, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let found = template.of_kind(kind).into_iter().filter(|resource| wanted(resource.properties));
    found.map(|resource| resource.properties[property]["Fn::Sub"].as_str().unwrap().replace(NAME, "")).collect()
}

#[test]
fn every_queue_is_watched_for_old_messages_and_every_dead_letter_queue_for_dead_letters() {
    let (template, alarms) = (Template::main(), Template::at("infra/alarms.yaml"));
    let queues = |is_priority: bool| {
        let deployed = deployed(&template, "AWS::SQS::Queue", "QueueName", |queue| {
            queue.get("RedrivePolicy").is_some() == is_priority
        });
        // No function sends to the queues of earlier versions. The supervisor finds a request that is stuck there.
        let is_earlier = |queue: &String| EARLIER.iter().any(|agent| queue.starts_with(agent));
        deployed.into_iter().filter(|queue| !is_earlier(queue)).collect()
    };
    assert_eq!(watched(&alarms, "ApproximateAgeOfOldestMessage"), queues(true));
    assert_eq!(watched(&alarms, "ApproximateNumberOfMessagesVisible"), queues(false));
    // A dead letter that cannot be settled is delivered again as soon as it is visible.
    assert_eq!(watched(&alarms, "ApproximateNumberOfMessagesNotVisible"), queues(false));
}

#[test]
fn every_function_is_watched_for_errors_and_throttles() {
    let (template, alarms) = (Template::main(), Template::at("infra/alarms.yaml"));
    let functions = deployed(&template, "AWS::Serverless::Function", "FunctionName", |function| {
        function["CodeUri"] != "infra/standins"
    });
    assert_eq!(watched(&alarms, "Errors"), functions);
    assert_eq!(watched(&alarms, "Throttles"), functions);
}

#[test]
fn a_supervisor_that_says_nothing_is_missed() {
    let alarms = Template::at("infra/alarms.yaml");
    let missing = alarms.resource("SupervisorMissing").properties;
    // Its invocations would not do: dead letters invoke it as well, also when nothing calls it to a run any more.
    assert_eq!(
        (&missing["MetricName"], &missing["TreatMissingData"]),
        (&json!("supervisor_runs"), &json!("breaching"))
    );
    assert_eq!(missing["Namespace"]["Fn::Sub"], "Stepwarden/${Name}");
    assert_eq!(missing["Dimensions"], json!([{"Name": "Function", "Value": "supervisor"}]));
    assert_eq!((&missing["Period"], &missing["EvaluationPeriods"]), (&json!(300), &json!(1)));
    assert!(sources(&root().join("functions")).contains("monotonic_counter.supervisor_runs = 1"));
}

#[test]
fn every_alarm_is_told_to_the_topic() {
    for alarm in Template::at("infra/alarms.yaml").of_kind("AWS::CloudWatch::Alarm") {
        assert_eq!(alarm.properties["AlarmActions"], json!([{"Ref": "TopicArn"}]), "{}", alarm.id);
    }
}

#[test]
fn the_dashboard_is_json_for_every_stack() {
    let dashboard = Template::at("infra/dashboard.yaml");
    let body = dashboard.resource("Dashboard").properties["DashboardBody"]["Fn::Sub"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert!(body["widgets"].as_array().unwrap().len() >= 10);
}

#[test]
fn the_dashboard_shows_no_metric_of_ours_that_nobody_writes() {
    let dashboard = Template::at("infra/dashboard.yaml");
    let body = dashboard.resource("Dashboard").properties["DashboardBody"]["Fn::Sub"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let widgets = body["widgets"].as_array().unwrap().iter();
    let metrics = widgets.flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap());
    let ours = metrics.filter(|metric| metric[0] == "Stepwarden/${Name}");
    let ours: BTreeSet<&str> = ours.map(|metric| metric[1].as_str().unwrap()).collect();
    assert!(ours.contains("orders_processed"));
    let written = sources(&root().join("functions"));
    for name in ours {
        let kinds = ["monotonic_counter", "histogram", "gauge"];
        assert!(kinds.iter().any(|kind| written.contains(&format!("{kind}.{name} "))), "nobody writes {name}");
    }
}

/// All Rust sources below a folder.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: &Path| match path.extension() {
        _ if path.is_dir() => sources(path),
        Some(ending) if ending == "rs" => fs::read_to_string(path).unwrap(),
        Some(_) | None => String::new(),
    };
    entries.map(|path| text(&path)).collect()
}

#[test]
fn alerts_of_every_kind_that_is_published_reach_the_topic() {
    let template = Template::main();
    let pattern = &template.resource("AlertRule").properties["EventPattern"];
    assert_eq!(pattern["source"], json!(["stepwarden"]));
    let kinds = [
        "OrderNeedsOperator",
        "ReplyChannelFailing",
        "OrderLate",
        "OrderNeedsApproval",
        "DeadLetterUnreadable",
        "ServiceMisconfigured",
        "ServiceRejecting",
        "AlertBegan",
        "AlertEnded",
    ];
    assert_eq!(pattern["detail-type"], json!(kinds));
}

#[test]
fn the_bus_publishes_to_the_topic_without_a_condition_which_it_does_not_support_there() {
    let template = Template::main();
    let policy = template.resource("AlertTopicPolicy").properties;
    let of = |service: &str| {
        let mut all = policy["PolicyDocument"]["Statement"].as_array().unwrap().iter();
        all.find(|statement| statement["Principal"]["Service"] == service).unwrap()
    };
    assert_eq!(of("events.amazonaws.com").get("Condition"), None);
    assert!(of("cloudwatch.amazonaws.com").get("Condition").is_some());
}
