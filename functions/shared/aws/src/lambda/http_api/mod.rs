//! The function behind the HTTP API.

mod caller;
mod request;
mod response;

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use lambda_runtime::Error;
use serde_json::value::RawValue;

use super::invocation::Invocation;
use super::payload::read;
use super::runtime::serve;
use crate::environment::within;
use crate::scope::Company;
pub use caller::Identity;
use request::Event;
pub(super) use response::Answer;
use response::problem;

/// Runs a function behind an HTTP API (payload format 2.0). It passes each request to `handle`, with the caller from
/// the API's authorizer. A panic is answered with 500. A request that is not done shortly before the invocation's
/// deadline is answered with 503.
///
/// # Errors
/// Fails if the platform cannot be reached.
pub async fn http_api<Handle, Handling>(handle: Handle) -> Result<(), Error>
where
    Handle: Fn(Identity, Request<Bytes>) -> Handling,
    Handling: Future<Output = Response<Bytes>>,
{
    let handle = &handle;
    serve(move |payload, invocation| async move { answer(&payload, &invocation, handle).await }).await
}

/// One invocation of [`http_api`]: the answer to this event.
///
/// # Errors
/// Fails if the event is no request.
pub(super) async fn answer<Handle, Handling>(
    payload: &RawValue,
    invocation: &Invocation,
    handle: &Handle,
) -> Result<Answer, Error>
where
    Handle: Fn(Identity, Request<Bytes>) -> Handling,
    Handling: Future<Output = Response<Bytes>>,
{
    let event: Event<'_> = read(payload, "a request of an HTTP API")?;
    if event.is_ambiguous() {
        return Ok(Answer::of(problem(StatusCode::NOT_FOUND)));
    }
    let caller = event.identity();
    let request = event.into_request()?;
    let scope = invocation.scope(None, Company::default());
    let handling = AssertUnwindSafe(scope.run(async move { handle(caller, request).await })).catch_unwind();
    let response = match within(invocation.left_ms(), handling).await {
        Some(Ok(response)) => response,
        Some(Err(_)) => {
            tracing::error!("a request's handler panicked");
            problem(StatusCode::INTERNAL_SERVER_ERROR)
        }
        None => {
            tracing::warn!("a request was not answered before the invocation's deadline");
            problem(StatusCode::SERVICE_UNAVAILABLE)
        }
    };
    Ok(Answer::of(response))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(method: &str, path: &str, more: &Value) -> Value {
        let mut event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "headers": {"host": "api.example", "content-type": "application/json"},
            "requestContext": {"http": {"method": method, "path": path}, "stage": "$default"},
            "isBase64Encoded": false,
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }

    /// Answers with the received request: caller, method, URI, host, body.
    async fn echo(caller: Identity, request: Request<Bytes>) -> Response<Bytes> {
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        let said = format!("{} {} {} {host} {:?}", caller.name, request.method(), request.uri(), request.body());
        Response::builder().status(202).header("location", "/orders/1").body(said.into()).unwrap()
    }

    async fn answered(event: &Value) -> Value {
        let payload = serde_json::value::to_raw_value(event).unwrap();
        let answer = answer(&payload, &Invocation::for_test(60_000), &echo).await.unwrap();
        serde_json::to_value(answer).unwrap()
    }

    #[tokio::test]
    async fn a_request_arrives_as_it_was_sent_and_its_answer_goes_back() {
        let more = json!({"rawQueryString": "state=Error&cursor=a%2Fb", "body": "{\"Total\": 1.10}"});
        let answer = answered(&event("POST", "/orders", &more)).await;
        assert_eq!(answer["statusCode"], 202);
        assert_eq!(answer["headers"], json!({"location": "/orders/1"}));
        assert_eq!(answer["isBase64Encoded"], false);
        let said = r#"anonymous POST /orders?state=Error&cursor=a%2Fb api.example b"{\"Total\": 1.10}""#;
        assert_eq!(answer["body"], said);
    }

    #[tokio::test]
    async fn a_body_in_base64_is_decoded() {
        let answer = answered(&event("POST", "/orders", &json!({"body": "AP8=", "isBase64Encoded": true}))).await;
        assert_eq!(answer["body"], r#"anonymous POST /orders api.example b"\0\xff""#);
    }

    #[tokio::test]
    async fn the_stage_is_no_part_of_the_path() {
        for (stage, path, expected) in [
            ("prod", "/prod/orders/1", "/orders/1"),
            ("prod", "/prod", "/"),
            ("prod", "/production/orders", "/production/orders"),
            ("prod", "/orders", "/orders"),
            ("$default", "/$default/orders", "/$default/orders"),
        ] {
            let context = json!({"requestContext": {"http": {"method": "GET"}, "stage": stage}});
            let answer = answered(&event("GET", path, &context)).await;
            assert_eq!(answer["body"], format!("anonymous GET {expected} api.example b\"\""), "{path}");
        }
    }

    #[tokio::test]
    async fn rule_42_a_path_that_the_gateway_took_for_another_one_does_not_exist() {
        // What was posted to /orders/1%2Ferase%3F/cancel, as the gateway may cut it off.
        for (path, id) in [("/orders/1/erase", "1/erase?"), ("/orders/1/erase/cancel", "1/erase"), ("/orders/1", "1#")]
        {
            let parts = json!({"pathParameters": {"id": id, "action": "cancel"}});
            let answer = answered(&event("POST", path, &parts)).await;
            assert_eq!(answer["statusCode"], 404, "{path}");
            assert_eq!(answer["headers"]["content-type"], "application/problem+json");
        }
        let parts = json!({"pathParameters": {"id": "1 %", "action": "cancel"}});
        assert_eq!(answered(&event("POST", "/orders/1 %/cancel", &parts)).await["statusCode"], 202);
    }

    #[tokio::test]
    async fn a_path_that_the_api_has_decoded_is_still_a_path() {
        let answer = answered(&event("GET", "/orders/a b\u{e9}?<x>", &json!({}))).await;
        assert_eq!(answer["body"], r#"anonymous GET /orders/a%20b%C3%A9%3F%3Cx%3E api.example b"""#);
    }

    #[tokio::test]
    async fn a_panic_is_answered_500_and_an_endless_request_503() {
        let payload = serde_json::value::to_raw_value(&event("GET", "/health", &json!({}))).unwrap();
        let panics = async |_, _| panic!("this panic is part of the test");
        let answer_of = answer(&payload, &Invocation::for_test(60_000), &panics).await.unwrap();
        assert_eq!(serde_json::to_value(answer_of).unwrap()["statusCode"], 500);
        let endless = async |_, _| std::future::pending().await;
        let answer_of = serde_json::to_value(answer(&payload, &Invocation::for_test(510), &endless).await.unwrap());
        let answer_of = answer_of.unwrap();
        assert_eq!(answer_of["statusCode"], 503);
        assert_eq!(answer_of["headers"]["content-type"], "application/problem+json");
    }

    #[tokio::test]
    async fn an_event_that_is_no_request_fails_the_invocation() {
        let payload = serde_json::value::to_raw_value(&json!({"Records": []})).unwrap();
        assert!(answer(&payload, &Invocation::for_test(60_000), &echo).await.is_err());
    }
}
