//! Says how large the functions' binaries are, how fast they start, and how much memory they take.
//!
//!     cargo build --release -p api -p submission -p scheduler -p agents -p supervisor -p standins
//!     cargo run --release -p tests --bin lambda_start
//!
//! Each binary runs many times on a platform of this program, configured as on AWS, with TLS; no request leaves this
//! machine, since at their start they only ask the platform for work. The time is that from before the process is made to
//! its first request for work. The memory is what is resident then, and the most that was after 100 events, whose requests
//! to AWS all fail at an address of this machine.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::{Value, json};
use tests::runtime_api::RuntimeApi;

/// The functions' binaries, and an event for each.
const FUNCTIONS: [&str; 6] = ["api", "submission", "scheduler", "agents", "supervisor", "standins"];
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
    #[arg(long, default_value_t = 9.0)]
    size_mb_max: f64,
    /// Longest start that the middle one of all may take, in milliseconds
    #[arg(long, default_value_t = 30.0)]
    start_ms_max: f64,
    /// Most memory, in MB of 1,000,000 bytes
    #[arg(long, default_value_t = 32.0)]
    memory_mb_max: f64,
}

/// The process of a function; it goes when this is dropped.
struct Function(Child);

/// What was found of one binary.
struct Found {
    size_mb: f64,
    start_ms: f64,
    start_ms_max: f64,
    resident_mb: f64,
    resident_mb_max: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let args = Args::parse();
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().map(Path::to_owned).unwrap_or_default(),
    };
    println!("binary       size MB   start ms (worst)   resident MB at start   most after {EVENTS} events");
    let mut all_good = true;
    for name in FUNCTIONS {
        let found = measure(name, &folder, args.starts).await?;
        let Found { size_mb, start_ms, start_ms_max, resident_mb, resident_mb_max } = found;
        let good =
            size_mb <= args.size_mb_max && start_ms <= args.start_ms_max && resident_mb_max <= args.memory_mb_max;
        let note = if good { "" } else { "   TOO MUCH" };
        println!(
            "{name:<11} {size_mb:>8.2} {start_ms:>10.1} ({start_ms_max:.1}) {resident_mb:>19.1} {resident_mb_max:>22.1}{note}"
        );
        all_good &= good;
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(name: &str, folder: &Path, starts: usize) -> io::Result<Found> {
    let program = folder.join(name);
    let size = std::fs::metadata(&program)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}; build it first", program.display())))?;
    let mut start_ms = Vec::new();
    let mut resident_mb: f64 = 0.0;
    // The first start reads the binary from the disk; that is not what is asked here.
    for counts in std::iter::once(false).chain(std::iter::repeat_n(true, starts.max(1))) {
        let platform = RuntimeApi::start().await?;
        let began = Instant::now();
        let function = start(&program, &platform, None)?;
        let asked = tokio::time::timeout(Duration::from_secs(10), platform.asked()).await??;
        if counts {
            start_ms.push((asked - began).as_secs_f64() * 1_000.0);
            resident_mb = resident_mb.max(memory_mb(&function, "VmRSS:")?);
        }
    }
    start_ms.sort_by(f64::total_cmp);
    Ok(Found {
        size_mb: size.len() as f64 / 1e6,
        start_ms: start_ms[start_ms.len() / 2],
        start_ms_max: start_ms.last().copied().unwrap_or_default(),
        resident_mb,
        resident_mb_max: most_at_work(&program, name).await?,
    })
}

/// The most memory after some events.
async fn most_at_work(program: &Path, name: &str) -> io::Result<f64> {
    let platform = RuntimeApi::start().await?;
    let function = start(program, &platform, Some(NOWHERE))?;
    let event = event(name);
    for _ in 0..EVENTS {
        platform.invoke(&event, EVENT_MS_MAX).await?;
    }
    memory_mb(&function, "VmHWM:")
}

fn start(program: &Path, platform: &RuntimeApi, endpoint: Option<&str>) -> io::Result<Function> {
    const QUEUES: &str = "https://sqs.eu-central-1.amazonaws.com/1";
    let queues = |name: &str| json!({"normal": format!("{QUEUES}/{name}"), "high": format!("{QUEUES}/{name}-high")});
    let agents =
        json!({"inventory": queues("inventory"), "payment": queues("payment"), "shipping": queues("shipping")});
    let mut command = Command::new(program);
    command.env_clear().envs(platform.variables()).envs([
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ENDPOINT_URL", endpoint.unwrap_or_default()),
        ("RUST_LOG", "error"),
        ("EVENT_BUS_NAME", "bus"),
        ("DEAD_LETTER_QUEUES", r#"{"arn:aws:sqs:eu-central-1:1:dead":"Scheduler"}"#),
        ("AGENT", "payment"),
        ("PAYMENT_URL", endpoint.unwrap_or("https://pay.example")),
        ("STANDINS_TABLE", "standins"),
        ("STANDINS_TOKEN", "0123456789abcdef"),
    ]);
    command.env("AGENT_QUEUES", agents.to_string());
    for table in ["ORDERS", "TASKS", "LEASES", "SERVICES", "MEMOS", "JOBS", "DEAD_LETTERS"] {
        command.env(format!("{table}_TABLE"), table);
    }
    for queue in ["SUBMISSION", "SUBMISSION_HIGH", "SCHEDULER", "SCHEDULER_HIGH"] {
        command.env(format!("{queue}_QUEUE_URL"), format!("{QUEUES}/{queue}"));
    }
    command.stdout(Stdio::null()).spawn().map(Function)
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An event that makes the function read, write and fail.
fn event(name: &str) -> Value {
    let id = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
    let document = json!({"Item": "mug", "Note": "x".repeat(10_000)});
    let body = match name {
        "submission" => json!({"OrderID": id, "Document": document, "Fingerprint": "0".repeat(64),
            "SubmittedAt": "2026-11-20T17:26:43.007Z", "Submitter": "shop"}),
        "agents" => json!({"OrderID": id, "Step": "charge-payment", "Direction": "Forward", "Attempt": 1,
            "IdempotencyKey": "k", "CompleteBy": "2100-01-01T00:00:00.000Z", "BudgetMs": 500, "Order": document}),
        _ => json!({"Wake": {"OrderID": id}}),
    };
    match name {
        "api" | "standins" => json!({
            "rawPath": if name == "api" { "/orders" } else { "/0123456789abcdef/payment/charge" }, "rawQueryString": "",
            "headers": {"host": "api.example", "content-type": "application/json", "idempotency-key": "k"},
            "requestContext": {"http": {"method": "POST"}, "stage": "$default"},
            "body": json!({"OrderID": id, "Order": document}).to_string(),
        }),
        "supervisor" => json!({}),
        _ => {
            let record = |number: usize| {
                json!({"messageId": number.to_string(), "receiptHandle": "h", "body": body.to_string(),
                    "eventSourceARN": "arn:aws:sqs:eu-central-1:1:any"})
            };
            json!({"Records": (0..10).map(record).collect::<Vec<_>>()})
        }
    }
}

/// A line of `/proc/{pid}/status` that tells memory.
fn memory_mb(Function(process): &Function, name: &str) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib * 1_024.0 / 1e6).ok_or_else(|| io::Error::other("no such line"))
}
