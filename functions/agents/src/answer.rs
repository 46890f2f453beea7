//! The meaning of a service's response.
//!
//! | status | means |
//! | --- | --- |
//! | 2xx except 202 | done; the body is the output, and an empty body is `{}` |
//! | 202 | under way: asked again, not before `Retry-After` |
//! | 409, 423 | under way while an earlier call with the key may be at work, else rejected |
//! | 425, 429, 5xx, another redirect, and a status that HTTP does not have | failing: asked again, not before `Retry-After` |
//! | 408, 502, 504, a 2xx whose body is not JSON or breaks off | the same, and the effect is unknown |
//! | 301, 308, 401, 403, 407; 404, 405, 410, 421 without a JSON `code` | misconfigured: the same, and an operator is alerted |
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

mod body;
mod condition;

use std::error::Error;
use std::future::{Future, ready};
use std::sync::Arc;

use agent::{Answer, OUTPUT_TOO_LARGE};
use config::{Meaning, StatusTable};
use domain::json::{Json, JsonError, lossy_text, members};
use domain::limits::{ANSWER_BYTES_MAX, TEXT_CHARS_MAX};
use domain::message::Failure;
use domain::template::Template;
use domain::time::Timestamp;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use hyper::body::Body;

use crate::poll::Polled;
use crate::retry_after::retry_after_ms;
pub(crate) use body::End;
pub(crate) use body::Read;
use condition::Verdict;

/// Members of a body that may name the reason, and then those that may explain it. The first usable one wins. RFC 9457 calls
/// the reason `type`.
const MEMBERS: [&str; 9] = ["code", "Code", "type", "detail", "message", "Message", "title", "error", "Error"];
/// So many of them name it.
const CODES: usize = 3;
/// A `type` is no proof of a reason: some frameworks send it with every unknown route.
const PROOFS: usize = 2;

/// What a response says besides its body.
pub(crate) struct Head<'k> {
    status: StatusCode,
    headers: HeaderMap,
    keep: Option<&'k Template>,
    poll: Option<Polled<'k>>,
    after_ms: Option<u64>,
    /// Status and, of a redirect, the host to which it leads. The rest of an address may be a secret.
    problem: String,
}

impl<'k> Head<'k> {
    /// What a response says about the state of a call.
    pub(crate) const fn of(
        status: StatusCode,
        headers: HeaderMap,
        keep: Option<&'k Template>,
        after_ms: Option<u64>,
        problem: String,
    ) -> Self {
        Self { status, headers, keep, poll: None, after_ms, problem }
    }

    /// Where the state is asked from now on.
    async fn poll(&self, read: impl Future<Output = Read>) -> Option<Result<Arc<str>, String>> {
        let polled = self.poll.as_ref()?;
        if !polled.path.needs_body() {
            return Some(polled.after(&self.headers, ""));
        }
        // The call was taken on, whether or not its body comes.
        let read = polled.timer.within(polled.body_within, read).await.ok_or("its body did not come");
        Some(read.map_err(str::to_owned).and_then(|read| polled.after(&self.headers, &read.text())))
    }
}

/// What is taken of a response: what the step keeps, and where the state of a call is asked that was taken on.
#[derive(Debug, Clone, Default)]
pub struct Expected<'k> {
    /// What the step keeps.
    pub keep: Option<&'k Template>,
    /// Where the state is asked.
    pub poll: Option<Polled<'k>>,
}

impl<'k> From<Option<&'k Template>> for Expected<'k> {
    fn from(keep: Option<&'k Template>) -> Self {
        Self { keep, poll: None }
    }
}

/// The meaning of a service's response, of which this is taken. `now` is by the agent's clock. At most
/// [`ANSWER_BYTES_MAX`] bytes of the body are read.
pub async fn answer_to<'k, B>(
    response: Response<B>,
    statuses: &StatusTable,
    expected: impl Into<Expected<'k>>,
    now: Timestamp,
) -> Answer
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (parts, body) = response.into_parts();
    let status = parts.status;
    // A service that limits its calls is never asked again at once.
    let no_wait = (status == StatusCode::TOO_MANY_REQUESTS).then_some(0);
    let after_ms = retry_after_ms(&parts.headers, now).or(no_wait);
    let problem = format!("HTTP {status}{}", leads_to(status, &parts.headers));
    let Expected { keep, poll } = expected.into();
    let keep = keep.filter(|keep| keep.is_of_response());
    let headers = if keep.is_some() || poll.is_some() { parts.headers.clone() } else { HeaderMap::new() };
    let head = Head { status, headers, keep, poll, after_ms, problem };
    let read = Read::of(&parts.headers, body);
    // Where the status says enough, the wait for the body could cost the answer.
    if !statuses.depends_on_body(status) {
        return meant(statuses.meaning(status), head, read).await;
    }
    let read = read.await;
    if let (End::Broken(problem), true) = (&read.end, status.is_success()) {
        return broken(status, problem);
    }
    // A success may come from a proxy, whose page is no JSON: no condition says anything about it.
    if status.is_success() {
        let Ok(json) = output(&read) else { return success(&Head { keep: None, ..head }, &read) };
        if let Some(place) = Verdict::ambiguous(&statuses.conditions, status, &json) {
            return Answer::unknown(format!("HTTP {status}, but its body is ambiguous: {place} is there twice"));
        }
    }
    let verdict = match Verdict::of(&statuses.conditions, status, &read.text()) {
        Ok(verdict) => verdict,
        Err(problem) => {
            return Answer::unknown(format!("HTTP {status}, but what its body means is not known: {problem}"));
        }
    };
    let meaning = verdict.means.unwrap_or_else(|| statuses.meaning(status));
    if meaning == Meaning::No && status.is_success() {
        // The body describes the order and no fault, so the reason is what a condition looked at.
        return Answer::Fail(refusal(status, verdict.text));
    }
    meant(meaning, head, ready(read)).await
}

/// The answer with this meaning. The body is read only for a meaning that needs it.
async fn meant(meaning: Meaning, head: Head<'_>, read: impl Future<Output = Read>) -> Answer {
    if meaning == Meaning::Done {
        return success(&head, &read.await);
    }
    if meaning == Meaning::UnderWay {
        return Answer::UnderWay { after_ms: head.after_ms, unless_alone: None, poll: head.poll(read).await };
    }
    if meaning == Meaning::Conflict {
        let read = read.await;
        let unless_alone = Some(failure(head.status, &read).failure);
        return Answer::UnderWay { after_ms: head.after_ms, unless_alone, poll: head.poll(ready(read)).await };
    }
    let Head { status, after_ms, problem, .. } = head;
    match meaning {
        Meaning::Done | Meaning::UnderWay | Meaning::Conflict => Answer::unknown(problem),
        Meaning::Failing => Answer::Retry { after_ms, problem },
        Meaning::Unknown => Answer::Unknown { after_ms, problem },
        Meaning::Misconfigured => Answer::Misconfigured { after_ms, problem },
        Meaning::MisconfiguredWithoutCode => match failure(status, &read.await) {
            Rejection { failure, has_code: true, .. } => Answer::Fail(failure),
            Rejection { has_code: false, unread, .. } => Answer::Misconfigured { after_ms, problem: problem + &unread },
        },
        Meaning::No => Answer::Fail(failure(status, &read.await).failure),
    }
}

/// Where a redirect leads: the address of the agent may have to be changed.
fn leads_to(status: StatusCode, headers: &HeaderMap) -> String {
    let location = headers.get(LOCATION).filter(|_| status.is_redirection());
    let Some(location) = location.and_then(|location| location.to_str().ok()) else { return String::new() };
    let uri = location.parse::<Uri>().ok();
    match uri.as_ref().and_then(Uri::authority) {
        Some(host) => format!(", which leads to {}", host.as_str().rsplit('@').next().unwrap_or_default()),
        None => ", which leads to another path".to_owned(),
    }
}

pub(crate) fn success(head: &Head<'_>, read: &Read) -> Answer {
    let Head { status, headers, keep, .. } = head;
    match &read.end {
        End::Whole => {}
        End::TooLarge => return too_large(&format!("has more than {ANSWER_BYTES_MAX} bytes")),
        End::Broken(problem) => return broken(*status, problem),
    }
    let body = output(read);
    if let Some(keep) = keep.filter(|keep| body.is_ok() || keep.takes_text()) {
        // Several of one name are a list (RFC 9110).
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let all = |name: &str| headers.get_all(name).iter().map(text).collect::<Vec<_>>();
        let header = |name: &str| headers.contains_key(name).then(|| all(name).join(", "));
        let text = keep.takes_text().then(|| read.text());
        return Answer::Done(keep.response(status.as_u16(), header, text.as_deref(), body.as_ref().ok()));
    }
    match body {
        Ok(output) => Answer::Done(output),
        Err(error @ JsonError::TooLarge { .. }) => too_large(&format!("is {error}")),
        Err(error) => Answer::unknown(format!("HTTP {status}, but its body{} is {error}", read.said())),
    }
}

/// The JSON of a body. Only a part of it may be kept, so its depth is no fault, and a byte that is no UTF-8 spoils its own
/// text alone.
pub(crate) fn output(read: &Read) -> Result<Json, JsonError> {
    match read.bytes() {
        b"" => Ok(Json::empty()),
        bytes => Json::of_any_depth(read.text().as_bytes(), ANSWER_BYTES_MAX)
            .map_err(|lossy| Json::of_any_depth(bytes, ANSWER_BYTES_MAX).err().unwrap_or(lossy)),
    }
}

fn broken(status: StatusCode, problem: &str) -> Answer {
    Answer::unknown(format!("HTTP {status}, but its body broke off: {problem}"))
}

fn too_large(problem: &str) -> Answer {
    Answer::fail(OUTPUT_TOO_LARGE, format!("the service's answer {problem}"))
}

/// The reason of a rejection with a status of success.
pub(crate) fn refusal(status: StatusCode, text: Option<String>) -> Failure {
    let code = text.filter(|text| is_code(text)).unwrap_or_else(|| format!("http-{}", status.as_u16()));
    Failure { message: format!("HTTP {status}, and the answer means no: {code}").into(), code: code.into() }
}

/// The reason of a rejection. The agent shortens it, after secrets in it are hidden.
pub(crate) struct Rejection {
    pub(crate) failure: Failure,
    /// Whether the body has a member `code`.
    has_code: bool,
    /// That the body is no text, if it is none.
    unread: String,
}

/// The status alone is the rejection. A body that can be read in parts explains it as far as that goes.
pub(crate) fn failure(status: StatusCode, read: &Read) -> Rejection {
    let body = read.text();
    // Many services put the reason into an object of this name, or into the first of a list.
    let [error, errors] = members(&body, ["error", "errors"]);
    let errors = errors.and_then(|errors| errors.strip_prefix('[')).map(str::trim_start);
    let text = |literal: Option<&str>| {
        let text = lossy_text(literal?)?.trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    };
    let parts = [error, Some(&*body), errors].map(|part| members(part.unwrap_or_default(), MEMBERS).map(text));
    let first_code = |count: usize| {
        let codes = (0..count).flat_map(|at| parts.iter().filter_map(move |part| part[at].as_ref()));
        codes.into_iter().find(|code| is_code(code)).cloned()
    };
    let code = first_code(CODES).unwrap_or_else(|| format!("http-{}", status.as_u16()));
    let message = parts.iter().find_map(|part| part[CODES..].iter().find_map(Option::clone));
    let unread = unread(read, &body);
    let message = message.unwrap_or_else(|| match &*body {
        text if text.is_empty() || !unread.is_empty() => format!("HTTP {status}{unread}"),
        text => text.to_owned(),
    });
    let has_code = first_code(PROOFS).is_some();
    Rejection { failure: Failure { code: code.into(), message: message.into() }, has_code, unread }
}

/// Whether a program can use it as a code. `about:blank` is RFC 9457's empty value. [`OUTPUT_TOO_LARGE`] is ours: it
/// means that the effect happened, which no rejection means.
fn is_code(text: &str) -> bool {
    ![OUTPUT_TOO_LARGE, "about:blank"].contains(&text)
        && text.len() <= TEXT_CHARS_MAX
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What the service says about a body that is no text, such as one in another encoding. A few bad bytes are still text.
fn unread(read: &Read, text: &str) -> String {
    let bad = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER || (*c < ' ' && !c.is_ascii_whitespace()));
    if bad.count() * 10 > text.chars().count() {
        format!(", and its body{} cannot be read", read.said())
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;
    use crate::tests::NOW;

    async fn answer(status: u16, body: &[u8], headers: &[(&str, &str)]) -> Answer {
        let response =
            headers.iter().fold(Response::builder().status(status), |of, (name, value)| of.header(*name, *value));
        let response = response.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        answer_to(response, &StatusTable::default(), None, NOW).await
    }

    async fn problem(status: u16, body: &[u8], headers: &[(&str, &str)]) -> String {
        match answer(status, body, headers).await {
            Answer::Retry { problem, .. } | Answer::Unknown { problem, .. } | Answer::Misconfigured { problem, .. } => {
                problem
            }
            other @ (Answer::Done(_) | Answer::Fail(_) | Answer::UnderWay { .. } | Answer::NotCalled { .. }) => {
                panic!("{other:?}")
            }
        }
    }

    /// Error bodies with a code that can be read, and one corner that cannot.
    fn corners() -> Vec<(&'static str, Vec<u8>)> {
        const CODE: &[u8] = br#"{"code":"no_such_customer","message":"#;
        let with = |more: &[u8]| [CODE, more].concat();
        let mut gzip = Vec::new();
        flate2::read::GzEncoder::new(&*with(b"1}"), flate2::Compression::fast()).read_to_end(&mut gzip).unwrap();
        vec![
            ("a cut emoji", with(br#""cut \ud83d"}"#)),
            ("a number beyond all floats", with(b"1e999}")),
            ("a byte order mark", [b"\xef\xbb\xbf", &with(b"1}")[..]].concat()),
            ("a letter in Latin-1", with(b"\"caf\xe9\"}")),
            ("130 levels", with(format!("{}{}}}", "[".repeat(130), "]".repeat(130)).as_bytes())),
            ("a trace over the limit", with(format!("\"{}\"}}", "x".repeat(ANSWER_BYTES_MAX)).as_bytes())),
            ("a body that was cut", with(b"\"cut he")),
            ("gzip", gzip),
            ("a list of errors", [b"{\"errors\":[", &with(b"1e999},7]}")[..]].concat()),
        ]
    }

    #[tokio::test]
    async fn rule_17_a_code_that_can_be_read_is_kept_whatever_else_cannot() {
        for (corner, body) in corners() {
            for status in [422, 404] {
                let Answer::Fail(failure) = answer(status, &body, &[]).await else { panic!("{status}: {corner}") };
                assert_eq!(&*failure.code, "no_such_customer", "{status}: {corner}");
            }
        }
        let Answer::Fail(failure) = answer(422, &corners()[0].1, &[]).await else { panic!("a rejection") };
        assert!(failure.message.starts_with("cut "), "{}", failure.message);
        assert!(matches!(answer(404, b"{\"code\":\"no_such", &[]).await, Answer::Misconfigured { .. }));
    }

    #[tokio::test]
    async fn rule_17_a_success_is_read_as_far_as_it_can_be() {
        for (body, output) in [
            (&b"\xef\xbb\xbf{\"id\":1}"[..], r#"{"id":1}"#),
            (b"{\"id\":1,\"t\":\"caf\xe9\"}", "{\"id\":1,\"t\":\"caf\u{fffd}\"}"),
            (b" {\"id\":1,\"cut\":\"\\ud83d\"} ", "{\"id\":1,\"cut\":\"\\ud83d\"}"),
            (&corners()[7].1, r#"{"code":"no_such_customer","message":1}"#),
        ] {
            let Answer::Done(done) = answer(200, body, &[]).await else { panic!("{output}") };
            assert_eq!(done.text(), output);
        }
    }

    #[tokio::test]
    async fn a_body_that_is_no_json_is_named_with_its_type_its_encoding_and_the_cause() {
        let page = problem(200, b"<html>log in</html>", &[("content-type", "text/html; charset=utf-8")]).await;
        assert!(page.starts_with("HTTP 200 OK, but its body (text/html) is not valid JSON: "), "{page}");
        let packed = problem(200, b"\x0b\x02\x80", &[("content-encoding", "br"), ("content-type", "application/json")]);
        assert!(packed.await.contains("(application/json, Content-Encoding br)"));
        let wide = problem(200, b"\xff\xfe{\0}\0", &[]).await;
        assert!(wide.contains("UTF-16"), "{wide}");
    }

    #[tokio::test]
    async fn rule_17_a_redirect_for_good_is_a_wrong_address_and_its_host_is_told() {
        let to = [("location", "https://user:word-5520@pay.example/v2/do?token=word-5520")];
        for (status, words) in [(301, "301 Moved Permanently"), (308, "308 Permanent Redirect")] {
            assert!(matches!(answer(status, b"", &to).await, Answer::Misconfigured { .. }), "{status}");
            assert_eq!(problem(status, b"", &to).await, format!("HTTP {words}, which leads to pay.example"));
        }
        assert!(matches!(answer(303, b"", &to).await, Answer::Retry { .. }));
        let path = problem(307, b"", &[("location", "/v2/do?token=word-5520")]).await;
        assert_eq!(path, "HTTP 307 Temporary Redirect, which leads to another path");
        assert_eq!(problem(308, b"", &[]).await, "HTTP 308 Permanent Redirect");
    }
}
