//! The supervisor on Lambda, behind a schedule, the dead-letter queues and the stream of the tasks.

use std::process::ExitCode;

use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};
use supervisor::Settings;

/// The time between two runs, in milliseconds: a schedule fires at most once a minute.
const TICK_MS: u64 = 60_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("supervisor");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Supervisor)?;
    let ports = Ports::connected(&config).await?;
    let (instance, redaction) = (ports.instance(&config, Function::Supervisor)?, config.redaction());
    let run = async |run_ms_max| {
        let settings = Settings { run_ms_max, tick_ms: TICK_MS, ..Settings::default() };
        let sweep = supervisor::handle(&ports, &instance, &settings);
        let bulk = supervisor::bulk(&ports, &instance, &settings, &redaction);
        let schedules = supervisor::schedules(&ports, &instance, &settings, &redaction);
        // The rules of the event bus deliver alerts on AWS, so there are no other sinks.
        let others = async { tokio::join!(supervisor::services(&ports), supervisor::alerts(&ports, &[])) };
        let (swept, carried_on, posted, (services, told)) = tokio::join!(sweep, bulk, schedules, others);
        Ok(swept.map(drop).and(carried_on.map(drop)).and(posted.and(services.map(drop)).and(told.map(drop)))?)
    };
    let dead_letters = async |batch| supervisor::dead_letters(&ports, &instance, batch).await;
    let count = async |batch| {
        ports.count(&batch).await?;
        Ok(ports.forget(&batch).await?)
    };
    lambda::supervisor(&config.dead_letter_queues, run, dead_letters, count).await
}
