//! An answer in the HTTP API's format.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

/// An answer in payload format 2.0.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::lambda) struct Answer {
    status_code: u16,
    headers: BTreeMap<String, String>,
    body: String,
    is_base64_encoded: bool,
}

impl Answer {
    pub(super) fn of(response: Response<Bytes>) -> Self {
        let (parts, body) = response.into_parts();
        let (body, is_base64_encoded) = match String::from_utf8(body.into()) {
            Ok(text) => (text, false),
            Err(binary) => (STANDARD.encode(binary.as_bytes()), true),
        };
        Self { status_code: parts.status.as_u16(), headers: joined(&parts.headers), body, is_base64_encoded }
    }
}

/// The API takes one value for each header, so several values are joined into one.
fn joined(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let all = joined.entry(name.as_str().to_owned()).or_default();
        if !all.is_empty() {
            all.push_str(", ");
        }
        all.push_str(&value);
    }
    joined
}

/// An RFC 9457 problem for a request that the handler did not answer.
pub(super) fn problem(status: StatusCode) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = format!(r#"{{"type":"about:blank","title":"{title}","status":{}}}"#, status.as_u16());
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_name_are_joined_and_bytes_that_are_no_text_are_encoded() {
        let response =
            Response::builder().header("allow", "GET").header("allow", "HEAD").body(Bytes::from_static(&[255]));
        let answer = Answer::of(response.unwrap());
        assert_eq!(answer.headers["allow"], "GET, HEAD");
        assert_eq!((&*answer.body, answer.is_base64_encoded), ("/w==", true));
    }
}
