//! What is shown of a whole folder, and of its secrets. `agents` compares what is shown with what a service gets.

mod agents;

use super::*;

/// The secrets of the tests, by variable. None of their values may be shown.
const SECRETS: [(&str, &str); 7] = [
    ("KEY", "value-of-KEY"),
    ("PASSWORD", "value-of-PASSWORD"),
    ("BEARER", "value-of-BEARER"),
    ("CLIENT", "value-of-CLIENT"),
    ("SIGNING", "whsec_dmFsdWUtb2YtU0lHTklORy12YWx1ZS1vZi1TSUdOSU5H"),
    ("AWS_ACCESS_KEY_ID", "value-of-ACCESS"),
    ("AWS_SECRET_ACCESS_KEY", "value-of-SECRET"),
];

fn variable(name: &str) -> Option<String> {
    SECRETS.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

fn checked_of(settings: &str, workflow: &str) -> Checked {
    let files = [("stepwarden.toml", settings), ("workflows/w.toml", workflow)];
    config::Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap()
}

/// What is shown of an order with these answers: step, status and body.
async fn shown(checked: &Checked, document: &str, answers: &[(&str, u16, &str)]) -> Shown {
    trial(checked, variable, document, answers, None).await.unwrap()
}

async fn trial(
    checked: &Checked,
    variable: Variable,
    document: &str,
    answers: &[(&str, u16, &str)],
    only: Option<&str>,
) -> Result<Shown, CommandError> {
    let answer = |(step, status, body): &(&str, u16, &str)| {
        ((*step).to_owned(), response(StatusCode::from_u16(*status).unwrap(), body.as_bytes()))
    };
    let trial = Folder { checked, variable, answers: answers.iter().map(answer).collect(), now: clock::now() };
    trial.order(Bytes::from(document.to_owned()), None, only).await
}

const SETTINGS: &str = r#"
default = "shop"
[agents.stock]
url = "http://localhost:9001/v1"
forward = "holds"
headers = { Api-Version = "7", X-Key = { secret = "env:KEY" } }
[agents.bank]
url = "https://bank.example"
auth.basic = { user = "shop", password = "env:NOT_SET" }
forward.answers = [{ status = 200, when = "/status == 'declined'", means = "no" }]
[agents.courier]
auth.bearer = "ssm:/shop/courier"
"#;

const WORKFLOW: &str = r#"
name = "shop"
version = 3
refuse = ["Cvc"]
[[step]]
name = "reserve"
agent = "stock"
send = { item = "/Order/Item", note = "/Order/Note?" }
keep = { ID = "/id" }
undo = { send = { hold = "/Outputs/reserve/ID?", item = "/Order/Item" } }
[[step]]
name = "wrap"
agent = "stock"
after = ["reserve"]
when = ["/Order/Gift == true"]
[[step]]
name = "charge"
agent = "bank"
after = ["reserve", "wrap"]
encode = "form"
send = { amount = "/Order/Total", for = { hold = "/Outputs/reserve/ID" } }
undo = { send = {}, path = "{/OrderID}" }
[[step]]
name = "ship"
agent = "courier"
after = ["charge"]
when = ["/Outputs/charge/express == true"]
send = { to = "/Order/Address" }
path = "{/Order/Region}"
undo = "none"
"#;

const ORDER: &str = r#"{"Item": {"Sku": "mug"}, "Total": 12.50, "Address": "Rome", "Region": "a/b"}"#;

#[tokio::test]
async fn a_whole_example_is_shown_call_by_call() {
    let checked = checked_of(SETTINGS, WORKFLOW);
    let answers = [("reserve", 200, r#"{"id": "h-1", "more": 1}"#)];
    let text = shown(&checked, ORDER, &answers).await.text();
    let expected = "\
shop, version 3, takes the order (workflows/w.toml)
01900000-0000-7000-8000-000000000000 stands for its ID

● reserve (stock)
POST http://localhost:9001/v1/holds
idempotency-key: 01900000-0000-7000-8000-000000000000/reserve
content-type: application/json
api-version: 7
x-key: [secret env:KEY]

{\"item\":{\"Sku\": \"mug\"}}

The answer 200 means done
Its output: {\"ID\":\"h-1\"}

↶ undo of reserve
POST http://localhost:9001/v1/undo
idempotency-key: 01900000-0000-7000-8000-000000000000/reserve/undo
content-type: application/json
api-version: 7
x-key: [secret env:KEY]

{\"hold\":\"h-1\",\"item\":{\"Sku\": \"mug\"}}

○ wrap (stock) does not run: it does not apply: /Order/Gift == true, and it is missing

● charge (bank)
POST https://bank.example/do
idempotency-key: 01900000-0000-7000-8000-000000000000/charge
content-type: application/x-www-form-urlencoded
authorization: [basic, user shop, secret env:NOT_SET]

amount=12.50&for[hold]=h-1

↶ undo of charge
POST https://bank.example/undo/01900000-0000-7000-8000-000000000000
idempotency-key: 01900000-0000-7000-8000-000000000000/charge/undo
content-type: application/x-www-form-urlencoded
content-length: 0
authorization: [basic, user shop, secret env:NOT_SET]



● ship (courier)
whether it runs depends on /Outputs/charge/express: give --answer charge:200=answer.json
POST http://courier.invalid/do/a%2Fb
idempotency-key: 01900000-0000-7000-8000-000000000000/ship
content-type: application/json
authorization: [bearer, secret ssm:/shop/courier]

{\"to\":\"Rome\"}

↶ undo of ship
no call: the step has no undo

Secret of bank: env:NOT_SET is not set in the environment
Secret of courier: ssm:/shop/courier was not looked at
";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn rule_36_of_an_answer_under_way_it_is_shown_where_the_state_is_asked() {
    let poll = "undo = { send = {}, path = \"{/OrderID}\" }\nwait_within = \"1h\"\nkeep = \"/paid\"\n";
    let poll = format!("{poll}poll.path = \"/jobs/{{/id}}?of={{/Order/Region}}\"");
    let workflow = WORKFLOW.replace("undo = { send = {}, path = \"{/OrderID}\" }", &poll);
    let checked = checked_of(SETTINGS, &workflow);
    for (body, polled) in [
        (r#"{"id":7}"#, "by GET https://bank.example/jobs/7?of=a%2Fb"),
        ("{}", "at no place: `poll.path` needs a text, a number or a boolean at /id"),
    ] {
        let answers = [("reserve", 200, r#"{"id":"h-1"}"#), ("charge", 202, body)];
        let text = shown(&checked, ORDER, &answers).await.text();
        let means = "The answer 202 means under way: its result comes later\nIts state is asked ";
        assert!(text.contains(&format!("{means}{polled}\n")), "{text}");
    }
}

#[tokio::test]
async fn an_answer_means_what_the_settings_say_and_the_steps_after_it_follow() {
    let checked = checked_of(SETTINGS, WORKFLOW);
    let reserved = ("reserve", 200, r#"{"id":"h-1"}"#);
    let of = async |answers: &[(&str, u16, &str)]| shown(&checked, ORDER, &[&[reserved], answers].concat()).await;
    for (status, body, means) in [
        (200, r#"{"status":"declined"}"#, "rejected: declined (HTTP 200 OK, and the answer means no: declined)"),
        (402, r#"{"code":"no_money","message":"none"}"#, "rejected: no_money (none)"),
        (409, r#"{"code":"busy"}"#, "rejected, unless an earlier call is at work: busy ({\"code\":\"busy\"})"),
        (202, "", "under way: its result comes later"),
        (503, "", "failing: asked again (HTTP 503 Service Unavailable)"),
        (504, "", "failing, its effect unknown: asked again (HTTP 504 Gateway Timeout)"),
        (401, "", "misconfigured: the order waits (HTTP 401 Unauthorized)"),
        (200, r#"{"express":false}"#, "done\nIts output: {\"express\":false}"),
    ] {
        let text = of(&[("charge", status, body)]).await.text();
        assert!(text.contains(&format!("The answer {status} means {means}\n")), "{status}: {text}");
        let ship = text.split("ship (courier)").nth(1).unwrap();
        let expected = match (means.starts_with("rejected"), means.starts_with("done")) {
            (true, _) => " does not run: step charge, which comes before it, is rejected",
            (_, true) => " does not run: it does not apply: /Outputs/charge/express == true\n",
            _ => "\nwhether it runs depends on /Outputs/charge/express: give --answer charge:200=answer.json",
        };
        assert!(ship.starts_with(expected), "{status}: {ship}");
    }
    let text = of(&[("charge", 200, r#"{"express":true}"#), ("charge/undo", 404, "{}")]).await.text();
    assert!(
        text.contains("\n● ship (courier)\nPOST ") && text.contains("The answer 404 means misconfigured"),
        "{text}"
    );
    let steps = "[[step]]\nname = \"a\"\nagent = \"payment\"\nkeep = { At = \"header:Location\", ID = \"/id\" }";
    let located = checked_of("default = \"w\"\n[agents.payment]", &format!("name = \"w\"\nversion = 1\n{steps}"));
    for line_end in ["\n", "\r\n"] {
        let answer = ["HTTP/1.1 201 Created", "location: /c/7", "", "{\"id\": 1}"].join(line_end);
        let text = shown(&located, "{}", &[("a", 201, &answer)]).await.text();
        assert!(text.contains("Its output: {\"At\":\"/c/7\",\"ID\":1}\n"), "{text}");
    }
    // A success of which `keep` finds nothing is none.
    let text = shown(&checked, ORDER, &[("reserve", 200, "{}")]).await.text();
    assert!(
        text.contains("its effect unknown: asked again (the answer is a success, but it has nothing at /id"),
        "{text}"
    );
    assert!(
        text.contains("● charge (bank)\nwhat it sends depends on /Outputs/reserve/ID: give --answer reserve:"),
        "{text}"
    );
}

#[tokio::test]
async fn an_order_that_the_api_refuses_is_refused_in_its_words() {
    let checked = checked_of(SETTINGS, WORKFLOW);
    for (document, text) in [
        ("{", "Refused: 400 Malformed JSON: the body is not valid JSON"),
        ("{\"correlationID\":\"a\"}", "Refused: 400 Invalid field: correlationID is almost CorrelationID"),
        ("{\"Cvc\":1}", "Refused: 422 Member refused: no order of workflow shop may carry Cvc"),
        ("{\"Total\":1}", "Refused: 422 Member missing: step reserve of workflow shop sends /Order/Item"),
        (
            "{\"Workflow\":\"spa\"}",
            "Refused: 400 Invalid field: there is no workflow \"spa\" for new orders. There are: shop",
        ),
        (
            "{\"ReplyChannel\":\"a\"}",
            "Refused: 400 Invalid field: ReplyChannel is not the name of a registered channel",
        ),
        ("{\"CompleteBy\":\"2001-01-01T00:00:00Z\"}", "Refused: 400 Invalid field: CompleteBy"),
    ] {
        let document = if document.contains("CompleteBy") {
            ORDER.replacen('{', &document.replace('}', ","), 1)
        } else {
            document.to_owned()
        };
        let refused = shown(&checked, &document, &[]).await;
        assert!(refused.text().starts_with(text) && !refused.is_fine(), "{}", refused.text());
        assert!(refused.json().starts_with("{\"Refused\":{\"type\":\"/problems/"), "{}", refused.json());
    }
}

#[tokio::test]
async fn a_step_that_cannot_be_sent_says_why_and_is_no_success() {
    let checked = checked_of(SETTINGS, WORKFLOW);
    let answers = [("reserve", 200, r#"{"id":"h-1"}"#), ("charge", 200, r#"{"express":true}"#)];
    let document = ORDER.replace("\"a/b\"", "\"..\"");
    let shown = shown(&checked, &document, &answers).await;
    let ship = shown.text();
    let ship = ship.split("● ship (courier)\n").nth(1).unwrap();
    assert!(ship.starts_with("unsendable: `path` has a segment that is empty or dots"), "{ship}");
    assert!(!shown.is_fine());
    assert!(trial(&checked, variable, &document, &answers, Some("charge")).await.unwrap().is_fine(), "it is not shown");
    let error = trial(&checked, variable, ORDER, &[], Some("shp")).await.unwrap_err().to_string();
    assert_eq!(error, "workflow shop has no step shp. It has: reserve, wrap, charge, ship");
}

#[tokio::test]
async fn a_call_that_cannot_be_put_into_http_fails_its_step_whatever_is_supposed() {
    let workflow = r#"
name = "shop"
version = 1
[[step]]
name = "charge"
agent = "bank"
encode = "form"
send = { note = "/Order/Note" }
undo = "none"
[[step]]
name = "ship"
agent = "bank"
after = ["charge"]
send = {}
undo = "none"
"#;
    let checked = checked_of("default = \"shop\"\n[agents.bank]\nurl = \"https://bank.example\"", workflow);
    // No form can hold a lone surrogate.
    let text = shown(&checked, r#"{"Note": "\ud800"}"#, &[("charge", 200, "{}")]).await.text();
    for part in [
        "● charge (bank)\nunsendable: ",
        "○ ship (bank) does not run: step charge, which comes before it, is rejected\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_step_without_a_call_says_so_and_people_may_be_supposed_to_decide() {
    let settings = "default = \"w\"\n[agents.own]\nqueue = \"own\"";
    let step = |name: &str, more: &str| format!("[[step]]\nname = \"{name}\"\n{more}\n");
    let steps = [
        step("ask", "kind = \"approval\""),
        step("pack", "agent = \"own\"\nafter = [\"ask\"]\nsend = { by = \"/Outputs/ask/By\" }\nundo = \"none\""),
        step("pay", "agent = \"payment\"\nsend = {}\nundo = { send = {} }"),
    ];
    let checked = checked_of(settings, &format!("name = \"w\"\nversion = 1\n{}", steps.concat()));
    let text = shown(&checked, "{}", &[("ask", 200, r#"{"By":"ann"}"#)]).await.text();
    for part in [
        "● ask (people)\nno call: people decide\n\nThe answer 200 means done\nIts output: {\"By\":\"ann\"}\n",
        "● pack (own)\nno call: a program takes the request from its own queue\n",
        "↶ undo of ask\nno call: a decision has nothing to undo\n",
        "↶ undo of pack\nno call: the step has no undo\n",
        "● pay (payment)\nPOST http://payment.invalid/charge\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let rejected = shown(&checked, "{}", &[("ask", 422, "{}")]).await.text();
    assert!(
        rejected.contains("○ pack (own) does not run: step ask, which comes before it, is rejected\n"),
        "{rejected}"
    );
    let unknown = shown(&checked, "{}", &[]).await.text();
    assert!(
        unknown.contains("what it sends depends on /Outputs/ask/By: give --answer ask:200=answer.json"),
        "{unknown}"
    );
    let of_environment: Variable = |name| (name == "PAYMENT_URL").then(|| " http://localhost:7/pay ".to_owned());
    let text = trial(&checked, of_environment, "{}", &[], None).await.unwrap().text();
    assert!(text.contains("POST http://localhost:7/pay/refund\n"), "{text}");
}

#[tokio::test]
async fn no_secret_is_shown_whatever_kind_it_is_of() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let [file, certificate, key] = ["file", "certificate", "key"].map(|name| write(name, &format!("value-of-{name}")));
    let kinds = [
        "auth.basic = { user = \"shop\", password = \"env:PASSWORD\" }".to_owned(),
        "auth.bearer = \"env:BEARER\"".to_owned(),
        format!("auth.bearer = \"file:{file}\""),
        "auth.oauth2 = { token_url = \"https://id.example/t\", client_id = \"shop\", client_secret = \"env:CLIENT\" }".to_owned(),
        "auth.sigv4 = { service = \"execute-api\", region = \"eu-central-1\" }".to_owned(),
        "signature.standard_webhooks = \"env:SIGNING\"".to_owned(),
        format!("tls = {{ certificate = \"file:{certificate}\", key = \"file:{key}\" }}"),
        "headers = { X-Key = { secret = \"env:KEY\" } }".to_owned(),
        "forward.status = { 200 = \"under-way\" }\nwebhook = { secret = \"env:SIGNING\", scheme = \"stripe\", key = \"/key\", event = \"/type\", done = [\"ok\"] }".to_owned(),
    ];
    let agent =
        |(place, kind): (usize, &String)| format!("[agents.a{place}]\nurl = \"https://a{place}.example\"\n{kind}\n");
    let settings: String = kinds.iter().enumerate().map(agent).collect();
    let step = |place: usize| format!("[[step]]\nname = \"s{place}\"\nagent = \"a{place}\"\nwait_within = \"1h\"\n");
    let steps: String = (0..kinds.len()).map(step).collect();
    let checked = checked_of(&format!("default = \"w\"\n{settings}"), &format!("name = \"w\"\nversion = 1\n{steps}"));
    let mut all = String::new();
    for variable in [variable, |_: &str| None] as [Variable; 2] {
        let answers = [("s0", 401, "{}"), ("s1", 200, "{}")];
        let shown = trial(&checked, variable, "{}", &answers, None).await.unwrap();
        all.push_str(&format!("{}{}{shown:?}", shown.text(), shown.json()));
    }
    for kind in [
        "[basic, user shop, secret env:PASSWORD]",
        "[bearer, secret env:BEARER]",
        &format!("[bearer, secret file:{file}]"),
        "[oauth2, token of https://id.example/t, client shop, secret env:CLIENT]",
        "[sigv4, service execute-api, region eu-central-1, secret env:AWS_ACCESS_KEY_ID, secret env:AWS_SECRET_ACCESS_KEY]",
        "webhook-timestamp: [the time of the call]\nwebhook-signature: [signature, secret env:SIGNING]",
        "x-key: [secret env:KEY]",
        "callback-url: [the address for a later result]",
        "Secret of a8: env:SIGNING is not set in the environment",
    ] {
        assert!(all.contains(kind), "{kind}: {all}");
    }
    let base64 = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let values = SECRETS.map(|(_, value)| value.to_owned());
    let more = ["value-of-".to_owned(), base64("shop:value-of-PASSWORD"), SECRETS[4].1[6..].to_owned()];
    for value in values.iter().chain(&more) {
        assert!(!all.contains(value.as_str()), "{value} is shown");
    }
}

#[tokio::test]
async fn a_step_that_makes_an_order_shows_its_workflow_and_document() {
    let step =
        "[[step]]\nname = \"again\"\nkind = \"order\"\nworkflow = \"order\"\nsend = { Item = \"/Order/Item\" }\n";
    let settings = "default = \"w\"\n[agents.inventory]\n[agents.payment]\n[agents.shipping]\n";
    let checked = checked_of(settings, &format!("name = \"w\"\nversion = 1\n{step}"));
    let text = shown(&checked, r#"{"Item":"mug"}"#, &[]).await.text();
    let expected = "● again (orders)\nan order of order\n\n{\"Item\":\"mug\"}\n\n↶ undo of again\nno call: the order is cancelled\n";
    assert!(text.contains(expected), "{text}");
}
