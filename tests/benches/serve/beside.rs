//! Stepwarden beside the floor: the same keyed orders, in turns, so that every figure is a ratio. It depends less on the
//! machine.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::bench::load::{OVER, WARM};
use tests::bench::served::{Program, Served, Stub};
use tests::bench::stub::Manner;

use crate::Times;
use crate::row::Report;
use crate::throughput::{generator, seen};

const LOG: Program = Program::Floor("log");
const SQLITE: Program = Program::Floor("sqlite");
/// Each program once before and once after the others, so that a machine that gets slower is so for all.
const TURNS: [Program; 6] = [Program::Stepwarden, LOG, SQLITE, SQLITE, LOG, Program::Stepwarden];
const IN_FLIGHT: [usize; 3] = [1, 64, 256];

/// What is measured of an order.
const FIGURES: [&str; 5] = ["orders/s", "p50, ms", "CPU, ms", "context switches", "bytes written"];

pub(crate) fn run(times: Times) -> io::Result<Report> {
    let mut report = Report::default();
    for in_flight in IN_FLIGHT {
        let measured = TURNS.map(|program| Ok::<_, io::Error>((program, measure(program, in_flight, times)?)));
        let measured = measured.into_iter().collect::<io::Result<Vec<_>>>()?;
        let middle = |program, figure: usize| {
            let of_program = measured.iter().filter(|(measured, _)| *measured == program);
            of_program.map(|(_, figures)| figures[figure]).sum::<f64>() / 2.0
        };
        for (figure, name) in FIGURES.iter().enumerate() {
            let of = [Program::Stepwarden, LOG, SQLITE].map(|program| middle(program, figure));
            report.say(told(in_flight, name, of));
        }
    }
    for in_flight in [1, 64] {
        match counted(Counter::Calls, in_flight, times)? {
            Some(of) => report.say(told(in_flight, "system calls", of)),
            None => report.missing("system calls are not counted: install strace".to_owned()),
        }
    }
    match counted(Counter::Instructions, 64, times)? {
        Some(of) => report.say(told(64, "instructions", of)),
        None => report.missing("instructions are not counted: install valgrind".to_owned()),
    }
    Ok(report)
}

fn told(in_flight: usize, name: &str, [ours, log, sqlite]: [f64; 3]) -> String {
    let number = |value: f64| if value < 10.0 { format!("{value:.3}") } else { format!("{value:.0}") };
    format!(
        "{in_flight:>3} in flight, {name:<17} {:>9} log floor {:>9} ({:.2} times) SQLite floor {:>9} ({:.2} times)",
        number(ours),
        number(log),
        ours / log,
        number(sqlite),
        ours / sqlite,
    )
}

/// The figures of an order.
fn measure(program: Program, in_flight: usize, times: Times) -> io::Result<[f64; FIGURES.len()]> {
    let data = tempfile::tempdir()?;
    let stub = Stub::start(Manner::default())?;
    let mut served = Served::start_under(&[], program, data.path(), &stub)?;
    let (warm_up_ms, window_ms) = (times.warm_up.as_millis() / 2, times.window.as_millis() / 2);
    let mut load = generator(served.address(), in_flight, &["--keyed"], warm_up_ms, window_ms)?;
    load.line_is(WARM)?;
    let before = served.usage()?;
    load.line_is(OVER)?;
    let after = served.usage()?;
    let seen = seen(&mut load)?;
    served.stop()?;
    let orders = seen.in_window() as f64;
    if seen.astray() > 0 || orders == 0.0 {
        return Err(io::Error::other(format!("{program:?}, {in_flight} in flight: orders ended as {:?}", seen.ends)));
    }
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / orders;
    Ok([
        seen.per_s(),
        seen.p50_ms,
        (after.cpu_ms - before.cpu_ms) / orders,
        each(before.switches, after.switches),
        each(before.written_bytes, after.written_bytes),
    ])
}

/// What counts the work of a program, which it slows down.
#[derive(Clone, Copy)]
enum Counter {
    Calls,
    Instructions,
}

impl Counter {
    fn is_there(self) -> bool {
        let program = if matches!(self, Self::Calls) { "strace" } else { "valgrind" };
        Command::new(program).arg("--version").output().is_ok()
    }

    fn wrapper(self, file: &str) -> Vec<String> {
        match self {
            Self::Calls => ["strace", "-f", "-c", "-o", file].map(str::to_owned).into(),
            Self::Instructions => ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("--log-file={file}")])
                .collect(),
        }
    }

    /// The number that it has written.
    fn read(self, file: &Path) -> io::Result<f64> {
        let told = std::fs::read_to_string(file)?;
        let number = match self {
            // 100.00    0.123456           7     17000       210 total
            Self::Calls => {
                told.lines().rfind(|line| line.ends_with(" total")).and_then(|line| line.split_whitespace().nth(3))
            }
            // ==7== Collected : 1234567
            Self::Instructions => {
                told.lines().find_map(|line| line.split_once("Collected :")).map(|(_, number)| number.trim())
            }
        };
        number.and_then(|number| number.parse().ok()).ok_or_else(|| io::Error::other(format!("no count in: {told}")))
    }
}

/// Of an order of each program: what it took with orders, without what it takes for its start, its end and its life.
fn counted(counter: Counter, in_flight: usize, times: Times) -> io::Result<Option<[f64; 3]>> {
    if !counter.is_there() {
        return Ok(None);
    }
    let mut of = [0.0; 3];
    for (each, program) in of.iter_mut().zip([Program::Stepwarden, LOG, SQLITE]) {
        let count = |is_loaded| count(counter, program, in_flight, is_loaded, times.counting);
        let [(idle, _), (busy, orders)] = [count(false)?, count(true)?];
        *each = (busy - idle) / orders;
    }
    Ok(Some(of))
}

/// What the counter counts while orders are posted for so long, or none are, and the number of orders.
fn count(
    counter: Counter,
    program: Program,
    in_flight: usize,
    is_loaded: bool,
    window: Duration,
) -> io::Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let stub = Stub::start(Manner::default())?;
    let wrapper = counter.wrapper(&counts.to_string_lossy());
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let mut served = Served::start_under(&wrapper, program, &folder.path().join("data"), &stub)?;
    let mut orders = 0;
    if !is_loaded {
        std::thread::sleep(window);
    } else {
        let mut load = generator(served.address(), in_flight, &["--keyed"], 0, window.as_millis())?;
        load.line_is(WARM)?;
        load.line_is(OVER)?;
        orders = seen(&mut load)?.orders;
    }
    served.stop()?;
    Ok((counter.read(&counts)?, orders.max(1) as f64))
}
