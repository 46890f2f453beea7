//! Answers of remote services.

use agent::{Answer, OUTPUT_TOO_LARGE};
use agents::StatusTable;
use bytes::Bytes;
use domain::json::Json;
use domain::limits::{ANSWER_BYTES_MAX, TEXT_CHARS_MAX};
use domain::message::Failure;
use domain::output;
use domain::task::Direction;
use domain::template::Template;
use futures_util::FutureExt;
use http::Response;
use http_body_util::Full;

use super::text::Text;
use crate::conformance::samples::NOON;
use crate::world::{Act, World};

/// Whatever a service answers has one of six meanings, and the agent that hears it does not panic.
///
/// The input is a status, headers, and a body.
pub(super) fn run(input: &[u8]) {
    let Some(Text { first, headers, body }) = Text::of(input) else { return };
    let Some(status) = first.trim().parse().ok().filter(|status| (100..=999).contains(status)) else { return };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let Ok(response) = response.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    let (head, whole) = response.into_parts();
    let answer = |keep: Option<&Template>| {
        let response = Response::from_parts(head.clone(), whole.clone());
        agents::answer_to(response, &StatusTable::default(), keep, NOON).now_or_never().expect("all of it is there")
    };
    let keep = serde_json::from_str(r#"{"After":"header:Retry-After?","Text":"answer:text"}"#).expect("a template");
    if let Answer::Done(output) = answer(Some(&keep)) {
        assert!(output::unusable(&output, Some(&keep), Direction::Forward).is_none(), "a text is always there");
    }
    let answer = answer(None);
    check(status, body, &answer);
    let world = World::new();
    world.claimed();
    world.remote.next("reserve", Direction::Forward, Act::Answers(answer));
    world.serve("inventory");
}

fn check(status: u16, body: &[u8], answer: &Answer) {
    match answer {
        Answer::Done(output) => {
            assert!((200..300).contains(&status));
            // What is no UTF-8 grows by its replacement.
            assert_eq!(Json::of_any_depth(output.text().as_bytes(), 3 * ANSWER_BYTES_MAX).as_ref(), Ok(output));
            let is_as_it_came = std::str::from_utf8(body).is_ok_and(|body| !body.trim_start().starts_with('\u{feff}'));
            assert!(!is_as_it_came || body.trim_ascii().is_empty() || body.trim_ascii() == output.text().as_bytes());
        }
        Answer::Retry { after_ms, problem } => {
            assert!(may_work_later(status), "{status}");
            check_wait(*after_ms, problem);
        }
        Answer::Unknown { after_ms, problem } => {
            assert!(may_work_later(status) || (200..300).contains(&status), "{status}");
            check_wait(*after_ms, problem);
        }
        Answer::NotCalled { .. } => panic!("it was called"),
        Answer::UnderWay { unless_alone: None, .. } => assert_eq!(status, 202),
        Answer::UnderWay { unless_alone: Some(failure), .. } => {
            assert!([409, 423].contains(&status));
            check_failure(failure);
        }
        Answer::Misconfigured { after_ms, problem } => {
            assert!([301, 308, 401, 403, 404, 405, 407, 410, 421].contains(&status), "{status}");
            check_wait(*after_ms, problem);
        }
        Answer::Fail(failure) => {
            assert!(!may_work_later(status), "{status}");
            let had_effect = *failure.code == *OUTPUT_TOO_LARGE;
            assert_eq!(had_effect, (200..300).contains(&status), "only a success can be too large");
            check_failure(failure);
        }
    }
}

fn may_work_later(status: u16) -> bool {
    !(200..500).contains(&status) || (300..400).contains(&status) || [408, 425, 429].contains(&status)
}

fn check_wait(after_ms: Option<u64>, problem: &str) {
    assert!(after_ms.is_none_or(|ms| ms % 1_000 == 0 || ms == u64::MAX));
    assert!(problem.starts_with("HTTP "), "{problem}");
}

fn check_failure(failure: &Failure) {
    assert!((1..=TEXT_CHARS_MAX).contains(&failure.code.len()), "{failure:?}");
    assert!(failure.code.bytes().all(|byte| byte.is_ascii_graphic()), "{failure:?}");
    assert!(!failure.message.is_empty(), "{failure:?}");
}
