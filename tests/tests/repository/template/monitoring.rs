//! The alarms: every deployed resource has its alarms.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::cloudformation::{Resource, Template, root};

const NAME: &str = "${AWS::StackName}";

/// The templates of the alarms.
fn alarms() -> [Template; 2] {
    ["infra/alarms.yaml", "infra/outages.yaml"].map(Template::at)
}

fn of_alarms(templates: &[Template; 2]) -> Vec<Resource<'_>> {
    templates.iter().flat_map(|template| template.of_kind("AWS::CloudWatch::Alarm")).collect()
}

/// The metrics of an alarm: its own, or those of its expression.
fn metrics<'a>(alarm: Resource<'a>) -> Vec<&'a Value> {
    match alarm.properties.get("Metrics") {
        Some(several) => several.as_array().unwrap().iter().filter_map(|one| one["MetricStat"].get("Metric")).collect(),
        None => vec![alarm.properties],
    }
}

/// What the alarms of a metric are about: the names behind the stack's, `-submission` and so on.
fn watched(metric: &str) -> BTreeSet<String> {
    let templates = alarms();
    let all = of_alarms(&templates).into_iter().flat_map(metrics);
    let of_metric = all.filter(|found| found["MetricName"] == metric);
    of_metric.map(|found| found["Dimensions"][0]["Value"]["Fn::Sub"].as_str().unwrap().replace("${Name}", "")).collect()
}

/// The names behind the stack's of all resources of a kind that satisfy a condition.
fn deployed(template: &Template, kind: &str, property: &str, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let found = template.of_kind(kind).into_iter().filter(|resource| wanted(resource.properties));
    found.map(|resource| resource.properties[property]["Fn::Sub"].as_str().unwrap().replace(NAME, "")).collect()
}

#[test]
fn every_queue_is_watched_for_old_messages_and_every_dead_letter_queue_for_dead_letters() {
    let template = Template::main();
    let queues = |is_priority: bool| {
        deployed(&template, "AWS::SQS::Queue", "QueueName", |queue| queue.get("RedrivePolicy").is_some() == is_priority)
    };
    assert_eq!(watched("ApproximateAgeOfOldestMessage"), queues(true));
    assert_eq!(watched("ApproximateNumberOfMessagesVisible"), queues(false));
    // A dead letter that cannot be settled is delivered again as soon as it is visible. Nobody receives alerts there.
    let mut settled = watched("ApproximateNumberOfMessagesNotVisible");
    assert!(settled.insert("-alerts-dead".to_owned()));
    assert_eq!(settled, queues(false));
}

#[test]
fn every_function_is_watched_for_errors_and_throttles() {
    let template = Template::main();
    let functions = deployed(&template, "AWS::Serverless::Function", "FunctionName", |function| {
        function["CodeUri"] != "infra/standins"
    });
    assert_eq!(watched("Throttles"), functions);
    // An error of api is an answer 5xx of the HTTP API.
    let mut errors = watched("Errors");
    assert!(errors.insert("-api".to_owned()));
    assert_eq!(errors, functions);
    let templates = alarms();
    assert!(of_alarms(&templates).iter().any(|alarm| alarm.properties["MetricName"] == "5xx"));
}

#[test]
fn a_supervisor_that_says_nothing_is_missed() {
    let alarms = Template::at("infra/alarms.yaml");
    let missing = alarms.resource("SupervisorMissing").properties;
    // Its invocations would not do: dead letters invoke it as well, also when nothing calls it to a run any more.
    assert_eq!((&missing["TreatMissingData"], &missing["EvaluationPeriods"]), (&json!("breaching"), &json!(5)));
    let watched = &missing["Metrics"][1]["MetricStat"];
    assert_eq!((&watched["Stat"], &watched["Period"]), (&json!("Sum"), &json!(60)));
    let metric = &watched["Metric"];
    assert_eq!(
        (&metric["MetricName"], &metric["Namespace"]["Fn::Sub"]),
        (&"supervisor_runs".into(), &"Stepwarden/${Name}".into())
    );
    assert_eq!(metric["Dimensions"], json!([{"Name": "Function", "Value": "supervisor"}]));
    assert!(sources(&root().join("functions")).contains("monotonic_counter.supervisor_runs = 1"));
}

#[test]
fn every_alarm_is_told_to_the_topic_with_what_happened_and_what_to_do() {
    let templates = alarms();
    let mut names = BTreeSet::new();
    for Resource { id, properties, .. } in of_alarms(&templates) {
        assert_eq!(properties["AlarmActions"], json!([{"Ref": "TopicArn"}]), "{id}");
        // What the topic cannot deliver would set off its own alarm again.
        let ok = if id == "AlertTopicFailing" { json!(null) } else { json!([{"Ref": "TopicArn"}]) };
        assert_eq!(properties["OKActions"], ok, "{id}");
        let words = properties["AlarmDescription"].as_str().unwrap();
        let (happened, to_do) = words.split_once(" To do: ").unwrap_or_else(|| panic!("{id}: {words}"));
        assert!(happened.len() > 20 && happened.ends_with('.') && to_do.len() > 20 && to_do.ends_with('.'), "{words}");
        assert!(words.len() <= 1_024, "{id}: the platform takes no longer text");
        assert!(names.insert(properties["AlarmName"]["Fn::Sub"].as_str().unwrap().to_owned()), "{id}: twice");
    }
    let documented = read("infra/README.md");
    let table = documented.split("### Alarms").nth(1).unwrap().split("## Traces").next().unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let listed: BTreeSet<String> =
        cells.flat_map(|cell| cell.split(", ")).map(|name| format!("${{Name}}-{}", name.trim_matches('`'))).collect();
    assert_eq!(listed, names, "the alarms of infra/README.md");
    assert!(table.contains(&format!("has {} alarms", names.len())), "their number in infra/README.md");
    let told = Template::main().get("/Parameters/Monitoring/Description").as_str().unwrap().to_owned();
    assert!(told.contains(&format!("the {} alarms", names.len())), "{} alarms: {told}", names.len());
    let prices: Value = serde_json::from_str(&read("tests/benches/bill/prices.json")).unwrap();
    let billed: u32 = of_alarms(&templates).into_iter().map(|alarm| u32::try_from(metrics(alarm).len()).unwrap()).sum();
    assert_eq!(prices["assumed"]["alarm_metrics"], billed);
    let cents = |name: &str| (100.0 * prices["dollars"][name].as_f64().unwrap()).round();
    let metrics = prices["assumed"]["custom_metrics"].as_f64().unwrap();
    let dollars = (metrics * cents("metric_month") + f64::from(billed) * cents("alarm_month")) / 100.0;
    assert!(documented.contains(&format!("${dollars:.2}")), "their costs in infra/README.md: ${dollars:.2}");
}

#[test]
fn an_alarm_with_an_expression_looks_at_all_metrics_whether_or_not_each_has_data() {
    let templates = alarms();
    for Resource { id, properties, .. } in of_alarms(&templates) {
        let Some(several) = properties.get("Metrics") else { continue };
        let (expressions, stats): (Vec<_>, Vec<_>) =
            several.as_array().unwrap().iter().partition(|one| one.get("Expression").is_some());
        let [expression] = expressions.as_slice() else { panic!("{id}: one expression") };
        let words = expression["Expression"].as_str().unwrap();
        assert!(["SUM(FILL(METRICS(), 0))", "MAX(FILL(METRICS(), 0))"].contains(&words), "{id}: {words}");
        assert!((1..=9).contains(&stats.len()), "{id}: the platform takes ten at most");
        assert!(stats.iter().all(|stat| stat["ReturnData"] == false), "{id}");
    }
}

#[test]
fn every_metric_of_ours_that_an_alarm_watches_is_documented_written_and_rung_in_a_test() {
    let documented = read("functions/shared/aws/src/telemetry/metrics.md");
    // The names; in brackets the functions, and after a semicolon the dimensions.
    let lines: Vec<(&str, &str)> =
        documented.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(')')?.0.split_once(" (")).collect();
    let (written, rung) = (sources(&root().join("functions")), read("tests/tests/adapters/alarms.rs"));
    let templates = alarms();
    let ours = of_alarms(&templates).into_iter().flat_map(metrics);
    let ours = ours.filter(|metric| metric["Namespace"]["Fn::Sub"] == "Stepwarden/${Name}");
    let mut seen = BTreeSet::new();
    for metric in ours {
        let name = metric["MetricName"].as_str().unwrap();
        let line = lines.iter().find(|(names, _)| names.split(", ").any(|one| one.trim_matches('`') == name));
        let (_, of) = line.unwrap_or_else(|| panic!("metrics.md does not have {name}"));
        let functions = of.split(';').next().unwrap_or_default();
        let [dimension] = metric["Dimensions"].as_array().unwrap().as_slice() else { panic!("{name}: one dimension") };
        let function = dimension["Value"].as_str().unwrap();
        assert_eq!(dimension["Name"], "Function", "{name}");
        let is_of_function = functions.split(", ").any(|one| one == function) || functions == "all with a queue";
        assert!(is_of_function, "{name} of {function}: {functions}");
        let kinds = ["monotonic_counter", "gauge"];
        assert!(kinds.iter().any(|kind| written.contains(&format!("{kind}.{name} "))), "nobody writes {name}");
        assert!(rung.contains(&format!("(\"{name}\"")), "no test rings {name}");
        seen.insert(name);
    }
    assert!(seen.len() >= 9, "{seen:?}");
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

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
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
fn an_alert_that_cannot_be_delivered_is_kept_and_nobody_else_may_put_one_there() {
    let template = Template::main();
    let queue = json!({"Fn::GetAtt": "UndeliveredAlerts.Arn"});
    let rule = template.resource("AlertRule").properties;
    assert_eq!(rule["Targets"][0]["DeadLetterConfig"], json!({"Arn": queue}));
    assert_eq!(rule["Name"]["Fn::Sub"], "${AWS::StackName}-alerts", "the alarm knows it by this name");
    let redrive = &template.resource("AlertSubscription").properties["RedrivePolicy"];
    assert_eq!(*redrive, json!({"deadLetterTargetArn": queue}));
    let policy = template.resource("UndeliveredAlertsPolicy").properties;
    let statements = policy["PolicyDocument"]["Statement"].as_array().unwrap();
    let allowed: Vec<_> = statements
        .iter()
        .map(|one| {
            assert_eq!((&one["Action"], &one["Resource"]), (&json!("sqs:SendMessage"), &queue));
            (&one["Principal"]["Service"], &one["Condition"]["ArnEquals"]["aws:SourceArn"])
        })
        .collect();
    let (bus, topic) = (json!("events.amazonaws.com"), json!("sns.amazonaws.com"));
    let (of_rule, of_topic) = (json!({"Fn::GetAtt": "AlertRule.Arn"}), json!({"Ref": "AlertTopic"}));
    assert_eq!(allowed, [(&bus, &of_rule), (&topic, &of_topic)]);
    assert_eq!(template.resource("UndeliveredAlerts").properties["MessageRetentionPeriod"], 14 * 24 * 60 * 60);
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
