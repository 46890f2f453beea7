//! Answers of remote services.

use agent::{Answer, OUTPUT_TOO_LARGE};
use bytes::Bytes;
use domain::json::Json;
use domain::limits::{ERROR_CHARS_MAX, OUTPUT_BYTES_MAX, TEXT_CHARS_MAX};
use domain::task::Direction;
use futures_util::FutureExt;
use http::Response;
use http_body_util::Full;

use super::text::Text;
use crate::conformance::samples::NOON;
use crate::world::{Act, World};

/// Whatever a service answers means one of three things, and the agent that hears it does not panic.
///
/// The input is a status, headers, and a body.
pub(super) fn run(input: &[u8]) {
    let Some(Text { first, headers, body }) = Text::of(input) else { return };
    let Some(status) = first.trim().parse().ok().filter(|status| (100..=599).contains(status)) else { return };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let Ok(response) = response.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    let answer = agents::answer_to(response, NOON).now_or_never().expect("all of it is there");
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
            assert_eq!(Json::parse(output.text().as_bytes(), OUTPUT_BYTES_MAX).as_ref(), Ok(output));
            assert!(body.trim_ascii().is_empty() || body.trim_ascii() == output.text().as_bytes());
        }
        Answer::Retry { after_ms, problem } => {
            let may_work_later = status >= 500 || (300..400).contains(&status) || [408, 425, 429].contains(&status);
            assert!(may_work_later || (200..300).contains(&status), "{status}");
            assert!(after_ms.is_none() || may_work_later);
            assert!(problem.starts_with("HTTP "), "{problem}");
        }
        Answer::Fail(failure) => {
            let says_no = status < 500 && !(300..400).contains(&status) && ![408, 425, 429].contains(&status);
            assert!(says_no, "{status}");
            let had_effect = *failure.code == *OUTPUT_TOO_LARGE;
            assert_eq!(had_effect, (200..300).contains(&status), "only a success can be too large");
            assert!((1..=TEXT_CHARS_MAX).contains(&failure.code.len()), "{failure:?}");
            assert!(failure.code.bytes().all(|byte| byte.is_ascii_graphic()), "{failure:?}");
            assert!((1..=ERROR_CHARS_MAX + 1).contains(&failure.message.chars().count()), "{failure:?}");
        }
    }
}
