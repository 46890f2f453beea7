//! One of the agents on Lambda, behind its queues.

use std::process::ExitCode;

use agent::{MemoPolicy, Policy};
use agents::{HttpClients, Shipped};
use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};

/// How long before its deadline a request is not called any more, in milliseconds. SQS hides a message for whole seconds,
/// and delivers it a moment later; one that comes back after its deadline would count as a failure that it is not.
const MARGIN_MS: u64 = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("agents");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Agents)?;
    let told = config.agent.as_ref().ok_or("no agent is configured")?;
    let shipped = Shipped::ALL.into_iter().find(|shipped| shipped.name() == &*told.name).ok_or("no such agent")?;
    let memo = told.memo.then(MemoPolicy::default);
    let policy = Policy { margin_ms: MARGIN_MS, memo, ..Policy::default() };
    let agent = shipped.agent(&told.url, policy, &mut HttpClients::new())?;
    let ports = Ports::new(&config)?;
    lambda::queue(&config.queues, async |batch| agents::handle(&ports, &agent, batch).await).await
}
