//! The sinks of alerts on one machine (rule 29): a webhook, Slack and others that take its JSON, and e-mail.
//!
//! Each sink is a channel of the engine, and each receiver of e-mail is a sink of its own. The supervisor tells it again
//! until it takes the message.

mod email;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use agents::{HttpClients, Reference, Resolver, Signer, Variable, machine_secrets};
use config::auth::Placed;
use config::keys::web_address;
use config::sinks::{Address, Sink, Sinks as Settings};
use domain::message::CloudEvent;
use embedded::system_time;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::client::{Client, ClientError};
use crate::host_time::within;
use email::Mailer;
use words::Words;

/// The time-out of a sink over HTTP, in milliseconds.
const HTTP_MS_MAX: u64 = 5_000;
/// The time-out of a mail server, in milliseconds: some greet late.
const MAIL_MS_MAX: u64 = 20_000;
/// The limit of the engine for any sink, in milliseconds.
pub const TOLD_MS_MAX: u64 = MAIL_MS_MAX + 1_000;
/// The prefix of a sink's name among the channels. No reply channel has a colon in its name, so no order can name one.
const PREFIX: &str = "alerts:";
/// The media type of one event in its JSON form.
const CONTENT_TYPE: &str = "application/cloudevents+json";

/// All sinks, by the name of their channel. Cloning copies a pointer.
#[derive(Debug, Clone, Default)]
pub struct Sinks(Arc<BTreeMap<Arc<str>, Target>>);

#[derive(Debug)]
enum Target {
    Webhook { url: Url, signer: Option<Signer> },
    Slack { url: Url },
    Email(Mailer),
}

/// A URL and a client for it. The URL may be a secret.
struct Url {
    url: String,
    client: Client,
}

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Url(..)")
    }
}

/// Sinks that cannot be used: each fault names the setting, and no fault has a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BadSinks(Vec<String>);

/// A sink did not take an alert. No text has the URL, since it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum NotTold {
    /// It is not configured.
    #[error("there is no such sink")]
    Unknown,
    /// It did not answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// It did not answer in time.
    #[error("no answer within {0} ms")]
    TooSlow(u64),
    /// It refused the message.
    #[error("it answered {0}")]
    Refused(StatusCode),
    /// The mail server refused the message, or was not reached.
    #[error("mail: {0}")]
    Mail(String),
}

impl Sinks {
    /// Reads the secrets of all sinks.
    ///
    /// # Errors
    /// [`BadSinks`] with every fault.
    pub async fn start(settings: &Settings, variable: Option<Variable>) -> Result<Self, BadSinks> {
        let secrets = machine_secrets(variable.unwrap_or(|_| None), system_time, &HttpClients::new());
        let (mut targets, mut faults) = (BTreeMap::new(), Vec::new());
        for (name, sink) in settings {
            let all = targets_of(sink, &secrets).await.unwrap_or_else(|fault| {
                faults.push(format!("alerts.{name}: {fault}"));
                Vec::new()
            });
            targets.extend(all.into_iter().map(|(more, target)| (format!("{PREFIX}{name}{more}").into(), target)));
        }
        if faults.is_empty() { Ok(Self(Arc::new(targets))) } else { Err(BadSinks(faults)) }
    }

    /// The names of their channels.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.0.keys().cloned().collect()
    }

    /// Tells one sink, once.
    ///
    /// # Errors
    /// [`NotTold`]; the event is then sent again, and may arrive twice with the same id.
    pub async fn send(&self, channel: &str, event: &CloudEvent) -> Result<(), NotTold> {
        let target = self.0.get(channel).ok_or(NotTold::Unknown)?;
        let ms = if matches!(target, Target::Email(_)) { MAIL_MS_MAX } else { HTTP_MS_MAX };
        within(ms, target.tell(event)).await.unwrap_or(Err(NotTold::TooSlow(ms)))
    }
}

/// The targets of a sink, each with the end of its name.
async fn targets_of(sink: &Sink, secrets: &Resolver) -> Result<Vec<(String, Target)>, String> {
    let target = match sink {
        Sink::Webhook { url, signature } => {
            let signer = match signature {
                Some(placed) => Some(signer(secrets, placed).await?),
                None => None,
            };
            Target::Webhook { url: Url::of(url, secrets).await?, signer }
        }
        Sink::Slack { url } => Target::Slack { url: Url::of(url, secrets).await? },
        Sink::Email(email) => {
            let password = match &email.login {
                Some((_, placed)) => Some(secret(secrets, placed).await?),
                None => None,
            };
            let mailers = Mailer::all(email, password.as_ref())?;
            return Ok(mailers
                .into_iter()
                .map(|mailer| (format!("/{}", mailer.to()), Target::Email(mailer)))
                .collect());
        }
    };
    Ok(vec![(String::new(), target)])
}

/// The signer with a secret of Standard Webhooks.
pub(crate) async fn signer(secrets: &Resolver, placed: &Placed) -> Result<Signer, String> {
    let secret = secret(secrets, placed).await?;
    Signer::new(&secret).map_err(|fault| format!("{} {fault}", placed.reference))
}

async fn secret(secrets: &Resolver, Placed { reference, .. }: &Placed) -> Result<agents::Secret, String> {
    let name: Reference = reference.clone();
    secrets(name).await.map_err(|fault| format!("{reference} {fault}"))
}

impl Url {
    async fn of(address: &Address, secrets: &Resolver) -> Result<Self, String> {
        let url = match address {
            Address::Url(url) => url.clone(),
            Address::Secret(placed) => {
                let url = secret(secrets, placed).await?.expose().to_owned();
                web_address(&url).map_err(|fault| format!("{} {fault}", placed.reference))?;
                url
            }
        };
        let client = if url.starts_with("http:") { Client::new() } else { Client::tls().map_err(|e| e.to_string())? };
        Ok(Self { url, client })
    }

    async fn post(&self, headers: &HeaderMap, body: String) -> Result<(), NotTold> {
        let headers: Vec<(&str, &str)> =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
        match self.client.post(&self.url, &headers, body).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(NotTold::Refused(answer.status)),
            Err(ClientError::NoAnswer { why, .. }) => Err(NotTold::NoAnswer(why)),
            Err(ClientError::Request(_)) => Err(NotTold::NoAnswer("the URL is not valid".to_owned())),
        }
    }
}

impl Target {
    async fn tell(&self, event: &CloudEvent) -> Result<(), NotTold> {
        match self {
            Self::Webhook { url, signer } => {
                let body = serde_json::to_string(event).map_err(|error| NotTold::NoAnswer(error.to_string()))?;
                let mut headers = HeaderMap::new();
                headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(CONTENT_TYPE));
                if let Some(signer) = signer {
                    signer.sign(&mut headers, &event.id, body.as_bytes(), system_time());
                }
                url.post(&headers, body).await
            }
            Self::Slack { url } => {
                // The three characters that Slack gives a meaning.
                let text =
                    Words::of(event).as_one_text().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let body = json!({ "text": text }).to_string();
                url.post(&HeaderMap::new(), body).await
            }
            Self::Email(mailer) => mailer.send(event, &Words::of(event)).await,
        }
    }
}
