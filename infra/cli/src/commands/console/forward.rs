//! Forwards a request of the page to the API, with the caller's credentials.

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH, SET_COOKIE,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Request, Response, StatusCode};
use local::problem::problem;

use super::guard::private;
use crate::remote::{Call, Remote, RemoteError};

/// What the page may say to the API. Where the request comes from was looked at here; the API is not told again.
const PASSED_ON: [HeaderName; 9] = [
    ACCEPT,
    // Of who signs in on the page. The command's own credentials replace it.
    AUTHORIZATION,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("prefer"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
/// Headers that hold between two neighbours only, and headers that the page does not need.
const KEPT_BACK: [HeaderName; 8] = [
    CONNECTION,
    CONTENT_LENGTH,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
];
/// The longest `Prefer: wait` of the API.
const WAIT_S: u64 = 20;

/// Sends the request to `path` of the API, and returns its answer, or a problem if there is none.
pub(super) async fn forward(remote: &Remote, path: String, request: Request<Bytes>) -> Response<Bytes> {
    let (head, body) = request.into_parts();
    if body.len() > api::BODY_BYTES_MAX {
        return private(problem(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    }
    let headers = passed_on(&head.headers);
    let wait_s = if headers.contains_key("prefer") { WAIT_S } else { 0 };
    let call = Call::once(head.method, path, headers, body, wait_s);
    match remote.exchange(&call).await {
        Ok(answer) => {
            let mut answer = answer;
            for name in KEPT_BACK {
                answer.headers_mut().remove(name);
            }
            private(answer)
        }
        Err(error) => unanswered(&error),
    }
}

/// All values of what may be passed on: where one is too many, the API says so.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let of =
        |name: &HeaderName| headers.get_all(name).iter().map(|value| (name.clone(), value.clone())).collect::<Vec<_>>();
    PASSED_ON.iter().flat_map(of).collect()
}

fn unanswered(error: &RemoteError) -> Response<Bytes> {
    let advice = error.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
    private(problem(StatusCode::BAD_GATEWAY, &format!("{error}{advice}")))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn all_values_of_a_header_are_passed_on_and_no_other_header() {
        let mut sent = HeaderMap::new();
        for (name, value) in [("if-match", "\"1\""), ("if-match", "\"2\""), ("cookie", "a=b"), ("accept", "*/*")] {
            sent.append(name, HeaderValue::from_static(value));
        }
        let passed = passed_on(&sent);
        assert_eq!(passed.get_all("if-match").iter().collect::<Vec<_>>(), ["\"1\"", "\"2\""]);
        assert_eq!(passed.len(), 3);
    }
}
