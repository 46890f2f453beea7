//! JSON as a form: `application/x-www-form-urlencoded`, with brackets for what is nested.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::value::RawValue;

/// All bytes except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The form of a JSON object: `a[b]=c` for a member of a member, `a[0]=b` for an element. Numbers are as written, and
/// null has no field.
///
/// # Errors
/// If a text holds a lone surrogate, which no form can hold.
pub(crate) fn encoded(object: &str) -> Result<String, serde_json::Error> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object)?;
    let mut form = String::with_capacity(object.len());
    for (name, value) in members {
        field(&escaped(&name).to_string(), value, &mut form)?;
    }
    Ok(form)
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
pub(crate) fn escaped(text: &str) -> PercentEncode<'_> {
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
    }
}
