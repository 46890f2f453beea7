//! What a service says, in HTTP.

use std::time::{Duration, SystemTime};

use agent::Answer;
use agents::NetworkBody;
use bytes::Bytes;
use domain::message::Failure;
use domain::time::Timestamp;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{Response, response};
use serde_json::json;

use crate::seen::Way;
use crate::state::books::IN_USE;

/// The answer to the call with this number. `now` is by the clock of the service.
pub(super) fn to_call(answer: &Answer, way: Way, id: u64, now: Timestamp) -> Response<NetworkBody> {
    let first = |one: u16, other: u16| if id.is_multiple_of(2) { one } else { other };
    let (status, body) = match answer {
        Answer::Done(output) => (if way == Way::Forward { first(200, 201) } else { 200 }, output.text().to_owned()),
        Answer::Fail(failure) => (422, reason(failure, id)),
        Answer::UnderWay { unless_alone: None, .. } => (202, json!({"id": id}).to_string()),
        Answer::UnderWay { unless_alone: Some(failure), .. } => (first(409, 423), reason(failure, id)),
        Answer::Retry { after_ms, .. } => (if after_ms.is_some() { first(429, 503) } else { 503 }, String::new()),
        Answer::Unknown { .. } => (first(502, 504), "<html>".to_owned()),
        Answer::Misconfigured { .. } | Answer::NotCalled { .. } => (401, String::new()),
    };
    respond(status, answer, body, now)
}

/// The answer to a question for the state of a call.
pub(super) fn to_look(answer: &Answer, now: Timestamp) -> Response<NetworkBody> {
    let (status, body) = match answer {
        Answer::Done(output) => (200, done(output.text())),
        Answer::UnderWay { .. } => (200, json!({"done": false}).to_string()),
        Answer::Retry { .. } | Answer::Unknown { .. } => (503, String::new()),
        Answer::Fail(_) | Answer::Misconfigured { .. } | Answer::NotCalled { .. } => (404, String::new()),
    };
    respond(status, answer, body, now)
}

/// An object with one member more: it is done.
fn done(object: &str) -> String {
    format!("{},\"done\":true}}", object.strip_suffix('}').unwrap_or(object))
}

/// A service that is at work on the key also says where its state is asked.
fn reason(Failure { code, message }: &Failure, id: u64) -> String {
    let mut body = json!({"code": &**code, "message": &**message});
    if **code == *IN_USE {
        body["id"] = id.into();
    }
    body.to_string()
}

fn respond(status: u16, answer: &Answer, body: String, now: Timestamp) -> Response<NetworkBody> {
    let mut response = Response::builder().status(status);
    if !body.is_empty() {
        response = response.header(CONTENT_TYPE, "application/json");
    }
    let after_ms = match answer {
        Answer::Retry { after_ms, .. }
        | Answer::Unknown { after_ms, .. }
        | Answer::UnderWay { after_ms, .. }
        | Answer::Misconfigured { after_ms, .. } => *after_ms,
        Answer::Done(_) | Answer::Fail(_) | Answer::NotCalled { .. } => None,
    };
    if let Some(after_ms) = after_ms {
        response = ask_to_wait(response, after_ms, now);
    }
    response
        .body(NetworkBody::from(Bytes::from(body)))
        .unwrap_or_else(|fault| panic!("an answer of a service: {fault}"))
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
