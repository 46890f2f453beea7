//! The machine: figures are worth nothing without it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Clock ticks of `/proc/stat` in a second: the same on every Linux.
pub(crate) const TICKS_PER_S: f64 = 100.0;
/// Appends that are timed.
const APPENDS: usize = 200;
/// What is appended.
const APPENDED: [u8; 4_096] = [7; 4_096];

/// How busy a machine is, and how fast its disk.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Its processors.
    pub cores: usize,
    /// Processes that were running or wanted to, in the middle over the last minute.
    pub load: f64,
    /// How long it takes to append 4 KiB and have them on the disk, in the middle, in milliseconds.
    pub append_ms: f64,
}

impl Machine {
    /// As it is now, with the disk on which a folder is.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn now(folder: &Path) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { cores, load: load(), append_ms: append_ms(folder)? })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, load, append_ms } = self;
        write!(f, "{cores} cores, load {load:.2}, 4 KiB appended and synced in {append_ms:.2} ms")
    }
}

/// Processes that were running or wanted to, over the last minute.
#[must_use]
pub fn load() -> f64 {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// What the processors did since the start, of whatever process, in milliseconds.
///
/// # Errors
/// Where the system does not tell.
pub fn busy_ms() -> io::Result<f64> {
    let told = std::fs::read_to_string("/proc/stat")?;
    let times: Vec<f64> =
        told.lines().next().unwrap_or_default().split(' ').filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, (idle, waiting for the disk,) interrupts, soft interrupts, taken by the host
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|&place| times.get(place)).sum::<f64>();
    Ok(busy * 1_000.0 / TICKS_PER_S)
}

fn append_ms(folder: &Path) -> io::Result<f64> {
    let path = folder.join("append");
    let mut file = File::create(&path)?;
    let mut took_ms = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let began = Instant::now();
        file.write_all(&APPENDED)?;
        file.sync_data()?;
        took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    std::fs::remove_file(path)?;
    took_ms.sort_by(f64::total_cmp);
    Ok(took_ms[APPENDS / 2])
}
