use std::collections::BTreeMap;

use domain::task::Direction;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::*;
use crate::stand_in::{Respond, StandIn, response};
use crate::tests::{NOW, call_at, service};
use crate::{BadSettings, HttpService, Settings};

/// The secrets that references find.
type Secrets = Arc<Mutex<BTreeMap<String, String>>>;

const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn secrets() -> Secrets {
    let secrets = [("KEY", "key-7391"), ("PASSWORD", "word-5520"), ("TOKEN", "token-8846"), ("SIGN", WEBHOOK)];
    Arc::new(Mutex::new(secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).into()))
}

async fn read_settings(lines: &str, secrets: &Secrets) -> Result<Settings, BadSettings> {
    let secrets = secrets.clone();
    let resolver: Resolver = Arc::new(move |reference: Reference| {
        let secret = secrets.lock().unwrap().get(&reference.name).map(|value| Secret::new(value));
        async move { secret.ok_or_else(|| "is not set".to_owned()) }.boxed()
    });
    let text = format!("[agents.payment]\n{lines}");
    Settings::read("agents.toml", &text, &["payment"], &resolver, &mut HttpClients::new()).await
}

async fn payment(base: &str, lines: &str, secrets: &Secrets) -> HttpService {
    service(base, read_settings(lines, secrets).await.unwrap().of("payment").unwrap().clone())
}

fn oauth2(endpoint: &StandIn) -> String {
    format!(
        "auth.oauth2 = {{ token_url = \"{}/token\", client_id = \"shop 1\", client_secret = \"env:PASSWORD\", \
         scope = \"charge refund\" }}",
        endpoint.base
    )
}

fn token(value: &str, expires_in: u32) -> Respond {
    response(200, &[], &format!(r#"{{"access_token":"{value}","token_type":"Bearer","expires_in":{expires_in}}}"#))
}

fn ok() -> Respond {
    response(200, &[], "{}")
}

async fn call(service: &mut HttpService, after_ms: u64) -> Answer {
    call_at(service, Direction::Forward, NOW.plus_ms(after_ms)).await
}

fn authorizations(stand_in: &StandIn) -> Vec<String> {
    let header = |received: &crate::stand_in::Received| received.header("authorization").unwrap_or("none").to_owned();
    stand_in.received().iter().map(header).collect()
}

#[tokio::test]
async fn each_kind_of_secret_is_in_its_header() {
    let stand_in = StandIn::start([ok(), ok(), ok()]).await;
    let secrets = secrets();
    for (lines, header, value) in [
        ("headers.X-Api-Key = { secret = \"env:KEY\" }", "x-api-key", "key-7391"),
        ("auth.bearer = \"env:TOKEN\"", "authorization", "Bearer token-8846"),
        ("auth.basic = { user = \"me\", password = \"env:PASSWORD\" }", "authorization", "Basic bWU6d29yZC01NTIw"),
    ] {
        assert!(matches!(call(&mut payment(&stand_in.base, lines, &secrets).await, 0).await, Answer::Done(_)));
        assert_eq!(stand_in.received().pop().unwrap().header(header), Some(value));
    }
}

#[tokio::test]
async fn a_signature_covers_key_time_and_body() {
    let stand_in = StandIn::start([ok()]).await;
    let mut service = payment(&stand_in.base, "signature.standard_webhooks = \"env:SIGN\"", &secrets()).await;
    call(&mut service, 0).await;
    let received = stand_in.received().pop().unwrap();
    let key = received.header("idempotency-key").unwrap();
    assert_eq!(received.header("webhook-id"), Some(key));
    let mut expected = HeaderMap::new();
    Signer::new(&Secret::new(WEBHOOK)).unwrap().sign(&mut expected, key, received.text.as_bytes(), NOW);
    assert_eq!(received.header("webhook-signature"), expected["webhook-signature"].to_str().ok());
    assert_eq!(received.header("webhook-timestamp"), Some("1795195603"));
}

#[tokio::test]
async fn a_secret_is_read_again_after_a_401_and_the_call_is_repeated_with_another_one_alone() {
    let stand_in = StandIn::start([response(401, &[], ""), response(401, &[], ""), ok()]).await;
    let secrets = secrets();
    let mut service = payment(&stand_in.base, "auth.bearer = \"env:TOKEN\"", &secrets).await;
    assert!(matches!(call(&mut service, 0).await, Answer::Misconfigured { .. }));
    secrets.lock().unwrap().insert("TOKEN".to_owned(), "token-9999".to_owned());
    assert!(matches!(call(&mut service, 0).await, Answer::Done(_)));
    assert_eq!(authorizations(&stand_in), ["Bearer token-8846", "Bearer token-8846", "Bearer token-9999"]);
}

#[tokio::test]
async fn one_token_is_for_all_calls_and_the_next_is_fetched_before_its_end() {
    let stand_in = StandIn::start((0..12).map(|_| ok())).await;
    let endpoint = StandIn::start([token("t-1", 60), token("t-2", 60)]).await;
    let service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    let calls = (0..10).map(|_| async { call(&mut service.clone(), 0).await });
    assert!(join_all(calls).await.iter().all(|answer| matches!(answer, Answer::Done(_))));
    let request = endpoint.received().pop().unwrap();
    assert_eq!(request.text, "grant_type=client_credentials&scope=charge%20refund");
    let pair = STANDARD.encode("shop%201:word%2D5520");
    assert_eq!(request.header("authorization"), Some(&*format!("Basic {pair}")));

    call(&mut service.clone(), 47_000).await;
    assert_eq!(endpoint.received().len(), 1);
    call(&mut service.clone(), 48_000).await;
    assert_eq!(endpoint.received().len(), 2);
    let seen = authorizations(&stand_in);
    assert_eq!((&*seen[10], &*seen[11]), ("Bearer t-1", "Bearer t-2"));
}

#[tokio::test]
async fn a_call_whose_token_ended_is_repeated_at_once_with_a_new_one() {
    let stand_in = StandIn::start([response(401, &[], ""), ok()]).await;
    let endpoint = StandIn::start([token("t-1", 3_600), token("t-2", 3_600)]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    assert!(matches!(call(&mut service, 0).await, Answer::Done(_)));
    assert_eq!(authorizations(&stand_in), ["Bearer t-1", "Bearer t-2"]);
}

#[tokio::test]
async fn a_second_401_is_a_fault_of_the_configuration() {
    let stand_in = StandIn::start([response(401, &[], ""), response(401, &[], "")]).await;
    let endpoint = StandIn::start([token("t-1", 60), token("t-2", 60)]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    assert!(matches!(call(&mut service, 0).await, Answer::Misconfigured { .. }));
}

#[tokio::test]
async fn no_token_is_a_fault_of_the_configuration_or_passes() {
    let refused = response(401, &[], r#"{"error":"invalid_client","error_description":"word-5520"}"#);
    let echo = response(400, &[], r#"{"error":"word-5520"}"#);
    for (respond, expected) in [
        (refused, Answer::misconfigured("no token: HTTP 401 Unauthorized, invalid_client")),
        (echo, Answer::misconfigured("no token: HTTP 400 Bad Request")),
        (response(503, &[], ""), Answer::retry("no token: HTTP 503 Service Unavailable")),
        (response(200, &[], "word-5520"), Answer::retry("the answer of the token endpoint has no token")),
    ] {
        let endpoint = StandIn::start([respond]).await;
        let mut service = payment("http://localhost:1", &oauth2(&endpoint), &secrets()).await;
        assert_eq!(call(&mut service, 0).await, expected);
    }
}

#[tokio::test]
async fn a_token_that_is_still_valid_is_used_while_there_is_no_next_one() {
    let stand_in = StandIn::start([ok(), ok()]).await;
    let endpoint = StandIn::start([token("t-1", 60), response(503, &[], ""), response(503, &[], "")]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    for after_ms in [0, 59_000] {
        assert!(matches!(call(&mut service, after_ms).await, Answer::Done(_)));
    }
    assert!(matches!(call(&mut service, 60_000).await, Answer::Retry { .. }));
}

#[tokio::test]
async fn a_service_that_repeats_a_secret_is_not_quoted() {
    for value in ["token-8846", "bad: Bearer token-8846 !"] {
        let stand_in = StandIn::start([response(400, &[], &format!(r#"{{"message":"{value}"}}"#))]).await;
        let mut service = payment(&stand_in.base, "auth.bearer = \"env:TOKEN\"", &secrets()).await;
        let answer = call(&mut service, 0).await;
        assert!(matches!(&answer, Answer::Fail(failure) if &*failure.code == "rejected"), "{answer:?}");
        assert!(!format!("{answer:?}").contains("token-8846"));
    }
}

#[tokio::test]
async fn no_debug_output_shows_a_secret() {
    let stand_in = StandIn::start([ok()]).await;
    let endpoint = StandIn::start([token("t-4477", 60)]).await;
    let lines = format!(
        "headers.X-Api-Key = {{ secret = \"env:KEY\" }}\nsignature.standard_webhooks = \"env:SIGN\"\n{}",
        oauth2(&endpoint)
    );
    let settings = read_settings(&lines, &secrets()).await.unwrap();
    let auth = settings.of("payment").unwrap().auth.clone().unwrap();
    let known = auth.ready(NOW).await.unwrap();
    let mut request = http::Request::post(&*stand_in.base).body(()).unwrap();
    known.apply(request.headers_mut(), "key", b"{}", NOW);
    let shown = format!("{settings:#?} {auth:?} {known:?} {request:?} {:?}", Secret::new("key-7391"));
    for value in ["key-7391", "word-5520", "t-4477", WEBHOOK, &WEBHOOK["whsec_".len()..]] {
        assert!(!shown.contains(value), "{value} in {shown}");
    }
    assert!(shown.contains("Environment") && shown.contains("PASSWORD"), "a reference may be shown");
}

#[tokio::test]
async fn every_secret_that_cannot_be_read_is_named_with_its_place() {
    let lines = "headers.X-Api-Key = { secret = \"env:NONE\" }\nsignature.standard_webhooks = \"env:KEY\"";
    let error = read_settings(lines, &secrets()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "agents.toml:2:32: agents.payment.headers.X-Api-Key.secret: env:NONE is not set; \
         agents.toml:3:31: agents.payment.signature.standard_webhooks: env:KEY must be whsec_ and the base64 of 24 to \
         64 bytes"
    );
}

#[test]
fn a_value_in_place_of_a_reference_is_refused_and_not_shown() {
    for (lines, expected) in [
        ("auth.bearer = \"sk_live_hidden\"", "auth.bearer must be a reference to a secret, such as"),
        ("auth.bearer = \"env:\"", "auth.bearer must be a reference"),
        ("auth.bearer = \"vault:hidden\"", "auth.bearer must be a reference"),
        ("auth = { bearer = \"env:A\", basic = { user = \"a\", password = \"env:B\" } }", "auth must have one of"),
        ("auth = {}", "auth must have one of basic, bearer, oauth2"),
        ("auth.digest = \"env:A\"", "auth.digest is no setting"),
        ("auth.basic = { password = \"env:B\" }", "auth.basic.user is missing"),
        ("auth.basic = { user = \"a:b\", password = \"env:B\" }", "auth.basic.user must not contain a colon"),
        ("auth.oauth2 = { client_id = \"a\", client_secret = \"env:B\" }", "auth.oauth2.token_url is missing"),
        (
            "auth.oauth2 = { token_url = \"http://id.example\", client_id = \"a\", client_secret = \"env:B\" }",
            "token_url is not encrypted",
        ),
        ("headers.Authorization = \"x\"\nauth.bearer = \"env:A\"", "so leave the header Authorization out"),
        ("signature = { hmac = \"env:A\" }", "signature.standard_webhooks is missing"),
    ] {
        let text = format!("[agents.payment]\n{lines}");
        let error = Settings::parse("agents.toml", &text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hidden"), "{expected} in {error}");
    }
}
