//! Stepwarden beside the fastest peer: the same keyed orders, services and load, in turns, so that every figure is a ratio.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tests::bench::load::{OVER, WARM};
use tests::bench::process::{Usage, bytes_in};
use tests::bench::served::{Served, Stub};
use tests::bench::stub::{BUSY_PERCENT, Manner};
use tokio::runtime::Runtime;

use crate::Times;
use crate::restate::{self, Installed, Restate};
use crate::row::Report;
use crate::throughput::{generator, seen};

/// The peer between Stepwarden and Stepwarden, so that a machine that gets slower is so for both.
const TURNS: [Engine; 4] = [Engine::Stepwarden, Engine::Peer, Engine::Peer, Engine::Stepwarden];
/// Orders in flight, and whether calls fail and payments are declined.
const LOADS: [(usize, bool); 4] = [(1, false), (64, false), (256, false), (64, true)];

/// What is measured of an order.
const FIGURES: [&str; 8] =
    ["orders/s", "p50, ms", "p99.9, ms", "longest, ms", "CPU, ms", "MiB", "bytes written", "bytes kept"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Stepwarden,
    Peer,
}

/// The one that runs.
enum Running {
    Stepwarden(Served),
    Peer(Restate),
}

pub(crate) fn run(times: Times, runtime: &Runtime) -> io::Result<Report> {
    let installed = Installed::install()?;
    let mut report = Report::default();
    report.say(format!("beside {}", restate::NAME));
    for (in_flight, mix) in LOADS {
        let measured = TURNS
            .map(|engine| Ok::<_, io::Error>((engine, measure(engine, &installed, in_flight, mix, times, runtime)?)));
        let measured = measured.into_iter().collect::<io::Result<Vec<_>>>()?;
        let middle = |engine, figure: usize| {
            let of_engine = measured.iter().filter(|(measured, _)| *measured == engine);
            of_engine.map(|(_, figures)| figures[figure]).sum::<f64>() / 2.0
        };
        for (figure, name) in FIGURES.iter().enumerate() {
            let [ours, theirs] = [Engine::Stepwarden, Engine::Peer].map(|engine| middle(engine, figure));
            let load = if mix { format!("{in_flight}, mix") } else { in_flight.to_string() };
            report.say(format!(
                "{load:>7} in flight, {name:<14} {ours:>10.3} peer {theirs:>10.3} ({:.3} times)",
                ours / theirs
            ));
        }
    }
    Ok(report)
}

/// The figures of an order.
fn measure(
    engine: Engine,
    installed: &Installed,
    in_flight: usize,
    mix: bool,
    times: Times,
    runtime: &Runtime,
) -> io::Result<[f64; FIGURES.len()]> {
    let data = tempfile::tempdir()?;
    let stub = Stub::start(Manner { busy_percent: mix.then_some(BUSY_PERCENT), counts: false })?;
    let running = Running::start(engine, installed, data.path(), &stub, runtime)?;
    let options: &[&str] = if engine == Engine::Peer { &["--keyed", "--path", restate::PATH] } else { &["--keyed"] };
    let (warm_up_ms, window_ms) = (times.warm_up.as_millis(), times.window.as_millis());
    let mut load = generator(running.address(), in_flight, options, warm_up_ms, window_ms)?;
    load.line_is(WARM)?;
    let before = running.usage()?;
    load.line_is(OVER)?;
    let after = running.usage()?;
    let seen = seen(&mut load)?;
    let kept = bytes_in(data.path())? as f64 / seen.orders.max(1) as f64;
    let orders = seen.in_window() as f64;
    if seen.astray() > 0 || orders == 0.0 {
        return Err(io::Error::other(format!("{engine:?}, {in_flight} in flight: orders ended as {:?}", seen.ends)));
    }
    Ok([
        seen.per_s(),
        seen.p50_ms,
        seen.p999_ms,
        seen.max_ms,
        (after.cpu_ms - before.cpu_ms) / orders,
        after.resident_mib_max,
        after.written_bytes.saturating_sub(before.written_bytes) as f64 / orders,
        kept,
    ])
}

impl Running {
    fn start(engine: Engine, installed: &Installed, data: &Path, stub: &Stub, runtime: &Runtime) -> io::Result<Self> {
        Ok(match engine {
            Engine::Stepwarden => Self::Stepwarden(Served::start(data, stub)?),
            Engine::Peer => Self::Peer(Restate::start(installed, data, stub, runtime)?),
        })
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Stepwarden(served) => served.address(),
            Self::Peer(restate) => restate.address(),
        }
    }

    fn usage(&self) -> io::Result<Usage> {
        match self {
            Self::Stepwarden(served) => served.usage(),
            Self::Peer(restate) => restate.usage(),
        }
    }
}
