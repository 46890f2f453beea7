//! Explores every state of the protocol within bounds, and reports the result. Exit status 1: a property does not hold, or
//! the time was over before all states were explored.

use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tests::model::bounds::{Bounds, FULL, MEDIUM, SMALL};
use tests::model::broken;
use tests::model::protocol::Protocol;
use tests::model::report::{check, text};

/// Model check of the protocol
#[derive(Parser)]
struct Args {
    /// Size of the check: seconds, a minute, half an hour
    #[arg(long, value_enum, default_value_t = Config::Small)]
    config: Config,
    /// Only the worlds with this in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Check the checker: every seeded bug must be found
    #[arg(long)]
    broken: bool,
    /// Threads of the checker
    #[arg(long, default_value_t = 2, value_name = "N")]
    threads: usize,
    /// The most minutes for one world
    #[arg(long, default_value_t = 30, value_name = "N")]
    minutes: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Config {
    Small,
    Medium,
    Full,
}

impl Config {
    const fn worlds(self) -> &'static [Bounds] {
        match self {
            Self::Small => &SMALL,
            Self::Medium => &MEDIUM,
            Self::Full => &FULL,
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let is_good = if args.broken { check_the_checker(&args) } else { check_the_protocol(&args) };
    if is_good.unwrap_or(false) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_the_protocol(args: &Args) -> io::Result<bool> {
    let mut out = io::stdout();
    let (mut visited, mut unique, mut seconds, mut is_good) = (0, 0, 0.0, true);
    for world in args.config.worlds().iter().filter(|world| world.name.contains(&args.only)) {
        let outcome = check(Protocol::new(world.clone()), args.threads, Some(Duration::from_secs(60 * args.minutes)));
        writeln!(out, "{}", text(world.name, &outcome))?;
        visited += outcome.visited;
        unique += outcome.unique;
        seconds += outcome.took.as_secs_f64();
        is_good &= outcome.holds();
    }
    let verdict = if is_good { "every property holds in all of them" } else { "NOT every property is shown to hold" };
    let memory = memory_mib_max().map(|mib| format!(", {mib} MiB at most")).unwrap_or_default();
    writeln!(out, "in all: states visited {visited}, unique {unique}{memory}, {seconds:.1} s; {verdict}")?;
    Ok(is_good)
}

/// The most memory that this process ever had, where the system says so.
fn memory_mib_max() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1_024)
}

fn check_the_checker(args: &Args) -> io::Result<bool> {
    let mut out = io::stdout();
    let mut found = 0;
    writeln!(out, "{:<52} {:<8} {:>12} {:>8}", "broken on purpose", "breaks", "states", "found")?;
    for broken in broken::ALL {
        let outcome = check(broken.protocol(), args.threads, Some(Duration::from_secs(60 * args.minutes)));
        let is_found = outcome.breaks(broken.breaks);
        found += usize::from(is_found);
        let word = if is_found { "yes" } else { "NO" };
        writeln!(out, "{:<52} {:<8} {:>12} {word:>8}", broken.name, broken.breaks, outcome.unique)?;
    }
    writeln!(out, "{found} of {} found", broken::ALL.len())?;
    Ok(found == broken::ALL.len())
}
