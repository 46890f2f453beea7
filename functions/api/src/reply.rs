//! The form of answers.

use bytes::Bytes;
use domain::id::OrderId;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// The path of an order.
pub(crate) fn order_path(order_id: OrderId) -> String {
    format!("/orders/{order_id}")
}

/// The path of a job.
pub(crate) fn job_path(job_id: &str) -> String {
    format!("/bulk/{job_id}")
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response<Bytes> {
    written(status, "application/json", body)
}

/// An answer with a text for people.
pub(crate) fn text(words: String) -> Response<Bytes> {
    fixed("text/plain; charset=utf-8", words.into())
}

/// An answer that changes only with the program.
pub(crate) fn fixed(content_type: &'static str, body: Bytes) -> Response<Bytes> {
    answer(content_type, "no-cache", body)
}

/// An answer that may be another one at any moment.
pub(crate) fn changing(content_type: &'static str, body: Bytes) -> Response<Bytes> {
    answer(content_type, "no-store", body)
}

fn answer(content_type: &'static str, caching: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

/// An answer with a problem document.
pub(crate) fn problem(status: StatusCode, document: &impl Serialize) -> Response<Bytes> {
    written(status, "application/problem+json", document)
}

/// Adds the path of the order or job.
pub(crate) fn located(mut response: Response<Bytes>, path: String) -> Response<Bytes> {
    let path = HeaderValue::try_from(path).expect("hexadecimal digits and hyphens make a header");
    response.headers_mut().insert(LOCATION, path);
    response
}

/// The answer to a HEAD: everything but the body.
pub(crate) fn without_body(mut response: Response<Bytes>) -> Response<Bytes> {
    // The length of a 304 would be that of the corresponding 200, which was not made.
    if response.status() != StatusCode::NOT_MODIFIED {
        let length = HeaderValue::from(response.body().len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    *response.body_mut() = Bytes::new();
    response
}

fn written(status: StatusCode, content_type: &'static str, body: &impl Serialize) -> Response<Bytes> {
    // Most orders fit, so the text is not copied while it grows.
    let mut text = Vec::with_capacity(4_096);
    serde_json::to_writer(&mut text, body).expect("views have strings as keys and no values that JSON cannot hold");
    let mut response = changing(content_type, Bytes::from(text));
    *response.status_mut() = status;
    response
}

/// Adds the tag of this version to an answer.
pub(crate) fn tagged(mut response: Response<Bytes>, version: u64) -> Response<Bytes> {
    let tag = HeaderValue::try_from(format!("\"{version}\"")).expect("digits in quotes make a header");
    response.headers_mut().insert(ETAG, tag);
    response
}
