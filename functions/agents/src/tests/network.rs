//! Calls over the network of a simulation, without a runtime: nothing moves but the clock of the ports in memory.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use bytes::Bytes;
use domain::message::{Delivery, Outcome, Receipt, Reply, SchedulerMessage};
use domain::ports::{Environment, Source};
use domain::template::PollPath;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join, pending, ready};
use futures_util::stream::{self, StreamExt};
use http::Response;
use memory::Memory;

use super::*;
use crate::{Fleet, Host, Network, NetworkBody, NetworkError, NothingApplied, Resolver, Secret};

const BANK: &str = "https://bank.example/v1";
const OAUTH2: &str = "auth.oauth2 = { token_url = \"https://id.example/token\", client_id = \"shop\", \
                      client_secret = \"env:PASSWORD\" }";
/// The time of a request on its way, in milliseconds.
const LATENCY_MS: u64 = 50;
/// By so much the clock advances while all wait, in milliseconds.
const TICK_MS: u64 = 10;

/// What a service does after a request has come.
pub(crate) type React = BoxFuture<'static, Result<Response<NetworkBody>, NetworkError>>;

/// Services that react as a test says.
pub(crate) struct Services {
    ports: Memory,
    /// By path, in this order.
    reactions: Mutex<BTreeMap<&'static str, VecDeque<React>>>,
    received: Mutex<Vec<http::Request<Bytes>>>,
}

impl Services {
    pub(crate) fn new(ports: &Memory, reactions: impl IntoIterator<Item = (&'static str, React)>) -> Arc<Self> {
        let mut by_path = BTreeMap::<_, VecDeque<_>>::new();
        for (path, react) in reactions {
            by_path.entry(path).or_default().push_back(react);
        }
        Arc::new(Self { ports: ports.clone(), reactions: Mutex::new(by_path), received: Mutex::default() })
    }

    /// The requests to this path.
    pub(crate) fn received(&self, path: &str) -> Vec<http::Request<Bytes>> {
        self.received.lock().unwrap().iter().filter(|request| request.uri().path() == path).cloned().collect()
    }

    /// The values of a header of the requests to this path.
    fn headers(&self, path: &str, name: &str) -> Vec<String> {
        let value = |request: http::Request<Bytes>| request.headers()[name].to_str().unwrap().to_owned();
        self.received(path).into_iter().map(value).collect()
    }
}

impl Network for Services {
    fn request(&self, request: http::Request<Bytes>) -> React {
        let react = self.reactions.lock().unwrap().get_mut(request.uri().path()).and_then(VecDeque::pop_front);
        let react = react.unwrap_or_else(|| panic!("no reaction to {request:?}"));
        self.received.lock().unwrap().push(request);
        let ports = self.ports.clone();
        async move {
            ports.sleep(LATENCY_MS).await;
            react.await
        }
        .boxed()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let ports = self.ports.clone();
        async move { ports.sleep(time.as_millis().try_into().unwrap()).await }.boxed()
    }
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<NetworkBody>) -> React {
    let response = Response::builder().status(status);
    let response = headers.iter().fold(response, |response, (name, value)| response.header(*name, *value));
    ready(Ok(response.body(body.into()).unwrap())).boxed()
}

fn text(body: &'static str) -> Bytes {
    Bytes::from_static(body.as_bytes())
}

/// A body whose rest does not come, or of which an error tells that.
fn part(body: &'static str, error: Option<io::ErrorKind>) -> NetworkBody {
    let end = stream::iter(error.map(|kind| Err(kind.into())));
    let begin = stream::iter([Ok(text(body))]);
    if error.is_some() { NetworkBody::of(begin.chain(end)) } else { NetworkBody::of(begin.chain(stream::pending())) }
}

fn unconnected(cause: impl Into<io::Error>) -> React {
    ready(Err(NetworkError::Unconnected(cause.into()))).boxed()
}

fn broken() -> React {
    ready(Err(NetworkError::Broken(io::ErrorKind::ConnectionReset.into()))).boxed()
}

pub(crate) fn never() -> React {
    pending().boxed()
}

fn token(value: &str) -> React {
    let body = format!(r#"{{"access_token":"{value}","token_type":"Bearer","expires_in":3600}}"#);
    answer(200, &[], Bytes::from(body))
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Polls this to its end. Time passes while it waits.
pub(crate) fn run<T>(ports: &Memory, work: impl Future<Output = T>) -> T {
    let (bell, mut work) = (Arc::new(Bell::default()), pin!(work));
    let waker = bell.clone().into();
    let mut context = Context::from_waker(&waker);
    for _ in 0..100_000 {
        if let Poll::Ready(output) = work.as_mut().poll(&mut context) {
            return output;
        }
        if !bell.0.swap(false, Relaxed) {
            ports.advance(TICK_MS);
        }
    }
    panic!("it waits for something else than time")
}

fn secrets() -> Resolver {
    Arc::new(|reference| {
        let secret = match &*reference.name {
            "TLS" => Err("is not set".to_owned()),
            "SIGN" => Ok(Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
            name => Ok(Secret::new(&name.to_lowercase())),
        };
        ready(secret).boxed()
    })
}

/// The bank with these lines of settings, its ports, and the reactions to its calls.
fn bank(
    lines: &str,
    reactions: impl IntoIterator<Item = (&'static str, React)>,
) -> (Memory, Arc<Services>, HttpService) {
    let ports = Memory::new(NOW, 7);
    let services = Services::new(&ports, reactions);
    let (clients, settings) = (HttpClients::over(services.clone()), format!("[agents.payment]\n{lines}"));
    let settings = run(&ports, Settings::read("agents.toml", &settings, &["payment"], &secrets(), &clients)).unwrap();
    (ports, services, service_over(&clients, BANK, settings.of("payment").unwrap().clone()))
}

/// The answer of the bank to a call.
fn bank_answers(lines: &str, react: React) -> Answer {
    let (ports, _, mut service) = bank(lines, [("/v1/charge", react)]);
    run(&ports, call(&mut service, Direction::Forward))
}

#[test]
fn rule_17_an_answer_means_over_a_simulated_network_what_it_means_over_sockets() {
    let pieces = stream::iter(["{\"Rece", "ipt\":", "7}"]).map(|piece| Ok(text(piece)));
    assert_eq!(bank_answers("", answer(200, &[], NetworkBody::of(pieces))), done("{\"Receipt\":7}"));
    assert_eq!(bank_answers("forward.status = { 404 = \"done\" }", answer(404, &[], text(""))), done("{}"));
    let lines = "forward.answers = [{ status = 200, when = \"/status == 'declined'\", means = \"no\" }]";
    let declined = bank_answers(lines, answer(200, &[], text("{\"status\":\"declined\"}")));
    assert_eq!(&*failure(declined).code, "declined");
    let later = answer(429, &[("Retry-After", "Fri, 20 Nov 2026 17:27:00 GMT")], text(""));
    assert!(matches!(bank_answers("", later), Answer::Retry { after_ms: Some(17_000), .. }));
    let cut = || part("{\"Receipt\":", Some(io::ErrorKind::UnexpectedEof));
    let answered = bank_answers("", answer(200, &[], cut()));
    assert_eq!(answered, Answer::unknown("HTTP 200 OK, but its body broke off: unexpected end of file"));
    let answered = bank_answers("", answer(503, &[], cut()));
    assert_eq!(answered, Answer::retry("HTTP 503 Service Unavailable"));
}

#[test]
fn rule_17_without_an_answer_it_counts_whether_there_was_a_connection() {
    let refused = bank_answers("", unconnected(io::ErrorKind::ConnectionRefused));
    assert_eq!(refused, Answer::retry("bank.example: no connection: connection refused"));
    assert_eq!(bank_answers("", broken()), Answer::unknown("bank.example: the connection broke: connection reset"));
    // Too many open files.
    let answered = bank_answers("", unconnected(io::Error::from_raw_os_error(24)));
    assert!(matches!(answered, Answer::NotCalled { .. }), "{answered:?}");
}

#[test]
fn rule_36_a_call_is_taken_on_over_a_simulated_network_and_its_state_is_asked() {
    let polled = |path: &str| Request { poll: Some(PollPath::parse(path).unwrap()), ..request(Direction::Forward) };
    let state = answer(200, &[], text("{\"Receipt\":7}"));
    let taken_on = answer(202, &[], text("{\"id\":\"t 7\"}"));
    let (ports, services, mut service) = bank("", [("/v1/charge", taken_on), ("/v1/transfers/t%207", state)]);
    let answered = run(&ports, call_with(&mut service, &polled("transfers/{/id}"), NOW));
    let Answer::UnderWay { poll: Some(Ok(path)), .. } = answered else { panic!("{answered:?}") };
    let look = serde_json::from_str(&format!(r#"{{"Path":"{path}","Answers":[]}}"#)).unwrap();
    let look = Request { look: Some(look), ..request(Direction::Forward) };
    assert_eq!(run(&ports, service.look(&call_of(&look, NOW))), done("{\"Receipt\":7}"));
    assert_eq!(services.received("/v1/transfers/t%207")[0].method(), http::Method::GET);

    let (ports, _, mut service) = bank("", [("/v1/charge", answer(202, &[], part("{\"id\"", None)))]);
    let answered = run(&ports, call_with(&mut service, &polled("transfers/{/id}"), NOW));
    let Answer::UnderWay { poll, .. } = answered else { panic!("{answered:?}") };
    assert_eq!(poll, Some(Err("its body did not come".to_owned())));
    assert_eq!(NOW.ms_until(ports.now()), LATENCY_MS + 1_000, "by the clock of the simulation");
}

#[test]
fn a_token_is_fetched_over_the_simulated_network_once_and_again_after_a_401() {
    let reactions = [
        ("/token", token("t-1")),
        ("/token", token("t-2")),
        ("/v1/charge", answer(200, &[], text("{}"))),
        ("/v1/charge", answer(200, &[], text("{}"))),
        ("/v1/charge", answer(401, &[], text(""))),
        ("/v1/charge", answer(200, &[], text("{}"))),
    ];
    let (ports, services, mut service) = bank(OAUTH2, reactions);
    let mut other = service.clone();
    let both = join(call(&mut service, Direction::Forward), call(&mut other, Direction::Forward));
    assert_eq!(run(&ports, both), (done("{}"), done("{}")));
    assert_eq!(services.received("/token").len(), 1, "for two calls at once");
    assert_eq!(run(&ports, call(&mut service, Direction::Forward)), done("{}"));
    let tokens = services.headers("/v1/charge", "authorization");
    assert_eq!(tokens, ["Bearer t-1", "Bearer t-1", "Bearer t-1", "Bearer t-2"]);
}

#[test]
fn a_call_over_a_simulated_network_has_its_proof_and_no_certificate() {
    for (lines, header, begins) in [
        ("auth.bearer = \"env:TOKEN\"", "authorization", "Bearer token"),
        ("auth.basic = { user = \"me\", password = \"env:A\" }", "authorization", "Basic bWU6YQ=="),
        ("auth.sigv4 = { service = \"s\", region = \"r\" }", "authorization", "AWS4-HMAC-SHA256 Credential=aws_access"),
        ("signature.standard_webhooks = \"env:SIGN\"", "webhook-signature", "v1,"),
        ("tls = { certificate = \"env:TLS\", key = \"env:TLS\" }", "content-type", "application/json"),
    ] {
        let (ports, services, mut service) = bank(lines, [("/v1/charge", answer(200, &[], text("{}")))]);
        assert_eq!(run(&ports, call(&mut service, Direction::Forward)), done("{}"), "{lines}");
        let [value] = services.headers("/v1/charge", header).try_into().unwrap();
        assert!(value.starts_with(begins), "{value}");
    }
    let tls = format!("tls.ca = \"env:TLS\"\n{OAUTH2}");
    let (ports, _, mut service) = bank(&tls, [("/token", token("t")), ("/v1/charge", answer(200, &[], text("{}")))]);
    assert_eq!(
        run(&ports, call(&mut service, Direction::Forward)),
        done("{}"),
        "the token needs no certificate either"
    );
}

/// What a fleet replies in the end to a request whose first calls fail, how long that takes in milliseconds, and the
/// services.
fn handled_by_a_fleet() -> (Outcome, u64, Arc<Services>) {
    let ports = Memory::new(NOW, 7);
    let reactions = [
        ("/token", never()),
        ("/token", token("t-1")),
        ("/v1/charge", unconnected(io::ErrorKind::ConnectionRefused)),
        ("/v1/charge", never()),
        ("/v1/charge", answer(201, &[("Location", "/charges/7")], text("{\"id\":7,\"card\":\"4242\"}"))),
    ];
    let services = Services::new(&ports, reactions);
    let settings = format!("[agents.payment]\nurl = \"{BANK}\"\ncall_timeout = \"3s\"\n{OAUTH2}");
    let host = Host {
        settings: settings.into(),
        source: "AGENTS".to_owned(),
        urls: BTreeMap::new(),
        stand_ins: None,
        callbacks: None,
        policy: Box::new(|_, _| {}),
        secrets: secrets(),
    };
    let fleet = Fleet::new(NothingApplied, host, HttpClients::over(services.clone()));
    let keep = serde_json::from_str(r#"{"At":"header:location","ID":"/id"}"#).unwrap();
    let request = Request { keep, ..request(Direction::Forward) };
    let receipt = Receipt { message_id: "m".into(), handle: "h".into() };
    let delivery = Delivery { receipt, receive_count: 1, parent: None, body: Ok(request) };
    assert!(run(&ports, fleet.handle(&ports, vec![delivery])).0.is_empty());
    let last = run(&ports, ports.scheduler().receive(10)).pop().unwrap();
    let Ok(SchedulerMessage::Reply(Reply { outcome, .. })) = last.body else { panic!("{last:?}") };
    (outcome, NOW.ms_until(ports.now()), services)
}

#[test]
fn rule_4_a_fleet_works_over_a_simulated_network_by_its_clock_alone() {
    let (outcome, passed_ms, services) = handled_by_a_fleet();
    assert_eq!(outcome, Outcome::Done(Json::parse(br#"{"At":"/charges/7","ID":7}"#, 99).unwrap()));
    let key = request(Direction::Forward).idempotency_key;
    assert_eq!(services.headers("/v1/charge", "idempotency-key"), [&*key; 3]);
    assert_eq!(services.headers("/v1/charge", "authorization"), ["Bearer t-1"; 3]);
    assert!((6_000..10_000).contains(&passed_ms), "two time-outs of 3 s: {passed_ms} ms");
    let (again, again_ms, _) = handled_by_a_fleet();
    assert_eq!((again, again_ms), (outcome, passed_ms), "the same again");
}
