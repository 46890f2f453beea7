//! The callers that an issuer of tokens (JWT) names. Its keys are fetched when a token needs them, and kept.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::Caller;
use bytes::Bytes;
use config::keys::web_address;
use http::Request;
use http_body_util::{BodyExt, Limited};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Header, decode_header};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::verify::{JwtSettings, KEYS_MAX, Key, key_of, verified};
use crate::BadSetting;
use crate::client::Client;

/// Keys that are older are fetched again before a token is judged, so that one that its issuer withdrew ends.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// The pause between two fetches, whatever tokens come.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// The time after a failed fetch in which no token waits for the next one. The old keys are used meanwhile.
pub(super) const AWAY_FOR: Duration = Duration::from_secs(60);
/// The time-out of each of the two documents of a fetch.
const FETCHED_WITHIN: Duration = Duration::from_secs(5);
/// Requests with unknown keys that wait for a fetch at the same time. Further ones are refused.
pub(super) const WAITING_MAX: usize = 64;
/// The longest document of an issuer.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Where an issuer says where its keys are.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Parses the URL of an issuer, for `--jwt-issuer`.
///
/// # Errors
/// [`BadSetting`].
pub fn issuer_url(text: &str) -> Result<String, BadSetting> {
    let advice = "give the URL of the issuer as its tokens have it, such as https://login.example.com/shop: https, or http \
                  on this machine";
    let url = Some(text).filter(|text| web_address(text).is_ok() && !text.contains(['?', '#']));
    url.map(str::to_owned).ok_or_else(|| BadSetting::new(advice))
}

/// An issuer, with the keys that it had last.
#[derive(Debug)]
pub(super) struct Issuer {
    expected: JwtSettings,
    kept: Mutex<Kept>,
    /// Requests that wait for a fetch. Strangers can have a request wait, and its connection is not closed for others.
    waiting: Arc<Semaphore>,
    /// One fetch at a time. The beginning of the last one, or its end, whether it succeeded or not.
    tried_at: tokio::sync::Mutex<Option<Instant>>,
}

/// The keys of the last fetch that succeeded.
#[derive(Debug, Clone, Default)]
struct Kept {
    keys: Arc<[Key]>,
    succeeded_at: Option<Instant>,
    /// Of the last fetch, if it failed.
    failed_at: Option<Instant>,
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

impl Kept {
    fn is_fresh(&self) -> bool {
        self.succeeded_at.is_some_and(|at| at.elapsed() < KEPT_FOR)
    }

    fn is_issuer_away(&self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < AWAY_FOR)
    }
}

impl Issuer {
    pub(super) fn new(expected: JwtSettings) -> Self {
        Self {
            expected,
            kept: Mutex::default(),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            tried_at: tokio::sync::Mutex::default(),
        }
    }

    /// The caller of a token.
    pub(super) async fn caller(self: &Arc<Self>, token: &str) -> Option<Caller> {
        let header = decode_header(token).ok()?;
        let kept = self.kept();
        if key_of(&header, &kept.keys).is_none() {
            let waiting = self.waiting.clone().try_acquire_owned().ok()?;
            let keys = self.fetching(header.clone(), Some(waiting)).await.ok()?;
            return self.judged(token, &header, &keys);
        }
        let caller = self.judged(token, &header, &kept.keys)?;
        if kept.is_fresh() {
            return Some(caller);
        }
        // No stranger waits here: the token was good by the old keys.
        let fetching = self.fetching(header.clone(), None);
        if kept.is_issuer_away() {
            return Some(caller);
        }
        let keys = fetching.await.ok()?;
        self.judged(token, &header, &keys)
    }

    /// Fetches the keys. It goes on when its client hangs up: else strangers could end each fetch.
    fn fetching(self: &Arc<Self>, header: Header, waiting: Option<OwnedSemaphorePermit>) -> JoinHandle<Arc<[Key]>> {
        let issuer = self.clone();
        tokio::spawn(async move {
            let _waiting = waiting;
            issuer.fetch(|keys| key_of(&header, keys).is_some()).await
        })
    }

    fn judged(&self, token: &str, header: &Header, keys: &[Key]) -> Option<Caller> {
        let Some(key) = key_of(header, keys) else {
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

    fn kept(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The keys as they are now, unless they were fetched a moment ago. Those of before stay while there are no others.
    async fn fetch(&self, are_enough: impl Fn(&[Key]) -> bool) -> Arc<[Key]> {
        let mut tried_at = self.tried_at.lock().await;
        let kept = self.kept();
        let may_try = tried_at.is_none_or(|at| at.elapsed() >= PAUSE);
        // Another request may have fetched them while this one waited.
        if (kept.is_fresh() && are_enough(&kept.keys)) || !may_try {
            return kept.keys;
        }
        *tried_at = Some(Instant::now());
        let read = self.fetched().await;
        // A slow issuer has its pause too: else each of those that wait would fetch anew.
        let at = Some(Instant::now());
        *tried_at = at;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(keys) => {
                tracing::info!("{} has {} keys", self.expected.issuer, keys.len());
                *kept = Kept { keys: keys.into(), succeeded_at: at, failed_at: None };
            }
            Err(why) => {
                tracing::warn!("the keys of {} stay as they were: {why}", self.expected.issuer);
                kept.failed_at = at;
            }
        }
        kept.keys.clone()
    }

    async fn fetched(&self) -> Result<Vec<Key>, String> {
        let issuer = self.expected.issuer.trim_end_matches('/');
        let discovery: Discovery = document(&format!("{issuer}{DISCOVERY}")).await?;
        if discovery.issuer != self.expected.issuer {
            return Err(format!("it calls itself {}: give that as --jwt-issuer", discovery.issuer));
        }
        // Nobody on the way can put other keys in their place.
        if web_address(&discovery.jwks_uri).is_err() {
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
        let mut tried_at = self.tried_at.lock().await;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { succeeded_at, failed_at, .. } = &mut *kept;
        for at in [&mut *tried_at, succeeded_at, failed_at].into_iter().flatten() {
            *at -= by;
        }
    }
}
