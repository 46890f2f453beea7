//! A call over HTTP, and its answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use serde_json::json;

use crate::behaviour::Behaviour;
use crate::entry::{Decision, Verdict, forward_key};
use crate::service::{Operation, Service};

/// The maximum size of a body, in bytes. A call holds a document and the outputs of its steps, with room for the JSON
/// around them.
pub const CALL_BYTES_MAX: usize = 1024 * 1024;

/// A decoded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The called service.
    pub service: Service,
    /// The called operation.
    pub operation: Operation,
    /// Its `Idempotency-Key`.
    pub key: &'a str,
    /// The behaviour that its order sets for this service.
    pub behaviour: Behaviour,
}

/// An answer. The host sends it after the delay.
#[derive(Debug)]
pub struct Answer {
    /// The response. `None` if it is lost.
    pub response: Option<Response<Bytes>>,
    /// The delay, in milliseconds.
    pub delay_ms: u64,
}

impl<'a> Call<'a> {
    /// Reads a request to one operation of a service.
    ///
    /// # Errors
    /// The answer to an invalid request.
    pub fn read(request: &'a Request<Bytes>, service: Service, operation: &str) -> Result<Self, Box<Response<Bytes>>> {
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let Some(operation) = service.operation(operation, key.unwrap_or_default()) else {
            return Err(problem(StatusCode::NOT_FOUND, "not-found", "this service has no such operation").into());
        };
        let Some(key) = key else {
            let detail = "a call needs an Idempotency-Key";
            return Err(problem(StatusCode::BAD_REQUEST, "idempotency-key-missing", detail).into());
        };
        if request.body().len() > CALL_BYTES_MAX {
            return Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "a call has at most 1 MiB").into());
        }
        match Behaviour::told(request.body(), service, operation) {
            Ok(behaviour) => Ok(Self { service, operation, key, behaviour }),
            Err(error) => Err(problem(StatusCode::BAD_REQUEST, "bad-call", &error.to_string()).into()),
        }
    }

    /// The answer to this call.
    #[must_use]
    pub fn answer(&self, decision: Decision) -> Answer {
        let Decision { verdict, delay_ms, due_ms: _ } = decision;
        Answer { response: self.response(verdict), delay_ms }
    }

    fn response(&self, verdict: Verdict) -> Option<Response<Bytes>> {
        let Self { service, operation, key, .. } = *self;
        Some(match verdict {
            Verdict::Done { was_done, time } => {
                let receipt = match time {
                    1 => service.receipt(forward_key(key), operation, was_done),
                    time => service.receipt(&format!("{}#{time}", forward_key(key)), operation, was_done),
                };
                json(receipt)
            }
            Verdict::Lost => return None,
            Verdict::Pending => {
                let mut pending = json(r#"{"status":"pending"}"#.to_owned());
                *pending.status_mut() = StatusCode::ACCEPTED;
                pending.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                pending
            }
            Verdict::InUse => problem(StatusCode::CONFLICT, "in-use", "a call with this key is at work"),
            Verdict::Unauthorised => problem(StatusCode::UNAUTHORIZED, "unauthorised", "told to know no caller"),
            Verdict::Unavailable => problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "told to be unavailable"),
            Verdict::Declined(code) => problem(declined(service), &code, &format!("{service} was told to decline")),
            Verdict::AlreadyUndone => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "already-undone", "this was undone before")
            }
        })
    }
}

impl From<Response<Bytes>> for Answer {
    fn from(response: Response<Bytes>) -> Self {
        Self { response: Some(response), delay_ms: 0 }
    }
}

const fn declined(service: Service) -> StatusCode {
    match service {
        Service::Payment => StatusCode::PAYMENT_REQUIRED,
        Service::Inventory | Service::Shipping | Service::Other(_) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// An RFC 9457 problem with a stable code.
pub(crate) fn problem(status: StatusCode, code: &str, detail: &str) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or("Error");
    let status_number = status.as_u16();
    let kind = format!("urn:stand-in:{code}");
    let body = json!({ "type": kind, "title": title, "status": status_number, "code": code, "detail": detail });
    response(status, "application/problem+json", body.to_string())
}

/// A response with a JSON body.
pub(crate) fn json(body: String) -> Response<Bytes> {
    response(StatusCode::OK, "application/json", body)
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
