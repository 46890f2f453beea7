//! Says how large the functions' binaries are, how fast they start, and what memory and processor they take, beside a
//! function that does nothing.
//!
//!     cargo build --release -p api -p submission -p scheduler -p agents -p supervisor -p standins
//!     cargo build --release -p tests --example nothing
//!     cargo run --release -p tests --bin lambda_start
//!
//! Each binary runs many times on a platform of this program, configured as on AWS, with TLS; no request leaves this
//! machine, since at their start they only ask the platform for work. The time is that from before the process is made to
//! its first request for work. The memory is what is resident then, and the most that was after 100 events, whose requests
//! to AWS all fail at an address of this machine. What an event takes of a processor when all goes well is in the bench
//! `bill`; here it is told of the function that does nothing, as the least.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use serde_json::{Value, json};
use tests::bench::function::{Function, Surroundings};

/// The function that does nothing.
const NOTHING: &str = "nothing";
/// The functions' binaries, and an event for each.
const FUNCTIONS: [&str; 7] = [NOTHING, "api", "submission", "scheduler", "agents", "supervisor", "standins"];
/// Events after which the memory is told.
const EVENTS: usize = 100;
/// How long an event may take, in milliseconds.
const EVENT_MS_MAX: u64 = 3_000;
/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Prints a table of the functions' binaries: size, start and memory; fails where one is beyond its limits
#[derive(Debug, Parser)]
struct Args {
    /// Where the binaries are; without it where this program is
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Starts of each binary
    #[arg(long, default_value_t = 20)]
    starts: usize,
    /// Largest binary, in MB of 1,000,000 bytes
    #[arg(long, default_value_t = 10.486)]
    size_mb_max: f64,
    /// Longest start that the middle one of all may take, in milliseconds
    #[arg(long, default_value_t = 30.0)]
    start_ms_max: f64,
    /// Most memory, in MB of 1,000,000 bytes
    #[arg(long, default_value_t = 32.0)]
    memory_mb_max: f64,
}

/// What was found of one binary.
struct Found {
    size_mb: f64,
    start_ms: f64,
    start_ms_max: f64,
    start_cpu_ms: f64,
    resident_mb: f64,
    resident_mb_max: f64,
    event_cpu_ms: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let args = Args::parse();
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().map(Path::to_owned).unwrap_or_default(),
    };
    println!(
        "binary       size MB   start ms (worst)   CPU ms at start   resident MB at start   most after {EVENTS} events"
    );
    let mut all_good = true;
    for name in FUNCTIONS {
        let found = measure(name, &folder, args.starts).await?;
        let Found { size_mb, start_ms, start_ms_max, start_cpu_ms, resident_mb, resident_mb_max, event_cpu_ms } = found;
        let good =
            size_mb <= args.size_mb_max && start_ms <= args.start_ms_max && resident_mb_max <= args.memory_mb_max;
        let note = if good { "" } else { "   TOO MUCH" };
        println!(
            "{name:<11} {size_mb:>8.2} {start_ms:>10.1} ({start_ms_max:.1}) {start_cpu_ms:>14.1} {resident_mb:>21.1} \
             {resident_mb_max:>22.1}{note}"
        );
        if name == NOTHING {
            println!("            an event that asks for nothing takes {event_cpu_ms:.2} ms of a processor");
        }
        all_good &= good;
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(name: &str, folder: &Path, starts: usize) -> io::Result<Found> {
    let program = if name == NOTHING { folder.join("examples").join(name) } else { folder.join(name) };
    let size = std::fs::metadata(&program)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}; build it first", program.display())))?;
    let surroundings = Surroundings { log: "error".to_owned(), ..Surroundings::default() };
    let (mut start_ms, mut cpu_ms) = (Vec::new(), 0.0);
    let mut resident_mb: f64 = 0.0;
    let starts = starts.max(1);
    // The first start reads the binary from the disk; that is not what is asked here.
    for counts in std::iter::once(false).chain(std::iter::repeat_n(true, starts)) {
        let began = Instant::now();
        let function = Function::start(&program, &surroundings).await?;
        let asked = function.asked().await?;
        if counts {
            start_ms.push((asked - began).as_secs_f64() * 1_000.0);
            let usage = function.usage()?;
            cpu_ms += usage.cpu_ms;
            resident_mb = resident_mb.max(mb(usage.resident_mib));
        }
    }
    start_ms.sort_by(f64::total_cmp);
    let (resident_mb_max, event_cpu_ms) = at_work(&program, name).await?;
    Ok(Found {
        size_mb: size.len() as f64 / 1e6,
        start_ms: start_ms[start_ms.len() / 2],
        start_ms_max: start_ms.last().copied().unwrap_or_default(),
        start_cpu_ms: cpu_ms / starts as f64,
        resident_mb,
        resident_mb_max,
        event_cpu_ms,
    })
}

/// The most memory after some events, and what each took of a processor.
async fn at_work(program: &Path, name: &str) -> io::Result<(f64, f64)> {
    let surroundings = Surroundings {
        endpoint: NOWHERE.to_owned(),
        services: NOWHERE.to_owned(),
        log: "error".to_owned(),
        ..Surroundings::default()
    };
    let function = Function::start(program, &surroundings).await?;
    let event = event(name);
    function.asked().await?;
    let before = function.usage()?;
    for _ in 0..EVENTS {
        function.platform().invoke(&event, EVENT_MS_MAX).await?;
    }
    let after = function.usage()?;
    Ok((mb(after.resident_mib_max), (after.cpu_ms - before.cpu_ms) / EVENTS as f64))
}

fn mb(mib: f64) -> f64 {
    mib * 1_024.0 * 1_024.0 / 1e6
}

/// An event that makes the function read, write and fail.
fn event(name: &str) -> Value {
    let id = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
    let document = json!({"Item": "mug", "Note": "x".repeat(10_000)});
    let body = match name {
        "submission" => json!({"OrderID": id, "Document": document, "Fingerprint": "0".repeat(64),
            "SubmittedAt": "2026-11-20T17:26:43.007Z", "Submitter": "shop"}),
        "agents" => {
            json!({"OrderID": id, "Step": "charge-payment", "Agent": "payment", "Direction": "Forward", "Attempt": 1,
            "IdempotencyKey": "k", "CompleteBy": "2100-01-01T00:00:00.000Z", "BudgetMs": 500, "Order": document})
        }
        _ => json!({"Wake": {"OrderID": id}}),
    };
    match name {
        "api" | "standins" => json!({
            "rawPath": if name == "api" { "/orders" } else { "/0123456789abcdef/payment/charge" }, "rawQueryString": "",
            "headers": {"host": "api.example", "content-type": "application/json", "idempotency-key": "k"},
            "requestContext": {"http": {"method": "POST"}, "stage": "$default"},
            "body": json!({"OrderID": id, "Order": document}).to_string(),
        }),
        "supervisor" | NOTHING => json!({}),
        _ => {
            let record = |number: usize| {
                json!({"messageId": number.to_string(), "receiptHandle": "h", "body": body.to_string(),
                    "eventSourceARN": "arn:aws:sqs:eu-central-1:1:any"})
            };
            json!({"Records": (0..10).map(record).collect::<Vec<_>>()})
        }
    }
}
