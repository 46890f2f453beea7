//! The submission on Lambda, behind its queues.

use std::process::ExitCode;

use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("submission");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Submission)?;
    let ports = Ports::connected(&config).await?;
    let instance = ports.instance(&config, Function::Submission)?;
    lambda::queue(&ports, async |batch| submission::handle(&ports, &instance, batch).await).await
}
