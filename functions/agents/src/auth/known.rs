//! The secrets of a moment, read from their references, and the proof made of them for one call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use config::auth::{AuthSettings, Placed, Scheme, TlsSettings};
use domain::json::Json;
use domain::limits::ANSWER_BYTES_MAX;
use domain::time::Timestamp;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;

use agent::Answer;

use super::secret::{Resolver, Secret, sensitive};
use super::sigv4::SigV4;
use super::token::Token;
use super::webhook::Signer;
use super::{Faulty, hide, tls};
use crate::client::HttpClient;

/// The secrets of a moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    headers: HeaderMap,
    signer: Option<Signer>,
    sigv4: Option<SigV4>,
    pub(super) client_secret: Option<Secret>,
    pub(super) token: Option<Token>,
    client: Option<HttpClient>,
    /// All values, to find them in an answer and to notice a change.
    pub(super) values: Vec<Secret>,
}

impl Known {
    /// The same with another token.
    pub(super) fn with_token(&self, token: Token) -> Self {
        let mut known = Self { token: None, ..self.clone() };
        known.headers.insert(AUTHORIZATION, token.header.clone());
        known.token = Some(token);
        known
    }

    /// The client with a certificate or authorities of its own, if it has any.
    pub(crate) const fn client(&self) -> Option<&HttpClient> {
        self.client.as_ref()
    }

    /// Adds the secret headers and the signatures.
    ///
    /// # Errors
    /// [`Faulty`] if the call cannot be signed.
    pub(crate) fn apply(
        &self,
        request: &mut Request<Full<Bytes>>,
        body: &[u8],
        key: &str,
        now: Timestamp,
    ) -> Result<(), Faulty> {
        request.headers_mut().extend(self.headers.clone());
        if let Some(signer) = &self.signer {
            signer.sign(request.headers_mut(), key, body, now);
        }
        if let Some(sigv4) = &self.sigv4 {
            let signed = sigv4.sign(request, body, now);
            signed.map_err(|error| Faulty::configuration(format!("the call cannot be signed: {error}")))?;
        }
        Ok(())
    }

    /// The text of a body, without the secrets that it repeats.
    pub(crate) fn hide_in(&self, text: String) -> String {
        let hidden = Json::of_any_depth(text.as_bytes(), ANSWER_BYTES_MAX).map(|json| self.hide(Answer::Done(json)));
        let text = if let Ok(Answer::Done(json)) = hidden { json.text().to_owned() } else { text };
        // A short one, or one that is no text of JSON, is not cut out.
        let is_in = self.values().any(|value| !value.is_empty() && text.contains(value));
        if is_in { "[hidden: it repeats a secret]".to_owned() } else { text }
    }

    /// The answer, without the secrets that it repeats. A service that refuses the call may miss what its token lacks.
    pub(crate) fn hide(&self, mut answer: Answer) -> Answer {
        let lacks = self.token.as_ref().and_then(|token| token.lacks.as_deref());
        if let (Some(scopes), Answer::Misconfigured { problem, .. }) = (lacks, &mut answer) {
            problem.push_str(&format!("; the token endpoint did not give the scope {scopes}"));
        }
        hide::hide(answer, &self.values().collect::<Vec<_>>())
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        let token = self.token.as_ref().and_then(|token| token.header.to_str().ok()?.strip_prefix("Bearer "));
        self.values.iter().map(Secret::expose).chain(token)
    }
}

fn header(text: &str) -> Result<HeaderValue, String> {
    sensitive(text).ok_or_else(|| "cannot be sent in a header".to_owned())
}

/// A variable that is set to nothing is none.
fn is_given(secret: Result<Secret, String>) -> bool {
    secret.is_ok_and(|secret| !secret.expose().trim().is_empty())
}

/// Reads all secrets.
///
/// # Errors
/// Every fault, with its place.
pub(super) async fn read(settings: &AuthSettings, resolver: &Resolver) -> Result<Known, Vec<(usize, String)>> {
    let mut known = Known::default();
    let mut reading = Reading { resolver, values: Vec::new(), faults: Vec::new() };
    for (name, placed) in &settings.headers {
        if let Some(value) = reading.secret(placed, |secret| header(secret.expose())).await {
            known.headers.insert(name.clone(), value);
        }
    }
    let authorization = match &settings.scheme {
        None => None,
        Some(Scheme::Basic { user, password }) => {
            let pair = |secret: &Secret| {
                let pair = STANDARD.encode(format!("{user}:{}", secret.expose()));
                header(&format!("Basic {pair}")).map(|header| (header, Secret::new(&pair)))
            };
            reading.secret(password, pair).await.map(|(header, pair)| {
                reading.values.push(pair);
                header
            })
        }
        Some(Scheme::Bearer { token }) => {
            reading.secret(token, |secret| header(&format!("Bearer {}", secret.expose()))).await
        }
        Some(Scheme::OAuth2 { client_secret, .. }) => {
            known.client_secret = reading.plain(client_secret).await;
            None
        }
        Some(Scheme::SigV4 { scope, keys }) => {
            let access_key = reading.plain(&keys.access_key).await;
            let secret_key = reading.plain(&keys.secret_key).await;
            let token = match &keys.session_token {
                Some(token) if keys.are_given || is_given(resolver(token.reference.clone()).await) => {
                    reading.plain(token).await
                }
                Some(_) | None => None,
            };
            if let (Some(access_key), Some(secret_key)) = (access_key, secret_key) {
                known.sigv4 = Some(SigV4::new(scope.clone(), &access_key, &secret_key, token.as_ref()));
            }
            None
        }
    };
    if let Some(authorization) = authorization {
        known.headers.insert(AUTHORIZATION, authorization);
    }
    if let Some(placed) = &settings.signature {
        known.signer = reading.secret(placed, Signer::new).await;
    }
    if let Some(tls) = &settings.tls {
        known.client = reading.client(tls).await;
    }
    known.values = reading.values;
    if reading.faults.is_empty() { Ok(known) } else { Err(reading.faults) }
}

/// The values and the faults so far.
struct Reading<'a> {
    resolver: &'a Resolver,
    values: Vec<Secret>,
    faults: Vec<(usize, String)>,
}

impl Reading<'_> {
    /// Reads one secret, and makes something of it.
    async fn secret<T>(
        &mut self,
        Placed { reference, at, path }: &Placed,
        make: impl FnOnce(&Secret) -> Result<T, String>,
    ) -> Option<T> {
        let secret = match (self.resolver)(reference.clone()).await {
            Ok(secret) if secret.expose().is_empty() => Err("is empty".to_owned()),
            Ok(secret) => Ok(secret),
            Err(fault) => Err(fault),
        };
        match secret.and_then(|secret| make(&secret).map(|made| (secret, made))) {
            Ok((secret, made)) => {
                self.values.push(secret);
                Some(made)
            }
            Err(fault) => {
                self.faults.push((*at, format!("{path}: {reference} {fault}")));
                None
            }
        }
    }

    async fn client(&mut self, settings: &TlsSettings) -> Option<HttpClient> {
        let identity = match &settings.identity {
            Some((certificate, key)) => {
                let certificates = self.secret(certificate, tls::certificates).await;
                self.secret(key, |key| tls::identity(certificates.unwrap_or_default(), key)).await
            }
            None => None,
        };
        let authorities = match &settings.authorities {
            Some(authorities) => self.secret(authorities, tls::authorities).await.unwrap_or_default(),
            None => Vec::new(),
        };
        if !self.faults.is_empty() {
            return None;
        }
        let client = HttpClient::with_tls(identity, authorities);
        client.map_err(|fault| self.faults.push((settings.at, fault.to_string()))).ok()
    }

    async fn plain(&mut self, placed: &Placed) -> Option<Secret> {
        self.secret(placed, |secret| Ok(secret.clone())).await
    }
}
