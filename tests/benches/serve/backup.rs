//! What backups cost: orders a second while one backup follows the other, beside the same without, in turns.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tests::bench::load::{OVER, Seen, WARM};
use tests::bench::process::neighbour;
use tests::bench::served::{Served, Stub};
use tests::bench::stub::Manner;

use crate::Times;
use crate::row::Report;
use crate::throughput::{load, seen};

const IN_FLIGHT: usize = 64;
/// Rounds with a window of each kind; which one comes first changes.
const ROUNDS: usize = 2;
/// The share of orders a second that is left beside backups.
const SHARE_MIN: f64 = 0.9;

/// The backups of one window.
#[derive(Default)]
struct Backups {
    count: u32,
    took: Duration,
    bytes: u64,
    /// The largest write-ahead log that was seen.
    log_bytes_max: u64,
}

pub(crate) fn run(times: Times) -> io::Result<Report> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let stub = Stub::start(Manner::default())?;
    let mut served = Served::start(&data, &stub)?;
    // Something to copy.
    window(&served, Times { window: times.warm_up, ..times }, || Ok(()))?;
    // A window has all stages of a backup.
    let (_, first) = beside_backups(&served, times, &data, folder.path())?;
    let times = Times { window: times.window.max(first.each()), ..times };
    let (mut alone, mut beside, mut all) = (Vec::new(), Vec::new(), Backups::default());
    for round in 0..ROUNDS {
        for with_backups in [round % 2 == 0, round % 2 == 1] {
            if with_backups {
                let (seen, backups) = beside_backups(&served, times, &data, folder.path())?;
                beside.push(seen);
                all.add(&backups);
            } else {
                alone.push(window(&served, times, || Ok(()))?);
            }
        }
    }
    served.stop()?;
    Ok(told(&alone, &beside, &all))
}

fn told(alone: &[Seen], beside: &[Seen], backups: &Backups) -> Report {
    let mut report = Report::default();
    let rate = |windows: &[Seen]| windows.iter().map(Seen::per_s).sum::<f64>() / windows.len() as f64;
    let p99_ms = |windows: &[Seen]| windows.iter().map(|seen| seen.p99_ms).fold(0.0, f64::max);
    let (without, with) = (rate(alone), rate(beside));
    report.say(format!("{without:.0} orders/s without, {with:.0} beside backups, in {ROUNDS} windows each"));
    report.say(format!("worst p99 {:.1} ms without, {:.1} ms beside backups", p99_ms(alone), p99_ms(beside)));
    let share = with / without;
    report.at_least(format!("{share:.3} of the orders/s are left"), share, SHARE_MIN);
    let Backups { count, bytes, log_bytes_max, .. } = backups;
    let each_s = backups.each().as_secs_f64();
    report.at_least(
        format!("{count} backups, {each_s:.1} s each; the last of {} MB", bytes / 1_000_000),
        f64::from(*count),
        1.0,
    );
    report.say(format!("the write-ahead log had at most {} MB", log_bytes_max / 1_000_000));
    let astray: u64 = alone.iter().chain(beside).map(Seen::astray).sum();
    report.at_most(format!("{astray} orders astray"), astray as f64, 0.0);
    report
}

/// One window of load beside backups.
fn beside_backups(served: &Served, times: Times, data: &Path, folder: &Path) -> io::Result<(Seen, Backups)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut backing_up = None;
        let seen = window(served, times, || {
            backing_up = Some(scope.spawn(|| back_up(data, folder, &is_over)));
            Ok(())
        });
        is_over.store(true, Relaxed);
        let backups = backing_up.map(|thread| thread.join().expect("it does not panic"));
        Ok((seen?, backups.unwrap_or_else(|| Ok(Backups::default()))?))
    })
}

/// One window of load. `begun` is called once the warm-up is over.
fn window(served: &Served, times: Times, begun: impl FnOnce() -> io::Result<()>) -> io::Result<Seen> {
    let mut load = load(served, IN_FLIGHT, times.warm_up.as_millis(), times.window.as_millis())?;
    load.line_is(WARM)?;
    begun()?;
    load.line_is(OVER)?;
    seen(&mut load)
}

/// One backup after the other.
fn back_up(data: &Path, folder: &Path, is_over: &AtomicBool) -> io::Result<Backups> {
    let (program, destination) = (neighbour("stepwarden")?, folder.join("backup"));
    let mut backups = Backups::default();
    while !is_over.load(Relaxed) {
        let began = Instant::now();
        let mut command = Command::new(&program);
        command.arg("backup").arg(&destination).arg("--data").arg(data).stdout(Stdio::null()).stderr(Stdio::null());
        let mut backup = command.spawn()?;
        let status = loop {
            let log = std::fs::metadata(data.join("stepwarden.db-wal"))?.len();
            backups.log_bytes_max = backups.log_bytes_max.max(log);
            if let Some(status) = backup.try_wait()? {
                break status;
            }
            thread::sleep(Duration::from_millis(20));
        };
        if !status.success() {
            return Err(io::Error::other(format!("a backup ended with {status}")));
        }
        backups.count += 1;
        backups.took += began.elapsed();
        backups.bytes = std::fs::metadata(destination.join("stepwarden.db"))?.len();
        std::fs::remove_dir_all(&destination)?;
    }
    Ok(backups)
}

impl Backups {
    /// How long one took.
    fn each(&self) -> Duration {
        self.took / self.count.max(1)
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.took += other.took;
        self.bytes = other.bytes;
        self.log_bytes_max = self.log_bytes_max.max(other.log_bytes_max);
    }
}
