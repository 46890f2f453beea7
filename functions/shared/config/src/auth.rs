//! The settings of authentication: secrets are references, never values.

use http::{HeaderName, Uri};

use crate::reference::Reference;

/// The references of one agent's settings.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// The headers whose values are secrets.
    pub headers: Vec<(HeaderName, Placed)>,
    /// The header `Authorization`.
    pub scheme: Option<Scheme>,
    /// The secret of Standard Webhooks.
    pub signature: Option<Placed>,
    /// The client certificate, and the authorities.
    pub tls: Option<TlsSettings>,
}

/// The references to a client certificate and to certificate authorities.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// Its place, in bytes.
    pub at: usize,
    /// The certificate and its private key.
    pub identity: Option<(Placed, Placed)>,
    /// The certificate authorities, instead of those of the machine.
    pub authorities: Option<Placed>,
}

/// A reference and its place in the settings, for faults.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The reference.
    pub reference: Reference,
    /// Its place, in bytes.
    pub at: usize,
    /// Its key, such as `agents.payment.auth.bearer`.
    pub path: String,
}

/// The content of the header `Authorization`.
#[derive(Debug, Clone)]
pub enum Scheme {
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Placed,
    },
    /// A fixed token.
    Bearer {
        /// The token.
        token: Placed,
    },
    /// A token of OAuth 2, by client credentials.
    OAuth2 {
        /// The endpoint.
        settings: TokenSettings,
        /// The client's secret.
        client_secret: Placed,
    },
    /// AWS Signature Version 4.
    SigV4 {
        /// The place where it is valid.
        scope: Scope,
        /// The keys.
        keys: KeySettings,
    },
}

/// The references to the keys of AWS Signature Version 4.
#[derive(Debug, Clone)]
pub struct KeySettings {
    /// The name of the key.
    pub access_key: Placed,
    /// The key.
    pub secret_key: Placed,
    /// The token of keys that end.
    pub session_token: Option<Placed>,
    /// Whether the settings name them. Otherwise they are those of the environment, which may have no token.
    pub are_given: bool,
}

/// The endpoint, and the parts of the request that are no secret.
#[derive(Debug, Clone)]
pub struct TokenSettings {
    /// The endpoint.
    pub url: Uri,
    /// The name of the client.
    pub client_id: String,
    /// What the token is for.
    pub scope: Option<String>,
    /// Whom the token is for.
    pub audience: Option<String>,
    /// The service that the token is for, as a URL (RFC 8707).
    pub resource: Option<String>,
    /// Whether the client's secret is in the body, and not in the header `Authorization`.
    pub secret_in_body: bool,
}

/// The place where a signature is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The signing name of the service, such as `execute-api`.
    pub service: String,
    /// Such as `eu-central-1`.
    pub region: String,
}

impl AuthSettings {
    /// Whether there is no reference.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.scheme.is_none() && self.signature.is_none() && self.tls.is_none()
    }
    /// All references that must lead to a value.
    #[must_use]
    pub fn references(&self) -> Vec<&Reference> {
        let scheme = self.scheme.as_ref().map(Scheme::references).unwrap_or_default();
        let tls = self.tls.iter().flat_map(|tls| {
            let identity = tls.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
            identity.chain(&tls.authorities)
        });
        let placed = self.headers.iter().map(|(_, placed)| placed).chain(scheme).chain(&self.signature).chain(tls);
        placed.map(|placed| &placed.reference).collect()
    }
}

impl Scheme {
    /// The references. The environment may have no session token.
    #[must_use]
    pub fn references(&self) -> Vec<&Placed> {
        match self {
            Self::Basic { password: secret, .. }
            | Self::Bearer { token: secret }
            | Self::OAuth2 { client_secret: secret, .. } => vec![secret],
            Self::SigV4 { keys: KeySettings { access_key, secret_key, session_token, are_given }, .. } => {
                [access_key, secret_key].into_iter().chain(session_token.as_ref().filter(|_| *are_given)).collect()
            }
        }
    }
}
