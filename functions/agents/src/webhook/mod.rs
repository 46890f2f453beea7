//! The events of providers that tell results (rule 41). A provider posts them to one address, and signs them.
//!
//! [`Hook`] tells a genuine event from a forged one, and reads it. What it says goes to the API as the post of a service
//! to the address of its call would (rule 38). So all rules of replies hold, and nothing here reads an order.

pub(crate) mod answer;
pub(crate) mod api;
mod event;
mod verify;

use std::sync::{Arc, Mutex, PoisonError};

use config::auth::Placed;
use config::{SecretSource, WebhookSettings};
use domain::json::Json;
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::time::Timestamp;
use futures_util::lock::Mutex as Turns;
use http::HeaderMap;
use ring::hmac::Key;

use crate::auth::Resolver;
pub(crate) use event::{NotForUs, Told};
pub(crate) use verify::Refusal;
use verify::{Verifier, key_of};

/// The limit of an event's body, in bytes. The API takes it with the members of a callback around it.
pub(crate) const BODY_BYTES_MAX: usize = DOCUMENT_BYTES_MAX - 64;
/// Secrets are read again at most once in this time, since anybody can send a forged event. A call of a service may
/// make them be read more often.
const READ_AGAIN_MS: u64 = 60_000;
/// The same while one of them could not be read.
const READ_MISSING_MS: u64 = 5_000;

/// The webhook of one agent.
pub(crate) struct Hook {
    pub(crate) agent: Arc<str>,
    settings: WebhookSettings,
    resolver: Resolver,
    /// `None`: no secret could be read so far.
    known: Mutex<Option<Arc<Verifier>>>,
    /// Only one event at a time reads secrets. Here is when that was last.
    turns: Turns<Option<Timestamp>>,
}

/// Why an event is not taken for genuine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unverified {
    /// It is not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// That is not known: a secret that may have signed it could not be read.
    #[error("a secret of this webhook cannot be read now")]
    SecretUnread,
}

impl Hook {
    pub(crate) fn new(agent: Arc<str>, settings: WebhookSettings, resolver: Resolver) -> Self {
        Self { agent, settings, resolver, known: Mutex::default(), turns: Turns::new(None) }
    }

    /// Whether the provider sent these bytes.
    ///
    /// # Errors
    /// [`Unverified`].
    pub(crate) async fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Unverified> {
        let known = match self.known() {
            Some(known) => known,
            None => self.read(None, now).await.ok_or(Unverified::SecretUnread)?,
        };
        let mut verified = known.verify(headers, body, now);
        let mut is_complete = known.is_complete;
        // The provider may sign with a secret that is new in its place.
        if verified == Err(Refusal::Forged)
            && self.may_change()
            && let Some(read) = self.read(Some(&known), now).await
        {
            verified = read.verify(headers, body, now);
            is_complete = read.is_complete;
        }
        match verified {
            Err(Refusal::Forged) if !is_complete => Err(Unverified::SecretUnread),
            verified => Ok(verified?),
        }
    }

    /// What a genuine event tells.
    ///
    /// # Errors
    /// [`NotForUs`].
    pub(crate) fn read_event(&self, body: &Json) -> Result<Told, NotForUs> {
        event::read(&self.settings, &self.agent, body)
    }

    /// Other secrets than these, read now or meanwhile by another event. `None` also shortly after the last time.
    async fn read(&self, used: Option<&Arc<Verifier>>, now: Timestamp) -> Option<Arc<Verifier>> {
        let mut last = self.turns.lock().await;
        let known = self.known();
        let is_other = |known: &&Arc<Verifier>| used.is_none_or(|used| !Arc::ptr_eq(used, known));
        if let Some(known) = known.as_ref().filter(is_other) {
            return Some(known.clone());
        }
        let is_complete = known.as_ref().is_some_and(|known| known.is_complete);
        let every_ms = if is_complete { READ_AGAIN_MS } else { READ_MISSING_MS };
        if last.is_some_and(|last| last <= now && now < last.plus_ms(every_ms)) {
            return None;
        }
        *last = Some(now);
        let (keys, faults) = keys(&self.settings, &self.resolver).await;
        for (_, fault) in faults {
            tracing::error!(agent = &*self.agent, "a secret of the webhook cannot be read: {fault}");
        }
        let verifier = Arc::new(Verifier::new(self.settings.scheme, keys, known.as_deref())?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(verifier.clone());
        Some(verifier)
    }

    /// A variable of the environment stays as it is while the process runs.
    fn may_change(&self) -> bool {
        self.settings.secrets.iter().any(|secret| match secret.reference.source {
            SecretSource::Environment => false,
            SecretSource::File | SecretSource::Parameter | SecretSource::SecretsManager => true,
        })
    }

    fn known(&self) -> Option<Arc<Verifier>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The faults of the secrets of a webhook, each with its place.
pub(crate) async fn faults(settings: &WebhookSettings, resolver: &Resolver) -> Vec<(usize, String)> {
    keys(settings, resolver).await.1
}

/// Reads the secrets. Those that can be read are enough for events that they sign; `None` stands for each other one.
async fn keys(settings: &WebhookSettings, resolver: &Resolver) -> (Vec<Option<Key>>, Vec<(usize, String)>) {
    let (mut keys, mut faults) = (Vec::new(), Vec::new());
    for Placed { reference, at, path } in &settings.secrets {
        match resolver(reference.clone()).await.and_then(|secret| key_of(settings.scheme, &secret)) {
            Ok(key) => keys.push(Some(key)),
            Err(fault) => {
                keys.push(None);
                faults.push((*at, format!("{path}: {reference} {fault}")));
            }
        }
    }
    (keys, faults)
}
