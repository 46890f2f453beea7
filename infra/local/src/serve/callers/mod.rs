//! The authentication of the API on this machine: by tokens of a file, tokens of an issuer, a proxy in front, or none.

mod issuer;
mod proxy;
#[cfg(test)]
mod tests;
mod tokens;
mod verify;

use std::path::Path;
use std::sync::Arc;

use api::Caller;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::BadSetting;
use crate::http_server::Peer;
use crate::tokens::PREFIX;
use issuer::Issuer;
pub use issuer::issuer_url;
use proxy::Stranger;
pub(super) use proxy::refusal;
pub use proxy::{ProxySettings, TrustedPeer};
use tokens::TokenFile;
pub use verify::JwtSettings;

/// The caller of an API that asks for nothing.
const ANYBODY: &str = "local";

/// Tells who calls.
#[derive(Debug, Clone, Default)]
pub struct Callers {
    tokens: Option<Arc<TokenFile>>,
    issuer: Option<Arc<Issuer>>,
    proxy: Option<Arc<ProxySettings>>,
}

impl Callers {
    /// Those with a token of this file, or of this issuer, and those whom a proxy in front names.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn knowing(
        tokens: Option<&Path>,
        jwt: Option<JwtSettings>,
        proxy: Option<ProxySettings>,
    ) -> Result<Self, BadSetting> {
        let tokens = tokens.map(TokenFile::read).transpose()?.map(Arc::new);
        Ok(Self { tokens, issuer: jwt.map(Issuer::new).map(Arc::new), proxy: proxy.map(Arc::new) })
    }

    /// Whether anybody may do everything.
    #[must_use]
    pub const fn are_all_trusted(&self) -> bool {
        self.tokens.is_none() && self.issuer.is_none() && self.proxy.is_none()
    }

    /// The caller of a request with these headers, which this peer sent.
    ///
    /// # Errors
    /// [`Stranger`] if the peer is no proxy, and names a caller as a proxy does.
    pub(super) async fn of(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<Caller, Stranger> {
        if self.are_all_trusted() {
            return Ok(Caller::unrestricted(ANYBODY));
        }
        let named = self.proxy.as_ref().map(|proxy| proxy.caller(headers, peer)).transpose()?.flatten();
        Ok(match named {
            Some(caller) => caller,
            None => self.by_token(headers).await.unwrap_or_else(Caller::unknown),
        })
    }

    async fn by_token(&self, headers: &HeaderMap) -> Option<Caller> {
        let token = bearer(headers)?;
        match (&self.tokens, &self.issuer) {
            (Some(file), _) if token.starts_with(PREFIX) => file.caller(token),
            (_, Some(issuer)) => issuer.caller(token).await,
            (_, None) => None,
        }
    }
}

/// The token of a request: `Authorization: Bearer TOKEN`, once.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
