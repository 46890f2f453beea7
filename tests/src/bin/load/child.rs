//! The measured process.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use stepwarden::standin::{Service, StandIns};
use tempfile::TempDir;

/// Clock ticks of `/proc/{pid}/stat` in a second: the same on every Linux.
const TICKS_PER_S: u64 = 100;
/// Places of user and system time in `/proc/{pid}/stat`, counted behind the program's name.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;

/// `stepwarden serve` on a directory that goes with it.
pub(crate) struct Child {
    process: process::Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Child {
    /// Starts it on a free port, and waits until it listens.
    ///
    /// # Errors
    /// Where there is no such program, or it does not say where it listens.
    pub(crate) fn start(program: Option<&Path>, stand_ins: Option<&StandIns>) -> io::Result<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => next_to_this_one()?,
        };
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--port", "0", "--data"]).arg(directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        for service in Service::ALL {
            let variable = format!("{service}_URL").to_uppercase();
            match stand_ins {
                Some(stand_ins) => command.env(variable, stand_ins.url_of(service)),
                None => command.env_remove(variable),
            };
        }
        let mut process = command.spawn().map_err(|error| {
            let program = program.display();
            io::Error::new(error.kind(), format!("{program}: {error}; build it first: cargo build --release"))
        })?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
        let address = address.ok_or_else(|| io::Error::other(format!("it does not say where it listens: {line:?}")))?;
        Ok(Self { process, address, _directory: directory })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its memory, and the time of the processors that it took for each of so many orders.
    pub(crate) fn usage(&self, orders: usize) -> String {
        let process = PathBuf::from(format!("/proc/{}", self.process.id()));
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kib.map_or_else(|| "?".to_owned(), |kib| (kib / 1_024).to_string())
        };
        let cpu_ms = cpu_ms(&std::fs::read_to_string(process.join("stat")).unwrap_or_default());
        let each = cpu_ms as f64 / orders.max(1) as f64;
        format!("VmRSS {} MiB (highest {} MiB), {each:.2} ms CPU each", mib("VmRSS:"), mib("VmHWM:"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next_to_this_one() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("stepwarden"))
}

/// User and system time of a `/proc/{pid}/stat`, in milliseconds; 0 where it cannot be read.
fn cpu_ms(stat: &str) -> u64 {
    // The program's name stands in parentheses and may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (ticks(USER_TIME) + ticks(SYSTEM_TIME)) * 1_000 / TICKS_PER_S
}
