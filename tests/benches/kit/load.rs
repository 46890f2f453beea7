//! The load generator: so many connections, each of which posts an order, waits for its end, and posts the next. Run as a
//! process of its own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep_until;

use super::document;
use super::wire::Wire;

/// What it says when the warm-up is over.
pub const WARM: &str = "warm";
/// What it says when the window is over, before it adds up.
pub const OVER: &str = "over";

/// What is posted where.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where orders are posted.
    pub address: SocketAddr,
    /// Orders under way at the same time.
    pub in_flight: usize,
    /// Whether each order has an `Idempotency-Key`.
    pub keyed: bool,
    /// The path to which they are posted, with the key in place of `{}`.
    pub path: String,
    /// How long nothing counts.
    pub warm_up: Duration,
    /// How long it does.
    pub window: Duration,
}

/// What was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Seen {
    /// How long the window was, in seconds.
    pub window_s: f64,
    /// Orders that ended in the window, by their end.
    pub ends: BTreeMap<String, u64>,
    /// Orders that ended at all.
    pub orders: u64,
    /// From the post to the end, of those that ended in the window, in milliseconds.
    pub p50_ms: f64,
    /// Likewise.
    pub p90_ms: f64,
    /// Likewise.
    pub p99_ms: f64,
    /// Likewise.
    pub p999_ms: f64,
    /// Likewise, of those that were still under way at the end as well.
    pub max_ms: f64,
}

impl Seen {
    /// Orders that ended in the window.
    #[must_use]
    pub fn in_window(&self) -> u64 {
        self.ends.values().sum()
    }

    /// Those of them that ended neither processed nor undone.
    #[must_use]
    pub fn astray(&self) -> u64 {
        self.ends.iter().filter(|(end, _)| !["Processed", "Compensated"].contains(&end.as_str())).map(|(_, n)| n).sum()
    }

    /// Orders in a second of the window. What went astray is no order that was carried.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        (self.in_window() - self.astray()) as f64 / self.window_s
    }
}

#[derive(Default)]
struct Shared {
    posted: Cell<u64>,
    ended: Cell<u64>,
    latencies_us: RefCell<Vec<u32>>,
    ends: RefCell<BTreeMap<String, u64>>,
    /// What counts: orders that ended from then on.
    since: Cell<Option<Instant>>,
    /// When the order that is under way was posted, for each connection.
    under_way: RefCell<Vec<Instant>>,
}

/// Posts until the window is over. Says [`WARM`] and [`OVER`] on lines of their own when it is so far, then what was seen
/// as a line of JSON.
///
/// # Errors
/// The system's, where a connection broke.
pub async fn run(plan: Plan) -> io::Result<()> {
    let shared = Rc::new(Shared::default());
    let seen = LocalSet::new().run_until(measure(Rc::new(plan), shared)).await?;
    println!("{}", serde_json::to_string(&seen)?);
    Ok(())
}

async fn measure(plan: Rc<Plan>, shared: Rc<Shared>) -> io::Result<Seen> {
    let mut connections = JoinSet::new();
    let started = Instant::now();
    shared.under_way.replace(vec![started; plan.in_flight]);
    for number in 0..plan.in_flight {
        connections.spawn_local(connection(plan.clone(), number, shared.clone()));
    }
    wait_until(started + plan.warm_up, &mut connections).await?;
    let began = Instant::now();
    shared.since.set(Some(began));
    say(WARM)?;
    wait_until(began + plan.window, &mut connections).await?;
    shared.since.set(None);
    let window_s = began.elapsed().as_secs_f64();
    let oldest = shared.under_way.borrow().iter().map(Instant::elapsed).max().unwrap_or_default();
    say(OVER)?;
    Ok(shared.seen(window_s, oldest))
}

/// Lets the connections work; one that ends does so because it broke.
async fn wait_until(end: Instant, connections: &mut JoinSet<io::Result<()>>) -> io::Result<()> {
    tokio::select! {
        () = sleep_until(end.into()) => Ok(()),
        Some(ended) = connections.join_next() => ended.map_err(io::Error::other)?,
    }
}

fn say(word: &str) -> io::Result<()> {
    println!("{word}");
    io::stdout().flush()
}

async fn connection(plan: Rc<Plan>, place: usize, shared: Rc<Shared>) -> io::Result<()> {
    let mut wire = Wire::open(plan.address).await?;
    // Another load generator may have posted to the same store.
    let process = std::process::id();
    loop {
        let number = shared.posted.get();
        shared.posted.set(number + 1);
        let key = plan.keyed.then(|| format!("{process}-{number}"));
        let request = post(&plan.path, &document(number), key.as_deref());
        let began = Instant::now();
        shared.under_way.borrow_mut()[place] = began;
        wire.send(request.as_bytes()).await?;
        let answer = wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let us = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
        shared.ended.set(shared.ended.get() + 1);
        if shared.since.get().is_some() {
            shared.latencies_us.borrow_mut().push(us);
            let end = end(answer.status(), answer.body);
            let mut ends = shared.ends.borrow_mut();
            match ends.get_mut(end) {
                Some(count) => *count += 1,
                None => {
                    ends.insert(end.to_owned(), 1);
                }
            }
        }
    }
}

fn post(path: &str, document: &str, key: Option<&str>) -> String {
    let (length, path) = (document.len(), path.replace("{}", key.unwrap_or_default()));
    let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nprefer: wait=20\r\n\
         {key}content-length: {length}\r\n\r\n{document}"
    )
}

/// The state in which an order was answered: the first that the answer names is the task's own.
fn end(status: u16, body: &[u8]) -> &str {
    const NAME: &str = "\"ProcessState\":\"";
    let state = std::str::from_utf8(body).ok().and_then(|body| {
        let rest = &body[body.find(NAME)? + NAME.len()..];
        rest.split('"').next()
    });
    match (status, state) {
        (200, Some(state)) => state,
        (202, Some(_)) => "not settled",
        (503, _) => "unavailable",
        _ => "refused",
    }
}

impl Shared {
    fn seen(&self, window_s: f64, oldest: Duration) -> Seen {
        let mut latencies_us = self.latencies_us.take();
        latencies_us.sort_unstable();
        let ms = |per_mille: usize| {
            let place = (latencies_us.len() * per_mille / 1_000).min(latencies_us.len().saturating_sub(1));
            latencies_us.get(place).map_or(0.0, |&us| f64::from(us) / 1_000.0)
        };
        let [p50_ms, p90_ms, p99_ms, p999_ms, longest_ms] = [500, 900, 990, 999, 1_000].map(ms);
        let max_ms = longest_ms.max(oldest.as_secs_f64() * 1_000.0);
        Seen { window_s, ends: self.ends.take(), orders: self.ended.get(), p50_ms, p90_ms, p99_ms, p999_ms, max_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_tasks_state_and_not_that_of_a_step() {
        let body = br#"{"OrderID":"x","ProcessState":"Compensated","Steps":[{"ProcessState":"Processed"}]}"#;
        assert_eq!(end(200, body), "Compensated");
        assert_eq!(end(202, br#"{"OrderID":"x","ProcessState":"Pending"}"#), "not settled");
        assert_eq!((end(400, b"{}"), end(200, b"")), ("refused", "refused"));
    }
}
