//! The stand-ins as one function on AWS, behind an open route.

mod table;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};

use crate::call::{Answer, Call, problem};
use crate::service::Service;
pub use table::{Table, TableError};

/// The longest delay of an answer, and the longest work on a call, in milliseconds. An HTTP API waits 30 s.
const WAIT_MS_MAX: u64 = 25_000;
/// The minimum length of a token, in characters. Only the token protects the route.
pub const TOKEN_CHARS_MIN: usize = 16;

/// The stand-ins. They answer under `.../{token}/{service}/{operation}`, with any path before it.
#[derive(Debug)]
pub struct StandIns {
    token: Arc<str>,
    table: Table,
}

/// The token is too short to protect the route.
#[derive(Debug, thiserror::Error)]
#[error("STANDINS_TOKEN must have at least {TOKEN_CHARS_MIN} characters")]
pub struct ShortToken;

impl StandIns {
    /// Stand-ins that store their keys in `table`.
    ///
    /// # Errors
    /// [`ShortToken`].
    pub fn new(token: Arc<str>, table: Table) -> Result<Self, ShortToken> {
        if token.chars().nth(TOKEN_CHARS_MIN - 1).is_none() {
            return Err(ShortToken);
        }
        Ok(Self { token, table })
    }

    /// Answers one request. A lost answer is a 504, which is the view of an HTTP API's caller.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let mut segments = request.uri().path().rsplit('/');
        let [Some(operation), Some(service), Some(token)] = [segments.next(), segments.next(), segments.next()] else {
            return not_found();
        };
        if !is_same(token, &self.token) || request.method() != Method::POST {
            return not_found();
        }
        let Some(service) = Service::of_agent(service) else { return not_found() };
        let call = match Call::read(&request, service, operation) {
            Ok(call) => Call { behaviour: call.behaviour.waiting_at_most(WAIT_MS_MAX), ..call },
            Err(refusal) => return *refusal,
        };
        let decision = match self.table.call(&call, now_ms()).await {
            Ok(decision) => decision,
            Err(error) => {
                tracing::warn!(%service, "a call was not remembered: {error}");
                return problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the call could not be remembered");
            }
        };
        tracing::info!(%service, operation, key = call.key, verdict = ?decision.verdict, "call");
        let Answer { response, delay_ms } = call.answer(decision);
        slow_down(delay_ms.min(WAIT_MS_MAX)).await;
        response.unwrap_or_else(|| problem(StatusCode::GATEWAY_TIMEOUT, "lost", "told to lose its answer"))
    }
}

fn not_found() -> Response<Bytes> {
    problem(StatusCode::NOT_FOUND, "not-found", "POST /{token}/{service}/{operation}")
}

/// Compares in the same time for all texts of one length, so that the timing does not reveal the token.
fn is_same(text: &str, token: &str) -> bool {
    let differences = text.bytes().zip(token.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b));
    text.len() == token.len() && differences == 0
}

#[expect(clippy::disallowed_methods, reason = "a stand-in is the outside world: it has a clock of its own")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "a stand-in is the outside world: it takes its own time")]
async fn slow_down(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn only_the_token_is_the_token() {
        assert!(is_same("0123456789abcdef", "0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(!is_same(wrong, "0123456789abcdef"), "{wrong}");
        }
    }
}
