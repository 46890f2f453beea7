//! What the API shows of many orders at once.

use std::io;
use std::time::Instant;

use tests::bench::Wire;
use tests::bench::served::Served;

use crate::bar::middle;
use crate::fill::{self, INDEXED};
use crate::store::Figures;

/// Times that each is asked for.
const TIMES: usize = 101;
/// Times before, which do not count.
const WARM_UPS: usize = 5;
/// How far the deep page is from the first.
const PAGES_DEEP: usize = 3;
/// Differences of an answer below this are not told from noise, in milliseconds.
const FLOOR_MS: f64 = 0.15;

/// Searches in the index, each for another order.
const FOUND: u64 = 1_000;
/// Differences of the slowest searches below this are not told from noise, in milliseconds.
const FOUND_FLOOR_MS: f64 = 5.0;
/// The slowest searches of a hundred may take so long, in milliseconds.
const FOUND_P99_MS_MAX: f64 = 50.0;

const PROCESSED: &str = "/orders?state=Processed&limit=50";
const PATHS: [(&str, &str); 7] = [
    ("list, all", "/orders?limit=50"),
    ("list, Processed", PROCESSED),
    ("list, Error", "/orders?state=Error&limit=50"),
    ("list, Pending", "/orders?state=Pending&limit=50"),
    ("overview", "/overview"),
    ("search, by a reason", "/orders?reason=exhausted&limit=50"),
    ("search, by a document's member", "/orders?field=/Note&value=bench-none&limit=50"),
];

/// `orders` were put into the store.
pub(crate) async fn measure(served: &Served, figures: &mut Figures, orders: u64) -> io::Result<()> {
    let mut wire = Wire::open(served.address()).await?;
    for (name, path) in PATHS {
        time(served, &mut wire, name, path, figures).await?;
    }
    let mut path = PROCESSED.to_owned();
    for _ in 0..PAGES_DEEP {
        let page = get(&mut wire, &path).await?;
        let cursor = page["NextCursor"].as_str().ok_or_else(|| io::Error::other(format!("{path} is the last page")))?;
        path = format!("{PROCESSED}&cursor={cursor}");
    }
    time(served, &mut wire, "list, Processed, a later page", &path, figures).await?;
    let by_correlation = |number| format!("/orders?correlation={}&limit=50", fill::correlation_id(number));
    found(&mut wire, "search, by correlation id", by_correlation, figures, orders).await?;
    let by_member = |number| format!("/orders?field={INDEXED}&value={}&limit=50", fill::reference(number));
    found(&mut wire, "search, by an indexed member", by_member, figures, orders).await
}

/// The time of a search for one order, from all parts of the store.
async fn found(
    wire: &mut Wire,
    name: &str,
    path: impl Fn(u64) -> String,
    figures: &mut Figures,
    orders: u64,
) -> io::Result<()> {
    let mut took_ms = Vec::new();
    for place in 0..FOUND {
        let path = path(place * orders / FOUND);
        let began = Instant::now();
        let page = get(wire, &path).await?;
        took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        if page["Orders"].as_array().map(Vec::len) != Some(1) {
            return Err(io::Error::other(format!("{path} found another number of orders: {page}")));
        }
    }
    took_ms.sort_by(f64::total_cmp);
    let p99 = took_ms[took_ms.len() * 99 / 100];
    figures.add_limited(&format!("{name}, p99, ms"), FOUND_FLOOR_MS, FOUND_P99_MS_MAX, p99);
    figures.add(&format!("{name}, ms"), false, FLOOR_MS, middle(took_ms).unwrap_or_default());
    Ok(())
}

/// The time of an answer, and what it takes of a processor: a busy machine lengthens only the first.
async fn time(served: &Served, wire: &mut Wire, name: &str, path: &str, figures: &mut Figures) -> io::Result<()> {
    for _ in 0..WARM_UPS {
        get(wire, path).await?;
    }
    let mut took_ms = Vec::with_capacity(TIMES);
    let before = served.usage()?;
    for _ in 0..TIMES {
        let began = Instant::now();
        get(wire, path).await?;
        took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    let cpu_ms = (served.usage()?.cpu_ms - before.cpu_ms) / TIMES as f64;
    figures.add(&format!("{name}, ms"), false, FLOOR_MS, middle(took_ms).unwrap_or_default());
    figures.add(&format!("{name}, CPU, ms"), false, FLOOR_MS, cpu_ms);
    Ok(())
}

/// An answer that is not 200 would be a fast one: it is a failure.
async fn get(wire: &mut Wire, path: &str) -> io::Result<serde_json::Value> {
    wire.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
    let answer = wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if answer.status() != 200 {
        let body = String::from_utf8_lossy(answer.body);
        return Err(io::Error::other(format!("{path} was answered {}: {body}", answer.status())));
    }
    serde_json::from_slice(answer.body).map_err(io::Error::other)
}
