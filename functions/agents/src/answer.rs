//! The outcome of a service's response.
//!
//! | status | means |
//! | --- | --- |
//! | 2xx | done; the body is the output, and an empty body is `{}` |
//! | 2xx with a body that is not JSON, or that breaks off | asked again |
//! | 408, 425, 429, 5xx | asked again, not before `Retry-After` |
//! | any other | rejected for good, with the reason of the body if it has one |
//!
//! A 2xx whose body is not JSON may come from the service, or from a proxy before it with a page of its own. Taken for
//! a success, it could finish an order without any effect. Taken for a failure, it would compensate a good order. So
//! it counts as no answer, and the service is asked again with the same key. If that goes on, the supervisor counts,
//! and an operator sees it.

use std::error::Error;

use agent::{Answer, OUTPUT_TOO_LARGE};
use bytes::Bytes;
use domain::json::{Json, JsonError};
use domain::limits::{OUTPUT_BYTES_MAX, TEXT_CHARS_MAX};
use domain::task::shortened;
use domain::time::Timestamp;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use serde_json::{Map, Value};

use crate::client::chain;
use crate::retry_after::retry_after_ms;

/// Largest part of a body that is read, in bytes: the largest output, and more than an error needs.
const BODY_BYTES_MAX: usize = OUTPUT_BYTES_MAX;
/// Members that may name the reason in a body; the first one present wins. RFC 9457 calls it `type`.
const CODE_MEMBERS: [&str; 3] = ["code", "Code", "type"];
/// Members that may explain the reason.
const MESSAGE_MEMBERS: [&str; 6] = ["detail", "message", "Message", "title", "error", "Error"];

/// The meaning of a service's response: done, ask again, or rejected. `now` is by the agent's clock. At most the
/// largest output of the body is read.
pub async fn answer_to<B>(response: Response<B>, now: Timestamp) -> Answer
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = response.status();
    if status.is_success() {
        success(status, read(response).await)
    } else if may_work_later(status) {
        // The status says enough, and the wait for the body could cost the answer.
        let after_ms = retry_after_ms(response.headers(), now);
        Answer::Retry { after_ms, problem: format!("HTTP {status}") }
    } else {
        failure(status, read(response).await)
    }
}

fn may_work_later(status: StatusCode) -> bool {
    const PASSING: [StatusCode; 3] =
        [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    // A redirect is not followed, but it is no answer about the order either: a maintenance page must not compensate
    // it.
    status.is_server_error() || status.is_redirection() || PASSING.contains(&status)
}

/// Why there is no body.
enum Unread {
    /// It has more than [`BODY_BYTES_MAX`].
    TooLarge,
    /// The connection broke.
    Broken(String),
}

async fn read<B>(response: Response<B>) -> Result<Bytes, Unread>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(error) => Err(Unread::Broken(chain(&*error))),
    }
}

fn success(status: StatusCode, body: Result<Bytes, Unread>) -> Answer {
    let body = match body {
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&format!("has more than {OUTPUT_BYTES_MAX} bytes")),
        Err(Unread::Broken(problem)) => {
            return Answer::retry(format!("HTTP {status}, but its body broke off: {problem}"));
        }
    };
    let text = match body.trim_ascii() {
        b"" => b"{}",
        text => text,
    };
    match Json::parse(text, OUTPUT_BYTES_MAX) {
        Ok(output) => Answer::Done(output),
        Err(error @ (JsonError::TooLarge { .. } | JsonError::TooDeep)) => too_large(&format!("is {error}")),
        Err(error @ (JsonError::Malformed(_) | JsonError::NotAnObject(_))) => {
            Answer::retry(format!("HTTP {status}, but its body is {error}"))
        }
    }
}

fn too_large(problem: &str) -> Answer {
    Answer::fail(OUTPUT_TOO_LARGE, format!("the service's output {problem}"))
}

fn failure(status: StatusCode, body: Result<Bytes, Unread>) -> Answer {
    // The status alone is the rejection; an unreadable body only leaves it unexplained.
    let body = body.unwrap_or_default();
    let problem = serde_json::from_slice::<Map<String, Value>>(&body).unwrap_or_default();
    let code = CODE_MEMBERS.iter().find_map(|name| text(&problem, name)).filter(|code| is_code(code));
    let code = code.map_or_else(|| format!("http-{}", status.as_u16()), str::to_owned);
    let message = MESSAGE_MEMBERS.iter().find_map(|name| text(&problem, name));
    let message = message.map_or_else(|| plain(status, &body), str::to_owned);
    Answer::fail(code, shortened(&message))
}

/// A member that is a non-empty text.
fn text<'a>(problem: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    problem.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// Whether a program can use it as a code. `about:blank` is RFC 9457's empty value. [`OUTPUT_TOO_LARGE`] is ours: it
/// means that the effect happened, which no rejection means.
fn is_code(text: &str) -> bool {
    ![OUTPUT_TOO_LARGE, "about:blank"].contains(&text)
        && text.len() <= TEXT_CHARS_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn plain(status: StatusCode, body: &[u8]) -> String {
    match String::from_utf8_lossy(body).trim() {
        "" => format!("HTTP {status}"),
        text => text.to_owned(),
    }
}
