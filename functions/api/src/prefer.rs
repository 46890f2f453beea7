//! The header `Prefer` (RFC 7240); the API supports `wait`.

use domain::limits::WAIT_S_MAX;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::problem::Problem;

/// The longest time for which the caller waits for an order to settle, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    s: u64,
}

impl Wait {
    /// The preference `wait`, if there is one; the first of several, as the RFC requires. Other preferences are
    /// ignored.
    ///
    /// # Errors
    /// [`Problem::Invalid`] if its value is not a whole number up to [`WAIT_S_MAX`].
    pub(crate) fn asked(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let preferences = headers.get_all("prefer").iter().flat_map(|value| outside_quotes(value.as_bytes(), b','));
        for preference in preferences {
            // Parameters follow after a semicolon; `wait` defines none.
            let Some(named) = outside_quotes(preference, b';').next() else {
                continue;
            };
            let (name, value) = match named.iter().position(|&byte| byte == b'=') {
                Some(at) => (&named[..at], &named[at + 1..]),
                None => (named, &b""[..]),
            };
            if name.trim_ascii().eq_ignore_ascii_case(b"wait") {
                return seconds(value.trim_ascii()).map(|s| Some(Self { s })).ok_or_else(|| {
                    Problem::header("Prefer", format!("wait must be a whole number of seconds from 0 to {WAIT_S_MAX}"))
                });
            }
        }
        Ok(None)
    }

    /// The same in milliseconds.
    pub(crate) const fn ms(self) -> u64 {
        self.s * 1_000
    }

    /// Confirms in the answer that the preference was applied.
    pub(crate) fn applied(self, mut response: Response<bytes::Bytes>) -> Response<bytes::Bytes> {
        let applied = HeaderValue::try_from(format!("wait={}", self.s)).expect("a word and digits make a header");
        response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
        response
    }
}

/// The value of `wait`: digits, which may be quoted.
fn seconds(value: &[u8]) -> Option<u64> {
    let digits = match value {
        [b'"', inner @ .., b'"'] => inner,
        plain => plain,
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&s| s <= WAIT_S_MAX)
}

/// The parts of a text between separators. A separator within a quoted string does not count.
fn outside_quotes(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |&byte| {
        let separates = byte == separator && !quoted;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        separates
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(values: &[&str]) -> Result<Option<u64>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("Prefer", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let wait = Wait::asked(&headers).map(|wait| wait.map(Wait::ms));
        wait.map_err(|problem| problem.to_string())
    }

    #[test]
    fn wait_is_found_in_every_form_of_the_rfc() {
        for form in ["wait=10", "Wait=10", "wait = 10", "wait=\"10\"", "wait=10; why=\"a, b\"", " , wait=10 ,"] {
            assert_eq!(wait(&[form]), Ok(Some(10_000)), "{form}");
        }
        assert_eq!(wait(&["respond-async, wait=10, return=minimal"]), Ok(Some(10_000)));
        assert_eq!(wait(&["handling=lenient", "respond-async, wait=10"]), Ok(Some(10_000)));
    }

    #[test]
    fn a_wait_within_a_quoted_value_or_a_parameter_is_none() {
        assert_eq!(wait(&[r#"note="a, wait=3", wait=7"#]), Ok(Some(7_000)));
        assert_eq!(wait(&[r#"note="a\", wait=3", wait=7"#]), Ok(Some(7_000)));
        assert_eq!(wait(&["foo; wait=3"]), Ok(None));
        assert_eq!(wait(&["waiting=3, return=minimal"]), Ok(None));
        assert_eq!(wait(&[]), Ok(None));
    }

    #[test]
    fn of_several_waits_the_first_counts() {
        assert_eq!(wait(&["wait=1, wait=2"]), Ok(Some(1_000)));
        assert_eq!(wait(&["wait=1", "wait=nonsense"]), Ok(Some(1_000)));
    }

    #[test]
    fn wait_goes_from_0_to_20() {
        assert_eq!(wait(&["wait=0"]), Ok(Some(0)));
        assert_eq!(wait(&["wait=20"]), Ok(Some(20_000)));
        for wrong in ["21", "999", "99999999999999999999999", "-1", "+1", "1.5", "1s", "x", "", "\"\"", "\"5"] {
            let answer = wait(&[&format!("wait={wrong}")]);
            assert!(answer.as_ref().is_err_and(|detail| detail.starts_with("Prefer ")), "{wrong}: {answer:?}");
        }
        assert!(wait(&["wait"]).is_err());
    }
}
