//! Texts that are cut to a length.

use std::sync::Arc;

use crate::limits::ERROR_CHARS_MAX;

/// A text cut to [`ERROR_CHARS_MAX`] characters: a remote service may return a long one.
#[must_use]
pub fn shortened(text: &str) -> Arc<str> {
    match cut(text, ERROR_CHARS_MAX) {
        whole if whole.len() == text.len() => text.into(),
        part => format!("{part}…").into(),
    }
}

/// The first `chars_max` characters of a text.
#[must_use]
pub(crate) fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}
