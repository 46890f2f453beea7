//! What is shown of a call is what a service gets: of the real state machine, the real agents and a real server.

use std::sync::{Arc, Mutex};

use ::agents::{Fleet, Host, HttpClients, NothingApplied, Resolver, Secret};
use domain::advance::{advance, begin, follow_up};
use domain::delivery::Delivery;
use domain::instance::Instance;
use domain::machine::Event;
use domain::message::{Receipt, SchedulerMessage};
use http::{HeaderMap, Request, Response};
use local::http_server::Server;
use memory::Memory;
use serde_json::{Value, json};
use wire::TriedCall;

use super::*;

/// One call, as it is shown and as it came: method, path with query, headers, body.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Got(String, String, Vec<(String, String)>, String);

/// Those that a client adds.
const OF_CONNECTION: [&str; 4] = ["host", "content-length", "traceparent", "connection"];

impl Got {
    fn of(request: &Request<Bytes>) -> Self {
        let value = |value: &http::HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        let headers = request.headers().iter().map(|(name, text)| (name.to_string(), value(text)));
        let path = request.uri().path_and_query().unwrap().to_string();
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        Self::new(request.method().to_string(), path, headers, body)
    }

    fn new(method: String, path: String, headers: impl Iterator<Item = (String, String)>, body: String) -> Self {
        let mut headers: Vec<_> = headers.filter(|(name, _)| !OF_CONNECTION.contains(&&**name)).collect();
        headers.sort();
        Self(method, path, headers, body)
    }

    /// The secret is read by now.
    fn shown(call: &TriedCall<'_>, base: &str) -> Option<Self> {
        let (method, url, body) = (call.method.as_ref()?, call.url.as_ref()?, call.body.as_ref()?);
        let path = url.strip_prefix(base).unwrap_or_else(|| panic!("{url}")).to_owned();
        let read = |value: &str| value.replace("[secret env:KEY]", "value-of-KEY");
        let headers = call.headers.iter().map(|header| (header.name.to_string(), read(&header.value)));
        Some(Self::new(method.to_string(), path, headers, body.to_string()))
    }
}

/// The service of all agents: its answers by idempotency key, and the calls that it got.
#[derive(Default)]
struct Service {
    answers: BTreeMap<String, (u16, String)>,
    calls: Vec<Got>,
}

fn answer(service: &Mutex<Service>, headers: &HeaderMap, got: Got) -> (u16, String) {
    let mut service = service.lock().unwrap();
    service.calls.push(got);
    let key = headers["idempotency-key"].to_str().unwrap().split_once('/').unwrap().1.to_owned();
    service.answers.get(&key).cloned().unwrap_or((200, "{}".to_owned()))
}

/// A folder, an order, and the answers to its steps.
struct Drawn {
    settings: String,
    workflow: String,
    document: String,
    answers: Vec<(String, u16, String)>,
}

fn one<T: Copy>(random: &mut fastrand::Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

const TEXTS: [&str; 8] = ["mug", "a b&c=d/e?f", "ü€😀", "", "quote \" back \\", "%41+", "line\nbreak", "\u{7f}"];

fn value(random: &mut fastrand::Rng, depth: u8) -> Value {
    match random.u8(..if depth > 2 { 5 } else { 7 }) {
        0 => json!(one(random, &TEXTS)),
        1 => json!(random.i64(..)),
        2 => json!(random.bool()),
        3 => json!(random.f64()),
        4 => Value::Null,
        5 => (0..random.usize(..3)).map(|_| value(random, depth + 1)).collect(),
        _ => (0..random.usize(..3)).map(|_| (one(random, &TEXTS).to_owned(), value(random, depth + 1))).collect(),
    }
}

impl Drawn {
    fn new(random: &mut fastrand::Rng, base: &str) -> Self {
        let mut settings = "default = \"w\"\n".to_owned();
        for agent in 0..2 {
            settings.push_str(&format!(
                "[agents.a{agent}]\nurl = \"{base}{}\"\n",
                one(random, &["", "/", "/v1", "/a%20b/"])
            ));
            settings.push_str(one(random, &["", "forward = \"v2/do-it\"\n", "undo = \"take_back\"\n"]));
            settings
                .push_str(one(random, &["", "headers = { Accept = \"text/x\", X-Key = { secret = \"env:KEY\" } }\n"]));
        }
        let (mut workflow, mut answers) = ("name = \"w\"\nversion = 1\n".to_owned(), Vec::new());
        let steps = random.usize(1..5);
        for step in 0..steps {
            // The last step turns the order round half of the time, so that its undos are called too. The others are over then.
            let is_no = step + 1 == steps && random.bool();
            let after = (0..step).filter(|_| is_no || random.bool()).map(|earlier| format!("s{earlier}"));
            let after: Vec<String> = after.collect();
            workflow.push_str(&format!(
                "[[step]]\nname = \"s{step}\"\nagent = \"a{}\"\nafter = {after:?}\n",
                random.u8(..2)
            ));
            workflow.push_str(one(random, &["", "", "optional = true\n", "when = [\"/Order/Flag == true\"]\n"]));
            let earlier = after.first();
            let pointer = |random: &mut fastrand::Rng| match earlier {
                Some(earlier) if random.bool() => {
                    format!("/Outputs/{earlier}/{}?", one(random, &["id", "a/0", "id/0"]))
                }
                _ => one(random, &["/Order/Any?", "/Order", "/OrderID", "/Order/Text", "\\\\/plain"]).to_owned(),
            };
            let is_mapped = random.bool();
            if is_mapped {
                let [x, y] = [pointer(random), pointer(random)];
                workflow
                    .push_str(&format!("send = {{ x = \"{x}\", y = [\"{y}\", 1.50], z = {{ \"k é\" = true }} }}\n"));
                workflow.push_str(one(random, &["", "encode = \"form\"\n"]));
            }
            workflow.push_str(match random.u8(..5) {
                0 => "path = \"p/{/Order/Text}\"\n",
                1 => "path = \"{/OrderID}/x?key={/IdempotencyKey}&t={/Order/Text}&none={/Order/None?}\"\n",
                2 => "path = \"?t={/Order/Text}\"\n",
                _ => "",
            });
            let methods = if is_mapped { ["", "PUT", "PATCH", "DELETE"] } else { ["", "PUT", "GET", ""] };
            let method = one(random, &methods);
            if !method.is_empty() {
                workflow.push_str(&format!("method = {method:?}\n"));
            }
            let headers = "headers = { X-Flag = \"/Order/Flag\", X-ID = \"/OrderID\", X-None = \"/Order/None?\" }\n";
            workflow.push_str(one(random, &["", headers]));
            workflow.push_str("keep = { id = \"/id?\", a = [\"/more?\"], s = \"answer:status\" }\n");
            workflow.push_str(
                match (is_mapped, random.u8(..4)) {
                    (true, 0) => "undo = { send = { key = \"/IdempotencyKey\", own = \"/Outputs/SELF/id?\" } }\n",
                    (true, _) => {
                        "undo = { send = { t = \"/Order/Text\", own = \"/Outputs/SELF?\" }, path = \"{/OrderID}\" }\n"
                    }
                    (false, 0) => "undo = \"none\"\n",
                    (false, _) => "",
                }
                .replace("SELF", &format!("s{step}"))
                .as_str(),
            );
            let body = json!({"id": value(random, 1), "more": value(random, 1)}).to_string();
            answers.push(if is_no { (format!("s{step}"), 422, body) } else { (format!("s{step}"), 200, body) });
        }
        let text = one(random, &["mug", "a b&c=d/e?f", "ü€😀", "%41+"]);
        let document = json!({"Any": value(random, 0), "Text": text, "Flag": random.bool()});
        let document = if random.bool() { document.to_string() } else { format!("{document:#}") };
        Self { settings, workflow, document, answers }
    }
}

/// Carries the order out, and returns the calls.
async fn carried_out(drawn: &Drawn, checked: &Checked, service: &Mutex<Service>) -> Vec<Got> {
    let workflows = Workflows::parse(&[&drawn.workflow], "w", &["a0", "a1"]).unwrap();
    let now = clock::now();
    let body = Bytes::from(drawn.document.clone());
    let choose = |_: Option<&str>| Ok(workflows.current().clone());
    let (order, _) = api::preview(&ApiConfig::default(), &body, now, choose).unwrap();
    let (memory, instance) =
        (Memory::new(now, 7), Instance { name: "one".into(), catalogue: Catalogue::new(workflows), shards: 1 });
    let secrets: Resolver =
        Arc::new(|reference| Box::pin(async move { Ok(Secret::new(&variable(&reference.name).unwrap())) }));
    let host = Host {
        settings: checked.deployment_text.clone(),
        source: "stepwarden.toml".to_owned(),
        urls: BTreeMap::new(),
        stand_ins: None,
        callbacks: None,
        policy: Box::new(|_, _| ()),
        secrets,
    };
    let fleet = Fleet::new(NothingApplied, host, HttpClients::new());
    let begun = begin(&memory, &instance, order).await.unwrap();
    follow_up(&memory, &instance, begun, false).await.unwrap();
    for _ in 0..100 {
        let requested = memory.requested();
        memory.retain_requested(|_| false);
        for request in requested {
            let receipt = Receipt { message_id: "1".into(), handle: "1".into() };
            let delivery = Delivery { receipt, receive_count: 1, parent: None, body: Ok(request) };
            assert!(fleet.handle(&memory, vec![delivery]).await.0.is_empty());
        }
        let scheduled = memory.scheduled();
        memory.retain_scheduled(|_| false);
        for message in scheduled {
            let event = match &message {
                SchedulerMessage::Reply(reply) => Event::Reply { reply, redelivered: false },
                SchedulerMessage::Wake(wake) => {
                    memory.advance(600_000);
                    Event::Wake { hops: wake.hops, redelivered: false }
                }
                SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => panic!("nobody commands"),
            };
            advance(&memory, &instance, EXAMPLE, event).await.unwrap();
        }
        if memory.stored(EXAMPLE).process_state.is_final() {
            return std::mem::take(&mut service.lock().unwrap().calls);
        }
    }
    panic!("it does not end: {:?}", memory.stored(EXAMPLE));
}

#[tokio::test]
async fn what_is_shown_of_a_call_is_what_the_service_gets() {
    let service = Arc::<Mutex<Service>>::default();
    let answering = service.clone();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let server = Server::start(listener, 16_000_000, 0, move |request: Request<Bytes>| {
        let (status, body) = answer(&answering, request.headers(), Got::of(&request));
        async move { Ok(Response::builder().status(status).body(body.into()).unwrap()) }
    });
    let server = server.unwrap();
    let base = format!("http://{}", server.address());
    let (mut forward, mut undos) = (0, 0);
    for seed in 0..200 {
        let drawn = Drawn::new(&mut fastrand::Rng::with_seed(seed), &base);
        let told = format!("seed {seed}: {}{}{}", drawn.settings, drawn.workflow, drawn.document);
        let checked = checked_of(&drawn.settings, &drawn.workflow);
        let answers: Vec<_> = drawn.answers.iter().map(|(step, status, body)| (&**step, *status, &**body)).collect();
        let Shown::Tried(tried) = shown(&checked, &drawn.document, &answers).await else { panic!("refused: {told}") };
        service.lock().unwrap().answers =
            drawn.answers.iter().map(|(step, status, body)| (step.clone(), (*status, body.clone()))).collect();
        let got = carried_out(&drawn, &checked, &service).await;
        // An order that ends well has no undo.
        let is_undone =
            got.iter().any(|Got(_, _, headers, _)| headers.iter().any(|(_, value)| value.ends_with("/undo")));
        let mut expected = Vec::new();
        for step in &tried.steps {
            let undo = step.tried.undo.iter().filter(|_| is_undone);
            expected.extend(step.tried.forward.iter().chain(undo).filter_map(|call| Got::shown(call, &base)));
            forward += 1;
            undos += usize::from(is_undone);
        }
        let mut got = got;
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "{told}");
    }
    assert!(forward > 300 && undos > 100, "{forward} steps, {undos} undos");
}
