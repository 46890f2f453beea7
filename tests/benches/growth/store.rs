//! One store, measured: how long `serve` takes to start on it, new orders, lists, and what it takes while nothing happens.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tests::bench::load::{OVER, Seen, WARM};
use tests::bench::process::Process;
use tests::bench::served::{Served, Stub};

use crate::bar::{Beside, middle};
use crate::{folder, lists};

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<Figure>);

#[derive(Debug, Clone)]
struct Figure {
    text: String,
    is_better_when_more: bool,
    floor: f64,
    at_most: Option<f64>,
    value: f64,
}

impl Figures {
    /// A difference below the floor says nothing.
    pub(crate) fn add(&mut self, text: &str, is_better_when_more: bool, floor: f64, value: f64) {
        self.0.push(Figure { text: text.to_owned(), is_better_when_more, floor, at_most: None, value });
    }

    /// A time in milliseconds that the grown store may not exceed.
    pub(crate) fn add_limited(&mut self, text: &str, floor: f64, at_most: f64, value: f64) {
        let at_most = Some(at_most);
        self.0.push(Figure { text: text.to_owned(), is_better_when_more: false, floor, at_most, value });
    }

    /// Of each figure the middle one of some measurements. Fails where one of them lacks a figure.
    pub(crate) fn middle(all: &[Self]) -> io::Result<Self> {
        let Some(first) = all.first() else { return Ok(Self::default()) };
        let of_all = |figure: &Figure| {
            let values = all.iter().map(|one| one.value(&figure.text)).collect::<io::Result<Vec<f64>>>()?;
            Ok(Figure { value: middle(values).unwrap_or_default(), ..figure.clone() })
        };
        first.0.iter().map(of_all).collect::<io::Result<_>>().map(Self)
    }

    /// Each figure of this, the empty store, and of the grown one. Fails where one of them lacks a figure.
    pub(crate) fn beside<'a>(&'a self, grown: &Self) -> io::Result<Vec<Beside<'a>>> {
        for figure in &grown.0 {
            self.value(&figure.text)?;
        }
        let pair = |figure: &'a Figure| {
            let &Figure { ref text, is_better_when_more, floor, at_most, value } = figure;
            Ok(Beside { text, is_better_when_more, floor, at_most, small: value, large: grown.value(text)? })
        };
        self.0.iter().map(pair).collect()
    }

    fn value(&self, text: &str) -> io::Result<f64> {
        let found = self.0.iter().find(|figure| figure.text == text).map(|figure| figure.value);
        found.ok_or_else(|| io::Error::other(format!("one of the stores was not asked for {text:?}")))
    }
}

/// `orders` were put into the store. The loads come last: they add orders to the store.
pub(crate) fn measure(data: &Path, stub: &Stub, window: Duration, orders: u64) -> io::Result<Figures> {
    folder::settle(data)?;
    let mut figures = Figures::default();
    let mut served = Served::start(data, stub)?;
    figures.add("start until it listens, ms", false, 20.0, served.started_in.as_secs_f64() * 1_000.0);
    let before = served.usage()?;
    std::thread::sleep(IDLE);
    let idle_ms = (served.usage()?.cpu_ms - before.cpu_ms) / IDLE.as_secs_f64();
    figures.add("CPU with nothing to do, ms a second", false, 7.0, idle_ms);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(lists::measure(&served, &mut figures, orders))?;
    let alone = load(&served, 1, window / 2)?;
    figures.add("a new order alone, p50, ms", false, 0.2, alone.p50_ms);
    let before = served.usage()?;
    let many = load(&served, 64, window)?;
    let cpu_ms = (served.usage()?.cpu_ms - before.cpu_ms) / many.orders.max(1) as f64;
    figures.add("64 in flight: new orders a second", true, 0.0, many.per_s());
    figures.add("64 in flight: CPU an order, ms", false, 0.0, cpu_ms);
    figures.add("64 in flight: p50, ms", false, 0.3, many.p50_ms);
    figures.add("64 in flight: p99, ms", false, 5.0, many.p99_ms);
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
    let seen: Seen = serde_json::from_str(&load.line()?).map_err(io::Error::other)?;
    if seen.astray() > 0 || seen.in_window() == 0 {
        return Err(io::Error::other(format!("{in_flight} in flight: orders ended otherwise: {:?}", seen.ends)));
    }
    Ok(seen)
}
