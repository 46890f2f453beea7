//! The header `Idempotency-Key`.

use std::borrow::Cow;

use domain::limits::IDEMPOTENCY_KEY_CHARS_MAX;
use http::HeaderMap;

use crate::problem::Problem;

const NAME: &str = "Idempotency-Key";

/// The caller's key, if there is one. `"abc"`, the form of the IETF's draft, is the same key as `abc`.
///
/// # Errors
/// [`Problem::Invalid`] if it is given twice, is empty, is too long, or has characters other than visible ASCII.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, Problem> {
    let mut given = headers.get_all(NAME).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(Problem::header(NAME, "is given more than once"));
    }
    let text = value.as_bytes();
    if !text.iter().all(u8::is_ascii_graphic) {
        return Err(Problem::header(NAME, "may have visible ASCII characters only"));
    }
    let key = match std::str::from_utf8(text) {
        Ok(text) if text.starts_with('"') => unquoted(text).map(Cow::Owned),
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) => None,
    };
    let key = key.ok_or_else(|| Problem::header(NAME, "is neither a plain key nor a quoted string"))?;
    if key.is_empty() {
        return Err(Problem::header(NAME, "is empty"));
    }
    if key.len() > IDEMPOTENCY_KEY_CHARS_MAX {
        return Err(Problem::header(NAME, format!("is longer than {IDEMPOTENCY_KEY_CHARS_MAX} characters")));
    }
    Ok(Some(key))
}

/// The value of a string of structured fields (RFC 9651): quotes off, `\"` and `\\` resolved.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return None,
            '\\' => plain.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn key(values: &[&str]) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let key = idempotency_key(&headers).map(|key| key.map(Cow::into_owned));
        key.map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_key_may_be_plain_or_quoted() {
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&["abc"]), Ok(Some("abc".to_owned())));
        assert_eq!(key(&["\"abc\""]), Ok(Some("abc".to_owned())));
        assert_eq!(key(&[r#""a\"b\\c""#]), Ok(Some(r#"a"b\c"#.to_owned())));
        assert_eq!(key(&["\u{61}'#!~"]), Ok(Some("a'#!~".to_owned())));
    }

    #[test]
    fn a_key_has_1_to_255_characters_quotes_not_counted() {
        let longest = "k".repeat(255);
        assert_eq!(key(&[&longest]), Ok(Some(longest.clone())));
        assert_eq!(key(&[&format!("\"{longest}\"")]), Ok(Some(longest.clone())));
        for wrong in [String::new(), "\"\"".to_owned(), format!("{longest}k"), format!("\"{longest}k\"")] {
            assert!(key(&[&wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_single_visible_key_is_refused() {
        for wrong in ["a b", "a\tb", "schlüssel", "\"", "\"a", "\"a\"b\"", r#""a\""#, r#""a\n""#, "\"a\";v=1"] {
            assert!(key(&[wrong]).is_err(), "{wrong}");
        }
        assert!(key(&["a", "a"]).is_err());
    }
}
