//! A function whose behaviour its messages set, in [a process of its own](../../../src/bin/function.rs).

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tests::runtime_api::RuntimeApi;

/// The process of the function. Dropping this kills it.
pub(crate) struct Function {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Function {
    pub(crate) fn start(platform: &RuntimeApi) -> Self {
        Self::that_is("numbers", platform, &[])
    }

    /// A function that makes traces, configured by these variables.
    pub(crate) fn traced(platform: &RuntimeApi, variables: &[(&str, String)]) -> Self {
        Self::that_is("traces", platform, variables)
    }

    fn that_is(kind: &str, platform: &RuntimeApi, variables: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_function"));
        command.arg(kind).envs(platform.variables()).envs(variables.iter().cloned());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdout }
    }

    /// Waits until it prints a word on a line of its own.
    pub(crate) fn says(&mut self, word: &str) {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            if line.trim() == word {
                return;
            }
            line.clear();
        }
        panic!("it ended and never said {word}");
    }

    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
