//! The trace of a request.

use domain::trace::{TRACEPARENT, TraceParent};
use http::HeaderMap;

/// The caller's span. Ignores a malformed `traceparent`, and ignores both if the header is repeated.
pub(crate) fn traced(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(values: &[&'static str]) -> Option<TraceParent> {
        let values =
            values.iter().map(|value| (http::HeaderName::from_static(TRACEPARENT), HeaderValue::from_static(value)));
        traced(&values.collect())
    }

    #[test]
    fn one_header_names_the_span_of_the_caller_and_two_name_none() {
        assert_eq!(of(&[PARENT]), Some(PARENT.parse().unwrap()));
        for none in [&[][..], &["made-up"], &[PARENT, OTHER], &[PARENT, PARENT], &["made-up", PARENT], &[PARENT, ""]] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
