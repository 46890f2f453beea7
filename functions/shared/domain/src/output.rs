//! The limits of a service's answer in a reply.

use crate::json::{Json, JsonError};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::message::{Failure, Outcome};
use crate::task::{Direction, shortened};
use crate::template::Template;

/// Code of the failure if a service's output is larger or nested deeper than a task can hold. It means that the call
/// had its effect, and memos repeat it for good: a refusal must have another code.
pub const OUTPUT_TOO_LARGE: &str = "output-too-large";

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
        JsonError::TooDeep | JsonError::Malformed(_) | JsonError::NotAnObject(_) => {
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

    #[test]
    fn an_undo_whose_output_its_service_found_too_large_is_done() {
        let too_large = || Failure { code: OUTPUT_TOO_LARGE.into(), message: "16 KiB and more".into() };
        assert_eq!(failed(too_large(), Direction::Undo), Outcome::Done(Json::empty()));
        assert_eq!(failed(too_large(), Direction::Forward), Outcome::Failed(too_large()));
        let refused = Failure { code: "no".into(), message: "no".into() };
        assert_eq!(failed(refused.clone(), Direction::Undo), Outcome::Failed(refused));
    }
}
