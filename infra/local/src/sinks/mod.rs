//! The sinks of alerts on one machine (rule 29): a webhook, Slack and others that take its JSON, and e-mail.
//!
//! Each sink is a channel of the engine, and each receiver of e-mail is a sink of its own. The supervisor tells it again
//! until it takes the message.

mod email;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use agents::{Resolver, Variable};
use config::keys::web_address;
use config::sinks::{Address, Sink, Sinks as Settings};
use domain::message::CloudEvent;
use embedded::Channel;
use http::HeaderMap;
use serde_json::json;

use crate::BadSetting;
use crate::host_time::within;
use crate::webhook::{Channels, NotTaken, Webhook, secret, secrets_of};
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
#[derive(Debug)]
enum Target {
    Webhook(Webhook),
    Slack(Webhook),
    Email(Mailer),
}

/// The sinks, by the name of their channel, with their secrets.
///
/// # Errors
/// [`BadSetting`] with every fault: each names the setting, and none has a secret.
pub(crate) async fn start(settings: &Settings, variable: Option<Variable>) -> Result<Channels, BadSetting> {
    let secrets = secrets_of(variable);
    let (mut started, mut faults) = (Channels::new(), Vec::new());
    for (name, sink) in settings {
        let all = targets_of(sink, &secrets).await.unwrap_or_else(|fault| {
            faults.push(format!("alerts.{name}: {fault}"));
            Vec::new()
        });
        started
            .extend(all.into_iter().map(|(more, target)| (format!("{PREFIX}{name}{more}").into(), target.channel())));
    }
    if faults.is_empty() { Ok(started) } else { Err(BadSetting(faults.join("; "))) }
}

/// The targets of a sink, each with the end of its name.
async fn targets_of(sink: &Sink, secrets: &Resolver) -> Result<Vec<(String, Target)>, String> {
    let target = match sink {
        Sink::Webhook { url, signature } => {
            Target::Webhook(Webhook::of(url_of(url, secrets).await?, signature.as_ref(), secrets).await?)
        }
        Sink::Slack { url } => Target::Slack(Webhook::of(url_of(url, secrets).await?, None, secrets).await?),
        Sink::Email(email) => {
            let password = match &email.login {
                Some((_, placed)) => Some(secret(secrets, placed).await?),
                None => None,
            };
            let mailers = Mailer::all(email, password.as_ref())?.into_iter();
            return Ok(mailers.map(|mailer| (format!("/{}", mailer.to()), Target::Email(mailer))).collect());
        }
    };
    Ok(vec![(String::new(), target)])
}

async fn url_of(address: &Address, secrets: &Resolver) -> Result<String, String> {
    match address {
        Address::Url(url) => Ok(url.clone()),
        Address::Secret(placed) => {
            let url = secret(secrets, placed).await?.expose().to_owned();
            web_address(&url).map_err(|fault| format!("{} {fault}", placed.reference))?;
            Ok(url)
        }
    }
}

impl Target {
    /// As the engine's port.
    fn channel(self) -> Channel {
        let ms = if matches!(self, Self::Email(_)) { MAIL_MS_MAX } else { HTTP_MS_MAX };
        let target = Arc::new(self);
        Arc::new(move |event| {
            let target = target.clone();
            Box::pin(async move { Ok(within(ms, target.tell(&event)).await.unwrap_or(Err(NotTaken::TooSlow(ms)))?) })
        })
    }

    async fn tell(&self, event: &CloudEvent) -> Result<(), NotTaken> {
        match self {
            Self::Webhook(webhook) => webhook.tell(event).await,
            Self::Slack(webhook) => {
                // The three characters that Slack gives a meaning.
                let text =
                    Words::of(event).as_one_text().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                webhook.post(&HeaderMap::new(), json!({ "text": text }).to_string()).await
            }
            Self::Email(mailer) => mailer.send(event, &Words::of(event)).await,
        }
    }
}
