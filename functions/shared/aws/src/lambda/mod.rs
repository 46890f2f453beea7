//! What the functions share on Lambda: taking invocations, and turning events into what a handler takes.
//!
//! Each function's `main` calls one of [`queue`], [`supervisor`] and [`http_api`], which return when the process is to end.

mod http_api;
mod invocation;
mod payload;
mod queue;
mod record;
mod runtime;
mod supervisor;

use std::process::ExitCode;

pub use lambda_runtime::Error;

pub use http_api::http_api;
pub use invocation::Invocation;
pub use payload::{BadPayload, Payload};
pub use queue::queue;
pub use runtime::serve;
pub use supervisor::supervisor;

use crate::telemetry;

/// How a function's `main` ends: an error, such as a variable that is not set, is the last line of the log.
#[must_use]
pub fn ended(how: Result<(), Error>) -> ExitCode {
    let code = match how {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the function cannot run: {error}");
            ExitCode::FAILURE
        }
    };
    telemetry::flush();
    code
}
