//! The stop in order (rule 25): calls in flight are finished and not made again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use http::{Request, Response, StatusCode};
use local::client::Client;
use local::http_server::Server;
use standins::Service;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::orders::text_of;
use crate::victim::Victim;

/// A stop that takes longer hangs, however slow the host is.
const STOP_MAX: Duration = Duration::from_secs(300);
/// After this the run has failed.
const PATIENCE: Duration = Duration::from_secs(600);

type Calls = BTreeMap<String, u32>;

/// A service that counts its calls by key, and answers none of them before its gate is open. The first call of all is
/// answered 503.
struct Gated {
    server: Server,
    calls: Arc<Mutex<Calls>>,
    gate: watch::Sender<bool>,
}

impl Gated {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (calls, (gate, opened)) = (Arc::<Mutex<Calls>>::default(), watch::channel(false));
        let counted = calls.clone();
        let handle = move |request: Request<Bytes>| {
            let key = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
            let mut calls = counted.lock().unwrap();
            let status = if calls.is_empty() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            *calls.entry(key).or_default() += 1;
            let mut opened = opened.clone();
            async move {
                opened.wait_for(|&is_open| is_open).await.unwrap();
                Ok(Response::builder().status(status).body(Bytes::new()).unwrap())
            }
        };
        Self { server: Server::start(listener, 1 << 20, 0, handle).unwrap(), calls, gate }
    }

    fn calls(&self) -> Calls {
        self.calls.lock().unwrap().clone()
    }
}

/// A process with the calls of `orders` new orders in flight, in a directory.
async fn serve(orders: usize, services: &Gated) -> (TempDir, Victim, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let url_of = |service: Service| format!("http://{}/{service}", services.server.address());
    let victim = Victim::start(directory.path(), url_of, &mut Rng::new());
    let (client, url) = (Client::new(), format!("{}/orders", victim.url()));
    let mut ids = Vec::new();
    for number in 0..orders {
        let key = format!("stop-{number}");
        let answer = until("an order is accepted", async || {
            client.post(&url, &[("idempotency-key", &key)], "{}".to_owned()).await.ok()
        });
        ids.push(text_of(&answer.await.body, "OrderID"));
    }
    until("all calls are in flight", async || (services.calls().len() == orders).then_some(())).await;
    (directory, victim, ids)
}

/// Waits until the API of a process that was asked to stop listens no more.
async fn deaf(victim: &Victim) {
    let address = victim.url().replace("http://", "");
    until("it stops", async || TcpStream::connect(&address).await.is_err().then_some(())).await;
}

/// Starts the process again, and waits until all orders are done.
async fn finish(victim: &mut Victim, ids: &[String]) {
    victim.start_again();
    let client = Client::new();
    for order_id in ids {
        let url = format!("{}/orders/{order_id}", victim.url());
        let state = async || Some(text_of(&client.get(&url).await.ok()?.body, "ProcessState"));
        until("an order is done", async || state().await.filter(|state| state == "Processed")).await;
    }
}

async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "out of time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether the data are all in the database file, so that its writer has closed.
fn is_written_back(data: &Path) -> bool {
    std::fs::metadata(data.join("stepwarden.db-wal")).is_ok_and(|log| log.len() == 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_finishes_the_calls_in_flight_and_starts_none() {
    const ORDERS: usize = 64;
    let services = Gated::start().await;
    let (directory, mut victim, ids) = serve(ORDERS, &services).await;
    let asked = Instant::now();
    victim.terminate();
    deaf(&victim).await;
    services.gate.send_replace(true);
    let ((status, log), took) = (victim.end(), asked.elapsed());
    assert!(status.success() && took < STOP_MAX, "{status} after {took:?}\n{log}");
    assert!(is_written_back(&directory.path().join("data")), "{log}");
    let calls = services.calls();
    assert!(calls.len() == ORDERS && calls.values().all(|&calls| calls == 1), "no call started: {calls:?}\n{log}");
    finish(&mut victim, &ids).await;
    let repeated: Calls = services.calls().into_iter().filter(|&(_, calls)| calls > 1).collect();
    let is_refused = |(key, &calls): (&String, &u32)| key.ends_with("/reserve-inventory") && calls == 2;
    assert!(repeated.len() == 1 && repeated.iter().all(is_refused), "only the refused call: {repeated:?}\n{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_waits_for_no_call_and_closes_the_data_all_the_same() {
    let services = Gated::start().await;
    let (directory, mut victim, ids) = serve(8, &services).await;
    victim.terminate();
    deaf(&victim).await;
    victim.terminate();
    let (status, log) = victim.end();
    assert!(status.success() && log.contains("second signal, stopping at once"), "{status}\n{log}");
    assert!(is_written_back(&directory.path().join("data")), "{log}");
    services.gate.send_replace(true);
    finish(&mut victim, &ids).await;
}
