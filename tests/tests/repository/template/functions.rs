//! The functions, and their event sources.

use std::collections::{BTreeMap, BTreeSet};

use aws::config::{Config, Function};
use domain::limits::BATCH_MAX;
use serde_json::{Value, json};

use super::cloudformation::{Resource, Template, root};

const FUNCTION: &str = "AWS::Serverless::Function";

/// The SQS sources of a function: the queue's id, and the source's properties.
fn sources<'a>(function: Resource<'a>) -> Vec<(&'a str, &'a Value)> {
    let Some(events) = function.properties["Events"].as_object() else { return Vec::new() };
    let sources = events.values().filter(|event| event["Type"] == "SQS").map(|event| &event["Properties"]);
    sources
        .map(|source| (source["Queue"]["Fn::GetAtt"].as_str().unwrap().strip_suffix(".Arn").unwrap(), source))
        .collect()
}

#[test]
fn loops_are_allowed_where_an_orders_messages_go_round_and_nowhere_else() {
    let template = Template::main();
    let loops: BTreeMap<&str, &Value> = template
        .of_kind(FUNCTION)
        .into_iter()
        .filter_map(|function| Some((function.id, function.properties.get("RecursiveLoop")?)))
        .collect();
    let allow = json!("Allow");
    let expected = ["AgentsFunction", "Scheduler", "Supervisor"].map(|id| (id, &allow));
    assert_eq!(loops, expected.into());
}

#[test]
fn those_that_decide_until_when_a_call_may_run_know_the_settings_of_the_agents() {
    let template = Template::main();
    // The supervisor ends attempts, so it needs `settles_within` like the scheduler (rule 16).
    for function in ["Scheduler", "Supervisor", "AgentsFunction"] {
        let variables = &template.resource(function).properties["Environment"]["Variables"];
        assert_eq!(variables["AGENTS"], json!({"Ref": "Agents"}), "{function}");
    }
}

#[test]
fn a_message_stays_hidden_for_six_times_as_long_as_its_function_may_take() {
    let template = Template::main();
    let mut sources_seen = 0;
    for function in template.of_kind(FUNCTION) {
        let timeout_s = function.properties["Timeout"].as_u64().unwrap();
        for (queue, _) in sources(function) {
            let hidden_s = template.resource(queue).properties["VisibilityTimeout"].as_u64().unwrap();
            assert!(hidden_s >= 6 * timeout_s, "{queue}: {hidden_s} s, {} takes {timeout_s} s", function.id);
            sources_seen += 1;
        }
    }
    assert_eq!(sources_seen, 9);
}

#[test]
fn every_queue_feeds_one_function_in_batches_that_may_fail_in_part() {
    let template = Template::main();
    let mut fed = Vec::new();
    for function in template.of_kind(FUNCTION) {
        for (queue, source) in sources(function) {
            assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{queue}");
            assert_eq!(source["BatchSize"], json!(BATCH_MAX), "{queue}");
            assert!(source["ScalingConfig"]["MaximumConcurrency"] != Value::Null, "{queue}");
            fed.push(queue);
        }
    }
    fed.sort_unstable();
    let queues = template.of_kind("AWS::SQS::Queue").into_iter();
    // People read the alerts that could not be delivered.
    let mut queues: Vec<&str> = queues.map(|queue| queue.id).filter(|id| *id != "UndeliveredAlerts").collect();
    queues.sort_unstable();
    assert_eq!(fed, queues);
}

#[test]
fn so_many_instances_are_as_many_as_the_platform_takes() {
    let template = Template::main();
    for (size, numbers) in template.get("/Mappings/MaximumConcurrency").as_object().unwrap() {
        for (whose, number) in numbers.as_object().unwrap() {
            assert!(number.as_u64().is_some_and(|number| (2..=1_000).contains(&number)), "{size} {whose}: {number}");
        }
    }
}

#[test]
fn the_instances_that_the_queues_may_ask_for_are_documented() {
    let template = Template::main();
    let document = std::fs::read_to_string(root().join("infra/README.md")).unwrap();
    for (size, numbers) in template.get("/Mappings/MaximumConcurrency").as_object().unwrap() {
        let of = |whose: &str| numbers[whose].as_u64().unwrap();
        let row = format!("| `{size}` | {} | {} |", 4 * of("Queue"), 2 * of("Agent"));
        assert!(document.contains(&row), "{row}");
    }
    let dead = sources(template.resource("Supervisor"));
    let dead: u64 =
        dead.iter().map(|(_, source)| source["ScalingConfig"]["MaximumConcurrency"].as_u64().unwrap()).sum();
    // Besides the dead letters: four shards of a new table's stream, and the schedule.
    assert!(document.contains(&format!("Add {} for the supervisor", dead + 4 + 1)));
}

#[test]
fn each_function_is_given_every_variable_that_it_reads() {
    let template = Template::main();
    let functions = [
        ("Api", Function::Api),
        ("Submission", Function::Submission),
        ("Scheduler", Function::Scheduler),
        ("AgentsFunction", Function::Agents),
        ("Supervisor", Function::Supervisor),
    ];
    for (id, function) in functions {
        let config = Config::read(function, |name| {
            let is_from_lambda = name.starts_with("AWS_") && !name.starts_with("AWS_ENDPOINT_URL");
            if is_from_lambda { Some("1".into()) } else { variable(&template, id, name) }
        });
        let config = config.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(!config.senders.system.is_empty(), id == "Scheduler", "{id}");
        assert_eq!(config.services.stand_ins, None, "{id}");
        assert!(config.queues.agents.is_empty(), "{id}");
        assert_eq!(config.access.sqs_url, None, "AWS is where AWS is");
    }
}

#[test]
fn stand_ins_play_services_only_in_a_deployment_that_asks_for_them_and_agents_and_api_know_it() {
    assert_eq!(*Template::main().get("/Parameters/StandIns/Default"), "false");
    let trial = Template::main().with("StandIns", "true");
    let told = ["Api", "Submission", "Scheduler", "AgentsFunction", "Supervisor"]
        .map(|id| variable(&trial, id, "STAND_INS_URL").is_some());
    assert_eq!(told, [true, false, false, true, false]);
    let token = variable(&trial, "StandInServices", "STANDINS_TOKEN").unwrap();
    assert!(token.len() >= 13 && variable(&trial, "AgentsFunction", "STAND_INS_URL").unwrap().ends_with(&token));
    assert!(!variable(&trial, "Api", "STAND_INS_URL").unwrap().contains(&token), "who knows the token may call them");
    assert!(variable(&trial, "StandInServices", "STANDINS_TABLE").is_some());
}

#[test]
fn rule_22_the_functions_know_which_agents_have_a_service_by_a_parameter() {
    let served = |template: &Template| variable(template, "Api", "SERVED_AGENTS").unwrap();
    let shop =
        Template::main().with("InventoryUrl", "https://shop.example").with("ShippingUrl", "https://ship.example");
    assert_eq!(served(&shop), "inventory,,shipping");
    // The agents do not call them then.
    assert_eq!(served(&shop.with("StandIns", "true")), ",,");
}

#[test]
fn a_deployment_without_stand_ins_says_where_its_services_are() {
    let is_refused = |given: &[(&str, &str)]| {
        let template = given.iter().fold(Template::main(), |template, (name, value)| template.with(name, value));
        let rule = template.get("/Rules/WithoutStandInsServicesAreNeeded");
        let [assertion] = rule["Assertions"].as_array().unwrap().as_slice() else { panic!("one assertion: {rule}") };
        let words = assertion["AssertDescription"].as_str().unwrap();
        assert!(["StandIns=true", "InventoryUrl", "Agents"].iter().all(|word| words.contains(word)), "{words}");
        template.holds(&rule["RuleCondition"]) && !template.holds(&assertion["Assert"])
    };
    let urls = ["InventoryUrl", "PaymentUrl", "ShippingUrl"].map(|name| (name, "https://shop.example"));
    assert!(is_refused(&[]) && is_refused(&urls[..2]) && is_refused(&urls[1..]));
    assert!(!is_refused(&urls) && !is_refused(&[("StandIns", "true")]) && !is_refused(&[("Agents", "#applied")]));
}

#[test]
fn each_function_counts_in_the_namespace_of_its_stack_and_makes_no_traces_unless_it_is_told_where_to() {
    let template = Template::main();
    let parameter = |name: &str, value: &str| template.get(&format!("/Parameters/{name}/{value}"));
    for id in ["Api", "Submission", "Scheduler", "AgentsFunction", "Supervisor"] {
        let variable = |name: &str| variable(&template, id, name);
        assert_eq!(variable("METRICS_NAMESPACE").unwrap(), "Stepwarden/AWS::StackName", "{id}");
        let untold = trace::Settings::read(variable, id, "aws_sqs");
        assert!(untold.settings.is_none() && untold.problems.is_empty(), "{id}: {untold:?}");
        let told = trace::Settings::read(
            |name| match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://collector".to_owned()),
                _ => variable(name),
            },
            id,
            "aws_sqs",
        );
        assert!(told.settings.is_some() && told.problems.is_empty(), "{id}: {told:?}");
    }
    assert_eq!((parameter("OtlpHeaders", "NoEcho"), parameter("OtlpEndpoint", "Default")), (&json!(true), &json!("")));
}

#[test]
fn the_supervisor_settles_the_dead_letters_of_every_dead_letter_queue_under_its_name() {
    let template = Template::main();
    let named = variable(&template, "Supervisor", "DEAD_LETTER_QUEUES").unwrap();
    let named: BTreeMap<String, Value> = serde_json::from_str(&named).unwrap();
    let fed: BTreeSet<&str> = sources(template.resource("Supervisor")).into_iter().map(|(queue, _)| queue).collect();
    let expected = [
        ("SubmissionDeadLetters", json!("Submission")),
        ("SchedulerDeadLetters", json!("Scheduler")),
        ("AgentsDeadLetters", json!({"Agent": "agents"})),
    ];
    assert_eq!(fed, expected.each_ref().map(|(queue, _)| *queue).into());
    let expected = expected.map(|(queue, whose)| (format!("arn:aws:service:eu-west-1:1:{queue}"), whose));
    assert_eq!(named, expected.into());
}

#[test]
fn the_supervisor_runs_every_minute() {
    let template = Template::main();
    let tick = &template.resource("Supervisor").properties["Events"]["Tick"];
    assert_eq!(
        (&tick["Type"], &tick["Properties"]["ScheduleExpression"]),
        (&json!("ScheduleV2"), &json!("rate(1 minute)"))
    );
}

#[test]
fn the_supervisor_is_given_every_change_of_a_task_with_its_shard_and_until_it_is_counted() {
    let template = Template::main();
    let source = &template.resource("Supervisor").properties["Events"]["Changes"];
    // Neither a number of retries nor an age ends them. One batch of a shard at a time is the default.
    let given = json!({"Fn::Select": [2, {"Fn::Split": [",", {"Fn::Sub": "${Tables},,,,,,,,,"}]}]});
    let expected = json!({
        "Stream": {"Fn::If": ["MakesTables", {"Fn::GetAtt": "TasksTable.StreamArn"}, given]},
        "StartingPosition": "TRIM_HORIZON", "BatchSize": 10_000,
        "MaximumBatchingWindowInSeconds": 30, "TumblingWindowInSeconds": 900,
    });
    assert_eq!((&source["Type"], &source["Properties"]), (&json!("DynamoDB"), &expected));
}

#[test]
fn each_function_is_built_from_a_package_of_the_workspace() {
    let template = Template::main();
    for function in template.of_kind(FUNCTION) {
        let method = template.get(&format!("/Resources/{}/Metadata/BuildMethod", function.id));
        assert_eq!(method, "rust-cargolambda", "{}", function.id);
        let member = function.properties["CodeUri"].as_str().unwrap();
        assert!(root().join(member).join("src/main.rs").is_file(), "{}: {member} has no program", function.id);
    }
}

#[test]
fn whatever_calls_a_function_calls_its_alias() {
    let template = Template::main();
    assert_eq!(template.get("/Globals/Function/AutoPublishAlias"), "live");
    for permission in template.of_kind("AWS::Lambda::Permission") {
        let function = permission.properties["FunctionName"]["Ref"].as_str().unwrap();
        assert!(function.ends_with(".Alias"), "{}: {function}", permission.id);
    }
    for integration in template.of_kind("AWS::ApiGatewayV2::Integration") {
        let uri = integration.properties["IntegrationUri"]["Fn::Sub"].as_str().unwrap();
        assert!(uri.ends_with("}:live/invocations"), "{}: {uri}", integration.id);
        // Otherwise an update could have the gateway call an alias before it may.
        let first = template.get(&format!("/Resources/{}/DependsOn", integration.id)).as_str().unwrap();
        assert_eq!(template.resource(first).kind, "AWS::Lambda::Permission", "{}", integration.id);
    }
}

#[test]
fn a_change_of_any_parameter_that_a_function_is_given_publishes_a_version_of_each() {
    let template = Template::main();
    let (mut given, mut watched) = (BTreeSet::new(), BTreeSet::new());
    parameters(&template, template.get("/Globals/Function"), &mut given);
    let settings = json!({"Fn::Sub": "settings ${SettingsProfile}.${Settings}"});
    for function in template.of_kind(FUNCTION) {
        parameters(&template, function.properties, &mut given);
        assert_eq!(function.properties["AutoPublishAliasAllProperties"], json!(true), "{}", function.id);
        assert_eq!(function.properties["VersionDescription"], settings, "{}", function.id);
    }
    // A version is published of a function that has changed, and of no other.
    let number = json!({"Fn::Sub": "${SettingsProfile}.${Settings}"});
    assert_eq!(*template.get("/Globals/Function/Environment/Variables/SETTINGS_VERSION"), number);
    parameters(&template, &template.resource("Settings").properties["Content"], &mut watched);
    assert_eq!(given, watched);
}

/// The parameters that a value depends on, also by its conditions.
fn parameters(template: &Template, value: &Value, found: &mut BTreeSet<String>) {
    let known = template.get("/Parameters").as_object().unwrap();
    match value {
        Value::Array(items) => {
            for item in items {
                parameters(template, item, found);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    // They are not the function's own, but about who calls it and how calls go over to a version.
                    ("Events" | "DeploymentPreference", _) => {}
                    ("Ref", Value::String(name)) => found.extend(known.contains_key(name).then(|| name.clone())),
                    ("Fn::Sub", Value::String(text)) => {
                        let names = text.split("${").skip(1).filter_map(|part| part.split_once('}'));
                        found.extend(names.map(|(name, _)| name.to_owned()).filter(|name| known.contains_key(name)));
                    }
                    ("Condition", Value::String(name)) => {
                        parameters(template, template.get(&format!("/Conditions/{name}")), found);
                    }
                    ("Fn::If", Value::Array(branches)) => {
                        let condition = branches[0].as_str().unwrap();
                        parameters(template, template.get(&format!("/Conditions/{condition}")), found);
                        for branch in branches {
                            parameters(template, branch, found);
                        }
                    }
                    _ => parameters(template, value, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn calls_go_over_at_once_unless_a_shift_is_asked_for_which_alarms_of_errors_roll_back() {
    let template = Template::main();
    assert_eq!(template.get("/Parameters/Shift/Default"), "AllAtOnce");
    for shift in template.get("/Parameters/Shift/AllowedValues").as_array().unwrap() {
        let shift = shift.as_str().unwrap();
        let is_gradual = template.get(&format!("/Mappings/Shifts/{shift}/IsGradual"));
        assert_eq!(is_gradual, if shift == "AllAtOnce" { "false" } else { "true" }, "{shift}");
    }
    let preference = template.get("/Globals/Function/DeploymentPreference");
    assert_eq!(preference["Enabled"], json!({"Fn::FindInMap": ["Shifts", {"Ref": "Shift"}, "IsGradual"]}));
    assert_eq!(preference["Type"], json!({"Ref": "Shift"}));
    let alarms = ["infra/alarms.yaml", "infra/outages.yaml"].map(Template::at);
    let alarms = alarms.iter().flat_map(|template| template.of_kind("AWS::CloudWatch::Alarm"));
    let names: BTreeSet<String> = alarms
        .map(|alarm| alarm.properties["AlarmName"]["Fn::Sub"].as_str().unwrap().replace("${Name}", "${AWS::StackName}"))
        .collect();
    let brakes = preference["Alarms"].as_array().unwrap();
    assert!(brakes.len() <= 10, "the platform takes no more");
    for brake in brakes {
        assert!(names.contains(brake["Fn::Sub"].as_str().unwrap()), "{brake} is no alarm of the stack");
    }
}

/// A variable of the function. Its own variables override those of all functions.
fn variable(template: &Template, function: &str, name: &str) -> Option<String> {
    let of_all = template.get("/Globals/Function/Environment/Variables");
    let own = &template.resource(function).properties["Environment"]["Variables"];
    own.get(name).or_else(|| of_all.get(name)).and_then(|value| template.text(value))
}
