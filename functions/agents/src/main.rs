//! One of the agents on Lambda, behind its queues.

use std::process::ExitCode;

use agent::{MemoPolicy, Policy};
use agents::{HttpClients, Shipped};
use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};

/// The time before its deadline from which a request is not called any more, in milliseconds. SQS hides a message for
/// whole seconds and delivers it a moment later. A request that comes back after its deadline would falsely count as a
/// failure.
const MARGIN_MS: u64 = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("agents");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Agents)?;
    let settings = config.agent.as_ref().ok_or("no agent is configured")?;
    let shipped = Shipped::ALL.into_iter().find(|shipped| shipped.name() == &*settings.name).ok_or("no such agent")?;
    let memo = settings.memo.then(MemoPolicy::default);
    let policy = Policy { margin_ms: MARGIN_MS, memo, ..Policy::default() };
    let agent = shipped.agent(&settings.url, policy, &mut HttpClients::new())?;
    let ports = Ports::new(&config)?;
    lambda::queue(&config.queues, async |batch| agents::handle(&ports, &agent, batch).await).await
}
