//! The code that the functions share on Lambda. It takes invocations, and turns events into a handler's input.
//!
//! Each function's `main` calls one of [`queue`], [`queue_with_senders`], [`queue_and_http_api`], [`supervisor`] and
//! [`http_api`]. They return when the process must end.

mod both;
mod http_api;
mod invocation;
mod payload;
mod queue;
mod record;
mod runtime;
mod stream;
mod supervisor;

use std::process::ExitCode;

pub use lambda_runtime::Error;

pub use both::queue_and_http_api;
pub use http_api::{Identity, http_api};
pub use invocation::Invocation;
pub use payload::{BadPayload, Payload};
pub use queue::{batch, batch_with_senders, queue, queue_with_senders};
pub use record::Answer;
pub use runtime::serve;
pub use supervisor::{dispatch, supervisor};

use crate::telemetry;

/// The end of a function's `main`. An error, such as an unset variable, becomes the last line of the log.
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
