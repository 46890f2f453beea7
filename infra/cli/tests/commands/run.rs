//! A served instance, and the program run against it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// An order that is declined, and whose reservation cannot be taken back: it ends in `Error`.
pub(crate) const HELD: &str = r#"{"Item": "mug", "StandIn": {"payment": {"Decline": "card_declined"},
    "inventory": {"Undo": {"Decline": "not_reserved"}}}}"#;
/// An order that is under way for a minute.
pub(crate) const SLOW: &str = r#"{"Item": "mug", "StandIn": {"inventory": {"SlowMs": 60000}}}"#;

/// The program with nothing of this machine's own settings.
pub(crate) fn program(args: &[&str]) -> Command {
    of_nobody(Command::new(env!("CARGO_BIN_EXE_stepwarden")), args)
}

/// The same with a limit of the shell: of files in blocks of 512 bytes or 1 KiB, by its unit.
pub(crate) fn limited(limit: &str, args: &[&str]) -> Command {
    let limited = format!(r#"trap "" XFSZ; ulimit {limit}; exec "$0" "$@""#);
    let mut command = of_nobody(Command::new("sh"), &["-c", &limited, env!("CARGO_BIN_EXE_stepwarden")]);
    command.args(args);
    command
}

fn of_nobody(mut command: Command, args: &[&str]) -> Command {
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars() {
        let is_a_setting = ["AWS_", "STEPWARDEN_", "OTEL_"].iter().any(|beginning| name.starts_with(beginning));
        if is_a_setting || name.ends_with("_URL") || name == "RUST_LOG" || name == "NO_COLOR" {
            command.env_remove(name);
        }
    }
    command.env("USER", "ann").env("XDG_CONFIG_HOME", "/nowhere");
    command
}

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The only line of stdout as JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Every line of stdout as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    pub(crate) fn shows(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stdout.contains(word), "{word} on stdout of {self:?}");
        }
        self
    }

    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stderr.contains(word), "{word} on stderr of {self:?}");
        }
        self
    }
}

/// Runs a command to its end with a text on its stdin.
pub(crate) fn run(mut command: Command, stdin: &str) -> Ended {
    let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = process.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = process.wait_with_output().unwrap();
    Ended {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

const SERVE: [&str; 5] = ["serve", "--port", "0", "--supervise-every", "200ms"];

/// A served instance, killed at the end of the test.
pub(crate) struct Served {
    process: Child,
    pub(crate) url: String,
    pub(crate) data: TempDir,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), &[])
    }

    /// Starts on what another left, with further options.
    pub(crate) fn start_in(data: TempDir, options: &[&str]) -> Self {
        let mut command = program(&SERVE);
        command.args(options);
        Self::spawn(command, data)
    }

    /// Starts where no file can grow beyond 256 or 512 KiB, by the shell's unit.
    pub(crate) fn start_with_small_files() -> Self {
        Self::spawn(limited("-f 512", &SERVE), tempfile::tempdir().unwrap())
    }

    /// Starts `serve` with these options and no others.
    pub(crate) fn of(args: &[&str], data: TempDir) -> Self {
        Self::spawn(program(args), data)
    }

    fn spawn(mut command: Command, data: TempDir) -> Self {
        let mut process = command.arg("--data").arg(data.path()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("stepwarden: listening on ").unwrap().split(',').next().unwrap().to_owned();
        Self { process, url, data }
    }

    /// The program against this instance.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        command.env("STEPWARDEN_API", &self.url);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        run(self.command(args), "")
    }

    /// Posts an order and waits for its end, at most 20 s; gives its id.
    pub(crate) fn settled(&self, order: &str) -> String {
        let ended = run(self.command(&["submit", "-", "--wait", "-o", "json"]), order);
        ended.json()["OrderID"].as_str().unwrap().to_owned()
    }

    /// Posts an order; gives its id.
    pub(crate) fn accepted(&self, order: &str) -> String {
        let ended = run(self.command(&["submit", "-", "-o", "json"]), order).with_status(0);
        ended.json()["OrderID"].as_str().unwrap().to_owned()
    }

    /// Waits until an order shows this state.
    pub(crate) fn reach(&self, id: &str, state: &str) {
        for _ in 0..200 {
            let seen = self.run(&["get", id, "-o", "json"]);
            if seen.status == 0 && seen.json()["ProcessState"] == state {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{id} is not {state}");
    }

    /// Stops answering, as an outage would.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}
