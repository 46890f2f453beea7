//! JSON as a form: `application/x-www-form-urlencoded`, with brackets for what is nested.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};
use serde::de::Error as _;
use serde_json::value::RawValue;

/// All bytes except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The form of a JSON object: `a[b]=c` for a member of a member, `a[0]=b` for an element. Numbers are as written, and
/// null has no field.
///
/// # Errors
/// If a text holds a lone surrogate, which no form can hold, or if two fields have one name, such as those of
/// `{"a": {"b": 1}, "a[b]": 2}`: no rule says which of them counts.
pub(crate) fn encoded(object: &str) -> Result<String, serde_json::Error> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object)?;
    let mut form = String::with_capacity(object.len());
    for (name, value) in members {
        field(&escaped(&name).to_string(), value, &mut form)?;
    }
    let names = form.split('&').map(|field| field.split('=').next().unwrap_or_default());
    let mut known = BTreeSet::new();
    if names.map(|name| percent_decode_str(name).collect::<Vec<u8>>()).all(|name| known.insert(name)) {
        Ok(form)
    } else {
        Err(serde_json::Error::custom("two members have one name in a form"))
    }
}

/// The depth of a body is bounded.
fn field(name: &str, value: &RawValue, form: &mut String) -> Result<(), serde_json::Error> {
    let text = value.get();
    let value = match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            return members
                .into_iter()
                .try_for_each(|(inner, value)| field(&format!("{name}[{}]", escaped(&inner)), value, form));
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            let mut elements = elements.into_iter().enumerate();
            return elements.try_for_each(|(index, value)| field(&format!("{name}[{index}]"), value, form));
        }
        Some(b'n') => return Ok(()),
        Some(b'"') => serde_json::from_str(text)?,
        _ => text.to_owned(),
    };
    if !form.is_empty() {
        form.push('&');
    }
    let _ = write!(form, "{name}={}", escaped(&value));
    Ok(())
}

/// The text with all bytes percent-encoded except unreserved ones.
#[must_use]
pub fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_a_form_with_brackets_and_its_digits() {
        let form = |object: &str| encoded(object).unwrap();
        assert_eq!(form("{}"), "");
        assert_eq!(form(r#"{"amount": 12.50, "b": true, "n": null}"#), "amount=12.50&b=true");
        let nested = r#"{"metadata": {"order id": "a&b=c", "x": {}}, "items": [{"sku": "caf\u00e9"}, 7]}"#;
        assert_eq!(form(nested), "items[0][sku]=caf%C3%A9&items[1]=7&metadata[order%20id]=a%26b%3Dc");
        assert!(encoded(r#"{"a": "\ud800"}"#).is_err());
        for twice in
            [r#"{"a": {"b": 1}, "a[b]": 2}"#, r#"{"l": [1], "l[0]": 2}"#, r#"{"a": {"b": {"c": 1}, "b][c": 2}}"#]
        {
            assert!(encoded(twice).is_err(), "{twice}");
        }
        assert_eq!(form(r#"{"a[]": 1, "a": null}"#), "a%5B%5D=1", "a name may have brackets");
    }
}
