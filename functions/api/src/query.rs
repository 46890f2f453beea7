//! The parameters of a query.

use domain::limits::PAGE_MAX;
use domain::time::Timestamp;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use crate::problem::Problem;

/// Default number of entries on a page.
const PAGE_DEFAULT: usize = 50;

/// The values of the parameters `names`, in their order; `None` for an absent one.
///
/// # Errors
/// [`Problem::Invalid`] for a parameter that is not in `names`, is repeated, or is not percent-encoded UTF-8.
pub(crate) fn parameters<const N: usize>(query: &str, names: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let mut values = [const { None }; N];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name).ok_or_else(|| Problem::parameter(name.to_owned(), "is not a parameter's name"))?;
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(Problem::parameter(name, "is not a parameter of this path"));
        };
        if values[at].is_some() {
            return Err(Problem::parameter(name, "is given more than once"));
        }
        match decoded(value) {
            Some(value) => values[at] = Some(value),
            None => return Err(Problem::parameter(name, "is not percent-encoded UTF-8")),
        }
    }
    Ok(values)
}

/// The value of the parameter `limit`: entries on a page.
///
/// # Errors
/// [`Problem::Invalid`] if it is not a whole number from 1 to [`PAGE_MAX`].
pub(crate) fn page_limit(text: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = text else { return Ok(PAGE_DEFAULT) };
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = text.parse().ok().filter(|limit| digits_only && (1..=PAGE_MAX).contains(limit));
    limit.ok_or_else(|| Problem::parameter("limit", format!("must be a whole number from 1 to {PAGE_MAX}")))
}

/// A text parameter.
///
/// # Errors
/// [`Problem::Invalid`] if it is empty or has more than `chars_max` characters.
pub(crate) fn text(name: &'static str, text: Option<String>, chars_max: usize) -> Result<Option<String>, Problem> {
    let Some(text) = text else { return Ok(None) };
    if text.is_empty() {
        return Err(Problem::parameter(name, "must not be empty"));
    }
    match text.chars().nth(chars_max) {
        None => Ok(Some(text)),
        Some(_) => Err(Problem::parameter(name, format!("must have at most {chars_max} characters"))),
    }
}

/// A time parameter.
///
/// # Errors
/// [`Problem::Invalid`] if it is not an RFC 3339 time.
pub(crate) fn time(name: &'static str, text: Option<String>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let fault = "must be a time such as 2026-11-20T17:26:43.007Z (a plus in it has to be written %2B)";
    let at = Timestamp::deserialize(IntoDeserializer::<Error>::into_deserializer(text));
    at.map(Some).map_err(|_| Problem::parameter(name, fault))
}

/// A parameter that says yes or no.
///
/// # Errors
/// [`Problem::Invalid`] if it is neither `true` nor `false`.
pub(crate) fn flag(name: &'static str, text: Option<&str>) -> Result<Option<bool>, Problem> {
    match text {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Problem::parameter(name, "must be true or false")),
    }
}

/// A text without its percent-encoding; a plus is a space, as in forms.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(plain).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<[Option<String>; 2], String> {
        parameters(query, ["state", "limit"]).map_err(|problem| problem.to_string())
    }

    #[test]
    fn values_come_in_the_order_of_the_names() {
        assert_eq!(read("limit=5&state=Error"), Ok([Some("Error".to_owned()), Some("5".to_owned())]));
        assert_eq!(read("&limit=&"), Ok([None, Some(String::new())]));
        assert_eq!(read("state"), Ok([Some(String::new()), None]));
        assert_eq!(read(""), Ok([None, None]));
    }

    #[test]
    fn percent_encoding_is_taken_off() {
        assert_eq!(read("st%61te=%45rror%20%c3%bC+%2B"), Ok([Some("Error ü +".to_owned()), None]));
    }

    #[test]
    fn what_is_unknown_repeated_or_badly_encoded_is_named() {
        for (query, name) in [
            ("stat=Error", "stat "),
            ("state=Error&state=Error", "state "),
            ("State=Error", "State "),
            ("limit=%4", "limit "),
            ("limit=%zz", "limit "),
            ("limit=%ff", "limit "),
            ("%ff=1", "%ff "),
            ("=1", " is"),
        ] {
            let answer = read(query);
            assert!(answer.as_ref().is_err_and(|detail| detail.starts_with(name)), "{query}: {answer:?}");
        }
    }
}
