//! `stepwarden serve` with secrets of each kind: they reach the services, and nothing else.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use local::client::Client;
use local::http_server::Server;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::sleep;

const KEY: &str = "key-20941-inventory";
const PASSWORD: &str = "word-77120-shipping";
const CLIENT_SECRET: &str = "client-60093-payment";
const TOKENS: [&str; 2] = ["token-31870-first", "token-55412-second"];
const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The forms in which a secret may appear.
fn forms() -> Vec<String> {
    // The base64 of "shop:word-77120-shipping" and "shop:client-60093-payment", the latter as OAuth 2 encodes it.
    let encoded = ["c2hvcDp3b3JkLTc3MTIwLXNoaXBwaW5n", "c2hvcDpjbGllbnQlMkQ2MDA5MyUyRHBheW1lbnQ="];
    let plain = [KEY, PASSWORD, CLIENT_SECRET, TOKENS[0], TOKENS[1], WEBHOOK, &WEBHOOK["whsec_".len()..]];
    plain.into_iter().chain(encoded).map(str::to_owned).collect()
}

/// Collector, token endpoint and remote services in one. The services repeat the headers of a call that they decline.
struct Outside {
    server: Server,
    spans: Arc<Mutex<String>>,
    calls: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Outside {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (spans, calls) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<Vec<HeaderMap>>>::default());
        let (taking, noting, tokens) = (spans.clone(), calls.clone(), Arc::new(Mutex::new(0)));
        let server = Server::start(listener, 16_000_000, 0, move |request: Request<Bytes>| {
            let body = String::from_utf8(request.body().to_vec()).unwrap();
            let path = request.uri().path().to_owned();
            let answer = match &*path {
                "/v1/traces" => {
                    taking.lock().unwrap().push_str(&body);
                    (200, "{}".to_owned())
                }
                "/token" => {
                    let mut count = tokens.lock().unwrap();
                    *count += 1;
                    let token = TOKENS[*count - 1];
                    (200, format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":3600}}"#))
                }
                _ => {
                    noting.lock().unwrap().push(request.headers().clone());
                    service(&path, &body, request.headers())
                }
            };
            async move { Ok(Response::builder().status(answer.0).body(answer.1.into()).unwrap()) }
        });
        Self { server: server.unwrap(), spans, calls }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    fn was_sent(&self, header: &str, value: &str) -> bool {
        self.calls.lock().unwrap().iter().any(|headers| headers.get(header).is_some_and(|sent| sent == value))
    }
}

fn service(path: &str, body: &str, headers: &HeaderMap) -> (u16, String) {
    let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let repeated = format!("no: {} {}", header("authorization"), header("x-api-key"));
    let declined = (422, format!(r#"{{"code":"declined","message":"{repeated}"}}"#));
    match path {
        // The first token ends early.
        "/payment/charge" if header("authorization").ends_with(TOKENS[0]) => (401, repeated),
        "/payment/charge" if body.contains("DeclinePayment") => declined,
        "/shipping/ship" if body.contains("DeclineAll") => declined,
        "/inventory/release" if body.contains("DeclineAll") => declined,
        _ => (200, "{}".to_owned()),
    }
}

struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start(data: &Path, outside: &Outside) -> Self {
        let url = outside.url();
        let settings = format!(
            r#"
            [agents.inventory]
            url = "{url}/inventory"
            headers.X-Api-Key = {{ secret = "env:KEY" }}
            signature.standard_webhooks = "env:WEBHOOK"
            [agents.payment]
            url = "{url}/payment"
            [agents.payment.auth.oauth2]
            token_url = "{url}/token"
            client_id = "shop"
            client_secret = "env:CLIENT_SECRET"
            [agents.shipping]
            url = "{url}/shipping"
            auth.basic = {{ user = "shop", password = "file:{}" }}
            "#,
            data.join("password").display(),
        );
        fs::write(data.join("password"), PASSWORD).unwrap();
        fs::write(data.join("agents.toml"), settings).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
        command.args(["serve", "--port", "0"]).arg("--data").arg(data.join("data"));
        command.arg("--agents").arg(data.join("agents.toml"));
        command.envs([("KEY", KEY), ("WEBHOOK", WEBHOOK), ("CLIENT_SECRET", CLIENT_SECRET), ("RUST_LOG", "trace")]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(data.join("logs")).unwrap());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("stepwarden: listening on ").unwrap().split(',').next().unwrap().to_owned();
        Self { process, url }
    }

    /// Posts an order, and waits until it is settled.
    async fn settle(&self, order: &str) -> Value {
        let url = format!("{}/orders", self.url);
        let answer = Client::new().post(&url, &[("prefer", "wait=20")], order.to_owned()).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }

    async fn get(&self, path: &str) -> String {
        let answer = Client::new().get(&format!("{}{path}", self.url)).await.unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    fn end(&mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.process.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All bytes of the files in a directory.
fn bytes_in(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        fs::File::open(entry.unwrap().path()).unwrap().read_to_end(&mut bytes).unwrap();
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_reach_their_services_and_no_other_place() {
    let (outside, data) = (Outside::start().await, tempfile::tempdir().unwrap());
    let mut served = Served::start(data.path(), &outside);
    let mut shown = String::new();
    let mut ids = Vec::new();
    for (order, state) in [
        (r#"{"Item": "mug"}"#, "Processed"),
        (r#"{"Item": "mug", "DeclinePayment": 1}"#, "Compensated"),
        (r#"{"Item": "mug", "DeclineAll": 1}"#, "Error"),
    ] {
        let settled = served.settle(order).await;
        assert_eq!(settled["ProcessState"], state, "{settled}");
        ids.push(settled["OrderID"].as_str().unwrap().to_owned());
        shown.push_str(&settled.to_string());
    }
    for path in ["/orders", "/services", "/overview", "/leases", "/workflows", "/dead-letters", "/console"] {
        shown.push_str(&served.get(path).await);
    }
    for id in &ids {
        shown.push_str(&served.get(&format!("/orders/{id}")).await);
    }
    for _ in 0..500 {
        if fs::read_to_string(data.path().join("logs")).unwrap().contains("ALERT") {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    served.end();

    let logs = fs::read_to_string(data.path().join("logs")).unwrap();
    let spans = outside.spans.lock().unwrap().clone();
    let stored = bytes_in(&data.path().join("data"));
    // Each was sent, and the places are not empty.
    assert!(outside.was_sent("x-api-key", KEY));
    assert!(outside.was_sent("authorization", &format!("Bearer {}", TOKENS[1])));
    assert!(outside.was_sent("authorization", &format!("Basic {}", forms()[7])));
    assert!(outside.calls.lock().unwrap().iter().any(|headers| headers.contains_key("webhook-signature")));
    assert!(logs.contains("ALERT") && logs.contains("TRACE") && spans.contains("POST charge"), "{logs}");
    assert!(shown.contains("repeats a secret") && stored.len() > 10_000);
    for form in forms() {
        let is_in = |bytes: &[u8]| bytes.windows(form.len()).any(|window| window == form.as_bytes());
        for (place, bytes) in
            [("logs", logs.as_bytes()), ("spans", spans.as_bytes()), ("answers", shown.as_bytes()), ("data", &stored)]
        {
            assert!(!is_in(bytes), "{form} in {place}");
        }
    }
}
