use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::callback::{Awaited, CallbackKey, read};
use domain::definition::{Catalogue, Deployment};
use domain::id::OrderId;
use domain::ports::{Records, Seen};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::workflow::Workflows;
use memory::Memory;
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::{Value, json};

use super::*;
use crate::auth::{Resolver, Secret};
use crate::client::HttpClients;
use crate::fleet::{Host, NothingApplied};
use crate::stand_in::{Respond, StandIn, response};
use crate::tests::NOW;
use crate::tests::network::{self, Services, run};
use crate::webhook::api::Unanswered;

const SETTINGS: &str = r#"
[agents.bank]
url = "http://localhost:1"
[agents.bank.webhook]
secret = ["file:/secret", "env:OLD"]
scheme = "github"
key = "/key"
event = "/type"
done = ["paid"]
no = ["failed"]
working = ["processing"]
[agents.carrier]
url = "http://localhost:1"
"#;

/// An API that remembers what is posted to it, and answers with this status; with 0 it does not answer.
struct Api {
    status: u16,
    posted: Mutex<Vec<(String, Value)>>,
}

impl Api {
    fn answering(status: u16) -> Self {
        Self { status, posted: Mutex::default() }
    }

    fn posted(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.posted.lock().unwrap())
    }
}

impl CallbackApi for Api {
    async fn post(&self, path: String, body: Bytes) -> Result<Response<Bytes>, Unanswered> {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.posted.lock().unwrap().push((path, body));
        let answer = Response::builder().status(self.status).body(Bytes::from_static(b"{\"Taken\":true}"));
        answer.map_err(|_| Unanswered::because("broken"))
    }
}

/// The webhooks of a host, with the secrets of the moment.
struct World {
    fleet: Fleet<NothingApplied>,
    ports: Memory,
    api: Api,
    secret: Arc<Mutex<String>>,
    reads: Arc<AtomicU32>,
}

fn key() -> CallbackKey {
    CallbackKey::first([1, 2, 3, 4])
}

impl World {
    async fn new() -> Self {
        let world = Self::without_key(SETTINGS);
        world.make_key().await;
        world
    }

    async fn make_key(&self) {
        let deployment = Deployment {
            version: 1,
            default: "order".into(),
            workflows: BTreeMap::new(),
            highest: BTreeMap::new(),
            settings: "".into(),
            schedules: [].into(),
            callback_keys: vec![key()],
            applied_at: NOW,
            applied_by: "test".into(),
            of_start: false,
        };
        self.ports.put(Seen::nothing(NOW), &deployment).await.unwrap();
    }

    fn without_key(settings: &str) -> Self {
        Self::over(HttpClients::new(), Memory::new(NOW, 7), settings)
    }

    fn over(clients: HttpClients, ports: Memory, settings: &str) -> Self {
        let (secret, reads) = (Arc::new(Mutex::new("secret".to_owned())), Arc::new(AtomicU32::new(0)));
        let (of_file, counted) = (secret.clone(), reads.clone());
        let secrets: Resolver = Arc::new(move |reference| {
            counted.fetch_add(1, Relaxed);
            let value = match reference.to_string().as_str() {
                "env:OLD" => "old".to_owned(),
                _ => of_file.lock().unwrap().clone(),
            };
            let read = if value.is_empty() { Err("is not there".to_owned()) } else { Ok(Secret::new(&value)) };
            Box::pin(async move { read })
        });
        let catalogue = Catalogue::new(Workflows::shipped().unwrap());
        let host = Host {
            settings: settings.into(),
            source: "AGENTS".to_owned(),
            urls: BTreeMap::new(),
            stand_ins: None,
            callbacks: Some(agent::Callbacks::below("https://orders.example.com/", catalogue)),
            policy: Box::new(|_, _| {}),
            secrets,
        };
        let fleet = Fleet::new(NothingApplied, host, clients);
        Self { fleet, ports, api: Api::answering(202), secret, reads }
    }

    /// The settings of one agent with signed times.
    fn of_standard_webhooks() -> Self {
        let settings = SETTINGS.replace("github", "standard-webhooks").replace("\"env:OLD\"", "\"file:/other\"");
        let world = Self::without_key(&settings);
        *world.secret.lock().unwrap() = format!("whsec_{}", STANDARD.encode([b'x'; 32]));
        world
    }

    async fn call(&self, request: Request<Bytes>) -> (u16, Value) {
        let response = self.fleet.webhook(&self.ports, &self.api, request).await;
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    /// Posts an event to the bank's webhook, signed with this secret.
    async fn post(&self, secret: &str, body: impl AsRef<[u8]>) -> (u16, Value) {
        self.call(signed(secret, body)).await
    }
}

/// Signed by a provider whose clock shows this.
fn signed_at(now: Timestamp, body: &str) -> Request<Bytes> {
    let (id, at) = ("msg_1", now.epoch_ms() / 1_000);
    let signature = sign(&Key::new(HMAC_SHA256, &[b'x'; 32]), format!("{id}.{at}.{body}").as_bytes());
    let request = Request::post("/webhooks/bank").header("webhook-id", id).header("webhook-timestamp", at);
    let request = request.header("webhook-signature", format!("v1,{}", STANDARD.encode(signature)));
    request.body(Bytes::from(body.to_owned())).unwrap()
}

fn signed(secret: &str, body: impl AsRef<[u8]>) -> Request<Bytes> {
    let body = body.as_ref();
    let signature = sign(&Key::new(HMAC_SHA256, secret.as_bytes()), body);
    let signature = format!("sha256={}", hex::encode(signature));
    let body = Bytes::copy_from_slice(body);
    Request::post("/webhooks/bank").header("x-hub-signature-256", signature).body(body).unwrap()
}

fn id() -> OrderId {
    OrderId::from_idempotency_key("shop", "k1")
}

fn event(name: &str) -> String {
    json!({"type": name, "key": format!("{}/pay", id())}).to_string()
}

fn refused(answer: &(u16, Value), status: u16) {
    assert_eq!((answer.0, &answer.1["status"], &answer.1["type"]), (status, &status.into(), &"about:blank".into()));
}

#[tokio::test]
async fn rule_41_a_genuine_event_is_told_at_the_address_of_its_call() {
    let world = World::new().await;
    for (name, end, body) in [
        ("paid", "", json!({"Outcome": "Done", "Output": {"type": "paid", "key": format!("{}/pay", id())}})),
        ("failed", "", json!({"Outcome": "No", "Code": "failed"})),
        ("processing", "/heartbeat", Value::Null),
    ] {
        assert_eq!(world.post("secret", event(name)).await, (202, json!({"Taken": true})));
        let [(path, posted)] = &world.api.posted()[..] else { panic!("one post") };
        assert_eq!(*posted, body);
        let token = path.strip_prefix("/callbacks/").unwrap().strip_suffix(end).unwrap();
        let agent = Some("bank".into());
        let expected = Awaited { order_id: id(), step: "pay".into(), direction: Direction::Forward, agent };
        assert_eq!(read(&[key()], token), Some(expected), "for steps of the bank alone");
    }
    assert_eq!(world.post("old", event("paid")).await.0, 202, "each of its secrets is good");
}

#[tokio::test]
async fn rule_41_an_unreadable_text_of_a_genuine_event_spoils_no_other_member() {
    let world = World::new().await;
    for more in [&b"caf\xe9"[..], b"a\0b", b"\\ud83d"] {
        let event = event("paid").replace('}', ",\"name\":\"?\"}").into_bytes();
        let at = event.iter().position(|byte| *byte == b'?').unwrap();
        let event = [&event[..at], more, &event[at + 1..]].concat();
        assert_eq!(world.post("secret", event).await, (202, json!({"Taken": true})), "{more:?}");
    }
    assert_eq!(world.api.posted()[0].1["Output"]["name"], "caf\u{fffd}");
}

#[tokio::test]
async fn rule_41_after_a_sleep_of_the_machine_the_time_of_a_signature_is_that_of_the_provider() {
    let (world, hour_ms) = (World::of_standard_webhooks(), 3_600_000);
    let event = event("opened");
    assert_eq!(world.call(signed_at(NOW, &event)).await.0, 200);
    world.ports.jump(hour_ms);
    assert_eq!(world.call(signed_at(NOW.plus_ms(hour_ms), &event)).await.0, 200, "orders wait by another clock");
    assert_eq!(world.call(signed_at(NOW, &event)).await.0, 401);
}

#[tokio::test]
async fn rule_41_a_forged_event_is_401_whatever_it_says_and_nothing_is_told() {
    let world = World::new().await;
    for body in [event("paid"), "{".to_owned(), String::new()] {
        refused(&world.post("wrong", &body).await, 401);
        let unsigned = Request::post("/webhooks/bank").body(Bytes::from(body)).unwrap();
        refused(&world.call(unsigned).await, 401);
    }
    assert_eq!(world.api.posted(), []);
}

#[tokio::test]
async fn rule_41_an_event_that_is_not_for_us_is_taken_by_the_provider_as_done() {
    let world = World::new().await;
    for (body, because) in [
        (event("opened"), "the settings list no such event"),
        (json!({"type": "paid", "key": "invoice-7"}).to_string(), "the key is not one that a call had"),
    ] {
        let answer = world.post("secret", &body).await;
        assert_eq!(answer, (200, json!({"Taken": false, "Because": because})));
    }
    refused(&world.post("secret", "no json").await, 400);
    assert_eq!(world.api.posted(), []);
}

#[tokio::test]
async fn rule_41_an_event_with_two_readings_or_as_a_form_is_400_and_says_why() {
    let world = World::new().await;
    let detail = |(status, body): (u16, Value)| {
        assert_eq!(status, 400, "{body}");
        body["detail"].as_str().unwrap_or_default().to_owned()
    };
    let twice = format!(r#"{{"key":"{0}/pay","type":"failed","t\u0079pe":"paid"}}"#, id());
    assert_eq!(detail(world.post("secret", &twice).await), "the body is ambiguous: /type is there twice");
    let mut form = signed("secret", "payload=%7B%7D");
    form.headers_mut().insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    let said = detail(world.call(form).await);
    assert!(said.ends_with("choose application/json as the content type of this webhook"), "{said}");
    assert!(world.api.posted().is_empty());
}

#[tokio::test]
async fn rule_41_a_path_of_no_webhook_is_404_and_only_a_post_is_taken() {
    let world = World::new().await;
    for path in ["/webhooks/", "/webhooks/carrier", "/webhooks/nobody", "/webhooks/bank/", "/webhooks/bank/x", "/other"]
    {
        for method in ["POST", "GET"] {
            let request = Request::builder().method(method).uri(path).body(Bytes::new()).unwrap();
            refused(&world.call(request).await, 404);
        }
    }
    let request = Request::get("/webhooks/bank").body(Bytes::new()).unwrap();
    let response = world.fleet.webhook(&world.ports, &world.api, request).await;
    assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"POST".parse().unwrap()));
    refused(&world.post("secret", &"x".repeat(BODY_BYTES_MAX + 1)).await, 413);
    let largest = format!("{{\"x\":\"{}\"}}", "x".repeat(BODY_BYTES_MAX - 8));
    assert_eq!((largest.len(), world.post("secret", &largest).await.0), (BODY_BYTES_MAX, 200));
    assert_eq!(world.reads.load(Relaxed), 2, "nothing was read for any of them but the secrets of the bank");
}

#[tokio::test]
async fn rule_41_what_cannot_be_told_is_503_so_that_the_provider_repeats_it() {
    for status in [0, 401, 404, 429, 500, 503] {
        let world = World { api: Api::answering(status), ..World::new().await };
        let response = world.fleet.webhook(&world.ports, &world.api, signed("secret", event("paid"))).await;
        assert_eq!(response.status(), 503, "{status}");
        assert_eq!(response.headers()["retry-after"], "5");
    }
    for status in [200, 400] {
        let world = World { api: Api::answering(status), ..World::new().await };
        assert_eq!(world.post("secret", event("paid")).await.0, status, "the answer of the API");
    }
    let world = World::without_key(SETTINGS);
    refused(&world.post("secret", event("paid")).await, 503);
    refused(&world.post("wrong", &event("paid")).await, 401);
    let faulty = World::without_key("[agents.bank.webhook]");
    refused(&faulty.post("secret", &event("paid")).await, 503);
}

#[tokio::test]
async fn rule_41_a_new_secret_in_its_place_is_read_for_an_event_that_it_signs_and_not_for_each_forged_one() {
    let world = World::new().await;
    assert_eq!(world.post("secret", event("paid")).await.0, 202);
    *world.secret.lock().unwrap() = "next".to_owned();
    let reads = || world.reads.load(Relaxed);
    refused(&world.post("next", &event("paid")).await, 401);
    assert_eq!(reads(), 2, "it was read a moment ago");
    world.ports.advance(60_000);
    assert_eq!(world.post("next", &event("paid")).await.0, 202);
    assert_eq!(world.reads.load(Relaxed), 4);
    world.ports.advance(100_000);
    for _ in 0..9 {
        refused(&world.post("wrong", &event("paid")).await, 401);
        let unsigned = Request::post("/webhooks/bank").body(Bytes::new()).unwrap();
        refused(&world.call(unsigned).await, 401);
    }
    assert_eq!(world.reads.load(Relaxed), 6, "once, for two secrets");
}

#[tokio::test]
async fn rule_41_without_any_secret_it_is_not_known_whether_an_event_is_genuine() {
    let world = World::without_key(&SETTINGS.replace(", \"env:OLD\"", ""));
    *world.secret.lock().unwrap() = String::new();
    for _ in 0..3 {
        refused(&world.post("secret", event("paid")).await, 503);
    }
    assert_eq!(world.reads.load(Relaxed), 1);
    *world.secret.lock().unwrap() = "secret".to_owned();
    world.ports.advance(5_000);
    let (status, answer) = world.post("secret", event("paid")).await;
    assert_eq!((status, &answer["detail"]), (503, &"there is no key for callback addresses yet".into()));
    refused(&world.post("wrong", &event("paid")).await, 401);
}

#[tokio::test]
async fn rule_41_while_a_secret_cannot_be_read_the_one_before_counts_and_an_event_of_none_is_not_called_forged() {
    let world = World::new().await;
    assert_eq!(world.post("secret", event("paid")).await.0, 202);
    refused(&world.post("next", &event("paid")).await, 401);
    *world.secret.lock().unwrap() = String::new();
    world.ports.advance(60_000);
    refused(&world.post("next", &event("paid")).await, 503);
    assert_eq!(world.post("secret", event("paid")).await.0, 202);
    assert_eq!(world.post("old", event("paid")).await.0, 202);
    refused(&world.post("next", &event("paid")).await, 503);
    *world.secret.lock().unwrap() = "next".to_owned();
    world.ports.advance(5_000);
    assert_eq!(world.post("next", &event("paid")).await.0, 202);
    refused(&world.post("secret", event("paid")).await, 401);
}

#[tokio::test]
async fn rule_41_a_secret_that_was_never_read_makes_no_event_of_it_forged() {
    let world = World::new().await;
    *world.secret.lock().unwrap() = String::new();
    refused(&world.post("secret", event("paid")).await, 503);
    assert_eq!(world.post("old", event("paid")).await.0, 202);
}

#[tokio::test]
async fn rule_41_the_api_is_called_at_its_address_and_its_answer_goes_back() {
    for (respond, status, expected) in [
        (
            response(202, &[("content-type", "application/json"), ("x-own", "x")], "{\"Taken\":true}"),
            202,
            "{\"Taken\":true}",
        ),
        (Respond::WithAndHangUp(Vec::new()), 0, ""),
    ] {
        let stand_in = StandIn::start([respond]).await;
        let api = RemoteApi::at(&stand_in.base, &HttpClients::new());
        let answer = api.post("/callbacks/t".to_owned(), Bytes::from_static(b"{\"Outcome\":\"Done\"}")).await;
        let received = stand_in.received().pop().unwrap();
        assert_eq!(
            (received.line.as_str(), received.header("content-type")),
            ("POST /callbacks/t HTTP/1.1", Some("application/json"))
        );
        assert_eq!(received.body, json!({"Outcome": "Done"}));
        match answer {
            Ok(response) => {
                assert_eq!((response.status().as_u16(), &response.body()[..]), (status, expected.as_bytes()));
                assert_eq!(
                    (response.headers().len(), &response.headers()["content-type"]),
                    (1, &"application/json".parse().unwrap())
                );
            }
            Err(unanswered) => assert!(status == 0 && !unanswered.to_string().contains("/callbacks/"), "{unanswered}"),
        }
    }
}

#[tokio::test]
async fn rule_41_an_agent_whose_results_could_not_come_in_makes_no_call() {
    let world = World::without_key(SETTINGS);
    assert_eq!(world.fleet.check(&["bank", "carrier"]).await, Ok(()));
    *world.secret.lock().unwrap() = String::new();
    let faults = world.fleet.check(&["bank", "carrier"]).await.unwrap_err();
    assert_eq!(faults, ["AGENTS:5:11: agents.bank.webhook.secret[0]: file:/secret is not there"]);
}

#[test]
fn rule_41_an_event_reaches_the_api_over_a_simulated_network_and_waits_by_its_clock() {
    let ports = Memory::new(NOW, 7);
    let awaited =
        Awaited { order_id: id(), step: "pay".into(), direction: Direction::Forward, agent: Some("bank".into()) };
    let path: &str = format!("/callbacks/{}", key().token(&awaited)).leak();
    let taken = network::answer(202, &[], Bytes::from_static(b"{\"Taken\":true}"));
    let services = Services::new(&ports, [(path, taken), (path, network::never())]);
    let world = World::over(HttpClients::over(services.clone()), ports.clone(), SETTINGS);
    run(&ports, world.make_key());
    let posted = || run(&ports, world.fleet.webhook(&ports, &world.fleet.api(), signed("secret", event("paid"))));
    let answer = posted();
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (202, &b"{\"Taken\":true}"[..]));
    assert_eq!(services.received(path)[0].uri().host(), Some("orders.example.com"));
    let before = ports.now();
    assert_eq!((posted().status().as_u16(), before.ms_until(ports.now())), (503, 5_000));
}
