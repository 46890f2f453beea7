//! The process that is killed, and started again on the same data and the same port.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use fastrand::Rng;
use standins::Service;

/// Lines of the log that a failure shows.
const TAIL_LINES: usize = 40;

pub(crate) struct Victim {
    process: Child,
    command: Command,
    log: PathBuf,
    port: u16,
}

impl Victim {
    /// Starts `stepwarden serve` on a directory and a free port, with its services at these URLs.
    pub(crate) fn start(directory: &Path, url_of: impl Fn(Service) -> String, rng: &mut Rng) -> Self {
        let (port, log) = (free_port(rng), directory.join("log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
        command.args(["serve", "--port", &port.to_string(), "--data"]).arg(directory.join("data"));
        command.env_remove("RUST_LOG").stdin(Stdio::null());
        for service in Service::ALL {
            command.env(format!("{service}_URL").to_uppercase(), url_of(service));
        }
        let process = spawn(&mut command, &log);
        Self { process, command, log, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// `kill -9`. What it was doing at that moment it will never finish.
    pub(crate) fn kill(&mut self) {
        self.expect_alive();
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// The status with which the process ends, and its last words.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        (self.process.wait().unwrap(), tail(&self.log))
    }

    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&mut self.command, &self.log);
    }

    /// A process that ended before it was killed ended wrongly.
    pub(crate) fn expect_alive(&mut self) {
        if let Some(status) = self.process.try_wait().unwrap() {
            panic!("it ended by itself with {status}\n{}", tail(&self.log));
        }
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    format!("the end of its log:\n{}", lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let open = || -> File { OpenOptions::new().create(true).append(true).open(log).unwrap() };
    command.stdout(open()).stderr(open()).spawn().unwrap()
}

/// A free port below those that the system gives to outgoing connections: while the process is dead nobody else may be
/// given its port, least of all the client that is knocking at it.
fn free_port(rng: &mut Rng) -> u16 {
    let mut candidates = std::iter::repeat_with(|| 20_000 + u16::try_from(rng.u64(..10_000)).unwrap());
    candidates.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).unwrap()
}
