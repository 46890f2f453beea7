//! The callers that an issuer of tokens (JWT) names. Its keys are fetched when a token needs them, and kept.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::Caller;
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Limited};
use jsonwebtoken::decode_header;
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::verify::{Expected, KEYS_MAX, Key, key_of, verified};
use crate::client::Client;

/// Keys that are older are fetched again, so that one that its issuer withdrew ends.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// The pause between two fetches, whatever tokens come.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// The time-out of each of the two documents of a fetch.
const FETCHED_WITHIN: Duration = Duration::from_secs(5);
/// Requests that wait for a fetch at the same time. Further ones are refused.
pub(super) const WAITING_MAX: usize = 64;
/// The longest document of an issuer.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Where an issuer says where its keys are.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// The issuer of `serve --jwt-issuer`, and what its tokens must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    /// The URL of the issuer, as its tokens have it.
    pub issuer: String,
    /// The name of this API at the issuer.
    pub audience: String,
    /// The claim with the roles: its name, or a JSON pointer.
    pub roles_claim: String,
}

/// The text is not the URL of an issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "give the URL of the issuer as its tokens have it, such as https://login.example.com/shop: https, or http on this machine"
)]
pub struct NotAnIssuer;

/// Parses the URL of an issuer, for `--jwt-issuer`.
///
/// # Errors
/// [`NotAnIssuer`].
pub fn issuer_url(text: &str) -> Result<String, NotAnIssuer> {
    if is_safe(text) && !text.contains(['?', '#']) { Ok(text.to_owned()) } else { Err(NotAnIssuer) }
}

/// Whether nobody on the way can put other keys in the place of those at this URL.
fn is_safe(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|authority| !authority.as_str().contains('@')) else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    uri.scheme_str() == Some("https") || (uri.scheme_str() == Some("http") && is_here)
}

/// An issuer, with the keys that it had last.
#[derive(Debug)]
pub(super) struct Issuer {
    expected: Expected,
    keys: Mutex<Arc<[Key]>>,
    /// Requests that wait for a fetch. Strangers can have a request wait, and its connection is not closed for others.
    waiting: Arc<Semaphore>,
    /// One fetch at a time.
    fetched: tokio::sync::Mutex<Fetched>,
}

#[derive(Debug, Default)]
struct Fetched {
    /// The beginning of a fetch, or its end, whether it succeeded or not.
    tried_at: Option<Instant>,
    succeeded_at: Option<Instant>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<Value>,
}

impl Fetched {
    fn is_fresh(&self) -> bool {
        self.succeeded_at.is_some_and(|at| at.elapsed() < KEPT_FOR)
    }

    fn may_try(&self) -> bool {
        self.tried_at.is_none_or(|at| at.elapsed() >= PAUSE)
    }
}

impl Issuer {
    pub(super) fn new(settings: JwtSettings) -> Self {
        let JwtSettings { issuer, audience, roles_claim } = settings;
        let expected = Expected { issuer, audience, roles_claim };
        Self {
            expected,
            keys: Mutex::default(),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            fetched: tokio::sync::Mutex::default(),
        }
    }

    /// The caller of a token.
    pub(super) async fn caller(self: &Arc<Self>, token: &str) -> Option<Caller> {
        let header = decode_header(token).ok()?;
        let mut keys = self.keys();
        if key_of(&header, &keys).is_none() {
            let waiting = self.waiting.clone().try_acquire_owned().ok()?;
            let (issuer, header) = (self.clone(), header.clone());
            // It goes on when its client hangs up: else strangers could end each fetch.
            let fetching = tokio::spawn(async move {
                let _waiting = waiting;
                issuer.fetch(|keys| key_of(&header, keys).is_some()).await
            });
            keys = fetching.await.ok()?;
        } else if self.is_stale() {
            let issuer = self.clone();
            tokio::spawn(async move { issuer.fetch(|_| true).await });
        }
        let Some(key) = key_of(&header, &keys) else {
            tracing::debug!("a token was refused: its issuer has no such key");
            return None;
        };
        match verified(token, key, &self.expected) {
            Ok(caller) => Some(caller),
            Err(refusal) => {
                tracing::debug!("a token was refused: {refusal}");
                None
            }
        }
    }

    fn keys(&self) -> Arc<[Key]> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the keys are old, and nobody fetches them or did so a moment ago.
    fn is_stale(&self) -> bool {
        self.fetched.try_lock().is_ok_and(|fetched| !fetched.is_fresh() && fetched.may_try())
    }

    /// The keys as they are now, unless they were fetched a moment ago. Those of before stay while there are no others.
    async fn fetch(&self, are_enough: impl Fn(&[Key]) -> bool) -> Arc<[Key]> {
        let mut fetched = self.fetched.lock().await;
        let keys = self.keys();
        // Another request may have fetched them while this one waited.
        if (fetched.is_fresh() && are_enough(&keys)) || !fetched.may_try() {
            return keys;
        }
        fetched.tried_at = Some(Instant::now());
        let read = self.fetched().await;
        // A slow issuer has its pause too: else each of those that wait would fetch anew.
        fetched.tried_at = Some(Instant::now());
        match read {
            Ok(keys) => {
                fetched.succeeded_at = Some(Instant::now());
                tracing::info!("{} has {} keys", self.expected.issuer, keys.len());
                *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys.into();
            }
            Err(why) => tracing::warn!("the keys of {} stay as they were: {why}", self.expected.issuer),
        }
        self.keys()
    }

    async fn fetched(&self) -> Result<Vec<Key>, String> {
        let issuer = self.expected.issuer.trim_end_matches('/');
        let discovery: Discovery = document(&format!("{issuer}{DISCOVERY}")).await?;
        if discovery.issuer != self.expected.issuer {
            return Err(format!("it calls itself {}: give that as --jwt-issuer", discovery.issuer));
        }
        if !is_safe(&discovery.jwks_uri) {
            return Err(format!("its keys are at {}, which is not https", discovery.jwks_uri));
        }
        let Keys { keys } = document(&discovery.jwks_uri).await?;
        // A kind of key that is not known here is none of a token that is accepted.
        let keys = keys.into_iter().take(KEYS_MAX).filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys: Vec<Key> = keys.filter_map(|jwk| Key::of(&jwk)).collect();
        if keys.is_empty() { Err("it has no key for RS256, ES256 or EdDSA".to_owned()) } else { Ok(keys) }
    }
}

async fn document<T: for<'de> Deserialize<'de>>(url: &str) -> Result<T, String> {
    let client =
        if url.starts_with("https:") { Client::tls().map_err(|error| error.to_string())? } else { Client::new() };
    let request = Request::get(url).body(Bytes::new()).map_err(|error| error.to_string())?;
    let fetching = async {
        let (head, body) = client.begin(request).await.map_err(|error| error.to_string())?.into_parts();
        if !head.status.is_success() {
            return Err(format!("the answer is {}", head.status));
        }
        let body = Limited::new(body, DOCUMENT_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
    };
    let fetched =
        timeout(FETCHED_WITHIN, fetching).await.unwrap_or_else(|_| Err("there is no answer in time".to_owned()));
    fetched.map_err(|why| format!("{url}: {why}"))
}

#[cfg(test)]
impl Issuer {
    /// The last fetch was so much earlier.
    pub(super) async fn later(&self, by: Duration) {
        let mut fetched = self.fetched.lock().await;
        let Fetched { tried_at, succeeded_at } = &mut *fetched;
        for at in [tried_at, succeeded_at].into_iter().flatten() {
            *at -= by;
        }
    }
}
