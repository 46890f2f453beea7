//! The outcome that a service's response stands for.
//!
//! | status | means |
//! | --- | --- |
//! | 2xx | done; the body is the output, and none at all is `{}` |
//! | 2xx with a body that is no JSON, or that breaks off | asked again |
//! | 408, 425, 429, 5xx | asked again, not before `Retry-After` |
//! | any other | no for good; the reason is taken from the body where it gives one |
//!
//! A 2xx whose body is no JSON leaves open who answered, the service or something before it such as a proxy with a page
//! of its own. Taken for a success it could finish an order of which nothing was done, taken for a failure it would
//! undo one that is well. So it counts as no answer: the service is asked again with the same key, and if that goes on
//! the supervisor counts, and an operator gets to see it.

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

/// As much of a body as is read, in bytes: the largest output, and for errors more than anybody keeps.
const BODY_BYTES_MAX: usize = OUTPUT_BYTES_MAX;
/// Members that may name the reason in a body, the first that does wins. RFC 9457 calls it `type`.
const CODE_MEMBERS: [&str; 3] = ["code", "Code", "type"];
/// Members that may explain it.
const MESSAGE_MEMBERS: [&str; 6] = ["detail", "message", "Message", "title", "error", "Error"];

/// What a service's response means: done, ask again, or no for good. `now` is by the agent's clock; of the body at most
/// the largest output is read.
pub async fn answer_to<B>(response: Response<B>, now: Timestamp) -> Answer
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = response.status();
    if status.is_success() {
        success(status, read(response).await)
    } else if may_work_later(status) {
        // The body says nothing that the status does not, and waiting for it could cost the answer.
        let after_ms = retry_after_ms(response.headers(), now);
        Answer::Retry { after_ms, problem: format!("HTTP {status}") }
    } else {
        failure(status, read(response).await)
    }
}

fn may_work_later(status: StatusCode) -> bool {
    const PASSING: [StatusCode; 3] =
        [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    // A redirect is not followed, but it is no answer about the order either: a maintenance page must not undo it.
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
    // The status alone has said no; a body that cannot be had only leaves it unexplained.
    let body = body.unwrap_or_default();
    let problem = serde_json::from_slice::<Map<String, Value>>(&body).unwrap_or_default();
    let code = CODE_MEMBERS.iter().find_map(|name| text(&problem, name)).filter(|code| is_code(code));
    let code = code.map_or_else(|| format!("http-{}", status.as_u16()), str::to_owned);
    let message = MESSAGE_MEMBERS.iter().find_map(|name| text(&problem, name));
    let message = message.map_or_else(|| plain(status, &body), str::to_owned);
    Answer::fail(code, shortened(&message))
}

/// A member that is a text with something in it.
fn text<'a>(problem: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    problem.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// Whether a program can go by it. `about:blank` is RFC 9457's way of saying nothing, and [`OUTPUT_TOO_LARGE`] is ours: it
/// says that the effect happened, which no refusal does.
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
