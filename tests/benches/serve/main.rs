//! The whole table for `stepwarden serve`: how many orders a second, how fast each, and at what cost.
//!
//!     cargo build --release -p stepwarden -p floor && cargo run --release -p tests --bin bench
//!
//! Each row starts `stepwarden serve` on a fresh directory, the stub for the three services and the load generator, each as
//! a process of its own. The rows `floor` and `peers` run others beside Stepwarden in the same minutes: their ratios depend
//! less on the machine. `peers` is run only by name: it installs the peer with npm and cargo. Figures are to be taken on a
//! machine that does nothing else; how busy it was is printed with them.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod backup;
mod beside;
mod kill;
mod peers;
mod restate;
mod row;
mod syncs;
mod throughput;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tests::bench::load::{self, Plan};
use tests::bench::machine::{self, Machine};
use tests::bench::process::neighbour;
use tests::bench::stub::{self, Manner};

use row::{Report, Row};

/// Runs the table for `stepwarden serve` and prints it; fails where a bar is missed
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Short windows and few orders: shows that all of it works, and no figures to believe
    #[arg(long)]
    quick: bool,
    /// Only this row (repeatable): floor, peers, alone, 64, 256, mix, syncs, kill, backup
    #[arg(long = "only", value_name = "ROW")]
    only: Vec<Row>,
    /// Length of each window, in seconds; a fifth of it comes before as warm-up
    #[arg(long, value_name = "SECONDS", default_value_t = 25)]
    window_s: u64,
    #[command(subcommand)]
    part: Option<Part>,
}

/// The processes around the measured one; the bench starts them itself.
#[derive(Debug, Subcommand)]
enum Part {
    /// Plays the three services, and prints their three addresses
    Stub {
        /// So many calls of 100 are answered 503 once, and 2 % of the payments are declined
        #[arg(long, value_name = "PERCENT")]
        busy: Option<u64>,
        /// Calls are counted by their idempotency key; GET /counts tells them
        #[arg(long)]
        counts: bool,
    },
    /// Posts orders to an instance that runs already, and prints what it saw as JSON
    Load {
        /// Where it listens, such as 127.0.0.1:3000
        #[arg(long)]
        address: SocketAddr,
        /// Orders under way at the same time
        #[arg(long, default_value_t = 64)]
        in_flight: usize,
        /// Each order has an idempotency key
        #[arg(long)]
        keyed: bool,
        /// Where they are posted, with the key in place of {}
        #[arg(long, default_value = "/orders")]
        path: String,
        /// How long nothing counts
        #[arg(long, default_value_t = 1_000)]
        warm_up_ms: u64,
        /// How long it does
        #[arg(long, default_value_t = 10_000)]
        window_ms: u64,
    },
}

/// How long things take.
#[derive(Debug, Clone, Copy)]
struct Times {
    warm_up: Duration,
    window: Duration,
    /// Of the row in which the system counts syncs.
    counting: Duration,
    /// Until the process is killed.
    until_kill: Duration,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let times = args.times();
    // All of it runs on one thread: the other processors are for what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args.part {
        Some(Part::Stub { busy, counts }) => {
            runtime.block_on(stub::serve(Manner { busy_percent: busy, counts }))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Part::Load { address, in_flight, keyed, path, warm_up_ms, window_ms }) => {
            let [warm_up, window] = [warm_up_ms, window_ms].map(Duration::from_millis);
            runtime.block_on(load::run(Plan { address, in_flight, keyed, path, warm_up, window }))?;
            Ok(ExitCode::SUCCESS)
        }
        None => table(&args.only, times, args.quick, &runtime),
    }
}

fn table(
    only: &[Row],
    times: Times,
    quick: bool,
    runtime: &tokio::runtime::Runtime,
) -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!("{}", Machine::now(folder.path())?);
    let program = neighbour("stepwarden")?;
    let built = program.metadata()?.modified()?.elapsed().unwrap_or_default();
    println!("{}, built {} minutes ago", program.display(), built.as_secs() / 60);
    if quick {
        println!("quick: windows of {} s, no figures to believe", times.window.as_secs());
    }
    println!();
    let mut all_good = true;
    let is_wanted = |row: &Row| if only.is_empty() { *row != Row::Peers } else { only.contains(row) };
    for row in Row::ALL.into_iter().filter(is_wanted) {
        let load_before = machine::load();
        let report: Report = match row.kind() {
            row::Kind::Beside => beside::run(times)?,
            row::Kind::Peers => peers::run(times, runtime)?,
            row::Kind::Throughput { in_flight, mix } => throughput::run(row, in_flight, mix, times, runtime)?,
            row::Kind::Syncs => syncs::run(times)?,
            row::Kind::Backup => backup::run(times)?,
            row::Kind::Kill { in_flight } => runtime.block_on(kill::run(in_flight, times))?,
        };
        println!("{:<12} (load before {load_before:.2})", row.to_string());
        report.print();
        println!();
        all_good &= report.is_good();
    }
    Ok(if all_good || quick { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn times(&self) -> Times {
        let seconds = Duration::from_secs;
        if self.quick {
            return Times { warm_up: seconds(1), window: seconds(3), counting: seconds(2), until_kill: seconds(2) };
        }
        let window = seconds(self.window_s);
        Times { warm_up: window / 5, window, counting: seconds(10), until_kill: seconds(5) }
    }
}
