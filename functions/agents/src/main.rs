//! The agents on Lambda, behind their queues. Providers post their events here too.

use std::process::ExitCode;

use agents::{AgentSettings, Callbacks, Fleet, Host, HttpClients, machine_secrets};
use aws::config::{Config, Function, environment};
use aws::lambda::{self, Error};
use aws::{ports::Ports, ports::now, telemetry};

/// No call begins in this time before its deadline, in milliseconds: SQS hides a message for whole seconds and delivers
/// it a moment later. A request that comes back after its deadline would falsely count as a failure.
const MARGIN_MS: u64 = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("agents");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Agents)?;
    let (ports, clients) = (Ports::connected(&config).await?, HttpClients::new());
    let services = config.services.clone();
    let policy = Box::new(move |_: &str, agent: &mut AgentSettings| {
        agent.policy.margin_ms = MARGIN_MS;
        let has_memo = services.memo && agent.webhook.is_none();
        agent.policy.memo = agent.policy.memo.take().or_else(|| has_memo.then(Default::default));
    });
    let (urls, stand_ins) = (config.services.urls.clone(), config.services.stand_ins.clone());
    let secrets = machine_secrets(environment, now, &clients);
    let catalogue = ports.instance(&config, Function::Agents)?.catalogue;
    let callbacks = config.services.api.as_deref().map(|api| Callbacks::below(api, catalogue.clone()));
    let (settings, source) = (config.agents.clone(), "AGENTS".to_owned());
    let host = Host { settings, source, urls, stand_ins, callbacks, policy, secrets };
    let fleet = Fleet::new(catalogue, host, clients);
    let of_batch = async |batch| fleet.handle(&ports, batch).await;
    let of_request = async |_, request| fleet.webhook(&ports, &fleet.api(), request).await;
    lambda::queue_and_http_api(&ports, of_batch, of_request).await
}
