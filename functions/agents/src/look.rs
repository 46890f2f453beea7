//! What a look says about the state of a call that was taken on (rule 36).

use std::error::Error;

use agent::Answer;
use config::Remote;
use domain::message::Look;
use domain::task::Direction;
use domain::template::Template;
use domain::time::Timestamp;
use domain::workflow::{PollAnswer, PollMeaning};
use http::{Response, StatusCode, Uri};
use hyper::body::Body;

use crate::answer::{End, Head, Read, failure, output, refusal, success};
use crate::retry_after::retry_after_ms;

/// The URL of a look. It is of the host of the agent.
///
/// # Errors
/// That the path makes no URL.
pub(crate) fn url_of(look: &Look, remote: &Remote) -> Result<Uri, String> {
    let uri = remote.at(&look.path).map_err(|error| error.to_string())?;
    let is_same = uri.scheme() == remote.forward.scheme() && uri.authority() == remote.forward.authority();
    if is_same { Ok(uri) } else { Err("it is of another host".to_owned()) }
}

/// What an answer says about the state. Done and a rejection count, and anything else says nothing: under way if nothing is
/// wrong, else with what is.
pub(crate) async fn state_of<B>(response: Response<B>, look: &Look, keep: Option<&Template>, now: Timestamp) -> Answer
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (parts, body) = response.into_parts();
    let (status, after_ms) = (parts.status, retry_after_ms(&parts.headers, now));
    let problem = format!("HTTP {status}");
    let read = Read::of(&parts.headers, body).await;
    let is_readable = status.is_success() || status.is_client_error();
    let asked = || look.answers.iter().filter(|answer| answer.status == status.as_u16());
    let of_response = keep.filter(|keep| keep.is_of_response());
    let head = Head::of(status, parts.headers, of_response, after_ms, problem.clone());
    let nothing = || match status.as_u16() {
        200..=299 => Answer::under_way(),
        // These may pass while the look waits.
        408 | 425 | 429 | 500..=599 => Answer::Retry { after_ms, problem: problem.clone() },
        _ => Answer::Misconfigured { after_ms, problem: problem.clone() },
    };
    if look.answers.is_empty() {
        return if status == StatusCode::OK { kept(success(&head, &read), keep) } else { nothing() };
    }
    if asked().next().is_none() || !is_readable {
        return nothing();
    }
    if read.end != End::Whole {
        return Answer::Unknown { after_ms, problem: format!("{problem}, but its body is not whole") };
    }
    let Ok(json) = output(&read) else {
        return Answer::Misconfigured {
            after_ms,
            problem: format!("{problem}, but its body{} is no JSON", read.said()),
        };
    };
    if let Some(place) = asked().find_map(|answer| answer.when.ambiguous_in(&json)) {
        return Answer::Misconfigured { after_ms, problem: format!("{problem}, but {place} is there twice") };
    }
    let text = read.text();
    for PollAnswer { means, when, .. } in asked() {
        return match (when.holds_in(&text), means) {
            (Ok(false), _) => continue,
            (Err(unknown), _) => Answer::Misconfigured { after_ms, problem: format!("{problem}, but {unknown}") },
            (Ok(true), PollMeaning::Done) => success(&head, &read),
            (Ok(true), PollMeaning::No) if status.is_success() => Answer::Fail(refusal(status, when.text_in(&text))),
            (Ok(true), PollMeaning::No) => Answer::Fail(failure(status, &read).failure),
        };
    }
    nothing()
}

/// Without conditions, an answer in which `keep` finds no values means that the call is under way.
fn kept(answer: Answer, keep: Option<&Template>) -> Answer {
    let Answer::Done(found) = answer else { return Answer::under_way() };
    let done = Answer::done(found, keep, Direction::Forward);
    if matches!(done, Answer::Done(_)) { done } else { Answer::under_way() }
}
