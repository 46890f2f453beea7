//! The meaning of a service's response.
//!
//! | status | means |
//! | --- | --- |
//! | 2xx except 202 | done; the body is the output, and an empty body is `{}` |
//! | 202 | under way: asked again, not before `Retry-After` |
//! | 409, 423 | under way while an earlier call with the key may be at work, else rejected |
//! | 425, 429, 5xx, a redirect, and a status that HTTP does not have | failing: asked again, not before `Retry-After` |
//! | 408, 502, 504, a 2xx whose body is not JSON or breaks off | the same, and the effect is unknown |
//! | 401, 403, 407; 404, 405, 410, 421 without a JSON `code` | misconfigured: the same, and an operator is alerted |
//! | any other | rejected for good, with the reason of the body if it has one |
//!
//! A [`StatusTable`] gives single statuses another meaning, for one operation of one service. A [`Condition`](config::Condition) does so
//! for some bodies of a status: a payment may be answered 200 and wait for its customer.
//!
//! A 401 is about the caller and not about the order, so it must not compensate the order. A 404 of an unknown route
//! looks like that of an unknown customer; the `code` makes the difference.
//!
//! A 2xx whose body is not JSON may come from the service, or from a proxy before it with a page of its own. Taken for
//! a success, it could finish an order without any effect. Taken for a failure, it would compensate a good order. So
//! it counts as no answer, and the service is asked again with the same key. If that goes on, the supervisor counts,
//! and an operator sees it.

mod condition;

use std::error::Error;
use std::future::{Future, ready};

use agent::{Answer, OUTPUT_TOO_LARGE};
use bytes::Bytes;
use config::{Meaning, StatusTable};
use domain::json::{Json, JsonError};
use domain::limits::{ANSWER_BYTES_MAX, TEXT_CHARS_MAX};
use domain::message::Failure;
use domain::time::Timestamp;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use serde_json::{Map, Value};

use crate::client::chain;
use crate::retry_after::retry_after_ms;
use condition::Verdict;

/// Members that may name the reason in a body; the first usable one wins. RFC 9457 calls it `type`.
const CODE_MEMBERS: [&str; 3] = ["code", "Code", "type"];
/// Members that may explain the reason.
const MESSAGE_MEMBERS: [&str; 6] = ["detail", "message", "Message", "title", "error", "Error"];

/// The meaning of a service's response. `now` is by the agent's clock. At most [`ANSWER_BYTES_MAX`] bytes of the body are read.
pub async fn answer_to<B>(response: Response<B>, statuses: &StatusTable, now: Timestamp) -> Answer
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = response.status();
    // A service that limits its calls is never asked again at once.
    let no_wait = (status == StatusCode::TOO_MANY_REQUESTS).then_some(0);
    let after_ms = retry_after_ms(response.headers(), now).or(no_wait);
    // Where the status says enough, the wait for the body could cost the answer.
    if !statuses.depends_on_body(status) {
        return meant(statuses.meaning(status), status, after_ms, read(response)).await;
    }
    let body = match read(response).await {
        Err(Unread::Broken(problem)) => return broken(status, &problem),
        body @ (Ok(_) | Err(Unread::TooLarge)) => body,
    };
    let Some(Ok(json)) = body.as_ref().ok().map(output) else {
        // It may come from a proxy, so no condition says anything about it.
        return if status.is_success() {
            success(status, body)
        } else {
            meant(statuses.meaning(status), status, after_ms, ready(body)).await
        };
    };
    let verdict = Verdict::of(&statuses.conditions, status, &json);
    let meaning = verdict.means.unwrap_or_else(|| statuses.meaning(status));
    if meaning == Meaning::No && status.is_success() {
        // The body describes the order and no fault, so the reason is what a condition looked at.
        return Answer::Fail(refusal(status, verdict.text));
    }
    meant(meaning, status, after_ms, ready(body)).await
}

/// The answer with this meaning. The body is read only for a meaning that needs it.
async fn meant(
    meaning: Meaning,
    status: StatusCode,
    after_ms: Option<u64>,
    body: impl Future<Output = Result<Bytes, Unread>>,
) -> Answer {
    match meaning {
        Meaning::Done => success(status, body.await),
        Meaning::UnderWay => Answer::UnderWay { after_ms, unless_alone: None },
        Meaning::Failing => Answer::Retry { after_ms, problem: format!("HTTP {status}") },
        Meaning::Unknown => Answer::Unknown { after_ms, problem: format!("HTTP {status}") },
        Meaning::Misconfigured => Answer::Misconfigured { after_ms, problem: format!("HTTP {status}") },
        Meaning::Conflict => Answer::UnderWay { after_ms, unless_alone: Some(failure(status, body.await).failure) },
        Meaning::MisconfiguredWithoutCode => match failure(status, body.await) {
            Rejection { failure, has_code: true } => Answer::Fail(failure),
            Rejection { has_code: false, .. } => Answer::Misconfigured { after_ms, problem: format!("HTTP {status}") },
        },
        Meaning::No => Answer::Fail(failure(status, body.await).failure),
    }
}

/// Why there is no body.
enum Unread {
    /// It has more than [`ANSWER_BYTES_MAX`].
    TooLarge,
    /// The connection broke.
    Broken(String),
}

async fn read<B>(response: Response<B>) -> Result<Bytes, Unread>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(error) => Err(Unread::Broken(chain(&*error))),
    }
}

fn success(status: StatusCode, body: Result<Bytes, Unread>) -> Answer {
    let body = match body {
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&format!("has more than {ANSWER_BYTES_MAX} bytes")),
        Err(Unread::Broken(problem)) => return broken(status, &problem),
    };
    match output(&body) {
        Ok(output) => Answer::Done(output),
        Err(error @ (JsonError::TooLarge { .. } | JsonError::TooDeep)) => too_large(&format!("is {error}")),
        Err(error @ (JsonError::Malformed(_) | JsonError::NotAnObject(_))) => {
            Answer::unknown(format!("HTTP {status}, but its body is {error}"))
        }
    }
}

fn output(body: &Bytes) -> Result<Json, JsonError> {
    match body.trim_ascii() {
        b"" => Ok(Json::empty()),
        text => Json::parse(text, ANSWER_BYTES_MAX),
    }
}

fn broken(status: StatusCode, problem: &str) -> Answer {
    Answer::unknown(format!("HTTP {status}, but its body broke off: {problem}"))
}

fn too_large(problem: &str) -> Answer {
    Answer::fail(OUTPUT_TOO_LARGE, format!("the service's answer {problem}"))
}

/// The reason of a rejection with a status of success.
fn refusal(status: StatusCode, text: Option<String>) -> Failure {
    let code = text.filter(|text| is_code(text)).unwrap_or_else(|| format!("http-{}", status.as_u16()));
    Failure { message: format!("HTTP {status}, and the answer means no: {code}").into(), code: code.into() }
}

/// The reason of a rejection. The agent shortens it, after secrets in it are hidden.
struct Rejection {
    failure: Failure,
    /// Whether the body has a member `code`.
    has_code: bool,
}

fn failure(status: StatusCode, body: Result<Bytes, Unread>) -> Rejection {
    // The status alone is the rejection; an unreadable body only leaves it unexplained.
    let body = body.unwrap_or_default();
    let problem = serde_json::from_slice::<Map<String, Value>>(&body).unwrap_or_default();
    // Many services put the reason into an object of this name, or into the first of a list.
    let (error, errors) = (problem.get("error"), problem.get("errors").and_then(|errors| errors.get(0)));
    let parts = [error.and_then(Value::as_object), Some(&problem), errors.and_then(Value::as_object)];
    let first = |name: &&str| parts.iter().flatten().find_map(|part| text(part, name).filter(|code| is_code(code)));
    let code = CODE_MEMBERS.iter().find_map(first);
    let code = code.map_or_else(|| format!("http-{}", status.as_u16()), str::to_owned);
    let message = parts.iter().flatten().find_map(|part| MESSAGE_MEMBERS.iter().find_map(|name| text(part, name)));
    let message = message.map_or_else(|| plain(status, &body), str::to_owned);
    // `type` is no proof: some frameworks send it with every unknown route.
    let has_code = ["code", "Code"].iter().find_map(first).is_some();
    Rejection { failure: Failure { code: code.into(), message: message.into() }, has_code }
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
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn plain(status: StatusCode, body: &[u8]) -> String {
    match String::from_utf8_lossy(body).trim() {
        "" => format!("HTTP {status}"),
        text => text.to_owned(),
    }
}
