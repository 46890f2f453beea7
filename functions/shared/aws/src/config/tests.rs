use std::collections::HashMap;

use super::*;

/// A valid environment. Each test changes one part of it.
fn good() -> HashMap<&'static str, &'static str> {
    HashMap::from([
        ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001"),
        ("AWS_LAMBDA_FUNCTION_NAME", "f"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", "a-secret"),
        ("ORDERS_TABLE", "orders"),
        ("TASKS_TABLE", "tasks"),
        ("LEASES_TABLE", "leases"),
        ("SERVICES_TABLE", "services"),
        ("MEMOS_TABLE", "memos"),
        ("JOBS_TABLE", "jobs"),
        ("DEFINITIONS_TABLE", "definitions"),
        ("DEAD_LETTERS_TABLE", "letters"),
        ("INDEX_TABLE", "index"),
        ("NUMBERS_TABLE", "numbers"),
        ("SUBMISSION_QUEUE_URL", "https://sqs.example/1/submission"),
        ("SUBMISSION_HIGH_QUEUE_URL", "https://sqs.example/1/submission-high"),
        ("SCHEDULER_QUEUE_URL", "https://sqs.example/1/scheduler"),
        ("SCHEDULER_HIGH_QUEUE_URL", "https://sqs.example/1/scheduler-high"),
        ("AGENTS_QUEUE_URL", "https://sqs.example/1/agents"),
        ("AGENTS_HIGH_QUEUE_URL", "https://sqs.example/1/agents-high"),
        ("EVENT_BUS_NAME", "bus"),
        ("SENDERS", r#"{"System":["AROAAPI","AROASUPERVISOR"],"Agents":"AROAAGENTS"}"#),
    ])
}

fn read(function: Function, variables: &HashMap<&str, &str>) -> Result<Config, BadConfig> {
    Config::read(function, |name| variables.get(name).map(|&value| value.to_owned()))
}

/// The names of the missing or bad variables.
fn blamed(function: Function, variables: &HashMap<&str, &str>) -> Vec<&'static str> {
    read(function, variables).unwrap_err().0.into_iter().map(|bad| bad.name).collect()
}

#[test]
fn a_function_needs_no_more_than_what_the_template_gives_to_all() {
    for function in [Function::Api, Function::Submission, Function::Scheduler] {
        let config = read(function, &good()).unwrap();
        assert_eq!((&*config.access.region, config.shards), ("eu-central-1", SHARDS));
        assert_eq!((config.tables.dead_letters.as_str(), &*config.event_bus), ("letters", "bus"));
        let shared = config.queues.shared;
        assert_eq!(&**shared.get(Priority::High), "https://sqs.example/1/agents-high");
        assert!(config.reply_channels.is_empty() && config.dead_letter_queues.is_empty());
        assert_eq!(config.access.sqs_url, None);
    }
}

#[test]
fn every_missing_and_bad_variable_is_named_in_one_error_that_says_what_to_do() {
    let mut variables = good();
    variables.remove("TASKS_TABLE");
    variables.insert("EVENT_BUS_NAME", "  ");
    variables.insert("SHARDS", "100");
    variables.insert("SCHEDULER_QUEUE_URL", "scheduler");
    variables.insert("REPLY_CHANNELS", "[]");
    variables.insert("DEAD_LETTER_QUEUES", r#"{"q":"Scheduler"}"#);
    let error = read(Function::Supervisor, &variables).unwrap_err().to_string();
    for part in [
        "TASKS_TABLE is not set: give the name of the table",
        "EVENT_BUS_NAME is not set: give",
        "SHARDS is \"100\": give a number from 1 to 99",
        "SCHEDULER_QUEUE_URL has \"scheduler\", which is no URL",
        "REPLY_CHANNELS cannot be read",
        "DEAD_LETTER_QUEUES has \"q\", which is no ARN",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(!error.contains('\n') && !error.contains("a-secret"), "{error}");
}

#[test]
fn without_any_environment_everything_that_is_needed_is_named_once() {
    let names = blamed(Function::Agents, &HashMap::new());
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
    // The scheduler alone has senders.
    for name in good().keys().filter(|name| **name != "SENDERS") {
        assert!(names.contains(name), "{name}");
    }
    assert!(!names.contains(&"AWS_SESSION_TOKEN") && !names.contains(&"DEAD_LETTER_QUEUES"));
}

#[test]
fn services_have_urls_of_their_own_or_are_played_by_stand_ins() {
    let mut variables = good();
    assert_eq!(read(Function::Agents, &variables).unwrap().services, ServicesConfig::default());
    variables.extend([("PAYMENT_URL", "http://pay.example"), ("SHIPPING_URL", ""), ("AGENT_MEMO", "true")]);
    variables.insert("STAND_INS_URL", "https://api.example/stand-ins/token");
    let services = read(Function::Agents, &variables).unwrap().services;
    assert_eq!(services.urls, BTreeMap::from([("payment".into(), "http://pay.example".into())]));
    assert_eq!((services.stand_ins.as_deref(), services.memo), (Some("https://api.example/stand-ins/token"), true));
    variables.extend([("STAND_INS_URL", "nonsense"), ("AGENT_MEMO", "yes")]);
    assert_eq!(blamed(Function::Agents, &variables), ["STAND_INS_URL", "AGENT_MEMO"]);
}

#[test]
fn rule_22_what_serves_an_agent_beside_its_table_is_known_unless_the_variables_are_of_an_earlier_stack() {
    let mut variables = good();
    assert_eq!(read(Function::Api, &variables).unwrap().served, None);
    variables.insert("SERVED_AGENTS", ",,");
    assert_eq!(read(Function::Api, &variables).unwrap().served, Some(BTreeSet::new()));
    variables.insert("SERVED_AGENTS", "inventory,,shipping");
    variables.insert("AGENT_QUEUES", r#"{"tax":{"normal":"https://q/1/a","high":"https://q/1/b"}}"#);
    let served = ["inventory", "shipping", "tax"].map(Arc::from);
    assert_eq!(read(Function::Api, &variables).unwrap().served, Some(served.into()));
}

#[test]
fn the_scheduler_waits_for_calls_under_way_as_the_settings_of_the_agents_say() {
    let mut variables = good();
    variables.insert("AGENTS", "[agents.payment]\nsettles_within = \"2m\"\ncall_timeout = \"15s\"");
    let settles_within_ms = read(Function::Scheduler, &variables).unwrap().settles_within_ms;
    assert_eq!(settles_within_ms, BTreeMap::from([("payment".into(), 120_000)]));
    variables.insert("AGENTS", "agents = 1");
    assert_eq!(blamed(Function::Scheduler, &variables), ["AGENTS"]);
}

#[test]
fn rule_45_the_scheduler_knows_who_may_send_what() {
    let mut variables = good();
    let queues = r#"{"customs":{"normal":"https://q/1/a","high":"https://q/1/b"},
        "tax":{"normal":"https://q/1/c","high":"https://q/1/d"}}"#;
    variables.insert("AGENT_QUEUES", queues);
    variables.insert("AGENT_SENDERS", r#"{"customs":["AROACUSTOMS"]}"#);
    let expected = Senders {
        system: ["AROAAPI", "AROASUPERVISOR"].map(Arc::from).into(),
        agents: "AROAAGENTS".into(),
        own: [("customs".into(), ["AROACUSTOMS".into()].into()), ("tax".into(), BTreeSet::new())].into(),
    };
    assert_eq!(read(Function::Scheduler, &variables).unwrap().senders, expected);
    assert_eq!(read(Function::Api, &variables).unwrap().senders, Senders::default());
    variables.insert("AGENT_SENDERS", r#"{"shop":["arn:aws:iam::1:role/shop"]}"#);
    assert_eq!(blamed(Function::Scheduler, &variables), ["AGENT_SENDERS"; 2]);
    variables.insert("SENDERS", "{}");
    assert_eq!(blamed(Function::Scheduler, &variables), ["SENDERS"]);
    variables.remove("SENDERS");
    assert_eq!(blamed(Function::Scheduler, &variables), ["SENDERS"], "a scheduler trusts no sender unasked");
}

#[test]
fn agents_share_a_pair_of_queues_and_one_may_have_its_own() {
    let mut variables = good();
    variables.insert("AGENT_QUEUES", r#"{"payment":{"normal":"https://q/1/a","high":"nonsense"}}"#);
    let error = read(Function::Api, &variables).unwrap_err().to_string();
    assert!(error.contains("has \"nonsense\"") && error.contains("of payment, high"), "{error}");
    variables.remove("AGENT_QUEUES");
    assert_eq!(&*read(Function::Api, &variables).unwrap().queues.shared.normal, "https://sqs.example/1/agents");
    variables.remove("AGENTS_QUEUE_URL");
    assert_eq!(blamed(Function::Api, &variables), ["AGENTS_QUEUE_URL"]);
}

#[test]
fn the_supervisor_knows_whose_dead_letters_a_queue_holds() {
    let mut variables = good();
    assert_eq!(blamed(Function::Supervisor, &variables), ["DEAD_LETTER_QUEUES"]);
    let queues = r#"{"arn:aws:sqs:r:1:a":"Submission","arn:aws:sqs:r:1:b":{"Agent":"payment"}}"#;
    variables.insert("DEAD_LETTER_QUEUES", queues);
    let config = read(Function::Supervisor, &variables).unwrap();
    assert_eq!(config.dead_letter_queues["arn:aws:sqs:r:1:a"], SourceQueue::Submission);
    assert_eq!(config.dead_letter_queues["arn:aws:sqs:r:1:b"], SourceQueue::Agent("payment".into()));
}

#[test]
fn an_endpoint_of_its_own_goes_before_the_one_of_all_and_an_empty_one_is_none() {
    let mut variables = good();
    variables.insert("AWS_ENDPOINT_URL", "");
    assert_eq!(read(Function::Api, &variables).unwrap().access.dynamodb_url, None);
    variables.insert("AWS_ENDPOINT_URL", "http://127.0.0.1:4566");
    variables.insert("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9324");
    let access = read(Function::Api, &variables).unwrap().access;
    assert_eq!(access.dynamodb_url.as_deref(), Some("http://127.0.0.1:4566"));
    assert_eq!(access.sqs_url.as_deref(), Some("http://127.0.0.1:9324"));
    assert_eq!(access.eventbridge_url.as_deref(), Some("http://127.0.0.1:4566"));
    variables.insert("AWS_ENDPOINT_URL", "127.0.0.1:4566");
    assert_eq!(blamed(Function::Api, &variables), ["AWS_ENDPOINT_URL"]);
}

#[test]
fn an_instance_has_a_short_name_of_its_own() {
    let config = read(Function::Scheduler, &good()).unwrap();
    let instance = config.instance("scheduler", 0x0123_4567_89ab_cdef).unwrap();
    assert_eq!((&*instance.name, instance.shards), ("scheduler-01234567", SHARDS));
}

#[test]
fn another_program_names_its_own_variables_with_the_common_ones() {
    let mut variables = good();
    let lookup = |variables: &HashMap<&str, &str>| {
        let variables: HashMap<String, String> =
            variables.iter().map(|(&name, &value)| (name.to_owned(), value.to_owned())).collect();
        move |name: &str| variables.get(name).cloned()
    };
    let own = [("STANDINS_TABLE", "give a table"), ("STANDINS_TOKEN", "give a token")];
    variables.insert("STANDINS_TABLE", "keys");
    variables.remove("AWS_REGION");
    let error = Access::read_with(lookup(&variables), own).unwrap_err();
    assert_eq!(error.0.iter().map(|bad| bad.name).collect::<Vec<_>>(), ["AWS_REGION", "STANDINS_TOKEN"]);
    variables.extend([("AWS_REGION", "eu-central-1"), ("STANDINS_TOKEN", "token")]);
    let (_, [table, token]) = Access::read_with(lookup(&variables), own).unwrap();
    assert_eq!((&*table, &*token), ("keys", "token"));
}

#[test]
fn what_is_redacted_is_a_list_of_names_and_has_a_default() {
    let redacted = |variables: &HashMap<&str, &str>| {
        let names = read(Function::Api, variables).unwrap().redacted;
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut variables = good();
    assert_eq!(redacted(&variables), ["CardNumber", "Cvc", "Iban", "Password"]);
    variables.insert("REDACT", "Email, Phone");
    assert_eq!(redacted(&variables), ["Email", "Phone"]);
    let long = "x".repeat(65);
    for bad in ["Email,,Phone", ",", &long] {
        let mut variables = good();
        variables.insert("REDACT", bad);
        assert_eq!(blamed(Function::Api, &variables), ["REDACT"], "{bad}");
    }
}

#[test]
fn rule_42_scopes_and_signatures_have_no_roles_until_the_deployment_gives_them() {
    let mut variables = good();
    variables.insert("IAM_ROLES", "{}");
    let config = read(Function::Api, &variables).unwrap();
    assert_eq!((config.role_scopes, config.iam_roles), (None, None));
    let roles = r#"{"arn:aws:iam::123456789012:role/shop": ["application"]}"#;
    variables.insert("ROLE_SCOPES", "stepwarden/");
    variables.insert("IAM_ROLES", roles);
    let config = read(Function::Api, &variables).unwrap();
    assert_eq!((config.role_scopes.as_deref(), config.iam_roles.as_deref()), (Some("stepwarden/"), Some(roles)));
}
