//! A function whose behaviour its messages set.

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use aws::lambda::{self, Payload};
use domain::batch::{Failure, Failures};
use domain::message::Delivery;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tests::runtime_api::RuntimeApi;
use tokio::signal::unix::{SignalKind, signal};

/// Set in the process of the function.
const IS_FUNCTION: &str = "STEPWARDEN_TEST_IS_FUNCTION";

/// The process of the function. Dropping this kills it.
pub(crate) struct Function {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Function {
    pub(crate) fn start(platform: &RuntimeApi) -> Self {
        Self::that_is("this_is_the_function", platform, &[])
    }

    /// A function that makes traces, configured by these variables.
    pub(crate) fn traced(platform: &RuntimeApi, variables: &[(&str, String)]) -> Self {
        Self::that_is("this_is_the_traced_function", platform, variables)
    }

    fn that_is(test: &str, platform: &RuntimeApi, variables: &[(&str, String)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("lambda::function::{test}"), "--ignored", "--nocapture"]);
        command.env(IS_FUNCTION, "1").envs(platform.variables()).envs(variables.iter().cloned());
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

/// In a process of its own, this test is the function.
#[tokio::test]
#[ignore = "the other tests start it"]
async fn this_is_the_function() {
    if std::env::var_os(IS_FUNCTION).is_none() {
        return;
    }
    serve(handle).await;
}

/// In a process of its own, this test is a function that makes traces.
#[tokio::test]
#[ignore = "the other tests start it"]
async fn this_is_the_traced_function() {
    if std::env::var_os(IS_FUNCTION).is_none() {
        return;
    }
    aws::telemetry::start("scheduler");
    serve(super::traces::handle).await;
}

/// Runs a function whose failed records stay hidden for as long as its queue says.
async fn serve<M: DeserializeOwned, Handling: Future<Output = Failures>>(
    handle: impl Fn(Vec<Delivery<M>>) -> Handling,
) {
    let handle = &handle;
    let invoke = async |payload: Payload, invocation| lambda::batch(&payload, &invocation, None, handle).await;
    lambda::serve(invoke).await.unwrap();
}

/// Handles one record as its number says.
async fn handle(batch: Vec<Delivery<u32>>) -> Failures {
    let [delivery] = batch.as_slice() else { panic!("each record comes by itself") };
    match delivery.body {
        Err(_) => Failures(vec![Failure::lasting(delivery.receipt.clone())]),
        Ok(2) => panic!("this panic is part of the test"),
        Ok(4) => pending().await,
        Ok(5) => {
            let mut terminated = signal(SignalKind::terminate()).unwrap();
            println!("\nbegun");
            terminated.recv().await;
            Failures::default()
        }
        Ok(_) => Failures::default(),
    }
}
