//! Entity tags (RFC 9110): an operator acts only on the version that the operator saw.
//!
//! The tag of an order or a job is its version. An action with `If-Match` is carried out on that version only: 412
//! means that it has changed since.

use bytes::Bytes;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, Response, StatusCode};

use crate::problem::Problem;
use crate::reply;

/// The same answer, without the body if the reader has this version already (`If-None-Match`).
///
/// # Errors
/// [`Problem::Invalid`] if the header is not a list of entity tags.
pub(crate) fn unless_known(
    response: Response<Bytes>,
    headers: &HeaderMap,
    version: u64,
) -> Result<Response<Bytes>, Problem> {
    let mut response = reply::tagged(response, version);
    // A weak tag is enough here: a reader only asks whether anything changed.
    if matches(headers, &IF_NONE_MATCH, "If-None-Match", version, Weak::Counts)? == Some(true) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Bytes::new();
        response.headers_mut().remove(http::header::CONTENT_TYPE);
        response.headers_mut().remove(http::header::CONTENT_LENGTH);
    }
    Ok(response)
}

/// Refuses an action that was meant for another version than the present one. Without `If-Match` it is meant for any
/// version. The inner error is [`Problem::VersionChanged`], which does not stop the repeat of an action.
///
/// # Errors
/// [`Problem::Invalid`] if the header is not a list of entity tags.
pub(crate) fn check(headers: &HeaderMap, version: u64) -> Result<Result<(), Problem>, Problem> {
    Ok(match matches(headers, &IF_MATCH, "If-Match", version, Weak::IsNone)? {
        None | Some(true) => Ok(()),
        Some(false) => {
            let is_weak = matches(headers, &IF_MATCH, "If-Match", version, Weak::Counts)? == Some(true);
            Err(Problem::VersionChanged { version, is_weak })
        }
    })
}

/// Whether weak tags count: not if the bytes must be the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weak {
    Counts,
    IsNone,
}

/// Whether one of the tags is that of this version; `None` without a tag.
fn matches(
    headers: &HeaderMap,
    name: &HeaderName,
    shown: &'static str,
    version: u64,
    weak: Weak,
) -> Result<Option<bool>, Problem> {
    let mut found = None;
    for value in headers.get_all(name) {
        let fault = "must be * or entity tags in quotes, such as \"7\"";
        let tags = tags(value.as_bytes()).ok_or_else(|| Problem::header(shown, fault))?;
        let is_one = tags.iter().any(|tag| match tag {
            Tag::Any => true,
            Tag::Named { is_weak, name } => {
                *name == version.to_string().as_bytes() && (!is_weak || weak == Weak::Counts)
            }
        });
        found = Some(is_one || found == Some(true));
    }
    Ok(found)
}

/// One entry of the header.
enum Tag<'a> {
    /// `*`: any version.
    Any,
    Named {
        is_weak: bool,
        /// The text between the quotes.
        name: &'a [u8],
    },
}

/// The tags of a header's value, at least one; `None` if it is not a list of tags.
fn tags(value: &[u8]) -> Option<Vec<Tag<'_>>> {
    if value.trim_ascii() == b"*" {
        return Some(vec![Tag::Any]);
    }
    let (mut tags, mut rest) = (Vec::new(), value.trim_ascii());
    while !rest.is_empty() {
        // An element of a list may be empty.
        if let Some(behind) = rest.strip_prefix(b",") {
            rest = behind.trim_ascii_start();
            continue;
        }
        let strong = rest.strip_prefix(b"W/");
        let quoted = strong.unwrap_or(rest).strip_prefix(b"\"")?;
        // A tag may contain a comma, but no quote.
        let end = quoted.iter().position(|byte| *byte == b'"')?;
        let name = &quoted[..end];
        rest = quoted[end + 1..].trim_ascii_start();
        if !name.iter().all(u8::is_ascii_graphic) || !(rest.is_empty() || rest.starts_with(b",")) {
            return None;
        }
        tags.push(Tag::Named { is_weak: strong.is_some(), name });
    }
    (!tags.is_empty()).then_some(tags)
}

#[cfg(test)]
mod tests {
    use domain::task::ProcessState;

    use crate::testing::{Fake, task_in};

    const COMMAND: &str = r#"{"By":"ada","Reason":"payment is back"}"#;

    /// A store with one order in version 9, and its path.
    fn order_in(state: ProcessState) -> (Fake, String) {
        let fake = Fake::default();
        let mut task = task_in("a", state);
        task.version = 9;
        let path = format!("/orders/{}", fake.stores(task));
        (fake, path)
    }

    #[test]
    fn an_order_is_shown_with_its_version_as_its_tag() {
        let (fake, path) = order_in(ProcessState::Error);
        assert_eq!(fake.get(&path).header("etag"), Some("\"9\""));
    }

    #[test]
    fn a_caller_with_the_current_version_gets_304_without_a_body() {
        let (fake, path) = order_in(ProcessState::Error);
        for tag in ["\"9\"", "W/\"9\"", "\"7\", \"9\"", "*"] {
            let answer = fake.call("GET", &path, &[("If-None-Match", tag)], "");
            assert_eq!((answer.status, answer.text.as_str(), answer.header("etag")), (304, "", Some("\"9\"")), "{tag}");
        }
        assert_eq!(fake.call("GET", &path, &[("If-None-Match", "\"8\"")], "").status, 200);
        let head = |tag| fake.call("HEAD", &path, &[("If-None-Match", tag)], "");
        let (same, other) = (head("\"9\""), head("\"8\""));
        assert_eq!((same.status, same.header("content-length")), (304, None), "that of the 200 is not known");
        let length = fake.get(&path).text.len().to_string();
        assert_eq!((other.status, other.header("content-length")), (200, Some(&*length)));
        fake.call("GET", &path, &[("If-None-Match", "9")], "").names(400, "invalid-header", "If-None-Match");
    }

    #[test]
    fn an_action_on_the_version_that_was_seen_is_queued() {
        for tag in ["\"9\"", "*", "\"8\" , \"9\"", "\"a,b\",,\"9\",", " , \"9\""] {
            let (fake, path) = order_in(ProcessState::Error);
            let answer = fake.post(&format!("{path}/resubmit"), &[("If-Match", tag)], COMMAND);
            assert_eq!((answer.status, fake.scheduled().len()), (202, 1), "{tag}");
        }
    }

    #[test]
    fn an_action_on_a_version_that_is_no_more_is_412_and_queues_nothing() {
        let (fake, path) = order_in(ProcessState::Error);
        for tag in ["\"8\"", "W/\"9\"", "\"90\"", "\"8\",", "\"1,9\"", "\"*\""] {
            let answer = fake.post(&format!("{path}/cancel"), &[("If-Match", tag)], COMMAND);
            answer.is_problem(412, "version-changed");
            assert_eq!(answer.header("etag"), Some("\"9\""));
        }
        for tag in ["9", "\"9", "", ",", "W/*", "*, *", "\"9\", *", "\"9\" \"9\"", "\"9\"x", "\"a b\"", "w/\"9\""] {
            fake.post(&format!("{path}/cancel"), &[("If-Match", tag)], COMMAND).names(
                400,
                "invalid-header",
                "If-Match",
            );
        }
        fake.queued_nothing();
    }

    #[test]
    fn a_changed_version_is_reported_before_a_state_that_forbids() {
        let (fake, path) = order_in(ProcessState::Processed);
        let answer = fake.post(&format!("{path}/resubmit"), &[("If-Match", "\"8\"")], COMMAND);
        answer.is_problem(412, "version-changed");
    }
}
