//! Callers of each kind, with an issuer that this test plays.

#![expect(clippy::disallowed_methods, reason = "a test of times of the host")]

use std::sync::Mutex;
use std::time::Duration;

use api::Role;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{decode_header, get_current_timestamp};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::verify::{Expected, Key, LEEWAY_S, Refusal, key_of, verified};
use super::*;
use crate::http_server::Server;
use crate::tokens::Tokens;

const ISSUER: &str = "https://login.example.com";
/// The modulus of a key whose other half is thrown away.
const RSA_MODULUS: [&str; 4] = [
    "0IxUbnqSCy8gxGy2BPBf1ge6DAWd6_ke4lj1r_hyY0r17zK0NihXqU5vygyHTFzHezQvhbgZJUlFw7DaxlFQVAQxbSFnfTWDjGGi",
    "f1KRoLLmBzbEFWkpRwRamJ2-7exlryo8MkShxwGc76M7Klb_IS83ea3oomP3XDwrOn3o20QRa1CzqXJkOlV2Zxo1zUhRMus0BJ0r",
    "qJq27FN5-ZpsWw7-fMNu48LrTFIcbVFbNZUfP5074gvLwb4WaIp1I_Fa4MBFPk70MSqoQNcSp0z8RXX8Ark60zj76Gt_NqDz9NnU",
    "k3nS3hS5qFv7C5vxXB-s9mUMC_23aT2jJ2k0CL-6Ww",
];
/// A token of that key for the issuer above and the audience `orders`, until the year 4096.
const RSA_TOKEN: [&str; 6] = [
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUuY29tIiwiYXVkIjoib3JkZXJ",
    "zIiwic3ViIjoic2hvcCIsImV4cCI6NjcwOTI4NTQ0MDAsInJvbGVzIjpbImFwcGxpY2F0aW9uIl19.kPVehrJKxjJ_W2I2jlJeiG",
    "wE-t1zwgE2aYwAuwwIqG8FiMS5L6ETgI7O0wPt7kiOzj_t-oEcFpJLiF3z6wVQsCgWf-1QfZIXRT86R2WNKjF5LL26XBd7x8UkpI",
    "4f2CXJz5frrcISZJx58K5EeY8Zp89l7eqn_NZvMmkYzobi2RzUoZ5wLRxLNqV_ejhyuUK4fG_RO8rAVx0NeSadp5zT4xGQDmhPpU",
    "X_UO9aXJi2r3dzAzIbe2IpXotasdwsERJqtaTdGXonWcvancTHRbnK6odczNH92HD0u-71W83-3dHVnFp_3gBMjuLUX2PMV3hoa5",
    "uxhRVVa1y1VSF7aktagw",
];

/// A key of an issuer, with both halves.
enum Signer {
    Ed(&'static str, Ed25519KeyPair),
    Ec(&'static str, EcdsaKeyPair),
}

impl Signer {
    fn ed(id: &'static str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(id, Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn ec(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::Ec(id, EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap())
    }

    fn jwk(&self) -> Value {
        match self {
            Self::Ed(id, key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": text(key.public_key().as_ref())})
            }
            Self::Ec(id, key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": text(x), "y": text(y), "use": "sig", "alg": "ES256"})
            }
        }
    }

    fn key(&self) -> Key {
        key(self.jwk()).unwrap()
    }

    fn token(&self, claims: &Value) -> String {
        let header = match self {
            Self::Ed(id, _) => json!({"alg": "EdDSA", "kid": id}),
            Self::Ec(id, _) => json!({"alg": "ES256", "kid": id}),
        };
        self.signed(&header, claims)
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let signature = match self {
            Self::Ed(_, key) => text(key.sign(message.as_bytes())),
            Self::Ec(_, key) => text(key.sign(&SystemRandom::new(), message.as_bytes()).unwrap()),
        };
        format!("{message}.{signature}")
    }
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn key(jwk: Value) -> Option<Key> {
    Key::of(&serde_json::from_value::<Jwk>(jwk).unwrap())
}

/// The claims of a good token, with one of them replaced, or removed by null.
fn claims(name: &str, value: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "orders", "sub": "ada", "exp": get_current_timestamp() + 600,
        "roles": ["operator"]});
    claims[name] = value;
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn expected(issuer: &str) -> Expected {
    Expected { issuer: issuer.into(), audience: "orders".into(), roles_claim: "roles".into() }
}

#[test]
fn a_token_of_each_kind_of_key_names_its_caller() {
    let caller = Caller::with("ada", &[Role::Operator], None);
    for signer in [Signer::ed("a"), Signer::ec("a")] {
        let token = signer.token(&claims("aud", json!(["shop", "orders"])));
        assert_eq!(verified(&token, &signer.key(), &expected(ISSUER)).as_ref(), Ok(&caller));
    }
    let rsa = json!({"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "e": "AQAB", "n": RSA_MODULUS.concat()});
    let shop = Caller::with("shop", &[Role::Application], None);
    assert_eq!(verified(&RSA_TOKEN.concat(), &key(rsa).unwrap(), &expected(ISSUER)), Ok(shop));
}

#[test]
fn rule_42_a_token_that_is_forged_or_for_somebody_else_names_nobody() {
    let (signer, other) = (Signer::ed("a"), Signer::ed("a"));
    let refused = |token: &str| verified(token, &signer.key(), &expected(ISSUER)).is_err();
    let good = signer.token(&claims("aud", json!("orders")));
    assert!(!refused(&good));
    let now = get_current_timestamp();
    for (name, value) in [
        ("exp", json!(now - LEEWAY_S - 30)),
        ("exp", Value::Null),
        ("exp", json!((now + 600).to_string())),
        ("nbf", json!(now + LEEWAY_S + 30)),
        ("nbf", json!("tomorrow")),
        ("aud", json!("shop")),
        ("aud", json!(["shop"])),
        ("aud", Value::Null),
        ("iss", json!("https://login.example.org")),
        ("iss", Value::Null),
        ("sub", Value::Null),
        ("sub", json!(7)),
        ("sub", json!("")),
        ("sub", json!("local")),
        ("sub", json!("anonymous")),
        ("sub", json!("ada [night-desk]")),
        ("sub", json!("x".repeat(129))),
        ("roles", Value::Null),
        ("roles", json!([])),
        ("roles", json!(["root", 7])),
        ("roles", json!(["root"])),
        ("roles", json!({"operator": true})),
        ("reply_channels", json!(7)),
        ("reply_channels", json!({})),
    ] {
        assert!(refused(&signer.token(&claims(name, value.clone()))), "{name} {value}");
    }
    // Clocks differ.
    for (name, value) in [("exp", now - LEEWAY_S / 2), ("nbf", now + LEEWAY_S / 2)] {
        assert!(!refused(&signer.token(&claims(name, json!(value)))), "{name}");
    }
    assert!(refused(&other.token(&claims("aud", json!("orders")))), "the signature of another key");
    let parts: Vec<&str> = good.split('.').collect();
    let administrator = text(claims("roles", json!(["administrator"])).to_string());
    for forged in [
        format!("{}.{administrator}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.{}", parts[2]),
        String::new(),
    ] {
        assert!(refused(&forged), "{forged}");
    }
}

#[test]
fn rule_42_a_token_does_not_choose_its_algorithm() {
    let signer = Signer::ed("a");
    let claims = claims("aud", json!("orders"));
    let refused = |token: &str| verified(token, &signer.key(), &expected(ISSUER)).is_err();
    for algorithm in ["none", "None", "HS256", "ES256", "RS256", "PS256", ""] {
        assert!(refused(&signer.signed(&json!({"alg": algorithm, "kid": "a"}), &claims)), "{algorithm}");
    }
    // HMAC with what everybody knows.
    let public = URL_SAFE_NO_PAD.decode(signer.jwk()["x"].as_str().unwrap()).unwrap();
    let message = format!("{}.{}", text(r#"{"alg":"HS256","kid":"a"}"#), text(claims.to_string()));
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public), message.as_bytes());
    assert!(refused(&format!("{message}.{}", text(tag))));
    assert!(refused(&format!("{}.{}.", text(r#"{"alg":"none"}"#), text(claims.to_string()))));
    assert!(refused(&signer.signed(&json!({"alg": "EdDSA", "kid": "a", "crit": ["exp"]}), &claims)), "critical");
    // The key in its own header is nobody's.
    let own = Signer::ed("b");
    assert!(refused(&own.signed(&json!({"alg": "EdDSA", "kid": "a", "jwk": own.jwk()}), &claims)));
}

#[test]
fn keys_that_do_not_verify_here_are_left_out_and_a_token_without_an_id_has_the_only_key() {
    let modulus = RSA_MODULUS.concat();
    for jwk in [
        json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "enc"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS512"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RSA-OAEP"}),
        json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}),
        json!({"kty": "OKP", "crv": "X25519", "x": "AA"}),
    ] {
        let parsed = serde_json::from_value::<Jwk>(jwk.clone());
        assert!(parsed.ok().as_ref().and_then(Key::of).is_none(), "{jwk}");
    }
    let (first, second) = (Signer::ed("a"), Signer::ed("b"));
    let keys = [first.key(), second.key()];
    let id_of =
        |token: &str, keys: &[Key]| key_of(&decode_header(token).unwrap(), keys).map(|key| key.id.clone().unwrap());
    let claims = claims("aud", json!("orders"));
    assert_eq!(id_of(&second.token(&claims), &keys).as_deref(), Some("b"));
    let without = second.signed(&json!({"alg": "EdDSA"}), &claims);
    assert_eq!((id_of(&without, &keys), id_of(&without, &keys[1..]).as_deref()), (None, Some("b")));
    assert_eq!(id_of(&second.token(&claims), &keys[..1]), None);
}

#[test]
fn roles_and_reply_channels_are_read_from_the_claims() {
    let signer = Signer::ed("a");
    let of = |roles_claim: &str, name: &str, value: Value| {
        let expected = Expected { roles_claim: roles_claim.into(), ..expected(ISSUER) };
        verified(&signer.token(&claims(name, value)), &signer.key(), &expected)
    };
    let both = [Role::Viewer, Role::Approver];
    let with = |channels: Option<&[&str]>| {
        let channels = channels.map(|names| names.iter().map(|name| Arc::from(*name)).collect());
        Ok(Caller::with("ada", &[Role::Operator], channels))
    };
    let ada = Ok(Caller::with("ada", &both, None));
    assert_eq!(of("scope", "scope", json!("openid viewer approver")), ada);
    assert_eq!(of("/realm_access/roles", "realm_access", json!({"roles": ["viewer", "uma", "approver"]})), ada);
    assert_eq!(of("https://shop.example/roles", "https://shop.example/roles", json!(["viewer", "approver"])), ada);
    assert_eq!(of("groups", "roles", json!(["viewer"])), Err(Refusal::NoRole("groups".into())));
    assert_eq!(of("roles", "reply_channels", json!(["shop", "night"])), with(Some(&["shop", "night"])));
    assert_eq!(of("roles", "reply_channels", json!("shop")), with(Some(&["shop"])));
    assert_eq!(of("roles", "reply_channels", json!([])), with(Some(&[])));
    assert_eq!(of("roles", "reply_channels", Value::Null), with(None));
}

/// An issuer on this machine.
struct Played {
    server: Server,
    keys: Arc<Mutex<Value>>,
    fetches: Arc<Mutex<usize>>,
}

impl Played {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (keys, fetches) = (Arc::<Mutex<Value>>::default(), Arc::<Mutex<usize>>::default());
        let (shown, counted) = (keys.clone(), fetches.clone());
        let server = Server::start(listener, 1_000, 0, move |request: Request<Bytes>| {
            let body = match request.uri().path() {
                "/.well-known/openid-configuration" => json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
                "/keys" => {
                    *counted.lock().unwrap() += 1;
                    shown.lock().unwrap().clone()
                }
                _ => Value::Null,
            };
            let status = if body.is_null() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            async move { Ok(Response::builder().status(status).body(body.to_string().into()).unwrap()) }
        });
        Self { server: server.unwrap(), keys, fetches }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    fn has(&self, signers: &[&Signer]) {
        let keys = signers.iter().map(|signer| signer.jwk());
        let keys: Vec<Value> = std::iter::once(json!({"kty": "new"})).chain(keys).collect();
        *self.keys.lock().unwrap() = json!({"keys": keys});
    }

    fn fetches(&self) -> usize {
        *self.fetches.lock().unwrap()
    }

    fn issuer(&self) -> Arc<Issuer> {
        let settings = JwtSettings { issuer: self.url(), audience: "orders".into(), roles_claim: "roles".into() };
        Arc::new(Issuer::new(settings))
    }

    fn token(&self, signer: &Signer) -> String {
        signer.token(&claims("iss", json!(self.url())))
    }
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_one_that_is_new() {
    let (played, [old, new]) = (Played::start().await, ["old", "new"].map(Signer::ed));
    let issuer = played.issuer();
    played.has(&[&old]);
    for _ in 0..3 {
        assert!(issuer.caller(&played.token(&old)).await.is_some());
    }
    assert_eq!(played.fetches(), 1);
    played.has(&[&old, &new]);
    assert!(issuer.caller(&played.token(&new)).await.is_none(), "they were fetched a moment ago");
    issuer.later(issuer::PAUSE).await;
    assert!(issuer.caller(&played.token(&new)).await.is_some());
    assert_eq!(played.fetches(), 2);
}

#[tokio::test]
async fn rule_42_a_key_that_was_withdrawn_while_nobody_called_names_nobody() {
    let (played, [old, new]) = (Played::start().await, ["old", "new"].map(Signer::ed));
    let issuer = played.issuer();
    played.has(&[&old]);
    assert!(issuer.caller(&played.token(&old)).await.is_some());
    played.has(&[&new]);
    issuer.later(issuer::KEPT_FOR).await;
    let [by_old, by_new] = [&old, &new].map(|signer| played.token(signer));
    let asked = (0..100).map(|number| issuer.caller(if number % 2 == 0 { &by_old } else { &by_new }));
    let named = futures_util::future::join_all(asked).await;
    assert!(named.iter().enumerate().all(|(number, caller)| caller.is_some() == (number % 2 == 1)), "{named:?}");
    assert_eq!(played.fetches(), 2, "all waited for one");
}

#[tokio::test]
async fn rule_42_a_storm_of_unknown_keys_is_one_fetch_in_ten_seconds() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    played.has(&[&known]);
    let strange: Vec<String> = ["a", "b", "c", "d"].map(|id| played.token(&Signer::ed(id))).into();
    let asked = (0..200).map(|number| issuer.caller(&strange[number % strange.len()]));
    assert!(futures_util::future::join_all(asked).await.iter().all(Option::is_none));
    assert!(issuer.caller(&played.token(&known)).await.is_some());
    assert_eq!(played.fetches(), 1);
    issuer.later(issuer::PAUSE).await;
    for token in &strange {
        assert!(issuer.caller(token).await.is_none());
    }
    assert_eq!(played.fetches(), 2);
}

#[tokio::test]
async fn rule_42_a_fetch_goes_on_when_who_caused_it_hangs_up() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    played.has(&[&known]);
    let strange = played.token(&Signer::ed("strange"));
    let mut asked = Box::pin(issuer.caller(&strange));
    assert!(futures_util::poll!(asked.as_mut()).is_pending());
    tokio::task::yield_now().await;
    drop(asked);
    let token = played.token(&known);
    let known = async {
        while issuer.caller(&token).await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), known).await.is_ok());
    assert_eq!(played.fetches(), 1);
}

#[tokio::test]
async fn rule_42_few_requests_wait_for_an_issuer_that_does_not_answer() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let settings = JwtSettings { issuer: url, audience: "orders".into(), roles_claim: "roles".into() };
    let issuer = Arc::new(Issuer::new(settings));
    let token = Signer::ed("strange").token(&claims("aud", json!("orders")));
    let mut waiting: Vec<_> = (0..issuer::WAITING_MAX).map(|_| Box::pin(issuer.caller(&token))).collect();
    for asked in &mut waiting {
        assert!(futures_util::poll!(asked.as_mut()).is_pending());
    }
    let mut further = Box::pin(issuer.caller(&token));
    assert_eq!(futures_util::poll!(further.as_mut()), std::task::Poll::Ready(None));
}

#[tokio::test]
async fn keys_stay_while_their_issuer_is_away_or_says_nonsense() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    assert!(issuer.caller(&played.token(&known)).await.is_none(), "it has not begun");
    played.has(&[&known]);
    issuer.later(issuer::PAUSE).await;
    assert!(issuer.caller(&played.token(&known)).await.is_some());
    for keys in
        [Value::Null, json!([]), json!({"keys": []}), json!({"keys": [{"kty": "oct", "k": "AA", "kid": "known"}]})]
    {
        *played.keys.lock().unwrap() = keys;
        issuer.later(issuer::PAUSE).await;
        assert!(issuer.caller(&played.token(&Signer::ed("other"))).await.is_none());
        assert!(issuer.caller(&played.token(&known)).await.is_some());
    }
    issuer.later(issuer::KEPT_FOR).await;
    assert!(issuer.caller(&played.token(&known)).await.is_some(), "old keys are better than none");
    played.has(&[&Signer::ed("other")]);
    issuer.later(issuer::AWAY_FOR).await;
    assert!(issuer.caller(&played.token(&known)).await.is_none(), "it is back");
}

#[tokio::test]
async fn an_issuer_that_calls_itself_otherwise_gives_no_keys() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    played.has(&[&known]);
    let issuer = format!("{}/", played.url());
    let settings = JwtSettings { issuer: issuer.clone(), audience: "orders".into(), roles_claim: "roles".into() };
    let token = known.token(&claims("iss", json!(issuer)));
    assert!(Arc::new(Issuer::new(settings)).caller(&token).await.is_none());
    assert_eq!(played.fetches(), 0);
}

#[test]
fn an_issuer_is_called_where_nobody_can_put_other_keys_in_place() {
    for url in
        ["https://login.example.com", "https://login.example.com/shop/", "http://127.0.0.1:8080", "http://[::1]/a"]
    {
        assert_eq!(issuer_url(url).as_deref(), Ok(url));
    }
    for url in ["http://login.example.com", "login.example.com", "https://a@b.example", "ftp://a", "https://a/?b", ""] {
        assert_eq!(issuer_url(url), Err(NotAnIssuer), "{url}");
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    pairs.iter().map(pair).collect()
}

fn bearer_of(token: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {token}"))])
}

async fn name_of(callers: &Callers, headers: &HeaderMap) -> String {
    callers.of(headers, None).await.unwrap().name().to_string()
}

#[tokio::test]
async fn a_caller_is_known_by_the_token_and_by_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let mut tokens = Tokens::default();
    let token = tokens.add("shop", &[Role::Application], &[]).unwrap();
    tokens.write(&path).unwrap();
    let callers = Callers::default().with_tokens(&path).unwrap();
    let bearer = format!("Bearer {token}");
    for right in [&bearer, &format!("bearer {token} ")] {
        assert_eq!(name_of(&callers, &headers(&[("authorization", right)])).await, "shop");
    }
    let shortened = &bearer[..bearer.len() - 1];
    for wrong in [&[][..], &[shortened], &[&token], &[&bearer, &bearer], &["Basic c2hvcDo="], &["Bearer"]] {
        let wrong: HeaderMap =
            wrong.iter().map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect();
        assert_eq!(name_of(&callers, &wrong).await, "anonymous", "{wrong:?}");
    }
    let local = Callers::default().of(&HeaderMap::new(), None).await;
    assert_eq!(local, Ok(Caller::unrestricted("local")));
}

#[tokio::test]
async fn tokens_of_a_file_and_of_an_issuer_are_good_side_by_side() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    played.has(&[&known]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let mut tokens = Tokens::default();
    let token = tokens.add("shop", &[Role::Application], &[]).unwrap();
    tokens.write(&path).unwrap();
    let settings = JwtSettings { issuer: played.url(), audience: "orders".into(), roles_claim: "roles".into() };
    let callers = Callers::default().with_tokens(&path).unwrap().with_issuer(settings);
    assert!(!callers.are_all_trusted());
    assert_eq!(name_of(&callers, &bearer_of(&token)).await, "shop");
    assert_eq!(name_of(&callers, &bearer_of(&played.token(&known))).await, "ada");
    assert_eq!(name_of(&callers, &bearer_of("sw_x")).await, "anonymous");
    assert_eq!(name_of(&callers, &HeaderMap::new()).await, "anonymous");
}

const USER: &str = "x-forwarded-user";
const ROLES: &str = "x-forwarded-roles";

/// The caller of a request with these headers from this address, or from the socket.
async fn by_proxy(peers: &str, from: Option<&str>, pairs: &[(&'static str, &str)]) -> Result<Caller, Stranger> {
    let settings = ProxySettings {
        peers: peers.split(',').map(|peer| peer.parse().unwrap()).collect(),
        name: HeaderName::from_static(USER),
        roles: HeaderName::from_static(ROLES),
    };
    let address = from.map(|address| address.parse().unwrap());
    let peer = Peer { network: "192.0.2.9".parse().unwrap(), address, is_ahead: false };
    Callers::default().with_proxy(settings).of(&headers(pairs), Some(&peer)).await
}

#[tokio::test]
async fn rule_42_a_proxy_names_the_caller_and_nobody_else_does() {
    let named = [(USER, "ada"), (ROLES, "operator, root,approver")];
    let ada = Ok(Caller::with("ada", &[Role::Operator, Role::Approver], None));
    for (peers, from) in [
        ("192.0.2.1", Some("192.0.2.1")),
        ("192.0.2.7,192.0.2.1", Some("::ffff:192.0.2.1")),
        ("2001:db8::1", Some("2001:db8::1")),
        ("unix", None),
    ] {
        assert_eq!(by_proxy(peers, from, &named).await, ada, "{peers}");
    }
    for (peers, from) in [
        ("192.0.2.1", Some("192.0.2.2")),
        ("2001:db8::1", Some("2001:db8::2")),
        ("192.0.2.1", None),
        ("unix", Some("127.0.0.1")),
    ] {
        for pairs in [&named[..], &named[..1], &named[1..]] {
            assert_eq!(by_proxy(peers, from, pairs).await, Err(Stranger), "{peers} {pairs:?}");
        }
        assert_eq!(by_proxy(peers, from, &[]).await, Ok(Caller::unknown()), "it names nobody");
    }
    assert_eq!(refusal(Stranger).status(), 400);
}

#[tokio::test]
async fn whom_a_proxy_names_in_two_ways_or_without_a_role_is_nobody() {
    for pairs in [
        &[(USER, "ada")][..],
        &[(ROLES, "operator")],
        &[(USER, "ada"), (ROLES, "root")],
        &[(USER, ""), (ROLES, "operator")],
        &[(USER, "local"), (ROLES, "operator")],
        &[(USER, "ada [night-desk]"), (ROLES, "operator")],
        &[(USER, "ada"), (USER, "ada"), (ROLES, "operator")],
        &[(USER, "ada"), (ROLES, "viewer"), (ROLES, "operator")],
        &[],
    ] {
        assert_eq!(by_proxy("192.0.2.1", Some("192.0.2.1"), pairs).await, Ok(Caller::unknown()), "{pairs:?}");
    }
}

#[test]
fn a_proxy_is_an_address_or_the_socket() {
    assert_eq!("unix".parse(), Ok(TrustedPeer::Socket));
    assert_eq!("::ffff:10.0.0.7".parse(), Ok(TrustedPeer::Address("10.0.0.7".parse().unwrap())));
    for text in ["", "proxy.internal", "10.0.0.0/8", "10.0.0.7:80"] {
        assert_eq!(text.parse::<TrustedPeer>(), Err(NotAProxy), "{text}");
    }
}
