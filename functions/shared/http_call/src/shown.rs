//! A call as it is shown: no call is made and no secret is read.

use agent::{Call, MayBegin};
use bytes::Bytes;
use config::auth::{Placed, Scheme};
use config::{AgentSettings, CALLBACK_URL, SIGNATURE_HEADERS, TRACE};
use domain::message::Request;
use domain::task::Direction;
use domain::time::Timestamp;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Uri};

use crate::request::{remote, request};

/// A call that is not made.
#[derive(Debug, Clone)]
pub struct Shown {
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
pub fn call_of(called: &Request, base: &str, settings: &AgentSettings) -> Result<Shown, String> {
    let remote = remote(&called.agent, base, settings).map_err(|fault| fault.to_string())?;
    let call = Call::of(called, Timestamp::default(), settings.policy.call_timeout_ms, MayBegin(&|| true));
    let operation = match called.direction {
        Direction::Forward => &remote.forward,
        Direction::Undo => &remote.undo,
    };
    let made = request(operation, &settings.headers, &call).map_err(|error| error.to_string())?;
    let (parts, body) = made.into_parts();
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    // Only a call has a trace.
    let fixed = parts.headers.iter().filter(|(name, _)| **name != TRACE);
    let fixed = fixed.map(|(name, fixed)| (name.to_string(), value(fixed)));
    let mut shown = Shown { method: parts.method, uri: parts.uri, headers: fixed.collect(), body };
    shown.prove(called, settings);
    Ok(shown)
}

impl Shown {
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
