use domain::limits::SETTLES_WITHIN_MS_MAX;
use domain::workflow::Workflow;

use super::*;
use crate::keys::HEADER_BYTES_MAX;
use crate::webhook::{EventMeaning, WebhookScheme};

fn parse(text: &str) -> Result<Settings, BadSettings> {
    Settings::parse("agents.toml", text)
}

/// The settings of payment with these lines.
fn payment(lines: &str) -> AgentSettings {
    parse(&format!("[agents.payment]\n{lines}")).unwrap().of("payment").unwrap().clone()
}

/// The faults of payment with these lines, of which the first is line 2 of the file.
fn faults(lines: &str) -> Vec<String> {
    let bad = parse(&format!("[agents.payment]\n{lines}")).unwrap_err();
    bad.faults.iter().map(|fault| format!("{}:{}: {}", fault.line, fault.column, fault.problem)).collect()
}

#[track_caller]
fn fault(lines: &str, expected: &str) {
    let found = faults(lines);
    assert!(found.len() == 1 && found[0].contains(expected), "{expected} in {found:?}");
}

#[test]
fn every_setting_may_be_left_out() {
    assert!(parse("").unwrap().of("payment").is_none());
    let settings = payment("");
    assert_eq!((settings.url(), settings.settles_within_ms), (None, SETTLES_WITHIN_MS_DEFAULT));
    assert_eq!(settings.policy, Policy::default());
    let usual = Operations { forward: "charge", undo: "refund" };
    assert_eq!(settings.operations(usual), usual);
}

#[test]
fn a_rate_is_calls_a_second_or_in_a_time_of_its_own() {
    let settings = payment("rate = 20\nconcurrency = 8");
    assert_eq!(settings.policy.health.rate, Some(Rate { calls: 20, per_ms: 1_000 }));
    assert_eq!(settings.policy.concurrency, Some(8));
    let rate = |text: &str| payment(text).policy.health.rate.unwrap();
    assert_eq!(rate("rate = { calls = 100, per = \"1m\" }"), Rate { calls: 100, per_ms: 60_000 });
    assert_eq!(rate("rate = { calls = 7 }"), Rate { calls: 7, per_ms: 1_000 });
    fault("rate = 0", "agents.payment.rate must be a whole number from 1 to 1000");
    fault("rate = \"20/s\"", "rate must be a whole number from 1 to 1000, or a table of calls, per");
    fault("rate = { per = \"1m\" }", "agents.payment.rate.calls is missing");
    fault("rate = { calls = 1, per = \"2h\" }", "agents.payment.rate.per must be a time from \"1s\" to \"1h\"");
    fault("concurrency = 0", "agents.payment.concurrency must be a whole number from 1 to 1000");
}

#[test]
fn an_agent_is_as_its_table_says() {
    let settings = payment(
        r#"
        url = "https://pay.example/v1"
        undo = "refunds"
        call_timeout = "15s"
        settles_within = "2m"
        memo = { retention = "30d" }
        backoff = { slot = "250ms", ceiling = 6, stay_at_ceiling = false, retries_max = 20 }
        breaker = { failures = 8, first_wait = "1s", longest_wait = "40s", stay_at_ceiling = false, rejections = { answers = 7, window = "2m" } }

        [agents.payment.forward]
        operation = "payments/charges"
        status = { 404 = "done", 503 = "no" }

        [agents.payment.headers]
        Api-Version = "2026-11-01"
        "#,
    );
    assert_eq!((settings.url(), settings.settles_within_ms), (Some("https://pay.example/v1"), 120_000));
    let operations = settings.operations(Operations { forward: "charge", undo: "refund" });
    assert_eq!(operations, Operations { forward: "payments/charges", undo: "refunds" });
    let policy = &settings.policy;
    assert_eq!((policy.call_timeout_ms, policy.retries_max), (15_000, 20));
    assert_eq!(policy.memo, Some(MemoPolicy { retention_ms: 30 * 24 * 60 * 60 * 1_000 }));
    assert_eq!(policy.backoff, BackoffPolicy { slot_time_ms: 250, ceiling: 6, stay_at_ceiling: false });
    // No wait is longer than the file says: 1 s × (2^5 − 1) is 31 s.
    let breaker = BackoffPolicy { slot_time_ms: 1_000, ceiling: 5, stay_at_ceiling: false };
    assert_eq!((policy.health.failures_to_open, policy.health.backoff), (8, breaker));
    let rejections = RejectionsPolicy { answers_min: 7, percent: 50, window_ms: 120_000 };
    assert_eq!(policy.health.rejections, Some(rejections));
    assert_eq!(payment("breaker.rejections.on = false").policy.health.rejections, None);
    let statuses = BTreeMap::from([(404, Meaning::Done), (503, Meaning::No)]);
    assert_eq!(*settings.forward_statuses(), StatusTable { statuses, ..StatusTable::default() });
    assert_eq!(*settings.undo_statuses(), StatusTable::default());
    assert_eq!(settings.headers["api-version"], "2026-11-01");
}

#[test]
fn the_examples_in_the_documents_are_valid() {
    let document = include_str!("../../../agent/README.md");
    let examples: Vec<&str> =
        document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let (of_steps, of_agents): (Vec<&str>, Vec<&str>) =
        examples.into_iter().partition(|example| example.starts_with("[step"));
    assert_eq!((of_steps.len(), of_agents.len()), (1, 1));
    assert!(!parse(of_agents[0]).unwrap().0.is_empty());
    let step = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\nwait_within = \"1h\"\n";
    assert!(Workflow::read(&format!("{step}{}", of_steps[0])).is_ok());
}

#[test]
fn every_meaning_has_a_word() {
    for (word, meaning) in [
        ("done", Meaning::Done),
        ("under-way", Meaning::UnderWay),
        ("conflict", Meaning::Conflict),
        ("failing", Meaning::Failing),
        ("unknown", Meaning::Unknown),
        ("misconfigured", Meaning::Misconfigured),
        ("misconfigured-without-code", Meaning::MisconfiguredWithoutCode),
        ("no", Meaning::No),
    ] {
        let settings = payment(&format!("undo.status = {{ 418 = \"{word}\" }}"));
        assert_eq!(settings.undo_statuses().statuses[&418], meaning);
    }
    fault("undo.status = { 418 = \"tea\" }", "2:23: agents.payment.undo.status.418 must be \"done\" or \"under-way\"");
}

#[test]
fn a_meaning_may_depend_on_the_body() {
    let settings = payment(
        r#"
        [[agents.payment.undo.answers]]
        status = 400
        when = "/error/code in ['not_charged', 'refunded']"
        means = "done"

        [[agents.payment.undo.answers]]
        status = 200
        when = "/paid == true"
        means = "no"
        "#,
    );
    let condition = |status, when, means| Condition { status, when: BodyCondition::parse(when).unwrap(), means };
    let conditions = vec![
        condition(400, "/error/code in ['not_charged', 'refunded']", Meaning::Done),
        condition(200, "/paid == true", Meaning::No),
    ];
    assert_eq!(settings.undo_statuses().conditions, conditions);
    let with = |condition: &str| format!("undo.answers = [{{ {condition} }}]");
    for (condition, expected) in [
        ("when = \"/a == 1\", means = \"no\"", "2:17: agents.payment.undo.answers[0].status is missing"),
        ("status = 200, means = \"no\"", "answers[0].when is missing"),
        ("status = 200, when = \"/a == 1\"", "answers[0].means is missing"),
        ("status = 100, when = \"/a == 1\", means = \"no\"", "status must be a whole number from 200 to 599"),
        ("status = 200, when = \"/a\", means = \"no\"", "2:40: agents.payment.undo.answers[0].when needs a comparison"),
        ("status = 200, when = \"a == 1\", means = \"no\"", "a is no function"),
        ("status = 200, when = true, means = \"no\"", "when must be a text in quotes"),
        ("status = 200, when = \"/a == 1\", means = \"tea\"", "means must be \"done\" or \"under-way\""),
        (
            "status = 200, when = \"/a == 1\", means = \"no\", at = \"/a\"",
            "at is not a setting: write when = '/status in [\"paid\", \"captured\"]'",
        ),
        ("status = 200, when = \"/a == 1\", is = \"x\", means = \"no\"", "is is not a setting: write when ="),
    ] {
        fault(&with(condition), expected);
    }
    fault("undo.answers = 7", "undo.answers must be an array of 1 to 32 elements");
    fault("undo.answers = [7]", "undo.answers[0] must be a table");
}

#[test]
fn every_fault_is_named_at_once_with_its_place_and_advice() {
    let text = "\
[agents.\"a bakery\"]
[agents.payment]
url = \"http://pay.example\"
call_timeout = 10
colour = \"red\"
memo = 7
[agents.payment.backoff]
ceiling = 33
[agent.inventory]
";
    let expected = "\
agents.toml:1:9: agents.a bakery is not a valid name: use 1 to 64 letters, digits, '-' and '_'; \
agents.toml:3:7: agents.payment.url is not encrypted: give an https URL, or add allow_http = true; \
agents.toml:4:16: agents.payment.call_timeout must be a time from \"1ms\" to \"59m\"; \
agents.toml:5:1: agents.payment.colour is not a setting. Settings are: url, allow_http, queue, forward, undo, call_timeout, \
settles_within, backoff, breaker, rate, concurrency, memo, fallback, headers, auth, signature, tls, webhook; \
agents.toml:6:8: agents.payment.memo must be true or false, or a table of retention; \
agents.toml:8:11: agents.payment.backoff.ceiling must be a whole number from 0 to 32; \
agents.toml:9:2: agent is not a setting: did you mean agents? Settings are: default, agents, reply_channels, alerts, schedule";
    assert_eq!(parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_toml_is_named_with_its_place() {
    let error = parse("[agents.payment]\nurl = https://pay.example\n").unwrap_err();
    assert_eq!(error.faults[0].line, 2, "{error}");
    assert!(error.to_string().contains("is not TOML"), "{error}");
    assert_eq!(parse("agents = 7").unwrap_err().to_string(), "agents.toml:1:10: agents must be a table");
}

#[test]
fn a_service_on_another_machine_is_called_over_https_unless_the_file_allows_http() {
    for url in ["https://pay.example", "http://localhost:1", "http://127.0.0.2:1/pay", "http://[::1]:1"] {
        assert_eq!(payment(&format!("url = \"{url}\"")).url(), Some(url));
    }
    for url in ["http://pay.example", "http://localhost.example", "http://10.0.0.1", "http://0.0.0.0"] {
        fault(&format!("url = \"{url}\""), "is not encrypted");
        assert_eq!(payment(&format!("url = \"{url}\"\nallow_http = true")).url(), Some(url));
    }
    fault("url = \"https://me:hidden@pay.example\"", "cannot be used: it must not hold a user name or password");
    fault("url = \"\"", "cannot be used: it is empty");
}

#[test]
fn a_call_may_have_its_effect_for_longer_than_its_caller_waits() {
    assert_eq!(payment("settles_within = \"1h\"\ncall_timeout = \"59m\"").settles_within_ms, SETTLES_WITHIN_MS_MAX);
    fault("settles_within = \"61m\"", "2:18: agents.payment.settles_within must be a time from \"1ms\" to \"1h\"");
    fault(
        "settles_within = \"10s\"",
        "settles_within is \"10s\" and must be longer than call_timeout, \"10s\" by default",
    );
    fault("call_timeout = \"30s\"", "2:16: agents.payment.call_timeout is \"30s\", and settles_within must be longer");
    fault("call_timeout = \"0s\"", "call_timeout must be a time from \"1ms\"");
}

#[test]
fn a_value_outside_its_limits_is_refused() {
    for (lines, expected) in [
        ("backoff.slot = \"13h\"", "backoff.slot must be a time from \"1ms\" to \"12h\""),
        ("backoff.retries_max = 500", "backoff.retries_max must be a whole number from 0 to 499"),
        ("backoff.ceiling = -1", "backoff.ceiling must be"),
        ("backoff.stay_at_ceiling = \"no\"", "stay_at_ceiling must be true or false"),
        ("breaker.failures = 0", "breaker.failures must be a whole number from 1"),
        ("breaker = { first_wait = \"1m\" }", "longest_wait is \"15s 500ms\" and must not be shorter than first_wait"),
        ("breaker.longest_wait = \"499ms\"", "must not be shorter than first_wait, \"500ms\""),
        ("breaker.rejections.answers = 0", "breaker.rejections.answers must be a whole number from 1"),
        ("breaker.rejections.percent = 100", "breaker.rejections.percent must be a whole number from 1 to 99"),
        ("breaker.rejections.window = \"2h\"", "breaker.rejections.window must be a time from \"1s\" to \"1h\""),
        ("memo.retention = \"1h\"", "memo.retention must be a time from \"12h\""),
        ("forward = \"/charge\"", "forward must be a path such as \"charge\""),
        ("forward = \"a/../b\"", "forward must be a path"),
        ("forward = \"charge?now\"", "forward must be a path"),
        ("forward.status = { 199 = \"done\" }", "forward.status.199 must be a status from 200 to 599"),
        ("forward.status = { ok = \"done\" }", "forward.status.ok must be a status"),
        ("forward = 7", "forward must be a text in quotes, or a table of operation, status, answers"),
        ("headers = { \"Two Words\" = \"x\" }", "is not a valid name of a header"),
        ("headers = { idempotency-key = \"x\" }", "idempotency-key is set by the agent itself"),
        ("headers = { Content-Type = \"x\" }", "Content-Type is set by the agent itself"),
        ("headers = { a = \"two\\nlines\" }", "headers.a cannot be sent"),
        ("headers = { a = \"1\", A = \"2\" }", "is given twice"),
        ("headers = { a = 1 }", "headers.a must be a text in quotes"),
    ] {
        fault(lines, expected);
    }
    let headers = |count| (0..count).map(|n| format!("headers.h{n} = \"x\"\n")).collect::<String>();
    assert_eq!(payment(&headers(32)).headers.len(), 32);
    fault(&headers(33), "headers has 33 entries: give at most 32");
    let header = |bytes| format!("headers.h = \"{}\"", "x".repeat(bytes));
    assert_eq!(payment(&header(HEADER_BYTES_MAX)).headers.len(), 1);
    fault(&header(HEADER_BYTES_MAX + 1), "headers.h cannot be sent");
}

#[test]
fn an_agent_with_a_memo_names_those_that_may_be_asked_instead() {
    let settings = parse(
        "[agents.payment]\nmemo = true\nfallback = [\"shipping\", \"inventory\"]\n\
         [agents.shipping]\nsettles_within = \"2m\"\n[agents.inventory]\nsettles_within = \"15s\"",
    );
    let settings = settings.unwrap();
    let fallback = |agent| settings.of(agent).unwrap().policy.fallback.iter().map(|name| &**name).collect::<Vec<_>>();
    assert_eq!((fallback("payment"), fallback("shipping")), (vec!["shipping", "inventory"], vec![]));
    // The undo of a step waits for the slowest service that may have been called.
    let settles = |agent| settings.settles_within_ms(agent);
    assert_eq!(["payment", "shipping", "inventory"].map(settles), [120_000, 120_000, 15_000].map(Some));
    assert_eq!(parse("").unwrap().settles_within_ms("payment"), None);
    for (list, expected) in [
        ("\"shipping\"", "2:12: agents.payment.fallback must be an array of 0 to 8 elements"),
        ("[\"payment\"]", "2:13: agents.payment.fallback names the agent itself"),
        ("[\"shipping\", \"shipping\"]", "2:25: agents.payment.fallback names shipping twice"),
        ("[\"bakery\"]", "names \"bakery\", which is not an agent. Agents are: inventory, payment, shipping"),
        ("[7]", "fallback[0] must be a text in quotes"),
    ] {
        fault(&format!("fallback = {list}\nmemo = true"), expected);
    }
    fault("fallback = [\"shipping\"]", "needs the memo of this agent: add memo = true");
    let many = format!("memo = true\nfallback = [{}]", "\"shipping\",".repeat(9));
    assert!(faults(&many).iter().any(|fault| fault.contains("must be an array of 0 to 8 elements")));
}

#[test]
fn no_debug_output_shows_a_header() {
    let settings = payment("headers.X-Shop = \"hidden\"");
    assert!(!format!("{settings:?}").contains("hidden"));
}

#[test]
fn an_agent_may_have_any_name_and_be_served_elsewhere() {
    let settings = parse("[agents.bakery]\nurl = \"http://localhost:1\"\n[agents.oven]\nqueue = \"own\"").unwrap();
    let is_elsewhere = |agent| settings.of(agent).unwrap().has_own_queue;
    assert_eq!((is_elsewhere("bakery"), is_elsewhere("oven")), (false, true));
    assert_eq!(settings.names().collect::<Vec<_>>(), ["bakery", "oven"]);
    fault("queue = \"mine\"", "agents.payment.queue must be \"own\" or \"shared\"");
}

/// The smallest webhook, with these lines.
fn webhook(lines: &str) -> String {
    format!(
        "webhook.secret = \"env:A\"\nwebhook.scheme = \"stripe\"\nwebhook.key = \"/key\"\nwebhook.event = \"/type\"\n\
         webhook.done = [\"paid\"]\n{lines}"
    )
}

#[test]
fn rule_41_a_webhook_is_as_its_table_says() {
    assert!(payment("").webhook.is_none());
    let settings = payment(
        r#"
        [agents.payment.webhook]
        secret = ["env:NEW", "ssm:/shop/old"]
        scheme = "standard-webhooks"
        key = "/data/metadata/order"
        step = "pay"
        event = "/type"
        done = ["payment.succeeded", "payment.captured"]
        no = ["payment.failed"]
        working = ["payment.processing"]
        code = "/data/failure_code"
        message = "/data/failure_message"
        output = "/data"
        "#,
    );
    let webhook = settings.webhook.unwrap();
    let secrets: Vec<String> = webhook.secrets.iter().map(|placed| placed.reference.to_string()).collect();
    assert_eq!(
        (secrets.join(" ").as_str(), webhook.scheme),
        ("env:NEW ssm:/shop/old", WebhookScheme::StandardWebhooks)
    );
    let pointers = [&webhook.key, &webhook.event].map(Pointer::text);
    assert_eq!((pointers.join(" ").as_str(), webhook.step.as_deref()), ("/data/metadata/order /type", Some("pay")));
    let optional = [&webhook.code, &webhook.message, &webhook.output].map(|pointer| pointer.as_ref().unwrap().text());
    assert_eq!(optional, ["/data/failure_code", "/data/failure_message", "/data"]);
    let events = [
        ("payment.captured", EventMeaning::Done),
        ("payment.failed", EventMeaning::No),
        ("payment.processing", EventMeaning::Working),
        ("payment.succeeded", EventMeaning::Done),
    ];
    assert_eq!(webhook.events, events.map(|(name, meaning)| (name.to_owned(), meaning)).into());

    let least = payment(&webhook_of("github")).webhook.unwrap();
    assert_eq!((least.scheme, least.secrets.len(), least.events.len()), (WebhookScheme::Github, 1, 1));
    assert!(least.step.is_none() && least.code.is_none() && least.message.is_none() && least.output.is_none());
}

fn webhook_of(scheme: &str) -> String {
    webhook("").replace("stripe", scheme)
}

#[test]
fn rule_41_every_fault_of_a_webhook_is_named() {
    fault(
        &webhook_of("svix"),
        "3:18: agents.payment.webhook.scheme must be \"standard-webhooks\" or \"stripe\" or \"github\"",
    );
    for key in ["secret", "scheme", "key", "event", "done"] {
        let without =
            webhook("").lines().filter(|line| !line.contains(&format!(".{key} "))).collect::<Vec<_>>().join("\n");
        fault(&without, &format!("agents.payment.webhook.{key} is missing"));
    }
    for (lines, expected) in [
        (
            "webhook.no = [\"paid\"]",
            "7:15: agents.payment.webhook.no[0] names \"paid\" again: an event has one meaning",
        ),
        ("webhook.working = [\"a\", \"a\"]", "webhook.working[1] names \"a\" again"),
        ("webhook.no = []", "webhook.no must be an array of 1 to 32 elements"),
        ("webhook.no = [\" \"]", "webhook.no[0] must be the name of an event, of 1 to 128 characters"),
        ("webhook.no = [7]", "webhook.no[0] must be a text in quotes"),
        ("webhook.step = \"a/b\"", "webhook.step must be the name of a step"),
        ("webhook.code = \"code\"", "webhook.code must be a JSON pointer: it begins"),
        (
            "webhook.outptu = \"/a\"",
            "webhook.outptu is not a setting: did you mean output? Settings are: secret, scheme",
        ),
        ("memo = true", "agents.payment.webhook cannot be told of results, since the agent has a memo"),
    ] {
        fault(&webhook(lines), expected);
    }
    fault(&webhook("").replace("[\"paid\"]", "[]"), "webhook.done must be an array of 1 to 32 elements");
    fault(&webhook("").replace("\"/key\"", "\"key\""), "webhook.key must be a JSON pointer");
    let secret = |secret: &str| webhook("").replace("\"env:A\"", secret);
    fault(&secret("[]"), "webhook.secret must be an array of 1 to 3 elements");
    fault(&secret("[\"env:A\", \"env:B\", \"env:C\", \"env:D\"]"), "webhook.secret must be an array of 1 to 3");
    fault(&secret("\"env:AWS_SECRET_ACCESS_KEY\""), "would send credentials of this program");
    // No fault repeats what may be a secret.
    for text in ["\"whsec_hidden\"", "[\"env:A\", \"whsec_hidden\"]"] {
        let found = faults(&secret(text));
        assert!(found.len() == 1 && found[0].contains("must be a reference to a secret"), "{found:?}");
        assert!(!found[0].contains("hidden"), "{found:?}");
    }
}
