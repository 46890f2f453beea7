//! What the agent of a service would do, where no call is made and no secret is read.

use agent::{Answer, Call, MayBegin};
use bytes::Bytes;
use config::auth::{Placed, Scheme};
use config::{AgentSettings, CALLBACK_URL, Reference, SecretSource};
use domain::message::Request;
use domain::task::Direction;
use domain::template::Template;
use domain::time::Timestamp;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Response, Uri};
use http_body_util::Full;

use crate::answer::{Expected, answer_to};
use crate::auth::{Resolver, SIGNATURE_HEADERS};
use crate::client::Timer;
use crate::http_agent::remote;
use crate::poll::Polled;
use crate::service;

/// A call that is not made.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Its method.
    pub method: Method,
    /// Its whole URL.
    pub uri: Uri,
    /// The headers of its own, by name. In the place of a value that is a secret, or made when the call begins, stands its
    /// kind in square brackets.
    pub headers: Vec<(String, String)>,
    /// The bytes of its body.
    pub body: Bytes,
}

/// The call by which the agent of this name would carry a request out. Without a URL in its settings its service is under
/// `base`.
///
/// # Errors
/// Why there is no such call.
pub fn call_of(request: &Request, base: &str, settings: &AgentSettings) -> Result<Preview, String> {
    let remote = remote(&request.agent, base, settings).map_err(|fault| fault.to_string())?;
    let call = Call::of(request, Timestamp::default(), settings.policy.call_timeout_ms, MayBegin(&|| true));
    let operation = match request.direction {
        Direction::Forward => &remote.forward,
        Direction::Undo => &remote.undo,
    };
    let made = service::request(operation, &settings.headers, &call).map_err(|error| error.to_string())?;
    let (parts, body) = made.into_parts();
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let fixed = parts.headers.iter().map(|(name, fixed)| (name.to_string(), value(fixed)));
    let mut preview = Preview {
        method: parts.method,
        uri: parts.uri,
        headers: fixed.collect(),
        body: body.into_inner().unwrap_or_default(),
    };
    preview.prove(request, settings);
    Ok(preview)
}

impl Preview {
    /// Adds what each call gets besides.
    fn prove(&mut self, request: &Request, settings: &AgentSettings) {
        if request.wait_within_ms.is_some() && settings.policy.memo.is_none() {
            self.put(CALLBACK_URL.as_str(), "[the address for a later result]".to_owned());
        }
        for (name, secret) in &settings.auth.headers {
            self.put(name.as_str(), format!("[{}]", secrets([secret])));
        }
        if let Some(scheme) = &settings.auth.scheme {
            let secrets = secrets(scheme.references());
            let kind = match scheme {
                Scheme::Basic { user, .. } => format!("basic, user {user}"),
                Scheme::Bearer { .. } => "bearer".to_owned(),
                Scheme::OAuth2 { settings, .. } => {
                    format!("oauth2, token of {}, client {}", settings.url, settings.client_id)
                }
                Scheme::SigV4 { scope, .. } => format!("sigv4, service {}, region {}", scope.service, scope.region),
            };
            self.put(AUTHORIZATION.as_str(), format!("[{kind}, {secrets}]"));
        }
        if let Some(secret) = &settings.auth.signature {
            let [id, timestamp, signature] = SIGNATURE_HEADERS;
            self.put(id.as_str(), request.idempotency_key.to_string());
            self.put(timestamp.as_str(), "[the time of the call]".to_owned());
            self.put(signature.as_str(), format!("[signature, {}]", secrets([secret])));
        }
    }

    /// A header of this name replaces an earlier one.
    fn put(&mut self, name: &str, value: String) {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value));
    }
}

fn secrets<'a>(placed: impl IntoIterator<Item = &'a Placed>) -> String {
    let secrets: Vec<String> = placed.into_iter().map(|placed| format!("secret {}", placed.reference)).collect();
    secrets.join(", ")
}

/// The meaning of an answer to a step, in this direction and with this `keep`. `now` is by the agent's clock. `call`: what was
/// called, and its request.
pub async fn answered(
    settings: &AgentSettings,
    (direction, keep): (Direction, Option<&Template>),
    call: Option<(&Uri, &Request)>,
    answer: Response<Bytes>,
    now: Timestamp,
) -> Answer {
    let statuses = match direction {
        Direction::Forward => settings.forward_statuses(),
        Direction::Undo => settings.undo_statuses(),
    };
    // A memo asks for the result by the same call.
    let call = call.filter(|_| settings.policy.memo.is_none());
    let poll = call.and_then(|(called, request)| {
        // All of the answer is there, so nothing waits.
        Some(Polled::new(request.poll.as_ref()?, called, request.budget_ms, Timer::of_machine()))
    });
    let answer = answer_to(answer.map(Full::new), statuses, Expected { keep, poll }, now).await;
    if let Answer::Done(output) = answer { Answer::done(output, keep, direction) } else { answer }
}

/// The URL at which the agent of a request would ask for the state of its call, of which the answer said this path.
///
/// # Errors
/// Why there is none.
pub fn polled_at(path: &str, request: &Request, base: &str, settings: &AgentSettings) -> Result<Uri, String> {
    let remote = remote(&request.agent, base, settings).map_err(|fault| fault.to_string())?;
    remote.at(path).map_err(|fault| fault.to_string())
}

/// The secrets of an agent that cannot be read here, each with the cause. One in a store of AWS has none: the store is not
/// asked.
pub async fn unread(settings: &AgentSettings, resolver: &Resolver) -> Vec<(Reference, Option<String>)> {
    let of_events = settings.webhook.iter().flat_map(|webhook| &webhook.secrets).map(|placed| &placed.reference);
    let mut unread = Vec::new();
    for reference in settings.auth.references().into_iter().chain(of_events) {
        let cause = match reference.source {
            SecretSource::Parameter | SecretSource::SecretsManager => None,
            SecretSource::Environment | SecretSource::File => match resolver(reference.clone()).await {
                Ok(secret) if !secret.expose().is_empty() => continue,
                Ok(_) => Some("is empty".to_owned()),
                Err(cause) => Some(cause),
            },
        };
        unread.push((reference.clone(), cause));
    }
    unread
}
