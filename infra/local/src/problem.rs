//! The answers of this process to requests that never reach the API: problem documents (RFC 9457).

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

/// A problem that is nothing but its status.
#[must_use]
pub fn problem(status: StatusCode, detail: &str) -> Response<Bytes> {
    typed(status, "about:blank", status.canonical_reason().unwrap_or("Error"), detail)
}

/// A problem of a type.
pub(crate) fn typed(status: StatusCode, kind: &str, title: &str, detail: &str) -> Response<Bytes> {
    let document = json!({"type": kind, "title": title, "status": status.as_u16(), "detail": detail});
    let mut response = Response::new(Bytes::from(document.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
