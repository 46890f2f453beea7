//! The accepted bodies, and the reading of a text in a body.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use domain::order;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::config::BODY_BYTES_MAX;
use crate::problem::Problem;

/// Refuses a body that is too long, or has a media type other than JSON.
///
/// # Errors
/// [`Problem::BodyTooLarge`], [`Problem::MediaType`].
pub(crate) fn check(headers: &HeaderMap, body: &Bytes) -> Result<(), Problem> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Problem::BodyTooLarge);
    }
    if !headers.get_all(CONTENT_TYPE).iter().all(|value| value.to_str().is_ok_and(may_be_json)) {
        return Err(Problem::MediaType);
    }
    Ok(())
}

/// A member of a body that must be a text: its value from its JSON.
///
/// # Errors
/// [`Problem::Invalid`] if it is not a string, is blank, or is too long.
pub(crate) fn text(name: impl Into<Cow<'static, str>>, value: &str) -> Result<Arc<str>, Problem> {
    order::text(value).map_err(|fault| Problem::member(name, fault))
}

/// Whether a body sent under this type is read as JSON.
fn may_be_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // `curl -d` sends the form type by default, for any content.
    essence == "application/json" || essence.ends_with("+json") || essence == "application/x-www-form-urlencoded"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_under_the_names_that_it_is_sent_under() {
        for name in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.shop.order+json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(may_be_json(name), "{name}");
        }
        for name in ["text/xml", "text/plain", "multipart/form-data; boundary=x", "application/jsonx", "json", ""] {
            assert!(!may_be_json(name), "{name}");
        }
    }

    #[test]
    fn a_body_may_have_no_type_and_no_byte_over_the_limit() {
        let headers = HeaderMap::new();
        assert!(check(&headers, &Bytes::from(vec![b' '; BODY_BYTES_MAX])).is_ok());
        let longer = Bytes::from(vec![b' '; BODY_BYTES_MAX + 1]);
        assert!(matches!(check(&headers, &longer), Err(Problem::BodyTooLarge)));
    }
}
