//! What a store that has grown costs: the same figures on one with a million finished orders and on an empty one, in turns.
//!
//!     cargo build --release && cargo run --release -p tests --bin growth
//!
//! The orders are put in through the engine itself, as the submission would; no row is written that the engine did not
//! write. It takes some 4 GB where temporary files are, or where `--data` says.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod expired;
mod fill;
mod lists;
mod store;
mod sweep;

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use tests::bench::load::{self, Plan};
use tests::bench::machine::Machine;
use tests::bench::process::bytes_in;
use tests::bench::served::Stub;
use tests::bench::stub::{self, Manner};

use store::Figures;

/// Rounds in which each store has its turn.
const ROUNDS: usize = 3;
/// A figure may be worse than that of an empty store by a fifth.
const WORSE_MAX: f64 = 1.2;
/// Orders of the store that counts as empty: lists need something to show.
const EMPTY: u64 = 200;

/// Measures a store with many finished orders beside an empty one, and the recovery of many expired orders; fails where
/// something is worse by more than a fifth
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Finished orders
    #[arg(long, default_value_t = 1_000_000)]
    orders: u64,
    /// Orders that expire at once
    #[arg(long, default_value_t = 100_000)]
    expired: u64,
    /// Where the grown store is put, and left; without it in a temporary folder. One that is there is used again
    #[arg(long)]
    data: Option<PathBuf>,
    /// Few orders and short windows: shows that all of it works, and no figures to believe
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// The processes around the measured one; the bench starts them itself.
#[derive(Debug, Subcommand)]
enum Part {
    /// Plays the three services
    #[command(hide = true)]
    Stub,
    /// Posts orders
    #[command(hide = true)]
    Load {
        #[arg(long)]
        address: SocketAddr,
        #[arg(long)]
        in_flight: usize,
        #[arg(long)]
        warm_up_ms: u64,
        #[arg(long)]
        window_ms: u64,
    },
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = Args::parse();
    match args.part {
        Some(Part::Stub) => {
            alone()?.block_on(stub::serve(Manner::default()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Part::Load { address, in_flight, warm_up_ms, window_ms }) => {
            let [warm_up, window] = [warm_up_ms, window_ms].map(Duration::from_millis);
            alone()?.block_on(load::run(Plan { address, in_flight, warm_up, window }))?;
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    if args.quick {
        (args.orders, args.expired) = (args.orders.min(20_000), args.expired.min(2_000));
    }
    bench(&args)
}

fn alone() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn bench(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let empty = temporary.path().join("empty");
    let grown = args.data.clone().unwrap_or_else(|| temporary.path().join("grown"));
    println!("{}", Machine::now(temporary.path())?);
    fill_with_news(&empty, EMPTY)?;
    fill_with_news(&grown, args.orders)?;

    let window = Duration::from_secs(if args.quick { 2 } else { 8 });
    let stub = Stub::start(Manner::default())?;
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        small.push(store::measure(&empty, &stub, window)?);
        large.push(store::measure(&grown, &stub, window)?);
    }
    let (small, large) = (Figures::middle(&small), Figures::middle(&large));
    println!("\n{:<34} {:>12} {:>12} {:>8}", "", "empty", "grown", "ratio");
    let mut all_good = true;
    for (name, small, large) in small.beside(&large) {
        let ratio = match name.is_better_when_more {
            true => small / large,
            false if small == 0.0 => 1.0,
            false => large / small,
        };
        // What takes less than this is not told from noise.
        let is_good = ratio <= WORSE_MAX || (large - small).abs() < name.least;
        let note = if is_good { "" } else { "  WORSE" };
        println!("{:<34} {small:>12.2} {large:>12.2} {ratio:>8.2}{note}", name.text);
        all_good &= is_good;
    }

    println!("\n{} orders expired at once, in the grown store:", args.expired);
    expired::run(&grown, args.expired, &stub)?;
    println!("\nA sweep, by what is due and by what is stored:");
    all_good &= sweep::run(&empty, &grown, args.expired)?;
    Ok(if all_good || args.quick { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn fill_with_news(data: &Path, orders: u64) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let filled = fill::finished(data, orders)?;
    let (took_s, mib) = (began.elapsed().as_secs_f64(), bytes_in(data)? / 1_048_576);
    println!("{}: {filled} finished orders put in, in {took_s:.1} s; {mib} MiB", data.display());
    Ok(())
}
