//! A Lambda function that does nothing, built as the others are: what is beside them in tables.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(Value::Null) })).await
}
