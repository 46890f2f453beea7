//! What a service says, in HTTP.

use std::time::{Duration, SystemTime};

use agent::Answer;
use agents::NetworkBody;
use bytes::Bytes;
use domain::time::Timestamp;
use http::header::{CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use http::{Response, response};
use serde_json::json;

/// The answer to a question for the state of a call.
pub(super) fn to_look(answer: &Answer, now: Timestamp) -> Response<NetworkBody> {
    let (status, body) = match answer {
        Answer::Done(output) => (200, done(output.text())),
        Answer::UnderWay { .. } => (200, json!({"done": false}).to_string()),
        Answer::Retry { .. } | Answer::Unknown { .. } => (503, String::new()),
        Answer::Fail(_) | Answer::Misconfigured { .. } | Answer::NotCalled { .. } => (404, String::new()),
    };
    respond(status, answer, Bytes::from(body).into(), now)
}

/// What a service says in the words of its user. The answer to a call with a number says where its state is asked.
pub(super) fn as_described((status, body): (u16, String), id: Option<u64>) -> Response<NetworkBody> {
    let mut response = Response::builder().status(status);
    if !body.is_empty() {
        response = response.header(CONTENT_TYPE, "application/json");
    }
    if let Some(id) = id {
        response = response.header(LOCATION, format!("/v1/calls/{id}"));
    }
    made(response, body)
}

/// A token for any client, that lasts for an hour.
pub(super) fn token() -> Response<NetworkBody> {
    let body = json!({"access_token": "simulated", "token_type": "Bearer", "expires_in": 3_600});
    made(Response::builder().header(CONTENT_TYPE, "application/json"), body.to_string())
}

fn made(response: response::Builder, body: String) -> Response<NetworkBody> {
    let response = response.body(NetworkBody::from(Bytes::from(body)));
    response.unwrap_or_else(|fault| panic!("an answer of a service: {fault}"))
}

/// An object with one member more: it is done.
fn done(object: &str) -> String {
    format!("{},\"done\":true}}", object.strip_suffix('}').unwrap_or(object))
}

/// An answer with this status and body. `now` is by the clock of the service.
pub(super) fn respond(status: u16, answer: &Answer, body: NetworkBody, now: Timestamp) -> Response<NetworkBody> {
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    if let Some(after_ms) = wait_ms(answer) {
        response = ask_to_wait(response, after_ms, now);
    }
    response.body(body).unwrap_or_else(|fault| panic!("an answer of a service: {fault}"))
}

/// For how long a service asks not to be called, in milliseconds.
pub(super) fn wait_ms(answer: &Answer) -> Option<u64> {
    match answer {
        Answer::Retry { after_ms, .. }
        | Answer::Unknown { after_ms, .. }
        | Answer::UnderWay { after_ms, .. }
        | Answer::Misconfigured { after_ms, .. } => *after_ms,
        Answer::Done(_) | Answer::Fail(_) | Answer::NotCalled { .. } => None,
    }
}

/// A service asks not to be called for this time: in seconds, or until a date.
fn ask_to_wait(response: response::Builder, after_ms: u64, now: Timestamp) -> response::Builder {
    let seconds = after_ms.div_ceil(1_000);
    if seconds.is_multiple_of(2) {
        return response.header(RETRY_AFTER, seconds);
    }
    let date = |after: u64| {
        let epoch_ms = u64::try_from(now.epoch_ms()).unwrap_or(0);
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(epoch_ms / 1_000 + after))
    };
    response.header(DATE, date(0)).header(RETRY_AFTER, date(seconds))
}
