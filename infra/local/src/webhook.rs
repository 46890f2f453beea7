//! A URL that events are posted to: that of a reply channel, or of a sink of alerts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use agents::{HttpClients, Resolver, Secret, Signer, Variable, machine_secrets};
use config::auth::Placed;
use domain::message::CloudEvent;
use embedded::{Channel, system_time};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::client::{Client, NoAnswer};

/// The media type of one event in its JSON form (CloudEvents 1.0, HTTP binding, structured mode).
const EVENT: HeaderValue = HeaderValue::from_static("application/cloudevents+json");

/// Channels of the engine, by name.
pub(crate) type Channels = BTreeMap<Arc<str>, Channel>;

/// A URL, and how it is called. The URL may be a secret.
pub(crate) struct Webhook {
    url: String,
    client: Client,
    signer: Option<Signer>,
}

/// An event was not taken, and is sent again. No text has the URL, since it may be a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error("it is failing, and is tried again in {0} ms")]
    Failing(u128),
    #[error("no answer: {0}")]
    NoAnswer(String),
    #[error("no answer within {0} ms")]
    TooSlow(u64),
    #[error("it answered {0}")]
    Refused(StatusCode),
    #[error("mail: {0}")]
    Mail(String),
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(..)")
    }
}

impl Webhook {
    /// # Errors
    /// Why it cannot be called, without its secret.
    pub(crate) async fn of(url: String, signature: Option<&Placed>, secrets: &Resolver) -> Result<Self, String> {
        let signer = match signature {
            Some(placed) => {
                let signer = Signer::new(&secret(secrets, placed).await?);
                Some(signer.map_err(|fault| format!("{} {fault}", placed.reference))?)
            }
            None => None,
        };
        let client = if url.starts_with("http:") { Client::new() } else { Client::tls().map_err(|e| e.to_string())? };
        Ok(Self { url, client, signer })
    }

    /// Posts an event as it is, once.
    pub(crate) async fn tell(&self, event: &CloudEvent) -> Result<(), NotTaken> {
        let body = serde_json::to_string(event).map_err(|error| NotTaken::NoAnswer(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, EVENT);
        if let Some(signer) = &self.signer {
            signer.sign(&mut headers, &event.id, body.as_bytes(), system_time());
        }
        self.post(&headers, body).await
    }

    pub(crate) async fn post(&self, headers: &HeaderMap, body: String) -> Result<(), NotTaken> {
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        match self.client.post(&self.url, &headers.collect::<Vec<_>>(), body).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(NotTaken::Refused(answer.status)),
            Err(NoAnswer { why, .. }) => Err(NotTaken::NoAnswer(why)),
        }
    }
}

/// Finds the secrets of this machine.
pub(crate) fn secrets_of(variable: Option<Variable>) -> Resolver {
    machine_secrets(variable.unwrap_or(|_| None), system_time, &HttpClients::new())
}

pub(crate) async fn secret(secrets: &Resolver, Placed { reference, .. }: &Placed) -> Result<Secret, String> {
    secrets(reference.clone()).await.map_err(|fault| format!("{reference} {fault}"))
}
