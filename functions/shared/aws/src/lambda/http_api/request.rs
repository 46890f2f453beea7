//! A request as the HTTP API passes it, and its form for a handler.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use serde::Deserialize;

use super::caller::{Authorizer, Identity};

/// The stage whose name is not in the path.
const DEFAULT_STAGE: &str = "$default";

/// The members of a request in payload format 2.0 that this crate reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    raw_path: Cow<'a, str>,
    #[serde(default, borrow)]
    raw_query_string: Cow<'a, str>,
    /// The parts of the path that the route does not name, decoded.
    #[serde(default, borrow)]
    path_parameters: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    #[serde(default, borrow)]
    headers: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    request_context: Context<'a>,
    #[serde(default, borrow)]
    body: Option<Cow<'a, str>>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Debug, Deserialize)]
struct Context<'a> {
    #[serde(borrow)]
    http: Line<'a>,
    #[serde(default, borrow)]
    stage: Cow<'a, str>,
    #[serde(default)]
    authorizer: Option<Authorizer>,
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
}

/// A request that has no HTTP form. An HTTP API does not send one.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadRequest {
    #[error("the request's body is not base64: {0}")]
    Body(#[from] base64::DecodeError),
    #[error("the event is no HTTP request: {0}")]
    Request(#[from] http::Error),
}

impl Event<'_> {
    /// The caller that sent the request.
    pub(super) fn identity(&self) -> Identity {
        self.request_context.authorizer.as_ref().map_or_else(Identity::anonymous, Authorizer::identity)
    }

    /// Whether the path may be another one than the gateway has authorised. It matches a path before it decodes it, and
    /// hands it on decoded: `/orders/a%2Ferase%3F/cancel` is a cancel to the gateway, and begins with an erase.
    pub(super) fn is_ambiguous(&self) -> bool {
        let parts = self.path_parameters.iter().flatten();
        parts.into_iter().any(|(_, part)| part.contains(['/', '?', '#']))
    }

    /// # Errors
    /// [`BadRequest`].
    pub(super) fn into_request(self) -> Result<Request<Bytes>, BadRequest> {
        let body = match self.body {
            Some(body) if self.is_base64_encoded => STANDARD.decode(&*body)?.into(),
            Some(body) => Bytes::from(body.into_owned()),
            None => Bytes::new(),
        };
        let mut uri = escaped(without_stage(&self.raw_path, &self.request_context.stage));
        if !self.raw_query_string.is_empty() {
            uri.push('?');
            uri.push_str(&escaped_where_needed(&self.raw_query_string, is_of_query));
        }
        let mut request = Request::builder().method(&*self.request_context.http.method).uri(uri).body(body)?;
        for (name, value) in &self.headers {
            // A value that is invalid in a header cannot come from a header.
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_bytes(value.as_bytes())) {
                request.headers_mut().append(name, value);
            }
        }
        Ok(request)
    }
}

/// The path as the API's own routes name it. A named stage puts its name before the path.
fn without_stage<'a>(path: &'a str, stage: &str) -> &'a str {
    if stage.is_empty() || stage == DEFAULT_STAGE {
        return path;
    }
    match path.strip_prefix('/').and_then(|path| path.strip_prefix(stage)) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        Some(_) | None => path,
    }
}

/// The API passes a decoded path, which may contain characters that are invalid in a URI.
fn escaped(path: &str) -> String {
    let path = escaped_where_needed(path, is_of_path);
    if path.starts_with('/') { path } else { format!("/{path}") }
}

fn escaped_where_needed(text: &str, may_stand: impl Fn(u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if may_stand(byte) {
            escaped.push(char::from(byte));
        } else {
            // A write to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte)
}

fn is_of_query(byte: u8) -> bool {
    is_of_path(byte) || byte == b'?'
}
