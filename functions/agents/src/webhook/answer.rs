//! The answers to a provider. It repeats an event after any status but 2xx.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use wire::CalledBack;

/// When a provider may try again after a 503, in seconds.
const RETRY_AFTER_S: u64 = 5;

/// The members of a problem document (RFC 9457). Nobody programs against its type, so it has none of its own.
#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

/// A problem.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or_default();
    let problem = Problem { kind: "about:blank", title, status: status.as_u16(), detail };
    json(status, "application/problem+json", &problem)
}

/// This path takes no other method.
pub(crate) fn wrong_method() -> Response<Bytes> {
    with(problem(StatusCode::METHOD_NOT_ALLOWED, "this path takes POST"), ALLOW, HeaderValue::from_static("POST"))
}

/// The provider must send the event again.
pub(crate) fn unavailable(detail: &str) -> Response<Bytes> {
    with(problem(StatusCode::SERVICE_UNAVAILABLE, detail), RETRY_AFTER, RETRY_AFTER_S.into())
}

/// The event changes nothing. It need not be sent again.
pub(crate) fn not_taken(because: &str) -> Response<Bytes> {
    json(StatusCode::OK, "application/json", &CalledBack { taken: false, because: Some(because.into()) })
}

fn json(status: StatusCode, content_type: &'static str, value: &impl Serialize) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(serde_json::to_vec(value).unwrap_or_default()));
    *response.status_mut() = status;
    let response = with(response, CONTENT_TYPE, HeaderValue::from_static(content_type));
    with(response, CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

fn with(mut response: Response<Bytes>, name: HeaderName, value: HeaderValue) -> Response<Bytes> {
    response.headers_mut().insert(name, value);
    response
}
