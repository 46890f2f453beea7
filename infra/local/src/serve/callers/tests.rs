//! Callers of each kind.

#![expect(clippy::disallowed_methods, reason = "a test of times of the host")]

mod keys;
mod proxy;
mod signatures;

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

use self::keys::Played;
use super::verify::{JwtSettings, Key, LEEWAY_S, Refusal, key_of, verified};
use super::*;
use crate::http_server::Server;
use crate::tokens::Tokens;

const ISSUER: &str = "https://login.example.com";

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

fn expected(issuer: &str) -> JwtSettings {
    JwtSettings { issuer: issuer.into(), audience: "orders".into(), roles_claim: "roles".into() }
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
    let callers = Callers::knowing(Some(&path), None, None).unwrap();
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
    let callers = Callers::knowing(Some(&path), Some(settings), None).unwrap();
    assert!(!callers.are_all_trusted());
    assert_eq!(name_of(&callers, &bearer_of(&token)).await, "shop");
    assert_eq!(name_of(&callers, &bearer_of(&played.token(&known))).await, "ada");
    assert_eq!(name_of(&callers, &bearer_of("sw_x")).await, "anonymous");
    assert_eq!(name_of(&callers, &HeaderMap::new()).await, "anonymous");
}
