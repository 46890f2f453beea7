//! The proof of identity in each call: secret headers, Basic, bearer, OAuth 2, and a signature of the call.
//!
//! Secrets are read at the start, and again when a call is answered 401. All calls of a process share them, and share
//! one token. A value is in a [`Secret`], or in a header that is marked as sensitive. No output shows either.

mod machine;
mod secret;
#[cfg(test)]
mod tests;
mod token;
mod webhook;

use std::sync::{Arc, Mutex, PoisonError};

use agent::Answer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::message::Failure;
use domain::time::Timestamp;
use futures_util::lock::Mutex as Turns;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

pub use machine::{Variable, machine_secrets};
pub use secret::{Reference, Resolver, Secret, SecretSource};
pub(crate) use token::TokenSettings;

use crate::client::{HttpClient, HttpClients};
use token::Token;
use webhook::Signer;

/// The references of one agent's settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuthSettings {
    pub(crate) headers: Vec<(HeaderName, Placed)>,
    pub(crate) scheme: Option<Scheme>,
    pub(crate) signature: Option<Placed>,
}

/// A reference and its place in the settings, for faults.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) reference: Reference,
    pub(crate) at: usize,
    pub(crate) path: String,
}

/// The content of the header `Authorization`.
#[derive(Debug, Clone)]
pub(crate) enum Scheme {
    Basic { user: String, password: Placed },
    Bearer { token: Placed },
    OAuth2 { settings: TokenSettings, client_secret: Placed },
}

/// The proof for all calls of one agent in this process.
pub(crate) struct Auth {
    settings: AuthSettings,
    resolver: Resolver,
    /// For the token endpoint.
    client: Option<HttpClient>,
    known: Mutex<Arc<Known>>,
    /// Only one call at a time reads secrets or fetches a token.
    turns: Turns<()>,
}

/// The secrets of a moment.
#[derive(Debug)]
pub(crate) struct Known {
    headers: HeaderMap,
    signer: Option<Signer>,
    client_secret: Option<Secret>,
    token: Option<Token>,
    values: Vec<Secret>,
}

/// No token can be had.
#[derive(Debug)]
pub(crate) struct Faulty {
    problem: String,
    is_passing: bool,
}

impl Faulty {
    fn passing(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_passing: true }
    }

    fn configuration(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_passing: false }
    }
}

impl From<Faulty> for Answer {
    fn from(Faulty { problem, is_passing }: Faulty) -> Self {
        if is_passing { Self::retry(problem) } else { Self::misconfigured(problem) }
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl AuthSettings {
    pub(crate) const fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.scheme.is_none() && self.signature.is_none()
    }
}

impl Auth {
    /// Reads all secrets.
    ///
    /// # Errors
    /// Every fault, with its place.
    pub(crate) async fn start(
        settings: AuthSettings,
        resolver: Resolver,
        clients: &mut HttpClients,
    ) -> Result<Self, Vec<(usize, String)>> {
        let known = Mutex::new(Arc::new(read(&settings, &resolver).await?));
        let client = match &settings.scheme {
            Some(Scheme::OAuth2 { settings, client_secret }) => {
                let is_encrypted = settings.url.scheme() == Some(&http::uri::Scheme::HTTPS);
                let client = clients.reaching(is_encrypted);
                Some(client.map_err(|fault| vec![(client_secret.at, fault.to_string())])?)
            }
            Some(Scheme::Basic { .. } | Scheme::Bearer { .. }) | None => None,
        };
        Ok(Self { settings, resolver, client, known, turns: Turns::new(()) })
    }

    /// The secrets for a call that starts now. A token that is about to end is fetched again.
    ///
    /// # Errors
    /// [`Faulty`] if there is no valid token.
    pub(crate) async fn ready(&self, now: Timestamp) -> Result<Arc<Known>, Faulty> {
        let known = self.known();
        let Some(Scheme::OAuth2 { settings, .. }) = &self.settings.scheme else { return Ok(known) };
        let is_due = |known: &Known| known.token.as_ref().is_none_or(|token| token.is_due(now));
        let is_usable = |known: &Known| known.token.as_ref().is_some_and(|token| !token.is_over(now));
        if !is_due(&known) {
            return Ok(known);
        }
        let _turn = match self.turns.try_lock() {
            Some(turn) => turn,
            // Another call fetches the next token.
            None if is_usable(&known) => return Ok(known),
            None => self.turns.lock().await,
        };
        let known = self.known();
        if !is_due(&known) {
            return Ok(known);
        }
        match self.with_token(&known, settings, now).await {
            Ok(fetched) => Ok(self.keep(fetched)),
            Err(_) if is_usable(&known) => Ok(known),
            Err(fault) => Err(fault),
        }
    }

    /// Other secrets than those of a call that was answered 401: read again, with a new token. `None`: they are the
    /// same, so a repeat makes no sense.
    ///
    /// # Errors
    /// [`Faulty`] if there is no token.
    pub(crate) async fn renewed(&self, used: &Arc<Known>, now: Timestamp) -> Result<Option<Arc<Known>>, Faulty> {
        let _turn = self.turns.lock().await;
        let known = self.known();
        if !Arc::ptr_eq(&known, used) {
            return Ok(Some(known));
        }
        let read = match read(&self.settings, &self.resolver).await {
            Ok(read) => read,
            Err(_) => return Err(Faulty::configuration("HTTP 401, and its secret cannot be read again")),
        };
        if let Some(Scheme::OAuth2 { settings, .. }) = &self.settings.scheme {
            return Ok(Some(self.keep(self.with_token(&read, settings, now).await?)));
        }
        Ok((read.values != known.values).then(|| self.keep(read)))
    }

    async fn with_token(&self, known: &Known, settings: &TokenSettings, now: Timestamp) -> Result<Known, Faulty> {
        let (Some(client), Some(secret)) = (&self.client, &known.client_secret) else {
            return Err(Faulty::configuration("there is no client for the token endpoint"));
        };
        let token = token::fetch(client, settings, secret, now).await?;
        let mut headers = known.headers.clone();
        headers.insert(AUTHORIZATION, token.header.clone());
        let (signer, client_secret) = (known.signer.clone(), known.client_secret.clone());
        Ok(Known { headers, signer, client_secret, token: Some(token), values: known.values.clone() })
    }

    fn known(&self) -> Arc<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known.clone();
        known
    }
}

impl Known {
    /// Adds the secret headers and the signature.
    pub(crate) fn apply(&self, headers: &mut HeaderMap, key: &str, body: &[u8], now: Timestamp) {
        headers.extend(self.headers.clone());
        if let Some(signer) = &self.signer {
            signer.sign(headers, key, body, now);
        }
    }

    /// The answer, without the reason of a rejection if it repeats a secret.
    pub(crate) fn hide(&self, mut answer: Answer) -> Answer {
        if let Answer::Fail(failure) | Answer::UnderWay { unless_alone: Some(failure), .. } = &mut answer
            && (self.is_in(&failure.code) || self.is_in(&failure.message))
        {
            let message = "the service gives a reason that repeats a secret";
            *failure = Failure { code: "rejected".into(), message: message.into() };
        }
        answer
    }

    fn is_in(&self, text: &str) -> bool {
        let token = self.token.as_ref().and_then(|token| token.header.to_str().ok()?.strip_prefix("Bearer "));
        let mut values = self.values.iter().map(Secret::expose).chain(token);
        values.any(|value| text.contains(value))
    }
}

/// A header that no `Debug` output shows.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads all secrets.
async fn read(settings: &AuthSettings, resolver: &Resolver) -> Result<Known, Vec<(usize, String)>> {
    let mut known =
        Known { headers: HeaderMap::new(), signer: None, client_secret: None, token: None, values: Vec::new() };
    let mut faults = Vec::new();
    for (name, placed) in &settings.headers {
        let header = |secret: &Secret| sensitive(secret.expose()).ok_or_else(|| UNSENDABLE.to_owned());
        if let Some(header) = secret(placed, resolver, &mut known.values, &mut faults, header).await {
            known.headers.insert(name.clone(), header);
        }
    }
    let mut derived = None;
    let authorization = match &settings.scheme {
        None => None,
        Some(Scheme::Basic { user, password }) => {
            let header = |secret: &Secret| {
                let pair = STANDARD.encode(format!("{user}:{}", secret.expose()));
                derived = Some(Secret::new(&pair));
                sensitive(&format!("Basic {pair}")).ok_or_else(|| UNSENDABLE.to_owned())
            };
            secret(password, resolver, &mut known.values, &mut faults, header).await
        }
        Some(Scheme::Bearer { token }) => {
            let header = |secret: &Secret| {
                sensitive(&format!("Bearer {}", secret.expose())).ok_or_else(|| UNSENDABLE.to_owned())
            };
            secret(token, resolver, &mut known.values, &mut faults, header).await
        }
        Some(Scheme::OAuth2 { client_secret, .. }) => {
            let same = |secret: &Secret| Ok(secret.clone());
            known.client_secret = secret(client_secret, resolver, &mut known.values, &mut faults, same).await;
            None
        }
    };
    known.values.extend(derived);
    if let Some(authorization) = authorization {
        known.headers.insert(AUTHORIZATION, authorization);
    }
    if let Some(placed) = &settings.signature {
        known.signer = secret(placed, resolver, &mut known.values, &mut faults, Signer::new).await;
    }
    if faults.is_empty() { Ok(known) } else { Err(faults) }
}

const UNSENDABLE: &str = "cannot be sent in a header";

/// Reads one secret, and makes something of it.
async fn secret<T>(
    Placed { reference, at, path }: &Placed,
    resolver: &Resolver,
    values: &mut Vec<Secret>,
    faults: &mut Vec<(usize, String)>,
    make: impl FnOnce(&Secret) -> Result<T, String>,
) -> Option<T> {
    let secret = match resolver(reference.clone()).await {
        Ok(secret) if secret.expose().is_empty() => Err("is empty".to_owned()),
        Ok(secret) => Ok(secret),
        Err(fault) => Err(fault),
    };
    match secret.and_then(|secret| make(&secret).map(|made| (secret, made))) {
        Ok((secret, made)) => {
            values.push(secret);
            Some(made)
        }
        Err(fault) => {
            faults.push((*at, format!("{path}: {reference} {fault}")));
            None
        }
    }
}
