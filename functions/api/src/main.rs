//! The api on Lambda, behind an HTTP API.

use std::process::ExitCode;

use api::{ApiConfig, Caller};
use aws::config::{Config, Function};
use aws::lambda::{self, Error};
use aws::{ports::Ports, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("api");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env(Function::Api)?;
    let ports = Ports::new(&config)?;
    let catalogue = ports.instance(&config, Function::Api)?.catalogue;
    let api_config =
        ApiConfig::new(config.reply_channels.into_keys()).with_catalogue(&catalogue).redacting(config.redacted);
    lambda::http_api(async |caller, request| {
        api::handle(&ports, &api_config, &Caller::unrestricted(caller), request).await
    })
    .await
}
