//! Kills the process in the middle of many orders, starts it again on the same directory, and looks whether every order
//! that was accepted is done, with each effect once, and how long that took.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use domain::id::OrderId;
use rusqlite::{Connection, OpenFlags};
use tests::bench::served::{Served, Stub};
use tests::bench::stub::{self, Manner};
use tests::bench::{Wire, document};
use tokio::task::{LocalSet, spawn_blocking, spawn_local};

use crate::Times;
use crate::row::Report;

/// Who posts, as the API of `stepwarden serve` knows it: it goes into the ids that keys make.
const CALLER: &str = "local";
const STEPS: [&str; 3] = ["reserve-inventory", "charge-payment", "ship-order"];
/// How long after the restart everything may take, in seconds.
const RECOVERED_S_MAX: f64 = 2.0;

/// What the callers know.
#[derive(Default)]
struct Known {
    installation: String,
    posted: Cell<u64>,
    /// Orders that were answered 202.
    accepted: RefCell<BTreeSet<OrderId>>,
    /// Orders that were seen processed.
    done: RefCell<BTreeSet<OrderId>>,
    /// Orders that were posted, and nobody knows whether they came through.
    unknown: RefCell<Vec<OrderId>>,
}

pub(crate) async fn run(in_flight: usize, times: Times) -> io::Result<Report> {
    LocalSet::new().run_until(measure(in_flight, times)).await
}

async fn measure(in_flight: usize, times: Times) -> io::Result<Report> {
    let data = tempfile::tempdir()?;
    let stub = Stub::start(Manner { busy_percent: None, counts: true })?;
    let mut served = Served::start(data.path(), &stub)?;
    let known = Rc::new(Known { installation: installation(data.path())?, ..Known::default() });
    let callers: Vec<_> = (0..in_flight).map(|_| spawn_local(caller(served.address(), known.clone()))).collect();
    tokio::time::sleep(times.until_kill).await;
    served.kill()?;
    for caller in callers {
        // Each ends with its broken connection.
        let _ = caller.await;
    }
    let left: Vec<OrderId> = known.accepted.borrow().difference(&known.done.borrow()).copied().collect();
    let unknown = known.unknown.take();

    let restarted = Instant::now();
    let (served, stub) = {
        let path = data.path().to_owned();
        let again = spawn_blocking(move || Ok::<_, io::Error>((Served::start(&path, &stub)?, stub)));
        again.await.map_err(io::Error::other)??
    };
    let ends = ends(served.address(), [left.clone(), unknown.clone()].concat()).await?;
    let recovered_s = restarted.elapsed().as_secs_f64();
    // Those whose end was seen before have to be there still.
    let seen_before: Vec<OrderId> = known.done.borrow().iter().copied().collect();
    let ends = self::ends(served.address(), seen_before).await?.into_iter().chain(ends).collect::<BTreeMap<_, _>>();

    let mut report = Report::default();
    let accepted = known.accepted.take();
    let lost = accepted.iter().filter(|id| ends.get(id).map(String::as_str) != Some("Processed")).count();
    let unfinished = unknown.iter().filter(|id| ends.get(id).is_some_and(|end| end != "Processed")).count();
    report.say(format!(
        "{} orders accepted, {} of them under way when it was killed, {} posted without an answer",
        accepted.len(),
        left.len(),
        unknown.len()
    ));
    let listens_s = served.started_in.as_secs_f64();
    let text = format!("{recovered_s:.2} s from the restart until all were done; it listened after {listens_s:.2} s");
    report.at_most(text, recovered_s, RECOVERED_S_MAX);
    report.at_most(
        format!("{lost} accepted orders lost, {unfinished} others not done"),
        (lost + unfinished) as f64,
        0.0,
    );
    let existing: BTreeSet<OrderId> = accepted.iter().chain(ends.keys()).copied().collect();
    let under_way = left.len() + unknown.len();
    effects(&existing, &stub::counts(stub.address()).await?, under_way, &mut report);
    Ok(report)
}

/// The random part of the installation, from which the ids of orders with a key follow.
fn installation(data: &Path) -> io::Result<String> {
    const SQL: &str = "SELECT body ->> '$.Text' FROM definitions WHERE key = 'installation'";
    let read = Connection::open_with_flags(data.join("stepwarden.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    read.and_then(|database| database.query_row(SQL, [], |row| row.get(0))).map_err(io::Error::other)
}

/// Posts an order, waits for its end, and posts the next, until the connection breaks.
async fn caller(address: SocketAddr, known: Rc<Known>) -> io::Result<()> {
    let mut wire = Wire::open(address).await?;
    loop {
        let number = known.posted.get();
        known.posted.set(number + 1);
        let (key, document) = (format!("kill-{number}"), document(number));
        let order_id = OrderId::of_installation(&known.installation, CALLER, &key);
        let length = document.len();
        let post = format!(
            "POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: {key}\r\n\
             content-length: {length}\r\n\r\n{document}"
        );
        let status = status(&mut wire, &post).await;
        if !matches!(status, Ok(202)) {
            known.unknown.borrow_mut().push(order_id);
            return status.map(drop);
        }
        known.accepted.borrow_mut().insert(order_id);
        if end(&mut wire, order_id).await?.as_deref() == Some("Processed") {
            known.done.borrow_mut().insert(order_id);
        }
    }
}

async fn status(wire: &mut Wire, request: &str) -> io::Result<u16> {
    wire.send(request.as_bytes()).await?;
    Ok(wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?.status())
}

/// The state in which an order is at last; nothing where there is none.
async fn end(wire: &mut Wire, order_id: OrderId) -> io::Result<Option<String>> {
    let get = format!("GET /orders/{order_id} HTTP/1.1\r\nhost: localhost\r\nprefer: wait=20\r\n\r\n");
    wire.send(get.as_bytes()).await?;
    let answer = wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if answer.status() == 404 {
        return Ok(None);
    }
    let task: serde_json::Value = serde_json::from_slice(answer.body)?;
    Ok(task["ProcessState"].as_str().map(str::to_owned))
}

/// The ends of those orders that there are.
async fn ends(address: SocketAddr, orders: Vec<OrderId>) -> io::Result<BTreeMap<OrderId, String>> {
    let (orders, ends) = (Rc::new(RefCell::new(orders)), Rc::new(RefCell::new(BTreeMap::new())));
    let askers: Vec<_> = (0..64)
        .map(|_| {
            let (orders, ends) = (orders.clone(), ends.clone());
            spawn_local(async move {
                let mut wire = Wire::open(address).await?;
                loop {
                    let Some(order_id) = orders.borrow_mut().pop() else { return Ok::<_, io::Error>(()) };
                    if let Some(end) = end(&mut wire, order_id).await? {
                        ends.borrow_mut().insert(order_id, end);
                    }
                }
            })
        })
        .collect();
    for asker in askers {
        asker.await.map_err(io::Error::other)??;
    }
    Ok(ends.take())
}

/// Each step of each order once, and nothing else: a service takes calls with one key for one effect. Only the call that
/// an order was at when it was killed may come again.
fn effects(existing: &BTreeSet<OrderId>, calls: &BTreeMap<String, u32>, under_way: usize, report: &mut Report) {
    let expected: BTreeSet<String> =
        existing.iter().flat_map(|order_id| STEPS.map(|step| format!("{order_id}/{step}"))).collect();
    let missing = expected.iter().filter(|key| !calls.contains_key(*key)).count();
    let others = calls.keys().filter(|key| !expected.contains(*key)).count();
    let repeated: u32 = calls.values().map(|calls| calls - 1).sum();
    let (orders, keys) = (existing.len(), calls.len());
    let text = format!("{keys} effects for {orders} orders; {repeated} calls came again under their key");
    report.at_most(text, f64::from(repeated), under_way as f64);
    report.at_most(
        format!("{missing} effects missing, {others} that belong to no order"),
        (missing + others) as f64,
        0.0,
    );
}
