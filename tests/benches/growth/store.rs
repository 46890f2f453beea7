//! One store, measured: how long `serve` takes to start on it, new orders, lists, and what it takes while nothing happens.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tests::bench::load::{OVER, Seen, WARM};
use tests::bench::process::Process;
use tests::bench::served::{Served, Stub};

use crate::lists;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<(Name, f64)>);

/// A figure's name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) is_better_when_more: bool,
    /// A difference below this says nothing.
    pub(crate) least: f64,
}

impl Figures {
    pub(crate) fn add(&mut self, text: &str, is_better_when_more: bool, least: f64, value: f64) {
        self.0.push((Name { text: text.to_owned(), is_better_when_more, least }, value));
    }

    /// Of each figure the middle one of some measurements.
    pub(crate) fn middle(all: &[Self]) -> Self {
        let Some(first) = all.first() else { return Self::default() };
        let middle = |place: usize| {
            let mut values: Vec<f64> = all.iter().filter_map(|one| one.0.get(place).map(|(_, value)| *value)).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self(first.0.iter().enumerate().map(|(place, (name, _))| (name.clone(), middle(place))).collect())
    }

    /// Each figure of this and of another store.
    pub(crate) fn beside<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Name, f64, f64)> {
        self.0.iter().zip(&other.0).map(|((name, here), (_, there))| (name, *here, *there))
    }
}

pub(crate) fn measure(data: &Path, stub: &Stub, window: Duration) -> io::Result<Figures> {
    let mut figures = Figures::default();
    let mut served = Served::start(data, stub)?;
    figures.add("start until it listens, ms", false, 20.0, served.started_in.as_secs_f64() * 1_000.0);
    let before = served.usage()?;
    std::thread::sleep(IDLE);
    let idle_ms = (served.usage()?.cpu_ms - before.cpu_ms) / IDLE.as_secs_f64();
    figures.add("CPU with nothing to do, ms a second", false, 7.0, idle_ms);
    let before = served.usage()?;
    let many = load(&served, 64, window)?;
    let cpu_ms = (served.usage()?.cpu_ms - before.cpu_ms) / many.orders.max(1) as f64;
    figures.add("new orders a second, 64 in flight", true, 0.0, many.per_s());
    figures.add("  CPU an order, ms", false, 0.0, cpu_ms);
    figures.add("  p50, ms", false, 0.3, many.p50_ms);
    figures.add("  p99, ms", false, 5.0, many.p99_ms);
    let alone = load(&served, 1, window / 2)?;
    figures.add("a new order alone, p50, ms", false, 0.2, alone.p50_ms);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(lists::measure(served.address(), &mut figures))?;
    figures.add("resident, MiB", false, 16.0, served.usage()?.resident_mib);
    let began = Instant::now();
    served.stop()?;
    figures.add("stop, ms", false, 100.0, began.elapsed().as_secs_f64() * 1_000.0);
    Ok(figures)
}

fn load(served: &Served, in_flight: usize, window: Duration) -> io::Result<Seen> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["load", "--address", &served.address().to_string(), "--in-flight", &in_flight.to_string()]);
    command.args(["--warm-up-ms", &(window / 4).as_millis().to_string()]);
    command.args(["--window-ms", &window.as_millis().to_string()]);
    let mut load = Process::start(&mut command)?;
    load.line_is(WARM)?;
    load.line_is(OVER)?;
    serde_json::from_str(&load.line()?).map_err(io::Error::other)
}
