//! One of the agents on Lambda, behind its queues.

use std::process::ExitCode;

use agents::{HttpClients, Settings, Shipped, machine_secrets};
use aws::config::{Config, Function, environment};
use aws::lambda::{self, Error};
use aws::ports::{Ports, now};
use aws::telemetry;

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
    let own = config.agent.as_ref().ok_or("no agent is configured")?;
    let shipped = Shipped::ALL.into_iter().find(|shipped| shipped.name() == &*own.name).ok_or("no such agent")?;
    let clients = HttpClients::new();
    let secrets = machine_secrets(environment, now, &clients);
    let all = Settings::read("AGENTS", &config.agents, &[shipped.name()], &secrets, &clients).await?;
    let mut settings = all.of(shipped.name()).cloned().unwrap_or_default();
    settings.policy.margin_ms = MARGIN_MS;
    if own.memo {
        settings.policy.memo.get_or_insert_default();
    }
    let agent = shipped.agent_with(&own.url, settings, &clients)?;
    let ports = Ports::new(&config)?;
    lambda::queue(async |batch| agents::handle(&ports, &agent, batch).await).await
}
