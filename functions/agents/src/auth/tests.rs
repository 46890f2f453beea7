use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::Reference;
use domain::task::Direction;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::HeaderMap;
use http_body_util::Full;
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};

use super::webhook::Signer;
use super::*;
use crate::stand_in::{Received, Respond, StandIn, response};
use crate::tests::{NOW, call_at, call_while, service};
use crate::{BadSettings, HttpService, Settings};

/// The secrets that references find.
pub(super) type Secrets = Arc<Mutex<BTreeMap<String, String>>>;

const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(super) fn secrets() -> Secrets {
    let secrets = [
        ("KEY", "key-7391"),
        ("PASSWORD", "word-5520"),
        ("TOKEN", "token-8846"),
        ("SIGN", WEBHOOK),
        ("AWS_ACCESS_KEY_ID", "AKIA-2210"),
        ("AWS_SECRET_ACCESS_KEY", "secret-3155"),
        ("AWS_SESSION_TOKEN", "session-9017"),
    ];
    Arc::new(Mutex::new(secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).into()))
}

pub(super) async fn read_settings(lines: &str, secrets: &Secrets) -> Result<Settings, BadSettings> {
    let secrets = secrets.clone();
    let resolver: Resolver = Arc::new(move |reference: Reference| {
        let secret = secrets.lock().unwrap().get(&reference.name).map(|value| Secret::new(value));
        async move { secret.ok_or_else(|| "is not set".to_owned()) }.boxed()
    });
    let text = format!("[agents.payment]\n{lines}");
    Settings::read("agents.toml", &text, &["payment"], &resolver, &HttpClients::new()).await
}

pub(super) async fn payment(base: &str, lines: &str, secrets: &Secrets) -> HttpService {
    service(base, read_settings(lines, secrets).await.unwrap().of("payment").unwrap().clone())
}

pub(super) fn oauth2(endpoint: &StandIn) -> String {
    format!(
        "auth.oauth2 = {{ token_url = \"{}/token\", client_id = \"shop 1\", client_secret = \"env:PASSWORD\", \
         scope = \"charge refund\" }}",
        endpoint.base
    )
}

pub(super) fn token(value: &str, expires_in: u32) -> Respond {
    response(200, &[], &format!(r#"{{"access_token":"{value}","token_type":"Bearer","expires_in":{expires_in}}}"#))
}

pub(super) fn ok() -> Respond {
    response(200, &[], "{}")
}

pub(super) async fn call(service: &mut HttpService, after_ms: u64) -> Answer {
    call_at(service, Direction::Forward, NOW.plus_ms(after_ms)).await
}

fn authorizations(stand_in: &StandIn) -> Vec<String> {
    let header = |received: &Received| received.header("authorization").unwrap_or("none").to_owned();
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
async fn rule_6_no_call_begins_with_a_token_that_came_too_late_and_the_next_one_has_it() {
    let endpoint = StandIn::start([token("a", 3_600), token("b", 3_600)]).await;
    let stand_in = StandIn::start([response(401, &[], ""), ok()]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    // The first token, then the one after the refusal of the first.
    for tokens in [1, 2] {
        let answer = call_while(&mut service, &|| endpoint.received().len() < tokens).await;
        assert!(matches!(answer, Answer::NotCalled { .. }), "{answer:?}");
        assert_eq!((endpoint.received().len(), stand_in.received().len()), (tokens, tokens - 1));
    }
    assert!(matches!(call(&mut service, 0).await, Answer::Done(_)));
    assert_eq!(authorizations(&stand_in), ["Bearer a", "Bearer b"]);
}

#[tokio::test]
async fn a_secret_is_read_again_after_a_401_and_the_call_is_repeated_with_another_one_alone() {
    let stand_in = StandIn::start([response(401, &[], ""), response(401, &[], ""), ok()]).await;
    let secrets = secrets();
    let mut service = payment(&stand_in.base, "auth.bearer = \"env:TOKEN\"", &secrets).await;
    assert!(matches!(call(&mut service, 0).await, Answer::Misconfigured { .. }));
    secrets.lock().unwrap().insert("TOKEN".to_owned(), "token-9999".to_owned());
    assert!(matches!(call(&mut service, READ_AGAIN_MS).await, Answer::Done(_)));
    assert_eq!(authorizations(&stand_in), ["Bearer token-8846", "Bearer token-8846", "Bearer token-9999"]);
}

#[tokio::test]
async fn secrets_are_read_again_at_most_once_a_second_and_also_by_a_clock_that_was_set_back() {
    let stand_in = StandIn::start((0..8).map(|_| response(401, &[], ""))).await;
    let secrets = secrets();
    let mut service = payment(&stand_in.base, "auth.bearer = \"env:TOKEN\"", &secrets).await;
    let hour_ms = 60 * 60 * 1_000;
    for (after_ms, token, calls) in [
        (hour_ms + 5_000, "t-1", 2),
        (hour_ms + 5_999, "t-2", 3),
        (hour_ms + 6_000, "t-3", 5),
        // A call that started earlier ends later.
        (hour_ms + 5_000, "t-4", 6),
        (0, "t-5", 8),
    ] {
        secrets.lock().unwrap().insert("TOKEN".to_owned(), token.to_owned());
        call(&mut service, after_ms).await;
        assert_eq!(stand_in.received().len(), calls, "after {after_ms} ms");
    }
}

const SIGV4: &str = "auth.sigv4 = { service = \"execute-api\", region = \"eu-central-1\" }";

/// The signature by AWS's description of it, from the request as it came on 20 November 2026.
fn signature(received: &Received, secret_key: &str) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = |text: &str| hex(digest(&SHA256, text.as_bytes()).as_ref());
    let mac = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(HMAC_SHA256, key), text.as_bytes());
    let (_, signed) = received.header("authorization").unwrap().split_once("SignedHeaders=").unwrap();
    let signed = signed.split(", ").next().unwrap();
    let headers: String =
        signed.split(';').map(|name| format!("{name}:{}\n", received.header(name).unwrap())).collect();
    let path = received.line.split(' ').nth(1).unwrap();
    let canonical = format!("POST\n{path}\n\n{headers}\n{signed}\n{}", hash(&received.text));
    let scope = "20261120/eu-central-1/execute-api/aws4_request";
    let date = received.header("x-amz-date").unwrap();
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hash(&canonical));
    let key =
        scope.split('/').fold(format!("AWS4{secret_key}").into_bytes(), |key, part| mac(&key, part).as_ref().into());
    hex(mac(&key, &text).as_ref())
}

#[tokio::test]
async fn a_signature_of_aws_covers_key_date_and_body_and_is_made_for_each_call() {
    let stand_in = StandIn::start([ok(), ok()]).await;
    let lines = format!("{SIGV4}\nheaders = {{ X-Api-Key = {{ secret = \"env:KEY\" }}, Plain = \"a\" }}");
    let mut service = payment(&stand_in.base, &lines, &secrets()).await;
    for (after_ms, date) in [(0, "20261120T172643Z"), (7_000, "20261120T172650Z")] {
        call(&mut service, after_ms).await;
        let received = stand_in.received().pop().unwrap();
        assert_eq!(received.header("x-amz-date"), Some(date));
        assert_eq!(received.header("x-amz-security-token"), Some("session-9017"));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKIA-2210/20261120/eu-central-1/execute-api/aws4_request, \
             SignedHeaders=content-type;host;idempotency-key;plain;x-amz-content-sha256;x-amz-date;x-amz-security-token;\
             x-api-key, Signature={}",
            signature(&received, "secret-3155")
        );
        assert_eq!(received.header("authorization"), Some(&*authorization));
    }
}

#[tokio::test]
async fn the_keys_of_a_signature_may_be_references_and_are_read_again_after_a_403() {
    let stand_in = StandIn::start([response(403, &[], ""), ok()]).await;
    let secrets = secrets();
    let lines = SIGV4.replace(" }", ", access_key = \"env:KEY\", secret_key = \"env:PASSWORD\" }");
    let mut service = payment(&stand_in.base, &lines, &secrets).await;
    secrets.lock().unwrap().insert("PASSWORD".to_owned(), "word-9999".to_owned());
    assert!(matches!(call(&mut service, 0).await, Answer::Done(_)));
    for (received, secret_key) in stand_in.received().iter().zip(["word-5520", "word-9999"]) {
        let authorization = received.header("authorization").unwrap();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=key-7391/"), "{authorization}");
        assert!(authorization.ends_with(&signature(received, secret_key)), "{authorization}");
        assert_eq!(received.header("x-amz-security-token"), None);
    }
}

#[tokio::test]
async fn a_signature_needs_the_keys_of_the_environment_or_its_own_and_a_token_only_if_there_is_one() {
    let secrets = secrets();
    secrets.lock().unwrap().remove("AWS_SESSION_TOKEN");
    read_settings(SIGV4, &secrets).await.unwrap();
    secrets.lock().unwrap().remove("AWS_SECRET_ACCESS_KEY");
    let error = read_settings(SIGV4, &secrets).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "agents.toml:2:14: agents.payment.auth.sigv4 without access_key: env:AWS_SECRET_ACCESS_KEY is not set"
    );
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
    let pair = STANDARD.encode("shop%201:word-5520");
    assert_eq!(request.header("authorization"), Some(&*format!("Basic {pair}")));

    call(&mut service.clone(), 47_000).await;
    assert_eq!(endpoint.received().len(), 1);
    call(&mut service.clone(), 48_000).await;
    assert_eq!(endpoint.received().len(), 2);
    let seen = authorizations(&stand_in);
    assert_eq!((&*seen[10], &*seen[11]), ("Bearer t-1", "Bearer t-2"));
}

#[tokio::test]
async fn a_refused_call_names_the_scope_that_its_token_lacks() {
    let stand_in = StandIn::start([response(403, &[], ""), ok()]).await;
    let endpoint = StandIn::start([response(200, &[], r#"{"access_token":"t-1","scope":"charge"}"#)]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    let Answer::Misconfigured { problem, .. } = call(&mut service, 0).await else { panic!("403") };
    assert!(problem.ends_with("; the token endpoint did not give the scope refund"), "{problem}");
    assert!(matches!(call(&mut service, 0).await, Answer::Done(_)), "it may not need it");
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
async fn a_client_secret_that_the_token_endpoint_refuses_is_read_again_once() {
    let invalid = || response(400, &[], r#"{"error":"invalid_client"}"#);
    for refused in [invalid(), response(401, &[], "")] {
        let stand_in = StandIn::start([ok()]).await;
        let endpoint = StandIn::start([refused, token("t-1", 60)]).await;
        let secrets = secrets();
        let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets).await;
        secrets.lock().unwrap().insert("PASSWORD".to_owned(), "word-9999".to_owned());
        assert!(matches!(call(&mut service, 0).await, Answer::Done(_)));
        let pairs = ["shop%201:word-5520", "shop%201:word-9999"].map(|pair| format!("Basic {}", STANDARD.encode(pair)));
        assert_eq!(authorizations(&endpoint), pairs);
    }
    // Another secret that is refused as well, and the same secret.
    for (next, asked) in [("word-9999", 2), ("word-5520", 1)] {
        let endpoint = StandIn::start([invalid(), invalid()]).await;
        let secrets = secrets();
        let mut service = payment("http://localhost:1", &oauth2(&endpoint), &secrets).await;
        secrets.lock().unwrap().insert("PASSWORD".to_owned(), next.to_owned());
        let refused = Answer::misconfigured("no token: HTTP 400 Bad Request, invalid_client");
        assert_eq!(call(&mut service, 0).await, refused);
        assert_eq!(endpoint.received().len(), asked);
    }
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
        (
            response(429, &[("Retry-After", "20")], ""),
            Answer::Retry { after_ms: Some(20_000), problem: "no token: HTTP 429 Too Many Requests".into() },
        ),
        (response(200, &[], "word-5520"), Answer::retry("no token: the answer has no text access_token")),
        (token("", 60), Answer::retry("no token: the answer has no text access_token")),
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
async fn a_secret_at_the_end_of_a_long_reason_is_hidden_before_the_reason_is_cut() {
    let message = format!("{}token-8846", "x".repeat(domain::limits::ERROR_CHARS_MAX - 5));
    let stand_in = StandIn::start([response(400, &[], &format!(r#"{{"message":"{message}"}}"#))]).await;
    let mut service = payment(&stand_in.base, "auth.bearer = \"env:TOKEN\"", &secrets()).await;
    let answer = call(&mut service, 0).await;
    assert!(matches!(&answer, Answer::Fail(failure) if &*failure.code == "rejected"), "{answer:?}");
}

#[tokio::test]
async fn an_output_that_repeats_a_token_is_kept_without_it() {
    let stand_in = StandIn::start([response(200, &[], r#"{"Total": 1.50, "Seen": "Bearer token-31870"}"#)]).await;
    let endpoint = StandIn::start([token("token-31870", 60)]).await;
    let mut service = payment(&stand_in.base, &oauth2(&endpoint), &secrets()).await;
    let answer = call(&mut service, 0).await;
    assert!(matches!(&answer, Answer::Done(output) if output.text() == r#"{"Total": 1.50, "Seen": "[hidden]"}"#));
}

#[tokio::test]
async fn no_debug_output_shows_a_secret() {
    let stand_in = StandIn::start([ok()]).await;
    let endpoint = StandIn::start([token("t-4477", 60)]).await;
    show_nothing(&stand_in, &oauth2(&endpoint), "PASSWORD").await;
    show_nothing(&stand_in, SIGV4, "AWS_SECRET_ACCESS_KEY").await;
}

async fn show_nothing(stand_in: &StandIn, scheme: &str, reference: &str) {
    let lines =
        format!("headers.X-Api-Key = {{ secret = \"env:KEY\" }}\nsignature.standard_webhooks = \"env:SIGN\"\n{scheme}");
    let settings = read_settings(&lines, &secrets()).await.unwrap();
    let auth = settings.of("payment").unwrap().auth.clone().unwrap();
    let known = auth.ready(NOW).await.unwrap();
    let mut request = http::Request::post(&*stand_in.base).body(Full::default()).unwrap();
    known.apply(&mut request, b"{}", "key", NOW).unwrap();
    let shown = format!("{settings:#?} {auth:?} {known:?} {request:?} {:?}", Secret::new("key-7391"));
    for value in ["key-7391", "word-5520", "t-4477", "secret-3155", "session-9017", WEBHOOK, &WEBHOOK["whsec_".len()..]]
    {
        assert!(!shown.contains(value), "{value} in {shown}");
    }
    assert!(shown.contains("Environment") && shown.contains(reference), "a reference may be shown");
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
        ("auth = {}", "auth must have one of basic, bearer, oauth2, sigv4"),
        ("auth.digest = \"env:A\"", "auth.digest is not a setting"),
        ("auth.basic = { password = \"env:B\" }", "auth.basic.user is missing"),
        ("auth.basic = { user = \"a:b\", password = \"env:B\" }", "auth.basic.user must not contain a colon"),
        ("auth.oauth2 = { client_id = \"a\", client_secret = \"env:B\" }", "auth.oauth2.token_url is missing"),
        (
            "auth.oauth2 = { token_url = \"http://id.example\", client_id = \"a\", client_secret = \"env:B\" }",
            "token_url is not encrypted",
        ),
        ("auth.sigv4 = { service = \"execute-api\" }", "auth.sigv4.region is missing"),
        ("auth.sigv4 = { service = \"a b\", region = \"r\" }", "service must be a name such as \"execute-api\""),
        (
            "auth.sigv4 = { service = \"s\", region = \"r\", access_key = \"env:A\" }",
            "auth.sigv4 must have both access_key and secret_key, or none",
        ),
        ("tls = {}", "tls must have certificate and key, or ca, or all three"),
        ("tls = { certificate = \"file:a\", ca = \"file:b\" }", "tls must have certificate and key, or ca"),
        ("tls.key = \"hidden\"", "tls.key must be a reference"),
        ("auth.bearer = \"secretsmanager:a#\"", "auth.bearer must be a reference"),
        ("auth.bearer = \"ssm:#a\"", "auth.bearer must be a reference"),
        (
            "headers.Authorization = { secret = \"env:B\" }\nauth.bearer = \"env:A\"",
            "so leave the header Authorization out",
        ),
        ("headers.Authorization = \"hidden\"", "headers.Authorization is a secret, and none may stand in this file"),
        ("auth.bearer = \"env:AWS_SESSION_TOKEN\"", "auth.bearer would send credentials of this program to a service"),
        ("signature = { hmac = \"env:A\" }", "signature.standard_webhooks is missing"),
    ] {
        let text = format!("[agents.payment]\n{lines}");
        let error = config::Settings::parse("agents.toml", &text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hidden"), "{expected} in {error}");
    }
}
