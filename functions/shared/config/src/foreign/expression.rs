//! The parts of an expression that was read: its pointers, and its texts in quotes.

use super::{ROOTS, is_foreign};

const QUOTED: &str = "stands for itself, as a text in quotes: a value is a pointer without quotes, such as /Order/Country. If the \
                      text itself is meant, join it of two with +";
const ALWAYS: &str =
    "is the same for each order: compare a place of it, such as /Order/Country == \"DE\", or leave it out";
const TIME: &str = "is joined to the value as a text: a time span has no quotes, such as /SubmittedAt + 30d. If the text itself is \
                    meant, join it of two with +";

/// What stands in an expression.
pub(super) struct Parts<'t> {
    /// The pointers, as they are written. Those of `at("…")` are texts.
    pub(super) pointers: Vec<&'t str>,
    /// The texts in quotes, each with what stands before it.
    pub(super) texts: Vec<(&'t str, &'t str)>,
}

impl<'t> Parts<'t> {
    /// No pointer has a quote, and no text has an escape. So a quote always begins or ends a text.
    pub(super) fn of(expression: &'t str) -> Self {
        let (mut pointers, mut texts, mut rest) = (Vec::new(), Vec::new(), expression);
        loop {
            let at = rest.find(['"', '\'']).unwrap_or(rest.len());
            let (bare, quoted) = rest.split_at(at);
            let words = bare.split(|sign: char| sign.is_whitespace() || "(),[]".contains(sign));
            let words = words.map(|word| word.trim_start_matches('-'));
            pointers.extend(words.filter(|word| word.len() > 1 && word.starts_with('/')));
            let inner = quoted.get(1..).and_then(|inner| inner.split_once(&quoted[..1]));
            let Some((text, after)) = inner else { return Self { pointers, texts } };
            texts.push((bare, text));
            rest = after;
        }
    }

    /// Whether it names a position.
    pub(super) fn has_place(&self) -> bool {
        !self.pointers.is_empty() || self.texts.iter().any(|(before, _)| is_at(before))
    }
}

/// Whether a text behind this is that of `at("…")`: a pointer.
pub(super) fn is_at(before: &str) -> bool {
    before.trim_end().strip_suffix('(').is_some_and(|before| before.trim_end().ends_with("at"))
}

/// Why a condition of a step does not depend on the order.
pub(crate) fn in_when(condition: &str) -> Option<&'static str> {
    (!Parts::of(condition).has_place()).then_some(ALWAYS)
}

/// The text in quotes that is surely meant otherwise, and what to write.
pub(crate) fn in_expression(expression: &str) -> Option<(&str, &'static str)> {
    let problem = |(before, text): (&str, &str)| match () {
        () if is_at(before) => None,
        () if is_time_span(text) && follows_a_pointer(before) => Some(TIME),
        () if is_pointer(text) || (!text.starts_with('/') && is_foreign(text)) => Some(QUOTED),
        () => None,
    };
    Parts::of(expression).texts.into_iter().find_map(|(before, text)| Some((text, problem((before, text))?)))
}

/// Whether a text is a place of the order, and not the beginning of a path such as `"/Order/"`.
fn is_pointer(text: &str) -> bool {
    let Some((root, inner)) = text.strip_prefix('/').map(|text| text.split_once('/').unwrap_or((text, ""))) else {
        return false;
    };
    let has_members = ["Order", "Outputs"].contains(&root);
    ROOTS.contains(&root) && !text.ends_with('/') && has_members != inner.is_empty()
}

fn is_time_span(text: &str) -> bool {
    let unit = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    unit.len() < text.len() && ["s", "m", "h", "d", "w"].contains(&unit)
}

/// Whether a text behind this is added to a pointer.
fn follows_a_pointer(before: &str) -> bool {
    let added_to = before.trim_end().strip_suffix('+');
    added_to.is_some_and(|text| text.split_whitespace().next_back().is_some_and(|word| word.starts_with('/')))
}
