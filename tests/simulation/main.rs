//! The program `simulate`: runs many worlds of the simulation, or replays one with its trace.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use domain::id::OrderId;
use rehearsal::faults::Fault;
use rehearsal::trace::Line;
use tests::simulation::{self, ORDERS, aws, engine};

/// From this number of worlds on, a fault that never occurred is a failure.
const SEEDS_FOR_ALL_FAULTS: u64 = 2_000;

/// The stack of a thread. Without optimisation the futures of the AWS SDK need more than the default of 2 MiB.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Runs the real handlers in simulated worlds full of faults, and checks that no order is lost and no effect duplicated.
/// Each seed is one world, the same each time.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Args {
    /// What the worlds run on.
    #[arg(long, value_enum, default_value = "memory")]
    on: Ports,
    /// Number of worlds.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Threads; default: the number of processors.
    #[arg(long)]
    jobs: Option<usize>,
    /// Replays this world and prints its trace.
    #[arg(long)]
    seed: Option<u64>,
    /// Orders in each world; default: 5, or 2 on AWS.
    #[arg(long)]
    orders: Option<usize>,
    /// Prints the whole trace, not only the lines of the failed order.
    #[arg(long)]
    full: bool,
    /// Continues after a failure, and prints a line for each at the end.
    #[arg(long)]
    keep_going: bool,
    /// Prints only the seed and the violated invariant of a failure.
    #[arg(long)]
    brief: bool,
}

impl Args {
    fn orders(&self) -> usize {
        self.orders.unwrap_or(if self.on == Ports::Aws { aws::ORDERS } else { ORDERS })
    }
}

/// What a world runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ports {
    /// Ports in memory, with all faults of the platform.
    Memory,
    /// The engine of the one-machine form, on a disk that loses power, fails and fills up.
    Engine,
    /// The adapters of the functions, over a network to a DynamoDB and an SQS that throttles, breaks and falls silent.
    Aws,
}

/// The result of one world, on whatever ports.
struct Outcome {
    seed: u64,
    violations: Vec<(Option<OrderId>, String)>,
    hash: u64,
    lasted_ms: i64,
    counts: Vec<(&'static str, u64)>,
    lines: Vec<Line>,
}

impl Ports {
    fn run(self, seed: u64, orders: usize, keeps_lines: bool) -> Outcome {
        match self {
            Self::Memory => {
                let outcome = simulation::run(seed, orders, keeps_lines);
                let violations = outcome.violations.iter().map(|violation| (violation.order, violation.to_string()));
                let counts = Fault::ALL.map(|fault| (fault.name(), outcome.counts.of(fault))).to_vec();
                let (violations, lines) = (violations.collect(), outcome.lines);
                Outcome { seed, violations, hash: outcome.hash, lasted_ms: outcome.lasted_ms, counts, lines }
            }
            Self::Engine => {
                let engine::Outcome { seed, violations, hash, lasted_ms, counts, lines } =
                    engine::run(seed, orders, keeps_lines);
                let counts = engine::FAULTS.map(|what| (what, counts.of(what))).to_vec();
                Outcome { seed, violations, hash, lasted_ms, counts, lines }
            }
            Self::Aws => {
                let engine::Outcome { seed, violations, hash, lasted_ms, counts, lines } =
                    aws::run(seed, orders, keeps_lines);
                let counts = aws::FAULTS.map(|what| (what, counts.of(what))).to_vec();
                Outcome { seed, violations, hash, lasted_ms, counts, lines }
            }
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.seed {
        Some(seed) => replay(&args, seed),
        None => run_all(&args),
    }
}

/// Runs one world and prints what happened in it.
fn replay(args: &Args, seed: u64) -> ExitCode {
    let outcome = args.on.run(seed, args.orders(), true);
    tell(args, &outcome, args.full || outcome.violations.is_empty());
    println!("seed {seed}: {} of simulated time, trace hash {:016x}", duration(outcome.lasted_ms), outcome.hash);
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the trace of a world, whole or of the failed order only, and the violations.
fn tell(args: &Args, outcome: &Outcome, is_full: bool) {
    let orders: Vec<_> = outcome.violations.iter().filter_map(|(order, _)| *order).collect();
    for line in &outcome.lines {
        let is_concerned = line.order.map_or(&*line.actor == "world", |order| orders.contains(&order));
        let is_told = is_full || is_concerned;
        if is_told && !args.brief {
            println!("{line}");
        }
    }
    for (_, violation) in &outcome.violations {
        println!("seed {}: {violation}", outcome.seed);
    }
}

/// The totals of all worlds.
#[derive(Default)]
struct Sum {
    counts: Vec<(&'static str, u64)>,
    lasted_ms: i64,
    worlds: u64,
    failed: BTreeMap<u64, Outcome>,
}

/// Runs worlds until one fails or all have run.
fn run_all(args: &Args) -> ExitCode {
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let end = args.start.saturating_add(args.seeds);
    let (next, sum) = (AtomicU64::new(args.start), Mutex::new(Sum::default()));
    let started = now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let spawned = thread.spawn_scoped(scope, || work(args, &next, end, &sum));
            spawned.unwrap_or_else(|error| panic!("no thread: {error}"));
        }
    });
    let sum = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let seconds = started.elapsed().as_secs_f64();
    for (fault, times) in &sum.counts {
        println!("{times:>12}  {fault}");
    }
    let per_second = sum.worlds as f64 / seconds.max(0.001);
    println!(
        "{} seeds from {} in {seconds:.1} s on {jobs} threads: {per_second:.0} seeds per second, {} orders each, {} of simulated time",
        sum.worlds,
        args.start,
        args.orders(),
        duration(sum.lasted_ms)
    );
    if let Some((seed, first)) = sum.failed.first_key_value() {
        match args.keep_going {
            true => sum.failed.values().for_each(|failed| tell(args, failed, false)),
            false => tell(args, &args.on.run(first.seed, args.orders(), true), args.full),
        }
        let on = args.on.to_possible_value().map_or_else(String::new, |on| on.get_name().to_owned());
        println!("again with its trace: simulate --on {on} --orders {} --seed {seed}", args.orders());
        return ExitCode::FAILURE;
    }
    let missing: Vec<&str> = sum.counts.iter().filter(|(_, times)| *times == 0).map(|(fault, _)| *fault).collect();
    if sum.worlds >= SEEDS_FOR_ALL_FAULTS && !missing.is_empty() {
        println!("these faults were never injected: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    println!("no violation");
    ExitCode::SUCCESS
}

/// Runs one world after the other.
fn work(args: &Args, next: &AtomicU64, end: u64, sum: &Mutex<Sum>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = args.on.run(seed, args.orders(), false);
        let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sum.counts.resize(outcome.counts.len(), ("", 0));
        for ((fault, times), (name, more)) in sum.counts.iter_mut().zip(&outcome.counts) {
            (*fault, *times) = (name, *times + more);
        }
        sum.lasted_ms = sum.lasted_ms.saturating_add(outcome.lasted_ms);
        sum.worlds += 1;
        if !outcome.violations.is_empty() {
            sum.failed.insert(seed, outcome);
            if !args.keep_going {
                next.store(end, Ordering::Relaxed);
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how fast it runs is no part of a world")]
fn now() -> Instant {
    Instant::now()
}

fn duration(ms: i64) -> String {
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    match hours {
        0 => format!("{minutes} min {} s", ms / 1_000 % 60),
        1..48 => format!("{hours} h {minutes} min"),
        _ => format!("{} days", hours / 24),
    }
}
