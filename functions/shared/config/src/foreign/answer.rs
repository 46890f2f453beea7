//! What is kept of an answer, and what is asked of it. Its pointers begin at the root of its body.

use super::expression::Parts;
use super::in_pointer;

const KEPT: &str = "would be kept as this text: a place in the answer begins with a slash, such as \"/id\"";
const KEPT_OF_ORDER: &str = "is looked for in the answer, which has nothing of the order: write a place in the answer, such as \"/id\"; for a \
                             member of the answer with this name, write answer: before the slash";
const KEPT_OF_BODY: &str = "is looked for in the body itself: leave /body out, such as \"/id\"; for a member of the body with this \
                            name, write answer: before the slash";
const KEPT_HEADER: &str = "is looked for in the body: a header is written header:Location, the status answer:status; for a member of \
                           the body with this name, write answer: before the slash";
const KEPT_DOTS: &str = "names one member that has a dot in its name: a member of a member stands behind a slash, such as \
                         \"/charge/id\"; for a name with a dot, write answer: before the slash";
const ASKED_OF_ORDER: &str = "is looked for in the answer, which has nothing of the order: write a place in the answer, such as /status; for \
                              a member of the answer with this name, write at(\"…\") around it";
const ASKED_OF_BODY: &str = "is looked for in the body itself: leave /body out, such as /status; for a member of the body with this name, \
                             write at(\"…\") around it";
const ASKED_HEADER: &str = "is looked for in the body, which alone is asked: the status stands beside `when`, such as status = 200, and no \
                            header is asked; for a member of the body with this name, write at(\"…\") around it";
const ASKED_DOTS: &str = "names one member that has a dot in its name: a member of a member stands behind a slash, such as \
                          /error/code; for a name with a dot, write at(\"…\") around it";
const NO_PLACE: &str = "reads nothing of the answer, so it holds for each or for none: compare a place in the answer, such as \
                        /status == \"paid\"";

/// What is surely meant otherwise by a pointer into an answer.
enum Meant {
    Order,
    Body,
    Header,
    Member,
}

impl Meant {
    fn by(pointer: &str) -> Option<Self> {
        let (root, inner) = pointer.strip_prefix('/')?.split_once('/').map_or((&pointer[1..], ""), |parts| parts);
        let root = root.trim_end_matches('?');
        let is_word =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if ["Order", "OrderID", "Outputs", "IdempotencyKey"].contains(&root) {
            Some(Self::Order)
        } else if root == "body" && !inner.is_empty() {
            Some(Self::Body)
        } else if root.starts_with("header:") || root.starts_with("answer:") || (root == "header" && !inner.is_empty())
        {
            Some(Self::Header)
        } else {
            let is_dotted = inner.is_empty() && root.contains('.') && root.split('.').all(is_word);
            is_dotted.then_some(Self::Member)
        }
    }
}

/// Whether a pointer has dots where slashes are meant, as in `/error.code`.
pub(super) fn names_a_dotted_member(pointer: &str) -> bool {
    matches!(Meant::by(pointer), Some(Meant::Member))
}

/// What is wrong with a text of `keep`.
pub(crate) fn in_kept(text: &str) -> Option<&'static str> {
    // Read already: no other part of an answer can be named.
    if text.starts_with("header:") || text.starts_with("answer:") {
        return None;
    }
    if text.starts_with('/') { in_polled(text) } else { Some(KEPT) }
}

/// What is wrong with a pointer into an answer that is kept, or that a poll needs.
pub(super) fn in_polled(text: &str) -> Option<&'static str> {
    in_pointer(text).or_else(|| {
        Some(match Meant::by(text)? {
            Meant::Order => KEPT_OF_ORDER,
            Meant::Body => KEPT_OF_BODY,
            Meant::Header => KEPT_HEADER,
            Meant::Member => KEPT_DOTS,
        })
    })
}

/// What is wrong with a condition on the body of an answer, and the part of it that is.
pub(crate) fn in_condition(condition: &str) -> Option<(&str, &'static str)> {
    let parts = Parts::of(condition);
    let of_pointer = |pointer: &&'_ str| {
        Some(match Meant::by(pointer)? {
            Meant::Order => ASKED_OF_ORDER,
            Meant::Body => ASKED_OF_BODY,
            Meant::Header => ASKED_HEADER,
            Meant::Member => ASKED_DOTS,
        })
    };
    let wrong = parts.pointers.iter().find_map(|pointer| Some((*pointer, of_pointer(pointer)?)));
    wrong.or_else(|| (!parts.has_place()).then_some((condition, NO_PLACE)))
}
