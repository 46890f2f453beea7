//! The call of a request, as an agent makes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::Call;
use bytes::Bytes;
use config::{AgentSettings, BadUrl, CALLBACK_URL, IDEMPOTENCY_KEY, Operations, Remote, TRACE};
use domain::id::OrderId;
use domain::json::Json;
use domain::trace;
use domain::workflow::{Encoding, Method as CallMethod};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, InvalidHeaderName, InvalidHeaderValue};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use serde::Serialize;

use crate::form;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The service of the agent of this name. Without a URL of its settings it is under `base`.
///
/// # Errors
/// [`BadUrl`].
pub fn remote(name: &str, base: &str, settings: &AgentSettings) -> Result<Remote, BadUrl> {
    Remote::new(settings.url().unwrap_or(base), settings.operations(Operations::usual(name)))
}

/// The body of a call whose step has no mapping.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Body<'a> {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    order: &'a Json,
    outputs: &'a BTreeMap<Arc<str>, Json>,
}

/// The call, without what only a call that is made has: the proof of identity.
///
/// # Errors
/// [`Unsendable`].
pub fn request(uri: &Uri, headers: &HeaderMap, call: &Call<'_>) -> Result<Request<Bytes>, Unsendable> {
    if call.look.is_some() {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri.clone();
        request.headers_mut().extend(headers.clone());
        traced(&mut request);
        return Ok(request);
    }
    let (body, content_type) = match (call.body, call.encode) {
        (Some(body), Encoding::Form) => (form::encoded(body.text())?.into(), Some(FORM)),
        (Some(body), Encoding::Json) => (body.text().to_owned().into(), Some(JSON)),
        (_, Encoding::Empty) => (Bytes::new(), None),
        (None, _) if !call.method.has_usual_body() => (Bytes::new(), None),
        (None, _) => {
            let body = Body { order_id: call.order_id, order: call.order, outputs: call.outputs };
            // Most bodies fit, so the text is not copied while it grows.
            let mut text = Vec::with_capacity(call.order.text().len() + 512);
            serde_json::to_writer(&mut text, &body)?;
            (Bytes::from(text), Some(JSON))
        }
    };
    // The client leaves the length of an empty body out, and some servers answer a POST without one by 411.
    let is_empty = body.is_empty() && call.method.has_usual_body();
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method(call.method), below(uri, call.path)?);
    let own = request.headers_mut();
    own.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(call.idempotency_key)?);
    if let Some(content_type) = content_type {
        own.insert(CONTENT_TYPE, content_type);
    }
    if is_empty {
        own.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some(url) = call.callback_url {
        own.insert(CALLBACK_URL, HeaderValue::from_str(url)?);
    }
    own.extend(headers.clone());
    for (name, value) in call.headers {
        own.insert(HeaderName::try_from(&**name)?, HeaderValue::from_str(value)?);
    }
    traced(&mut request);
    Ok(request)
}

fn traced(request: &mut Request<Bytes>) {
    if let Some(span) = trace::current()
        && let Ok(span) = HeaderValue::try_from(span.to_string())
    {
        request.headers_mut().insert(TRACE, span);
    }
}

const fn method(of: CallMethod) -> Method {
    match of {
        CallMethod::Post => Method::POST,
        CallMethod::Get => Method::GET,
        CallMethod::Put => Method::PUT,
        CallMethod::Patch => Method::PATCH,
        CallMethod::Delete => Method::DELETE,
    }
}

/// The URL of an operation, with the path of the call below it, or its query.
fn below(operation: &Uri, path: Option<&str>) -> Result<Uri, InvalidUri> {
    match path {
        Some(query) if query.starts_with('?') => format!("{operation}{query}").parse(),
        Some(path) => format!("{}/{path}", operation.to_string().trim_end_matches('/')).parse(),
        None => Ok(operation.clone()),
    }
}

/// Why a call cannot be put into HTTP: a key that no header can hold, for instance. This system makes no such key.
#[derive(Debug, thiserror::Error)]
pub enum Unsendable {
    /// The body.
    #[error(transparent)]
    Body(#[from] serde_json::Error),
    /// The URL.
    #[error(transparent)]
    Path(#[from] InvalidUri),
    /// The name of a header.
    #[error(transparent)]
    Name(#[from] InvalidHeaderName),
    /// The value of a header.
    #[error(transparent)]
    Header(#[from] InvalidHeaderValue),
}
