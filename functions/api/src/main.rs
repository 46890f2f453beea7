//! The api on Lambda, behind an HTTP API.

use std::process::ExitCode;

use api::{ApiConfig, Gateway};
use aws::config::{Config, Function};
use aws::lambda::{self, Error, Identity};
use aws::{ports::Ports, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("api");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Api)?;
    let gateway = Gateway::new(config.role_scopes.clone(), config.iam_roles.as_deref())?;
    let ports = Ports::connected(&config).await?;
    let catalogue = ports.instance(&config, Function::Api)?.catalogue;
    let api_config =
        ApiConfig::new(config.reply_channels.into_keys()).with_catalogue(&catalogue).redacting(config.redacted);
    let api_config = api_config.with_installation();
    let api_config = api_config.with_stand_ins_if(config.services.stand_ins.is_some());
    lambda::http_api(async |Identity { name, scopes }, request| {
        api::handle(&ports, &api_config, &gateway.caller(name, scopes), request).await
    })
    .await
}
