//! `stepwarden serve`, as a user runs it: the measured process. The floor, which may stand in its place, and the stub that
//! they call.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::process::{Process, Usage, neighbour};
use super::stub::Manner;

/// What it logs: the engine says at its end how often it synced.
const LEVELS: &str = "warn,embedded=info";

/// The variables that tell where the services are, in the order of the stub's addresses.
const VARIABLES: [&str; 3] = ["INVENTORY_URL", "PAYMENT_URL", "SHIPPING_URL"];

/// The stub in a process of its own.
#[derive(Debug)]
pub struct Stub {
    process: Process,
    addresses: [SocketAddr; 3],
}

impl Stub {
    /// Starts this program once more, as a stub.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(manner: Manner) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("stub");
        if let Some(percent) = manner.busy_percent {
            command.args(["--busy", &percent.to_string()]);
        }
        if manner.counts {
            command.arg("--counts");
        }
        let mut process = Process::start(&mut command)?;
        let line = process.line()?;
        let addresses: Vec<SocketAddr> = line.split(' ').filter_map(|address| address.parse().ok()).collect();
        let addresses = addresses.try_into().map_err(|_| io::Error::other(format!("no addresses: {line:?}")))?;
        Ok(Self { process, addresses })
    }

    /// One of its addresses.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Those of inventory, payment and shipping.
    #[must_use]
    pub const fn addresses(&self) -> [SocketAddr; 3] {
        self.addresses
    }

    /// # Errors
    /// Where it ended.
    pub fn usage(&self) -> io::Result<Usage> {
        self.process.usage()
    }
}

/// A program that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `stepwarden serve`.
    Stepwarden,
    /// The floor, with a file of this kind.
    Floor(&'static str),
}

/// A measured program on a directory of the caller's.
#[derive(Debug)]
pub struct Served {
    process: Process,
    address: SocketAddr,
    log: NamedTempFile,
    /// From the start of the process until it listened.
    pub started_in: Duration,
}

impl Served {
    /// Starts `stepwarden serve` on a free port, and waits until it listens.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(data: &Path, stub: &Stub) -> io::Result<Self> {
        Self::start_under(&[], Program::Stepwarden, data, stub)
    }

    /// The same with this program, under another one such as `strace` if `wrapper` names one.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start_under(wrapper: &[&str], program: Program, data: &Path, stub: &Stub) -> io::Result<Self> {
        let file = neighbour(if program == Program::Stepwarden { "stepwarden" } else { "floor" })?;
        let mut command = match wrapper.split_first() {
            None => Command::new(&file),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&file);
                command
            }
        };
        match program {
            Program::Stepwarden => command.args(["serve", "--port", "0"]).env("RUST_LOG", LEVELS),
            Program::Floor(kind) => {
                command.args(["--kind", kind, "--services"]).args(stub.addresses.map(|address| address.to_string()))
            }
        };
        command.arg("--data").arg(data);
        let log = NamedTempFile::new()?;
        command.stderr(log.reopen()?);
        for (variable, address) in VARIABLES.into_iter().zip(stub.addresses) {
            command.env(variable, format!("http://{address}"));
        }
        let began = Instant::now();
        let mut process = Process::start(&mut command)?;
        let line = process.line().map_err(|error| {
            let said = std::fs::read_to_string(log.path()).unwrap_or_default();
            io::Error::new(error.kind(), format!("it ended at its start: {said}"))
        })?;
        let started_in = began.elapsed();
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
        let address = address.ok_or_else(|| io::Error::other(format!("it does not say where it listens: {line:?}")))?;
        Ok(Self { process, address, log, started_in })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// # Errors
    /// Where it ended.
    pub fn usage(&self) -> io::Result<Usage> {
        self.process.usage()
    }

    /// Kills it as `kill -9` does.
    ///
    /// # Errors
    /// The system's.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// Stops it as Ctrl-C does, also where another program started it, and waits for the end. Gives the transactions that
    /// its engine committed, as it tells them itself.
    ///
    /// # Errors
    /// The system's, or `Other` where the engine did not tell them.
    pub fn stop(&mut self) -> io::Result<u64> {
        let id = self.process.id();
        let told = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let first_child = told.split_whitespace().next().map(str::to_owned);
        let status = Command::new("kill").args(["-TERM", &first_child.unwrap_or_else(|| id.to_string())]).status()?;
        if !status.success() {
            return Err(io::Error::other("it was gone before it was told to stop"));
        }
        self.process.wait()?;
        let said = std::fs::read_to_string(self.log.path())?;
        let count = said.rsplit("transactions=").next().and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        count.ok_or_else(|| io::Error::other(format!("its log does not tell how many transactions there were: {said}")))
    }
}
