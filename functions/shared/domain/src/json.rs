//! JSON kept as it was written: documents and outputs pass through unchanged, numbers digit for digit.

mod partial;
mod repeated;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::limits::{DOCUMENT_BYTES_MAX, NESTING_MAX};
use crate::tokens::{Tokens, is_plain, literal_text};
pub use partial::{lossy_text, members};

/// The byte order mark in UTF-8. Some programs write it before JSON, and it says nothing.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A JSON value as its text. Cloning it copies a pointer.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// Why a text is refused as a value or document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON; the text has the position.
    #[error("not valid JSON: {0}")]
    Malformed(String),
    /// Larger than the limit, in bytes.
    #[error("{bytes} bytes, which is over the limit of {bytes_max}")]
    TooLarge {
        /// Size of the text.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Nested deeper than [`NESTING_MAX`].
    #[error("nested deeper than {NESTING_MAX} levels")]
    TooDeep,
    /// JSON, but not an object.
    #[error("must be a JSON object, got {0}")]
    NotAnObject(&'static str),
    /// An object has a member twice; the text is its place, a JSON pointer.
    #[error("ambiguous: {0} is there twice")]
    Repeated(String),
}

impl Json {
    /// Takes any JSON value of at most `bytes_max` bytes, such as a stored one.
    ///
    /// # Errors
    /// [`JsonError`] if the text is too large, too deep or not JSON.
    pub fn parse(text: &[u8], bytes_max: usize) -> Result<Self, JsonError> {
        fits(text, bytes_max)?;
        Self::of_any_depth(text, bytes_max)
    }

    /// The same at any depth, for a value of which only a part is kept.
    ///
    /// # Errors
    /// [`JsonError`] if the text is too large or not JSON.
    pub fn of_any_depth(text: &[u8], bytes_max: usize) -> Result<Self, JsonError> {
        if text.len() > bytes_max {
            return Err(JsonError::TooLarge { bytes: text.len(), bytes_max });
        }
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let raw: Box<RawValue> = serde_json::from_slice(text).map_err(|error| malformed(text, &error))?;
        Ok(Self(raw.into()))
    }

    /// Takes a value from outside that everybody reads alike: no object in it has a member twice.
    ///
    /// # Errors
    /// [`JsonError`] if the text is too large, too deep, not JSON or ambiguous.
    pub fn received(text: &[u8], bytes_max: usize) -> Result<Self, JsonError> {
        let json = Self::of_any_depth(text, bytes_max)?;
        json.check_unique()?;
        Ok(json)
    }

    /// Takes an order document: a JSON object of at most [`DOCUMENT_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`JsonError`] as of [`Json::received`], or if it is not an object.
    pub fn document(text: &[u8]) -> Result<Self, JsonError> {
        let json = Self::received(text, DOCUMENT_BYTES_MAX)?;
        match json.kind() {
            "an object" => Ok(json),
            other => Err(JsonError::NotAnObject(other)),
        }
    }

    /// Writes any serializable value as JSON.
    ///
    /// # Panics
    /// Never for the values of this crate: their keys are strings and their numbers finite.
    pub fn of(value: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(raw.into())
    }

    /// `{}`
    #[must_use]
    pub fn empty() -> Self {
        Self::of(&std::collections::BTreeMap::<&str, &str>::new())
    }

    /// The text, as it was sent.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The type of this value, with its article, for error messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.text().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// The texts of these members of an object, found in one pass; of a repeated member the last one.
    #[must_use]
    pub fn members<const N: usize>(&self, names: [&str; N]) -> [Option<&str>; N] {
        members(self.text(), names)
    }

    /// The text of the member `name` of an object; the last one if it is repeated.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&str> {
        let [found] = self.members([name]);
        found
    }

    /// Checks that it has at most `bytes_max` bytes and [`NESTING_MAX`] levels, as [`Json::parse`] does.
    ///
    /// # Errors
    /// [`JsonError`] if it is too large or too deep.
    pub fn fits(&self, bytes_max: usize) -> Result<(), JsonError> {
        fits(self.text().as_bytes(), bytes_max)
    }

    /// Checks that it has at most [`NESTING_MAX`] levels, and no member twice: stored, it must have one reading.
    ///
    /// # Errors
    /// [`JsonError`] if it is too deep or ambiguous.
    pub fn check_unique(&self) -> Result<(), JsonError> {
        repeated::check(self.text())
    }

    /// The value as the parser has it.
    pub(crate) fn raw(&self) -> &RawValue {
        &self.0
    }

    /// A value built from parts of others.
    pub(crate) fn of_raw(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }

    /// SHA-256 of the canonical form, in hexadecimal: members sorted by name, no white space, numbers as written.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut canonical = String::with_capacity(self.text().len());
        canonicalize(&mut Tokens::of(self.text()), &mut canonical);
        let digest = Sha256::digest(canonical.as_bytes());
        let mut hex = String::with_capacity(64);
        for byte in digest {
            hex.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            hex.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        hex
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer)?.into()))
    }
}

/// What is wrong with a text, with the encodings that are meant most often.
fn malformed(text: &[u8], error: &serde_json::Error) -> JsonError {
    let cause = match text {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [_, 0, ..] | [0, _, ..] => {
            "it is UTF-16 or UTF-32; send UTF-8".to_owned()
        }
        [0x1f, 0x8b, ..] => "it is compressed by gzip".to_owned(),
        _ => match std::str::from_utf8(text) {
            Ok(_) => error.to_string(),
            Err(error) => format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1),
        },
    };
    JsonError::Malformed(cause)
}

fn fits(text: &[u8], bytes_max: usize) -> Result<(), JsonError> {
    if text.len() > bytes_max {
        return Err(JsonError::TooLarge { bytes: text.len(), bytes_max });
    }
    if nesting(text) > NESTING_MAX {
        return Err(JsonError::TooDeep);
    }
    Ok(())
}

/// Levels of nesting in a JSON text; any number for a malformed text. One pass without recursion, since a parser that
/// keeps raw values does not bound their depth.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in text {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A whole number in JSON; `25.0` is one, too.
///
/// # Errors
/// Those of the format, and one for a number that is negative, not whole, or too large for the type.
pub fn whole_number<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    struct Whole;
    impl Visitor<'_> for Whole {
        type Value = u64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number")
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }
        fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
            // Above this, not every whole number is a float.
            const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
            let is_whole = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
            let unlike = || E::invalid_value(de::Unexpected::Float(number), &self);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, and in between")]
            is_whole.then_some(number as u64).ok_or_else(unlike)
        }
    }
    let number = deserializer.deserialize_any(Whole)?;
    T::try_from(number).map_err(|_| de::Error::custom(format_args!("{number} is too large")))
}

/// The text of a string literal; `None` for one that stands for no text (a lone surrogate).
pub(crate) fn key_text(literal: &RawValue) -> Option<Cow<'_, str>> {
    literal_text(literal.get())
}

/// Passes over the next value. [`NESTING_MAX`] bounds the depth of everything that [`Json::parse`] took.
fn canonicalize(tokens: &mut Tokens<'_>, into: &mut String) {
    match tokens.first() {
        Some(b'{') => {
            into.push('{');
            let begin = into.len();
            let mut members = Vec::new();
            tokens.members(|tokens, key| {
                let key = canonical_string(key);
                if !members.is_empty() {
                    into.push(',');
                }
                let begin = into.len();
                into.push_str(&key);
                into.push(':');
                canonicalize(tokens, into);
                members.push((key, begin..into.len()));
            });
            let is_earlier = |one: &(Cow<'_, str>, _), other: &(Cow<'_, str>, _)| one.0 <= other.0;
            if !members.is_sorted_by(is_earlier) {
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                let sorted: Vec<&str> = members.into_iter().filter_map(|(_, range)| into.get(range)).collect();
                let sorted = sorted.join(",");
                into.truncate(begin);
                into.push_str(&sorted);
            }
            into.push('}');
        }
        Some(b'[') => {
            into.push('[');
            tokens.elements(|tokens, place| {
                if place > 0 {
                    into.push(',');
                }
                canonicalize(tokens, into);
            });
            into.push(']');
        }
        Some(b'"') => into.push_str(&canonical_string(tokens.value())),
        _ => into.push_str(tokens.value()),
    }
}

/// One spelling for each string, with whatever escapes it was sent.
fn canonical_string(literal: &str) -> Cow<'_, str> {
    if is_plain(literal) {
        return Cow::Borrowed(literal);
    }
    let spelled = literal_text(literal).and_then(|text| serde_json::to_string(&text).ok());
    spelled.map_or(Cow::Borrowed(literal), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> Json {
        Json::parse(text.as_bytes(), DOCUMENT_BYTES_MAX).unwrap()
    }

    fn fingerprint(text: &str) -> String {
        stored(text).fingerprint()
    }

    #[test]
    fn a_document_keeps_its_text_digit_for_digit() {
        let text = r#"{ "Total": 10000000000000000000000.10, "e": 1E400, "n": -0 }"#;
        let document = Json::document(text.as_bytes()).unwrap();
        assert_eq!(document.text(), text);
        let again: Json = serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
        assert_eq!(again.text(), text);
    }

    #[test]
    fn order_of_members_spaces_and_escapes_do_not_change_the_fingerprint() {
        assert_eq!(
            fingerprint(r#"{"a":1,"b":[true,{"c":"\u00e9","d":null}]}"#),
            fingerprint("{ \"b\" : [ true , {\"d\":null, \"c\":\"é\"} ],\n \"a\": 1 }")
        );
    }

    #[test]
    fn other_values_digits_or_repeated_members_do() {
        let base = fingerprint(r#"{"a":1}"#);
        for other in [r#"{"a":1.0}"#, r#"{"a":"1"}"#, r#"{"a":1,"a":1}"#, r#"{"b":1}"#, r#"{"a":[1]}"#] {
            assert_ne!(base, fingerprint(other), "{other}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_json_and_has_a_fingerprint() {
        assert_ne!(fingerprint(r#"{"a":"\ud800"}"#), fingerprint(r#"{"a":"\ud801"}"#));
    }

    #[test]
    fn only_an_object_is_a_document() {
        for (text, kind) in
            [("[]", "an array"), ("\"x\"", "a string"), ("1", "a number"), ("null", "null"), (" true", "a boolean")]
        {
            assert_eq!(Json::document(text.as_bytes()), Err(JsonError::NotAnObject(kind)));
        }
        assert!(matches!(Json::document(b"{\"a\":"), Err(JsonError::Malformed(_))));
        assert!(matches!(Json::document(b"{\"a\":\"\xff\"}"), Err(JsonError::Malformed(_))));
        assert!(matches!(Json::document(b"{} {}"), Err(JsonError::Malformed(_))));
    }

    #[test]
    fn a_document_has_one_reading() {
        let twice = |place: &str| Err(JsonError::Repeated(place.to_owned()));
        assert_eq!(Json::document(br#"{"Total":5000,"Tot\u0061l":10}"#), twice("/Total"));
        assert_eq!(Json::document(br#"{"Lines":[{"Sku":1,"Sku":1}]}"#), twice("/Lines/0/Sku"));
        assert!(Json::document(br#"{"Lines":[{"Sku":1},{"Sku":1}]}"#).is_ok());
    }

    #[test]
    fn a_byte_order_mark_says_nothing_and_another_encoding_is_named() {
        let document = Json::document(b"\xef\xbb\xbf {\"a\":1}").unwrap();
        assert_eq!(document.text(), r#"{"a":1}"#);
        for (text, words) in [
            (&b"\xff\xfe{\x00}\x00"[..], "UTF-16"),
            (b"{\x00}\x00", "UTF-16"),
            (b"\x00{\x00}", "UTF-16"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"{\"a\":\"caf\xe9\"}", "not UTF-8 from byte 10 on"),
        ] {
            let error = Json::document(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(DOCUMENT_BYTES_MAX));
        assert!(matches!(Json::document(large.as_bytes()), Err(JsonError::TooLarge { .. })));
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(Json::document(nested(NESTING_MAX).as_bytes()).is_ok());
        assert_eq!(Json::document(nested(NESTING_MAX + 1).as_bytes()), Err(JsonError::TooDeep));
        let brackets_in_text = format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(NESTING_MAX * 2));
        assert!(Json::document(brackets_in_text.as_bytes()).is_ok());
    }

    #[test]
    fn a_member_is_found_by_name() {
        let document = stored(r#"{"a":1,"b":{"c":2},"a":3}"#);
        assert_eq!(document.member("a"), Some("3"));
        assert_eq!(document.member("b"), Some(r#"{"c":2}"#));
        assert_eq!(document.members(["c", "b", "a"]), [None, Some(r#"{"c":2}"#), Some("3")]);
        let spelled = Json::document(br#"{"\u0061bc": {"\u0064":2}}"#).unwrap();
        assert_eq!(["abc", "d"].map(|name| spelled.member(name)), [Some(r#"{"\u0064":2}"#), None]);
    }

    #[test]
    fn the_fingerprint_is_that_of_the_canonical_text_for_ever() {
        // The values of `sha256sum` for `{}` and `{"a":"x","b":[1,2]}`: stored orders are recognised by them.
        assert_eq!(fingerprint(" { }"), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(
            fingerprint(r#"{ "b": [ 1, 2 ], "a": "x" }"#),
            "721ef82f2d6c0997bffb7a8ab3f40f8fb45b0b52ce2af3afa6b0f05efbdc317f"
        );
    }

    #[test]
    fn values_side_by_side_are_not_deep() {
        let many = format!("{{\"a\":[{}[]]}}", "{},".repeat(NESTING_MAX * 2));
        assert!(Json::document(many.as_bytes()).is_ok());
    }

    #[test]
    fn two_values_are_the_same_when_their_texts_are_and_logs_show_the_text() {
        let of = |text: &str| Json::document(text.as_bytes()).unwrap();
        assert_eq!(of(r#"{"a":1}"#), of(r#"{"a":1}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_eq!(format!("{:?}", of(r#"{"a":1}"#)), r#"{"a":1}"#);
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
        let read = |text: &str| whole_number::<_, u8>(&mut serde_json::Deserializer::from_str(text)).ok();
        for (text, number) in [("0", 0), ("25", 25), ("25.0", 25), ("2.5e1", 25), ("-0.0", 0)] {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for text in ["-1", "25.5", "256", "256.0", "1e30", "-1.0", "\"25\"", "null", "[25]", "true"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
