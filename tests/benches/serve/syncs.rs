//! How often the disk is synced for an order that is alone: its durable points. The system counts, in a run of its own,
//! since counting slows it down; where many orders are under way that would change what is counted, and the engine's own
//! count is told instead.

use std::io;
use std::path::Path;
use std::process::Command;

use tests::bench::load::{OVER, WARM};
use tests::bench::served::{Program, Served, Stub};
use tests::bench::stub::Manner;

use crate::Times;
use crate::row::Report;
use crate::throughput::{load, seen};

/// Durable points of an order that is alone: its insert with the first claim, two results with the next claim, the end.
const DURABLE_POINTS: f64 = 4.0;
/// What the moves of the write-ahead log into the database, the start and the end may add, spread over the orders.
const BESIDE: f64 = 0.05;

pub(crate) fn run(times: Times) -> io::Result<Report> {
    let mut report = Report::default();
    if Command::new("strace").arg("-V").output().is_err() {
        report.missing("syncs are not counted: install strace".to_owned());
        return Ok(report);
    }
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let stub = Stub::start(Manner::default())?;
    let counts_path = counts.to_string_lossy().into_owned();
    let strace = ["strace", "-f", "--seccomp-bpf", "-c", "-e", "trace=fsync,fdatasync", "-o", &counts_path];
    let mut served = Served::start_under(&strace, Program::Stepwarden, &folder.path().join("data"), &stub)?;
    let mut load = load(&served, 1, 0, times.counting.as_millis())?;
    load.line_is(WARM)?;
    load.line_is(OVER)?;
    let seen = seen(&mut load)?;
    drop(load);
    served.stop()?;
    let syncs = count(&counts)?;
    let orders = seen.orders.max(1) as f64;
    let each = syncs / orders;
    let text = format!("{each:.3} syncs an order ({syncs:.0} for {orders:.0} orders, start and end included)");
    report.at_most(text, each, DURABLE_POINTS + BESIDE);
    report.at_least("none of them is left out".to_owned(), each, DURABLE_POINTS - BESIDE);
    Ok(report)
}

/// Adds up the calls in what `strace -c` wrote: the fourth column, before the name of the call.
fn count(file: &Path) -> io::Result<f64> {
    let told = std::fs::read_to_string(file)?;
    let calls = told.lines().filter(|line| line.ends_with("sync") && !line.contains("total"));
    Ok(calls.filter_map(|line| line.split_whitespace().nth(3)?.parse::<f64>().ok()).sum())
}
