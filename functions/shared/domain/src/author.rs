//! Who did something: the name that a person typed, and the caller that the host authenticated (rule 42).
//!
//! Both are one text, so that every record and message has both: `ada [night-desk]`. Nobody can type the second part.

use std::sync::Arc;

use crate::limits::{CALLER_CHARS_MAX, TEXT_CHARS_MAX};
use crate::order::UNAUTHENTICATED;
use crate::text::cut;

/// Longest text of both, in characters.
pub const CHARS_MAX: usize = TEXT_CHARS_MAX + CALLER_CHARS_MAX + " []".len();

/// The typed name, with the caller beside it if the caller is known.
#[must_use]
pub fn signed(by: Arc<str>, caller: &str) -> Arc<str> {
    match UNAUTHENTICATED.contains(&caller) {
        true => by,
        false => format!("{by} [{}]", plain(caller)).into(),
    }
}

/// A caller as it is written beside a name: the subject of a token may have any characters.
#[must_use]
pub fn plain(caller: &str) -> String {
    cut(caller, CALLER_CHARS_MAX).replace(['[', ']'], "_")
}

/// Whether a person may type this name. Otherwise it could look as if it had a caller, or like another line.
#[must_use]
pub fn may_be_typed(by: &str) -> bool {
    !by.contains(|sign: char| sign == ']' || sign.is_control())
}

/// The typed name, and the caller if it is known.
#[must_use]
pub fn parts(author: &str) -> (&str, Option<&str>) {
    let both = author.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["));
    both.map_or((author, None), |(by, caller)| (by, Some(caller)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_caller_is_beside_the_typed_name_and_nobody_can_type_one() {
        for (by, caller, author, known) in [
            ("ada", "night-desk", "ada [night-desk]", Some("night-desk")),
            ("ada", "local", "ada", None),
            ("ada", "anonymous", "ada", None),
            ("ada [x", "bob", "ada [x [bob]", Some("bob")),
            ("ada", "eve] [bob", "ada [eve_ _bob]", Some("eve_ _bob")),
        ] {
            assert!(may_be_typed(by), "{by}");
            assert_eq!(&*signed(by.into(), caller), author);
            assert_eq!(parts(author), (by, known));
        }
        let longest = signed("é".repeat(TEXT_CHARS_MAX).into(), &"é".repeat(CALLER_CHARS_MAX + 1));
        assert_eq!(longest.chars().count(), CHARS_MAX);
        for by in ["ada [bob]", "ada]", "ada [bob] x", "ada\n", "a\u{9b}da"] {
            assert!(!may_be_typed(by), "{by}");
        }
    }
}
