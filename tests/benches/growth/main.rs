//! What a store that has grown costs: the same figures on one with a million finished orders and on an empty one, in turns.
//!
//!     cargo build --release && cargo run --release -p tests --bin growth
//!
//! The orders are put in through the engine itself, as the submission would; no row is written that the engine did not
//! write. It takes some 5 GB where temporary files are, and as much again where `--data` says.
//!
//! The empty store is a fresh copy in every round. The grown one is the same in all of them, and each round's load makes it
//! grow by some tens of thousands of orders. Both are treated alike: before a turn everything is synced and the files are
//! read, so that the page cache is warm; start, rest, lists and searches are measured before the load.
//!
//! The orders that are put in have ids in the order of time. Those of the load have an `Idempotency-Key`: their ids are
//! hashes, and go to random pages of the tables, which is dearer the larger the store is. All are found by a correlation id
//! or a member of their documents. A cold page cache is not measured.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod bar;
mod expired;
mod fill;
mod folder;
mod lists;
mod retain;
mod store;
mod sweep;

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use tests::bench::load::{self, Plan};
use tests::bench::machine::{self, Machine};
use tests::bench::process::bytes_in;
use tests::bench::served::Stub;
use tests::bench::stub::{self, Manner};

use bar::Beside;
use store::Figures;

/// Rounds in which each store has its turn.
const ROUNDS: usize = 3;
/// Orders of the store that counts as empty: lists need something to show, pages to turn, and a search as many orders as it
/// reads at most.
const EMPTY: u64 = 4_000;

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
    /// Where the filled store is kept, and taken from the next time. A copy of it is measured; it must hold the finished
    /// orders and no others
    #[arg(long)]
    data: Option<PathBuf>,
    /// Instead of the rest: ten days of so many orders a day, each kept for a day, beside orders that are kept for ever
    #[arg(long, value_name = "ORDERS_A_DAY")]
    retain: Option<u64>,
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
            alone()?.block_on(load::run(Plan {
                address,
                in_flight,
                keyed: true,
                path: "/orders".into(),
                warm_up,
                window,
            }))?;
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
    let [empty, grown] = ["empty", "grown"].map(|name| temporary.path().join(name));
    println!("{}", Machine::now(temporary.path())?);
    if let Some(orders_a_day) = args.retain {
        let is_good = retain::run(temporary.path(), orders_a_day)?;
        return Ok(if is_good || args.quick { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    fill_with_news(&empty, EMPTY)?;
    let filled = args.data.as_ref().unwrap_or(&grown);
    fill_with_news(filled, args.orders)?;
    if *filled != grown {
        folder::copy(filled, &grown)?;
    }
    folder::settle(&grown)?;
    println!("{}", Machine::now(temporary.path())?);

    let stub = Stub::start(Manner::default())?;
    let mut all_good = rounds(&empty, &grown, &stub, args)?;
    println!("\n{} orders expired at once, in the grown store:", args.expired);
    expired::run(&grown, args.expired, &stub)?;
    println!("\nA sweep, by what is due and by what is stored:");
    all_good &= sweep::run(&empty, &grown, args.expired)?;
    println!("\n{}", Machine::now(temporary.path())?);
    Ok(if all_good || args.quick { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Measures both stores in turns; gives whether the grown one is good enough in everything.
fn rounds(empty: &Path, grown: &Path, stub: &Stub, args: &Args) -> Result<bool, Box<dyn Error>> {
    let window = Duration::from_secs(if args.quick { 2 } else { 8 });
    let held_before = fill::count(grown)?;
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let fresh = empty.with_extension(round.to_string());
        folder::copy(empty, &fresh)?;
        // Neither always comes first.
        if round % 2 == 0 {
            small.push(store::measure(&fresh, stub, window, EMPTY)?);
            large.push(store::measure(grown, stub, window, args.orders)?);
        } else {
            large.push(store::measure(grown, stub, window, args.orders)?);
            small.push(store::measure(&fresh, stub, window, EMPTY)?);
        }
        println!("round {} of {ROUNDS}; load {:.2}", round + 1, machine::load());
        std::fs::remove_dir_all(fresh)?;
    }
    println!(
        "\nThe middle of {ROUNDS} rounds, synced and with a warm page cache before each. Empty: {EMPTY} orders, a fresh copy \
         in each round. Grown: {held_before} orders before the loads, {} after. WORSE is what is worse by more than a \
         fifth and by more than the floor, below which a difference is noise; or what is beyond its limit.",
        fill::count(grown)?
    );
    Beside::print_head("empty", "grown");
    let (small, large) = (Figures::middle(&small)?, Figures::middle(&large)?);
    // Each is printed, also behind one that is worse.
    let good: Vec<bool> = small.beside(&large)?.iter().map(Beside::print).collect();
    Ok(!good.contains(&false))
}

fn fill_with_news(data: &Path, orders: u64) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let filled = fill::finished(data, orders)?;
    let (took_s, mib) = (began.elapsed().as_secs_f64(), bytes_in(data)? / 1_048_576);
    println!("{}: {filled} finished orders put in, in {took_s:.1} s; {mib} MiB", data.display());
    Ok(())
}
