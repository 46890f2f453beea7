//! The scheduler on Lambda, behind its queues.

use std::process::ExitCode;
use std::sync::Arc;

use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("scheduler");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Scheduler)?;
    let ports = Ports::connected(&config).await?;
    let instance = ports.instance(&config, Function::Scheduler)?;
    lambda::queue_with_senders(&ports, scheduler::together, async |sender: Arc<str>, batch| {
        scheduler::handle_from(&ports, &instance, &config.senders, &sender, batch).await
    })
    .await
}
