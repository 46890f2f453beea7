//! Posts many orders at `stepwarden serve` and says how fast they went through and how much memory that took.
//!
//!     cargo build --release && cargo run --release -p tests --bin load -- --orders 10000 --in-flight 64
//!
//! The process that is measured runs as a user would run it, with its stand-ins inside, unless `--stand-ins-outside` puts
//! them into this one.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod child;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Parser;
use stepwarden::standin::{KEYS_SERVE, StandIns};
use tests::socket::{Answer, Connection, request};
use tokio::task::JoinSet;

use child::Child;

/// Memory is told after so many orders.
const MEMORY_EVERY: usize = 10_000;

/// Posts orders, each with `Prefer: wait`, and prints orders/s, latencies, final states and memory
#[derive(Debug, Parser)]
struct Args {
    /// Orders to post
    #[arg(long, default_value_t = 10_000)]
    orders: usize,
    /// Connections, each with one order at a time
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Address such as 127.0.0.1:3000 of an instance that runs already; its memory is then not told
    #[arg(long)]
    url: Option<SocketAddr>,
    /// The program to start; without it the `stepwarden` next to this one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Run the stand-ins in this process instead of the measured one
    #[arg(long)]
    stand_ins_outside: bool,
    /// The order's document
    #[arg(long, default_value = r#"{"Item": "mug", "Quantity": 2, "Total": 25.00}"#)]
    document: String,
}

/// What all connections share.
struct Load {
    address: SocketAddr,
    request: Vec<u8>,
    orders: usize,
    begun: AtomicUsize,
    ended: AtomicUsize,
    child: Option<Child>,
}

/// What one connection saw.
#[derive(Default)]
struct Seen {
    latencies_us: Vec<u64>,
    ends: BTreeMap<String, usize>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let stand_ins = match args.stand_ins_outside {
        true => Some(StandIns::start_anywhere(KEYS_SERVE).await?),
        false => None,
    };
    let child = match args.url {
        None => Some(Child::start(args.program.as_deref(), stand_ins.as_ref())?),
        Some(_) => None,
    };
    let address = args.url.or(child.as_ref().map(Child::address)).ok_or("no address")?;
    let request = request("POST", "/orders", &[("prefer", "wait=20")], &args.document);
    let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let load = Arc::new(Load { address, request, orders: args.orders, begun, ended, child });
    let place = if args.stand_ins_outside { "outside" } else { "inside" };
    println!("{} orders, {} in flight, stand-ins {place} the process", args.orders, args.in_flight);
    load.tell_memory(0);
    let started = Instant::now();
    let seen = run(&load, args.in_flight).await?;
    let took_s = started.elapsed().as_secs_f64();
    load.tell_memory(args.orders);
    Ok(tell(seen, args.orders, took_s))
}

async fn run(load: &Arc<Load>, in_flight: usize) -> io::Result<Seen> {
    let mut connections = JoinSet::new();
    for _ in 0..in_flight {
        let load = load.clone();
        connections.spawn(async move { load.connection().await });
    }
    let mut all = Seen::default();
    while let Some(ended) = connections.join_next().await {
        let Seen { latencies_us, ends } = ended??;
        all.latencies_us.extend(latencies_us);
        for (end, count) in ends {
            *all.ends.entry(end).or_default() += count;
        }
    }
    Ok(all)
}

impl Load {
    async fn connection(&self) -> io::Result<Seen> {
        let (mut connection, mut seen) = (Connection::open(self.address).await?, Seen::default());
        while self.begun.fetch_add(1, Ordering::Relaxed) < self.orders {
            let began = Instant::now();
            connection.send(&self.request).await?;
            let answer = connection.answer(true).await?;
            seen.latencies_us.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
            *seen.ends.entry(end(&answer)).or_default() += 1;
            let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
            if ended.is_multiple_of(MEMORY_EVERY) && ended < self.orders {
                self.tell_memory(ended);
            }
        }
        Ok(seen)
    }

    fn tell_memory(&self, ended: usize) {
        if let Some(child) = &self.child {
            println!("after {ended:>6} orders: {}", child.usage(ended));
        }
    }
}

/// The state in which an order was answered, or the status where there was none.
fn end(answer: &Answer) -> String {
    let task: serde_json::Value = serde_json::from_str(&answer.text).unwrap_or_default();
    match (answer.status, task["ProcessState"].as_str()) {
        (200, Some(state)) => state.to_owned(),
        (status, state) => format!("{status} {}", state.unwrap_or_default()),
    }
}

/// Prints what was seen; whether every order ended `Processed`.
fn tell(seen: Seen, orders: usize, took_s: f64) -> ExitCode {
    let Seen { mut latencies_us, ends } = seen;
    latencies_us.sort_unstable();
    let percentile = |percent: usize| {
        let place = (latencies_us.len() * percent / 100).min(latencies_us.len().saturating_sub(1));
        latencies_us.get(place).map_or(0.0, |&us| us as f64 / 1_000.0)
    };
    let (p50, p90, p99) = (percentile(50), percentile(90), percentile(99));
    println!("{:.0} orders/s ({took_s:.1} s)", orders as f64 / took_s);
    println!("from post to processed: p50 {p50:.1} ms, p90 {p90:.1} ms, p99 {p99:.1} ms");
    println!("ended: {ends:?}");
    match ends.get("Processed") {
        Some(&processed) if processed == orders => ExitCode::SUCCESS,
        Some(_) | None => ExitCode::FAILURE,
    }
}
