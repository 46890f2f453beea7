//! The three remote services: on loopback, answering at once. Run as a process of its own.
//!
//! These are not the crate `standins`. They share the machine with the measured process, so they do almost no work: they
//! parse no body and remember no effect.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::wire::{Message, Wire};

/// Of the mix, the calls of 100 that are answered 503 once.
pub const BUSY_PERCENT: u64 = 10;
/// One payment in so many is declined.
const DECLINED_ONE_IN: u64 = 50;
/// Where what was counted is asked for.
const COUNTS_PATH: &str = "/counts";
const TOTAL_PATH: &str = "/total";

/// How the services behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// So many calls of 100 are answered 503 once, and 2 % of the payments are declined.
    pub busy_percent: Option<u64>,
    /// Calls are counted by their idempotency key.
    pub counts: bool,
}

struct Stub {
    manner: Manner,
    /// Calls that were told to come again.
    put_off: RefCell<HashSet<u64>>,
    total: Cell<u64>,
    calls: RefCell<HashMap<String, u32>>,
}

/// Serves inventory, payment and shipping, each on a free port of its own, and prints a line with their three addresses.
/// Ends when the process does.
///
/// # Errors
/// Where no port can be bound.
pub async fn serve(manner: Manner) -> io::Result<()> {
    let stub = Rc::new(Stub { manner, put_off: RefCell::default(), total: Cell::new(0), calls: RefCell::default() });
    let all = LocalSet::new();
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        addresses.push(listener.local_addr()?.to_string());
        all.spawn_local(accept(listener, stub.clone()));
    }
    println!("{}", addresses.join(" "));
    io::stdout().flush()?;
    all.await;
    Ok(())
}

/// The calls that a counting stub got, by their idempotency key.
///
/// # Errors
/// The system's, or `InvalidData` where the stub answers something else.
pub async fn counts(stub: SocketAddr) -> io::Result<BTreeMap<String, u32>> {
    asked(stub, COUNTS_PATH).await
}

/// The calls that a stub got in all.
///
/// # Errors
/// The system's, or `InvalidData` where the stub answers something else.
pub async fn total(stub: SocketAddr) -> io::Result<u64> {
    asked(stub, TOTAL_PATH).await
}

async fn asked<T: DeserializeOwned>(stub: SocketAddr, path: &str) -> io::Result<T> {
    let mut wire = Wire::open(stub).await?;
    wire.send(format!("GET {path} HTTP/1.1\r\nhost: stub\r\n\r\n").as_bytes()).await?;
    let answer = wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    serde_json::from_slice(answer.body).map_err(io::Error::other)
}

async fn accept(listener: TcpListener, stub: Rc<Stub>) {
    while let Ok((stream, _)) = listener.accept().await {
        let stub = stub.clone();
        spawn_local(async move {
            // A connection that breaks has been killed at its other end.
            let _ = talk(Wire::new(stream), &stub).await;
        });
    }
}

async fn talk(wire: io::Result<Wire>, stub: &Stub) -> io::Result<()> {
    let mut wire = wire?;
    while let Some(request) = wire.next().await? {
        let answer = stub.answer(request);
        wire.send(answer.as_bytes()).await?;
    }
    Ok(())
}

impl Stub {
    fn answer(&self, request: Message<'_>) -> String {
        let path = request.path();
        if path == COUNTS_PATH {
            return answer("200 OK", &serde_json::to_string(&*self.calls.borrow()).unwrap_or_default());
        }
        if path == TOTAL_PATH {
            return answer("200 OK", &self.total.get().to_string());
        }
        self.total.set(self.total.get() + 1);
        let key = request.header("idempotency-key").unwrap_or_default();
        if self.manner.counts {
            *self.calls.borrow_mut().entry(key.to_owned()).or_default() += 1;
        }
        if let Some(percent) = self.manner.busy_percent {
            let call = hash(key);
            if call % 100 < percent && self.put_off.borrow_mut().insert(call) {
                return answer("503 Service Unavailable", "{}");
            }
            let order = key.split('/').next().unwrap_or_default();
            if path.ends_with("/charge") && hash(order).is_multiple_of(DECLINED_ONE_IN) {
                return answer("402 Payment Required", r#"{"code":"card_declined","message":"the card was declined"}"#);
            }
        }
        answer("200 OK", r#"{"Reference":"R-5b1d0fa35c0b1e77","Status":"done"}"#)
    }
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The same in every run.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // The lowest bits of neighbours are alike enough to matter when a remainder is taken.
    hasher.finish() >> 7
}
