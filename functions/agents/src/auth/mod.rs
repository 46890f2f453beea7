//! The proof of identity in each call: secret headers, Basic, bearer, OAuth 2, signatures of the call, and a client
//! certificate.
//!
//! Secrets are read at the start, and again when a call is refused for its proof. All calls of a process share them,
//! and share one token. A value is in a [`Secret`], or in a header that is marked as sensitive. No output shows either.

mod aws;
mod hide;
mod known;
mod machine;
mod secret;
mod sigv4;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod webhook;

use std::sync::{Arc, Mutex, PoisonError};

use agent::Answer;
use config::auth::{AuthSettings, Scheme, TokenSettings};
use domain::time::Timestamp;
use futures_util::lock::Mutex as Turns;
use http::StatusCode;

pub(crate) use known::Known;
pub use machine::{Variable, machine_secrets};
pub use secret::{Now, Resolver, Secret};
pub use webhook::Signer;
pub(crate) use webhook::standard_key;

use crate::client::{HttpClient, HttpClients};
use known::read;

/// Secrets are read again at most once in this time.
const READ_AGAIN_MS: u64 = 1_000;
/// Calls that end together started within less than this.
const CLOCK_SET_BACK_MS: u64 = 60 * 60 * 1_000;

/// The proof for all calls of one agent in this process.
pub(crate) struct Auth {
    settings: AuthSettings,
    resolver: Resolver,
    /// For the token endpoint, if there is no client certificate.
    client: Option<HttpClient>,
    known: Mutex<Arc<Known>>,
    /// Only one call at a time reads secrets or fetches a token. Here is when secrets were last read again.
    turns: Turns<Option<Timestamp>>,
}

/// There is no proof for a call.
#[derive(Debug)]
pub(crate) struct Faulty {
    problem: String,
    cause: Cause,
    /// How long the token endpoint asks to wait, in milliseconds.
    after_ms: Option<u64>,
}

/// Why there is no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It may be there later.
    Passing,
    /// The configuration has a fault.
    Configuration,
    /// The token endpoint refuses the client's secret.
    ClientSecret,
    /// It took so long that the attempt may be over.
    Late,
}

impl Faulty {
    fn passing(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), cause: Cause::Passing, after_ms: None }
    }

    pub(crate) fn late() -> Self {
        let problem = "the proof of identity took so long that the attempt may be over".to_owned();
        Self { problem, cause: Cause::Late, after_ms: None }
    }

    fn configuration(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), cause: Cause::Configuration, after_ms: None }
    }
}

impl From<Faulty> for Answer {
    fn from(Faulty { problem, cause, after_ms }: Faulty) -> Self {
        match cause {
            Cause::Passing => Self::Retry { after_ms, problem },
            Cause::Late => Self::NotCalled { problem },
            Cause::Configuration | Cause::ClientSecret => Self::misconfigured(problem),
        }
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Auth {
    /// Reads all secrets, but for those of TLS where there is none.
    ///
    /// # Errors
    /// Every fault, with its place.
    pub(crate) async fn start(
        mut settings: AuthSettings,
        resolver: Resolver,
        clients: &HttpClients,
    ) -> Result<Self, Vec<(usize, String)>> {
        settings.tls = settings.tls.filter(|_| clients.have_tls());
        let known = Mutex::new(Arc::new(read(&settings, &resolver).await?));
        let client = match &settings.scheme {
            Some(Scheme::OAuth2 { settings: token, client_secret }) if settings.tls.is_none() => {
                let settings = token;
                let is_encrypted = settings.url.scheme() == Some(&http::uri::Scheme::HTTPS);
                let client = clients.reaching(is_encrypted);
                Some(client.map_err(|fault| vec![(client_secret.at, fault.to_string())])?)
            }
            Some(_) | None => None,
        };
        Ok(Self { settings, resolver, client, known, turns: Turns::new(None) })
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
        let mut turn = match self.turns.try_lock() {
            Some(turn) => turn,
            // Another call fetches the next token.
            None if is_usable(&known) => return Ok(known),
            None => self.turns.lock().await,
        };
        let known = self.known();
        if !is_due(&known) {
            return Ok(known);
        }
        let fetched = match self.with_token(&known, settings, now).await {
            Err(fault) if fault.cause == Cause::ClientSecret => match self.read_again(&known, &mut turn, now).await {
                Ok(Some(read)) => self.with_token(&read, settings, now).await,
                Ok(None) => Err(fault),
                Err(unread) => Err(unread),
            },
            fetched => fetched,
        };
        match fetched {
            Ok(fetched) => Ok(self.keep(fetched)),
            Err(_) if is_usable(&known) => Ok(known),
            Err(fault) => Err(fault),
        }
    }

    /// Whether an answer of this status refuses the proof of a call. A gateway may refuse a wrong key with 403; a token is
    /// refused with 401 only.
    pub(crate) fn is_refusal(&self, status: StatusCode) -> bool {
        let has_token = matches!(self.settings.scheme, Some(Scheme::OAuth2 { .. }));
        match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => !has_token,
            _ => false,
        }
    }

    /// Other secrets than those of a call that was refused: read again, with a new token. `None`: they are the same, so
    /// a repeat makes no sense.
    ///
    /// # Errors
    /// [`Faulty`] if there is no token.
    pub(crate) async fn renewed(&self, used: &Arc<Known>, now: Timestamp) -> Result<Option<Arc<Known>>, Faulty> {
        let mut turn = self.turns.lock().await;
        let known = self.known();
        if !Arc::ptr_eq(&known, used) {
            return Ok(Some(known));
        }
        let read = self.read_again(&known, &mut turn, now).await?;
        if let Some(Scheme::OAuth2 { settings, .. }) = &self.settings.scheme {
            let known = read.as_ref().unwrap_or(&known);
            return Ok(Some(self.keep(self.with_token(known, settings, now).await?)));
        }
        Ok(read.map(|read| self.keep(read)))
    }

    /// The client with a certificate or authorities of its own, if it has any.
    pub(crate) fn tls_client(&self) -> Option<HttpClient> {
        self.known().client().cloned()
    }

    /// After a call without an answer: the service may have refused a certificate that is replaced by now. The effect of
    /// the call is open, so only the next call uses the new one.
    pub(crate) async fn reconnect(&self, used: &Arc<Known>, now: Timestamp) {
        if self.settings.tls.is_none() {
            return;
        }
        let mut turn = self.turns.lock().await;
        if Arc::ptr_eq(&self.known(), used)
            && let Ok(Some(read)) = self.read_again(used, &mut turn, now).await
        {
            self.keep(read);
        }
    }

    /// The secrets, if they are others than the known ones. `None` also shortly after the last time.
    async fn read_again(
        &self,
        known: &Known,
        last: &mut Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Option<Known>, Faulty> {
        // Calls end in another order than they started in, so `now` may be earlier than the last time. If it is much
        // earlier, the clock was set back.
        let known_last = last.filter(|last| now.ms_until(*last) < CLOCK_SET_BACK_MS);
        if known_last.is_some_and(|last| now < last.plus_ms(READ_AGAIN_MS)) {
            return Ok(None);
        }
        *last = Some(now);
        match read(&self.settings, &self.resolver).await {
            Ok(read) => Ok((read.values != known.values).then_some(read)),
            Err(_) => Err(Faulty::configuration("the call is refused, and its secret cannot be read again")),
        }
    }

    async fn with_token(&self, known: &Known, settings: &TokenSettings, now: Timestamp) -> Result<Known, Faulty> {
        let client = known.client().or(self.client.as_ref());
        let (Some(client), Some(secret)) = (client, &known.client_secret) else {
            return Err(Faulty::configuration("there is no client for the token endpoint"));
        };
        Ok(known.with_token(token::fetch(client, settings, secret, now).await?))
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
