//! Maps an SDK error to the error of a port.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use domain::ports::PortError;

/// Error codes that count as the client's fault, but pass after a while.
const PASSING: [&str; 12] = [
    "ThrottlingException",
    "Throttling",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "RequestTimeout",
    "RequestTimeoutException",
    "ExpiredTokenException",
    "ExpiredToken",
];

/// The port's error for an SDK error. Refused means that AWS understood the request and rejects it. Examples are a
/// missing permission, an unknown queue or table, or an invalid value. Every other error may succeed on a retry.
pub(crate) fn port_error<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let is_refused = match error {
        SdkError::ServiceError(answered) => {
            let status = answered.raw().status().as_u16();
            let code = answered.err().code().unwrap_or_default();
            (400..500).contains(&status) && ![408, 429].contains(&status) && !PASSING.contains(&code)
        }
        SdkError::ConstructionFailure(_) => true,
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => false,
        _ => false,
    };
    let text = chain(error);
    if is_refused { PortError::refused(operation, text) } else { PortError::unavailable(operation, text) }
}

/// An error with its whole chain of sources, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        // Some errors repeat the text of their source.
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}
