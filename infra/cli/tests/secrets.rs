//! `stepwarden serve` with secrets of each kind: they reach the services, and nothing else.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use local::client::Client;
use local::http_server::Server;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

const KEY: &str = "key-20941-inventory";
const PASSWORD: &str = "word-77120-inventory";
const BEARER: &str = "bearer-40417-inventory";
const CLIENT_SECRET: &str = "client60093payment";
const TOKENS: [&str; 2] = ["token-31870-first", "token-55412-second"];
const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECRET_KEY: &str = "secret/90262+shipping";
const SESSION_TOKEN: &str = "session-18835-shipping";

/// Collector, token endpoint, stores of secrets and remote services in one. The services repeat the headers of a call.
struct Outside {
    server: Server,
    spans: Arc<Mutex<String>>,
    calls: Arc<Mutex<Vec<HeaderMap>>>,
    certificates: Certificates,
    /// Like `server`, for clients with a certificate.
    tls_url: String,
}

/// An authority, and what a client needs of it. All in PEM.
struct Certificates {
    authority: String,
    client: String,
    client_key: String,
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
                "/" => (200, stored(&body).to_string()),
                _ => {
                    noting.lock().unwrap().push(request.headers().clone());
                    service(&path, &body, request.headers())
                }
            };
            async move { Ok(Response::builder().status(answer.0).body(answer.1.into()).unwrap()) }
        });
        let server = server.unwrap();
        let (certificates, tls_url) = in_front_of(server.address()).await;
        Self { server, spans, calls, certificates, tls_url }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    fn was_sent(&self, header: &str, begin: &str) -> bool {
        let is_sent =
            |headers: &HeaderMap| headers.get(header).is_some_and(|sent| sent.to_str().unwrap().starts_with(begin));
        self.calls.lock().unwrap().iter().any(is_sent)
    }
}

/// The answer of the stores of AWS.
fn stored(body: &str) -> Value {
    match serde_json::from_str::<Value>(body).unwrap() {
        asked if asked["Name"] == "/shop/key" => json!({"Parameter": {"Value": KEY}}),
        asked if asked["SecretId"] == "shop" => json!({"SecretString": json!({"password": PASSWORD}).to_string()}),
        asked => panic!("no secret is {asked}"),
    }
}

fn service(path: &str, body: &str, headers: &HeaderMap) -> (u16, String) {
    let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let repeated = ["authorization", "x-api-key", "x-amz-security-token"].map(header).join(" ");
    let declined = (422, format!(r#"{{"code":"declined","message":"no: {repeated}"}}"#));
    match path {
        // The first token ends early.
        "/payment/charge" if header("authorization").ends_with(TOKENS[0]) => (401, repeated),
        "/payment/charge" if body.contains("DeclinePayment") => declined,
        "/shipping/ship" if body.contains("DeclineAll") => declined,
        "/shipping/ship" if body.contains("RefuseCaller") => (401, repeated),
        "/inventory/release" if body.contains("DeclineAll") => declined,
        _ => (200, format!(r#"{{"Seen":"{repeated}"}}"#)),
    }
}

/// A server with TLS that passes on what comes from clients with a certificate.
async fn in_front_of(server: std::net::SocketAddr) -> (Certificates, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let issue = || {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap(), key)
    };
    let ((certificate, key), (client, client_key)) = (issue(), issue());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config.with_client_cert_verifier(verifier).with_single_cert(vec![certificate.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut behind = TcpStream::connect(server).await.unwrap();
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = copy_bidirectional(&mut stream, &mut behind).await;
                }
            });
        }
    });
    let (authority, client) = (authority.pem(), client.pem());
    (Certificates { authority, client, client_key: client_key.serialize_pem() }, url)
}

struct Served {
    process: Child,
    stdout: BufReader<ChildStdout>,
    listening: String,
    url: String,
}

impl Served {
    /// `inventory` is the agent's authentication.
    fn start(data: &Path, outside: &Outside, inventory: &str) -> Self {
        let (url, tls_url, Certificates { authority, client, client_key }) =
            (outside.url(), &outside.tls_url, &outside.certificates);
        let file = |name: &str, text: &str| {
            fs::write(data.join(name), text).unwrap();
            format!("file:{}", data.join(name).display())
        };
        file("bearer", BEARER);
        let (authority, client, client_key) = (file("ca", authority), file("client", client), file("key", client_key));
        let inventory = inventory.replace("{data}", &data.display().to_string());
        let settings = format!(
            r#"
            [agents.inventory]
            url = "{url}/inventory"
            headers.X-Api-Key = {{ secret = "ssm:/shop/key" }}
            signature.standard_webhooks = "env:WEBHOOK"
            {inventory}
            [agents.payment]
            url = "{url}/payment"
            [agents.payment.auth.oauth2]
            token_url = "{url}/token"
            client_id = "shop"
            client_secret = "env:CLIENT_SECRET"
            [agents.shipping]
            url = "{tls_url}/shipping"
            headers.X-Shop-Key = {{ secret = "env:WEBHOOK" }}
            auth.sigv4 = {{ service = "execute-api", region = "eu-central-1" }}
            tls = {{ certificate = "{client}", key = "{client_key}", ca = "{authority}" }}
            "#,
        );
        file("stepwarden.toml", &settings);
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
        command.args(["serve", "--port", "0"]).arg("--data").arg(data.join("data"));
        command.arg("--config").arg(data);
        command.envs([("WEBHOOK", WEBHOOK), ("CLIENT_SECRET", CLIENT_SECRET), ("RUST_LOG", "trace")]);
        command.envs([("AWS_ACCESS_KEY_ID", "AKIA-1"), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)]);
        command.envs([("AWS_SESSION_TOKEN", SESSION_TOKEN), ("AWS_REGION", "eu-central-1")]);
        command.envs([("AWS_ENDPOINT_URL", &url), ("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
        command.env_remove("AWS_ENDPOINT_URL_SSM").env_remove("AWS_ENDPOINT_URL_SECRETS_MANAGER");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(data.join("logs")).unwrap());
        let mut process = command.spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut listening = String::new();
        stdout.read_line(&mut listening).unwrap();
        let url = listening.strip_prefix("stepwarden: listening on ").unwrap().split(',').next().unwrap().to_owned();
        Self { process, stdout, listening, url }
    }

    /// Posts an order, and waits for its end, but not for long.
    async fn post(&self, order: &str, wait: &str) -> Value {
        let url = format!("{}/orders", self.url);
        let answer = Client::new().post(&url, &[("prefer", wait)], order.to_owned()).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }

    async fn get(&self, path: &str) -> String {
        let answer = Client::new().get(&format!("{}{path}", self.url)).await.unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    /// Ends it, and gives all that it wrote to its standard output.
    fn end(&mut self) -> String {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.process.wait().unwrap();
        let mut written = self.listening.clone();
        self.stdout.read_to_string(&mut written).unwrap();
        written
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

/// The forms in which a secret may appear: as it is, and its base64 at each place in a longer text.
fn forms(secret: &str) -> Vec<String> {
    let in_base64 = |before: usize| {
        let encoded = STANDARD.encode([&vec![b' '; before], secret.as_bytes()].concat());
        let encoded = encoded.trim_end_matches('=');
        // The first and the last character may also depend on what is beside it.
        let end = if (before + secret.len()).is_multiple_of(3) { encoded.len() } else { encoded.len() - 1 };
        encoded[[0, 2, 3][before]..end].to_owned()
    };
    [secret.to_owned()].into_iter().chain((0..3).map(in_base64)).collect()
}

/// Everything in which no secret may be.
struct Places(Vec<(&'static str, Vec<u8>)>);

impl Places {
    /// The names of the places that contain one of the forms of one of the secrets.
    fn with(&self, secrets: &[&str]) -> Vec<&'static str> {
        let forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        let is_in =
            |bytes: &[u8]| forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_bytes()));
        self.0.iter().filter(|(_, bytes)| is_in(bytes)).map(|(place, _)| *place).collect()
    }
}

/// Orders of each ending with this authentication of inventory leave no secret in any place.
async fn secrets_stay_where_they_are(outside: &Outside, inventory: &str) {
    let data = tempfile::tempdir().unwrap();
    let mut served = Served::start(data.path(), outside, inventory);
    let (mut shown, mut ids) = (String::new(), Vec::new());
    let ends = [
        (r#"{"Item": "mug"}"#, "wait=20", "Processed"),
        (r#"{"Item": "mug", "DeclinePayment": 1}"#, "wait=20", "Compensated"),
        (r#"{"Item": "mug", "DeclineAll": 1}"#, "wait=20", "Error"),
    ];
    // What five orders see is the service's fault.
    let refused = std::iter::repeat_n((r#"{"Item": "mug", "RefuseCaller": 1}"#, "wait=0", "in flight"), 5);
    for (order, wait, state) in ends.into_iter().chain(refused) {
        let posted = served.post(order, wait).await;
        assert!(wait == "wait=0" || posted["ProcessState"] == state, "{posted}");
        ids.push(posted["OrderID"].as_str().unwrap().to_owned());
        shown.push_str(&posted.to_string());
    }
    let has_logged = |text: &str| fs::read_to_string(data.path().join("logs")).unwrap().contains(text);
    for _ in 0..2_000 {
        if has_logged("ALERT order") && has_logged("ALERT shipping is misconfigured") {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    for path in ["/orders", "/services", "/overview", "/leases", "/workflows", "/dead-letters", "/console"] {
        shown.push_str(&served.get(path).await);
    }
    for id in &ids {
        shown.push_str(&served.get(&format!("/orders/{id}")).await);
        shown.push_str(&served.get(&format!("/orders/{id}/document")).await);
    }
    let written = served.end();

    let logs = fs::read_to_string(data.path().join("logs")).unwrap();
    let alerts: String = logs.lines().filter(|line| line.contains("ALERT")).map(|line| format!("{line}\n")).collect();
    assert!(alerts.contains("ALERT order") && alerts.contains("ALERT shipping is misconfigured"), "{alerts}");
    assert!(logs.contains("TRACE") && shown.contains("repeats a secret") && shown.contains("[hidden]"));
    let spans = outside.spans.lock().unwrap().clone();
    assert!(spans.contains("POST charge"));
    let places = [("logs", logs), ("alerts", alerts), ("spans", spans), ("answers", shown), ("output", written)];
    let mut places = Places(places.map(|(place, text)| (place, text.into_bytes())).into());
    places.0.push(("data", bytes_in(&data.path().join("data"))));

    let key_lines: Vec<&str> = outside.certificates.client_key.lines().filter(|line| !line.contains("---")).collect();
    let mut secrets = vec![KEY, PASSWORD, BEARER, CLIENT_SECRET, TOKENS[0], TOKENS[1], SECRET_KEY, SESSION_TOKEN];
    secrets.extend([WEBHOOK, &WEBHOOK["whsec_".len()..]]);
    secrets.extend(&key_lines);
    assert_eq!(places.with(&secrets), [""; 0]);

    // The search finds an order in each place where it must be, and each secret in each place once it is there.
    let (id, of_trace) = (&*ids[2], ids[2].replace('-', ""));
    assert_eq!(places.with(&[id, &of_trace]), ["logs", "alerts", "spans", "answers", "data"]);
    let all: Vec<&str> = places.0.iter().map(|(place, _)| *place).collect();
    let length: Vec<usize> = places.0.iter().map(|(_, bytes)| bytes.len()).collect();
    for secret in secrets {
        for planted in [secret.to_owned(), STANDARD.encode(format!("shop:{secret}!"))] {
            for ((_, bytes), length) in places.0.iter_mut().zip(&length) {
                bytes.truncate(*length);
                bytes.extend(planted.as_bytes());
            }
            assert_eq!(places.with(&[secret]), all, "{planted}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_reach_their_services_and_no_other_place() {
    let outside = Outside::start().await;
    secrets_stay_where_they_are(
        &outside,
        r#"auth.basic = { user = "shop", password = "secretsmanager:shop#password" }"#,
    )
    .await;
    // Each was sent, by its kind.
    assert!(outside.was_sent("x-api-key", KEY));
    assert!(outside.was_sent("authorization", &format!("Basic {}", STANDARD.encode(format!("shop:{PASSWORD}")))));
    assert!(outside.was_sent("authorization", &format!("Bearer {}", TOKENS[1])));
    assert!(outside.was_sent("webhook-signature", "v1,"));
    assert!(outside.was_sent("authorization", "AWS4-HMAC-SHA256 Credential=AKIA-1/"));
    assert!(outside.was_sent("x-amz-security-token", SESSION_TOKEN));
    assert!(outside.was_sent("x-shop-key", WEBHOOK), "the signer logs what it signs");

    let outside = Outside::start().await;
    secrets_stay_where_they_are(&outside, r#"auth.bearer = "file:{data}/bearer""#).await;
    assert!(outside.was_sent("authorization", &format!("Bearer {BEARER}")));
}
