//! The stand-ins on Lambda, behind an open route of the HTTP API.

use std::process::ExitCode;

use aws::clients::dynamodb_alone;
use aws::config::Access;
use aws::lambda::{self, Error};
use aws::telemetry;
use standins::lambda::{StandIns, Table};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start("standins");
    lambda::ended(run().await)
}

async fn run() -> Result<(), Error> {
    let (access, [table, token]) = Access::from_env_with([
        ("STANDINS_TABLE", "give the name of the table that the stand-ins keep their keys in"),
        ("STANDINS_TOKEN", "give the part of the path that nobody can guess"),
    ])?;
    let stand_ins = StandIns::new(token, Table::new(dynamodb_alone(&access)?, table))?;
    lambda::http_api(async |_, request| stand_ins.answer(request).await).await
}
