//! What can be read of a text that is JSON in parts alone: an error body that was cut, or that has a number which no program
//! holds. One unreadable part must not take the rest with it.

use std::borrow::Cow;
use std::ffi::CString;

use crate::tokens::{Tokens, is_plain, literal_text};

/// The texts of these members of an object, found in one pass; of a repeated member the last one.
#[must_use]
pub fn members<'a, const N: usize>(text: &'a str, names: [&str; N]) -> [Option<&'a str>; N] {
    let mut found = [None; N];
    // Most documents have none of them. An escape may spell a name in another way.
    let may_have = text.contains('\\') || names.iter().any(|name| text.contains(name));
    if may_have && text.starts_with('{') {
        Tokens::of(text).members(|tokens, key| {
            let value = tokens.value();
            let key = literal_text(key);
            for (name, found) in names.iter().zip(&mut found) {
                if key.as_deref() == Some(name) {
                    *found = Some(value);
                }
            }
        });
    }
    found
}

/// The text of a string literal. U+FFFD stands for what is no text, such as the half of a cut emoji.
#[must_use]
pub fn lossy_text(literal: &str) -> Option<String> {
    let is_whole = literal.len() >= 2 && literal.starts_with('"') && literal.ends_with('"');
    let bytes = is_whole.then(|| bytes_of(literal))??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes of a string literal. A lone surrogate is no text, and has bytes all the same.
pub(super) fn bytes_of(literal: &str) -> Option<Cow<'_, [u8]>> {
    if is_plain(literal) {
        return literal.get(1..literal.len() - 1).map(|text| Cow::Borrowed(text.as_bytes()));
    }
    // The parser gives bytes to no other type of the standard library, and this one has no zero.
    let bytes = serde_json::from_str::<CString>(&literal.replace("\\u0000", "\\ue000"));
    bytes.ok().map(|bytes| Cow::Owned(bytes.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_in_a_text_that_is_json_in_parts_alone() {
        let found = |text: &'static str| members(text, ["code"])[0].and_then(lossy_text);
        for text in [
            r#"{"code":"no_stock","limit":1e999}"#,
            r#"{"cut":"\ud83d","code":"no_stock"}"#,
            r#"{"code":"no_stock","trace":"cut he"#,
            r#"{"code":"no_stock","trace":[[{"#,
        ] {
            assert_eq!(found(text).as_deref(), Some("no_stock"), "{text}");
        }
        for text in [r#"{"code":"no_st"#, r#"{"code":7}"#, r#"["code"]"#, "<h1>code</h1>", "{\"code\":\""] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(lossy_text(r#""cut \ud83d""#).as_deref(), Some("cut \u{fffd}\u{fffd}\u{fffd}"));
    }
}
