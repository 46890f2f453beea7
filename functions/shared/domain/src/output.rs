//! What of a service's answer may be stored, and its limits.

use crate::json::{Json, JsonError};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::message::{Failure, Outcome};
use crate::task::{Direction, shortened};
use crate::template::Template;

/// Code of the failure if a service's output is larger or nested deeper than a task can hold. It means that the call
/// had its effect, and memos repeat it for good: a refusal must have another code.
pub const OUTPUT_TOO_LARGE: &str = "output-too-large";

/// Why an answer of success is none: a step that keeps nothing of it goes on without what the next one needs, and a stored
/// output has one reading (rule 16). The output of an undo is not needed.
#[must_use]
pub fn unusable(output: &Json, keep: Option<&Template>, direction: Direction) -> Option<String> {
    match (direction, keep) {
        (Direction::Undo, _) => None,
        (Direction::Forward, Some(keep)) => keep.missing_in(output),
        (Direction::Forward, None) => match output.check_unique() {
            Err(error @ JsonError::Repeated(_)) => Some(format!("its output is {error}")),
            // The limits are those of [`done`].
            Ok(()) | Err(_) => None,
        },
    }
}

/// The outcome for an output: the part that the workflow keeps, or a failure if that exceeds the limits. The check is
/// here and not at the reader, since an author may build an output of any size. The output of an undo is not needed, so
/// one that exceeds the limits is left out: it must not fail an undo that was done.
#[must_use]
pub fn done(output: Json, keep: Option<&Template>, direction: Direction) -> Outcome {
    let kept = match keep {
        Some(keep) => keep.keep(&output, OUTPUT_BYTES_MAX).map_err(|error| error.to_string()),
        None => output.fits(OUTPUT_BYTES_MAX).map(|()| output).map_err(|error| message_of(&error)),
    };
    match (kept, direction) {
        (Ok(output), Direction::Undo) if output.check_unique().is_err() => Outcome::Done(Json::empty()),
        (Ok(output), _) => Outcome::Done(output),
        (Err(_), Direction::Undo) => Outcome::Done(Json::empty()),
        (Err(message), Direction::Forward) => {
            Outcome::Failed(Failure { code: OUTPUT_TOO_LARGE.into(), message: message.into() })
        }
    }
}

/// The outcome for a failure. Its texts are shortened, since a remote service may return long ones. A failure with the
/// code of an excessive output means that the call had its effect, so an undo was done.
#[must_use]
pub fn failed(failure: Failure, direction: Direction) -> Outcome {
    let Failure { code, message } = failure;
    if direction == Direction::Undo && *code == *OUTPUT_TOO_LARGE {
        return Outcome::Done(Json::empty());
    }
    Outcome::Failed(Failure { code: shortened(&code), message: shortened(&message) })
}

fn message_of(error: &JsonError) -> String {
    match error {
        JsonError::TooLarge { bytes, bytes_max } => {
            format!("the service's output has {bytes} bytes, which is over the limit of {bytes_max}")
        }
        JsonError::TooDeep | JsonError::Malformed(_) | JsonError::NotAnObject(_) | JsonError::Repeated(_) => {
            format!("the service's output is {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::ERROR_CHARS_MAX;

    use super::*;

    fn code_of(code: &str) -> String {
        match failed(Failure { code: code.into(), message: "no".into() }, Direction::Forward) {
            Outcome::Failed(failure) => failure.code.to_string(),
            other @ (Outcome::Done(_) | Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_)) => {
                panic!("{other:?}")
            }
        }
    }

    #[test]
    fn a_code_is_kept_as_it_is_up_to_the_limit_and_none_is_a_novel() {
        let longest = "c".repeat(ERROR_CHARS_MAX);
        assert_eq!(code_of(&longest), longest);
        let novel = code_of(&"c".repeat(100_000));
        assert!(novel.chars().count() <= ERROR_CHARS_MAX + 1, "{}", novel.len());
    }

    fn parsed(text: &str) -> Json {
        Json::of_any_depth(text.as_bytes(), 1 << 20).unwrap()
    }

    fn fault(answer: &str, keep: Option<&str>) -> Option<String> {
        let keep = keep.map(|keep| serde_json::from_str(keep).unwrap());
        unusable(&parsed(answer), keep.as_ref(), Direction::Forward)
    }

    #[test]
    fn rule_16_a_success_in_which_keep_finds_nothing_is_no_answer_and_the_place_is_named() {
        for keep in [r#"{"ID":"/id"}"#, r#"{"ID":"/id","More":["/more?"],"Fixed":7}"#, r#""/id""#] {
            for answer in ["{}", r#"{"ID":1}"#, "null", "[]", "7"] {
                assert!(fault(answer, Some(keep)).is_some_and(|fault| fault.contains("/id")), "{keep} {answer}");
            }
            assert_eq!(fault(r#"{"id":null}"#, Some(keep)), None, "null is a value");
        }
        let both = fault("{}", Some(r#"{"ID":"/id","More":"/more"}"#));
        assert_eq!(both.as_deref(), Some("it has nothing at /id and /more, which `keep` needs"));
        assert!(fault(r#"{"id":"x"}"#, Some(r#"{"ID":"/id","More":"/more"}"#)).is_some(), "a part of it is there");
        for keep in [None, Some("{}"), Some(r#"{"Fixed":7}"#), Some(r#"{"ID":"/id?"}"#)] {
            assert_eq!(fault("{}", keep), None, "nothing is needed");
        }
        let keep: Template = serde_json::from_str(r#"{"ID":"/id"}"#).unwrap();
        assert_eq!(unusable(&parsed("{}"), Some(&keep), Direction::Undo), None);
    }

    #[test]
    fn rule_16_an_output_has_one_reading_and_what_is_not_kept_spoils_none() {
        let answer = r#"{"id":1,"id":2,"ok":{"a":1},"in":{"b":1,"b":2}}"#;
        assert!(fault(answer, None).is_some_and(|fault| fault.contains("is there twice")));
        assert!(fault(answer, Some(r#"{"ID":"/id"}"#)).is_some_and(|fault| fault.contains("/id")));
        assert!(fault(answer, Some(r#"{"In":"/in"}"#)).is_some_and(|fault| fault.contains("/In/b")));
        assert_eq!(fault(answer, Some(r#"{"OK":"/ok"}"#)), None);
        assert_eq!(done(parsed(answer), None, Direction::Undo), Outcome::Done(Json::empty()));
    }

    #[test]
    fn f56_what_is_kept_has_the_limits_and_not_the_answer_around_it() {
        let deep = parsed(&format!("{{\"id\":7,\"trace\":{}{}}}", "[".repeat(130), "]".repeat(130)));
        let keep: Template = serde_json::from_str(r#"{"ID":"/id"}"#).unwrap();
        assert_eq!(done(deep.clone(), Some(&keep), Direction::Forward), Outcome::Done(parsed(r#"{"ID":7}"#)));
        assert!(
            matches!(done(deep, None, Direction::Forward), Outcome::Failed(failure) if *failure.code == *OUTPUT_TOO_LARGE)
        );
    }

    #[test]
    fn an_undo_whose_output_its_service_found_too_large_is_done() {
        let too_large = || Failure { code: OUTPUT_TOO_LARGE.into(), message: "16 KiB and more".into() };
        assert_eq!(failed(too_large(), Direction::Undo), Outcome::Done(Json::empty()));
        assert_eq!(failed(too_large(), Direction::Forward), Outcome::Failed(too_large()));
        let refused = Failure { code: "no".into(), message: "no".into() };
        assert_eq!(failed(refused.clone(), Direction::Undo), Outcome::Failed(refused));
    }
}
