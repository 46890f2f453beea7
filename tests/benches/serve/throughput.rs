//! As many orders as go through, with so many in flight.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::process::Command;

use tests::bench::load::{OVER, Seen, WARM};
use tests::bench::machine;
use tests::bench::process::{Process, Usage, bytes_in};
use tests::bench::served::{Served, Stub};
use tests::bench::stub::{self, BUSY_PERCENT, Manner};
use tokio::runtime::Runtime;

use crate::Times;
use crate::row::{Bars, Report, Row};

/// Calls that an order makes at least: one for each step.
const CALLS_MIN: f64 = 3.0;
/// Shares of orders that are undone where 2 % are declined.
const DECLINED: RangeInclusive<f64> = 0.015..=0.025;

/// What the three processes had taken at some time, and all processes of the machine.
struct Moment {
    served: Usage,
    stub: Usage,
    load: Usage,
    busy_ms: f64,
}

/// What was found.
struct Found {
    seen: Seen,
    before: Moment,
    after: Moment,
    disk_bytes: u64,
    transactions: u64,
    calls: u64,
    mix: bool,
}

pub(crate) fn run(row: Row, in_flight: usize, mix: bool, times: Times, runtime: &Runtime) -> io::Result<Report> {
    let found = measure(in_flight, mix, times, runtime)?;
    Ok(found.told(row.bars()))
}

/// Starts a load generator of this plan, without keys.
pub(crate) fn load(served: &Served, in_flight: usize, warm_up_ms: u128, window_ms: u128) -> io::Result<Process> {
    generator(served.address(), in_flight, &[], warm_up_ms, window_ms)
}

/// The same with further options.
pub(crate) fn generator(
    address: SocketAddr,
    in_flight: usize,
    options: &[&str],
    warm_up_ms: u128,
    window_ms: u128,
) -> io::Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["load", "--address", &address.to_string()]).args(options);
    command.args(["--in-flight", &in_flight.to_string()]);
    command.args(["--warm-up-ms", &warm_up_ms.to_string(), "--window-ms", &window_ms.to_string()]);
    Process::start(&mut command)
}

/// What a load generator saw, which has said that its window is over.
pub(crate) fn seen(load: &mut Process) -> io::Result<Seen> {
    serde_json::from_str(&load.line()?).map_err(io::Error::other)
}

fn measure(in_flight: usize, mix: bool, times: Times, runtime: &Runtime) -> io::Result<Found> {
    let data = tempfile::tempdir()?;
    let stub = Stub::start(Manner { busy_percent: mix.then_some(BUSY_PERCENT), counts: false })?;
    let mut served = Served::start(data.path(), &stub)?;
    let mut load = load(&served, in_flight, times.warm_up.as_millis(), times.window.as_millis())?;
    let moment = |load: &Process| {
        let [served, stub, load] = [served.usage()?, stub.usage()?, load.usage()?];
        Ok::<_, io::Error>(Moment { served, stub, load, busy_ms: machine::busy_ms()? })
    };
    load.line_is(WARM)?;
    let before = moment(&load)?;
    load.line_is(OVER)?;
    let after = moment(&load)?;
    let disk_bytes = bytes_in(data.path())?;
    let seen = seen(&mut load)?;
    drop(load);
    let transactions = served.stop()?;
    let calls = runtime.block_on(stub::total(stub.address()))?;
    Ok(Found { seen, before, after, disk_bytes, transactions, calls, mix })
}

impl Found {
    fn told(&self, bars: Bars) -> Report {
        let Self { seen, before, after, disk_bytes, transactions, .. } = self;
        let (orders, per_s) = (seen.in_window().max(1) as f64, seen.per_s());
        let each = |of: fn(&Moment) -> f64| (of(after) - of(before)) / orders;
        let cpu_ms = each(|moment| moment.served.cpu_ms);
        let around_ms = each(|moment| moment.stub.cpu_ms + moment.load.cpu_ms);
        let written_bytes = each(|moment| moment.served.written_bytes as f64);
        let mut report = Report::default();
        report.say(format!("{per_s:.0} orders/s ({:?} in {:.1} s)", seen.ends, seen.window_s));
        let Seen { p50_ms, p90_ms, p99_ms, max_ms, .. } = seen;
        let latency = format!("p50 {p50_ms:.2} ms, p90 {p90_ms:.2} ms, p99 {p99_ms:.2} ms, longest {max_ms:.1} ms");
        match bars.p50_ms_max {
            Some(most) => report.at_most(latency, *p50_ms, most),
            None => report.say(latency),
        }
        let cpu = format!("{cpu_ms:.3} ms of CPU an order; stub and load generator {around_ms:.3} ms");
        match bars.cpu_ms_per_order_max {
            Some(most) => report.at_most(cpu, cpu_ms, most),
            None => report.say(cpu),
        }
        let Usage { resident_mib, resident_mib_max, .. } = after.served;
        report.say(format!("{resident_mib:.0} MiB resident, {resident_mib_max:.0} MiB at most"));
        let on_disk = *disk_bytes as f64 / seen.orders.max(1) as f64;
        report.say(format!("{on_disk:.0} bytes on disk an order, {written_bytes:.0} written"));
        let syncs = *transactions as f64 / seen.orders.max(1) as f64;
        let text = format!("{syncs:.3} transactions an order, each with one sync; moving the log adds some");
        match bars.syncs_per_order_max {
            Some(most) => report.at_most(text, syncs, most),
            None => report.say(text),
        }
        report.at_most(format!("{} orders astray", seen.astray()), seen.astray() as f64, 0.0);
        self.control(&mut report);
        report
    }

    /// Whether what was measured is what was meant.
    fn control(&self, report: &mut Report) {
        let Self { seen, before, after, calls, mix, .. } = self;
        report.at_least(format!("{} orders ended in the window", seen.in_window()), seen.in_window() as f64, 1.0);
        let each = *calls as f64 / seen.orders.max(1) as f64;
        report.at_least(format!("{each:.2} calls of the stub an order"), each, CALLS_MIN);
        let undone = seen.ends.get("Compensated").copied().unwrap_or(0) as f64 / seen.in_window().max(1) as f64;
        let (least, most) = if *mix { (*DECLINED.start(), *DECLINED.end()) } else { (0.0, 0.0) };
        report.at_least(format!("{:.2} % of the orders undone", undone * 100.0), undone, least);
        report.at_most("and no more than that".to_owned(), undone, most);
        let ours = |moment: &Moment| moment.served.cpu_ms + moment.stub.cpu_ms + moment.load.cpu_ms;
        let others_ms = after.busy_ms - before.busy_ms - (ours(after) - ours(before));
        let share = others_ms / (seen.window_s * 1_000.0);
        report.say(format!("other processes and the system beside took {share:.2} of a processor"));
    }
}
