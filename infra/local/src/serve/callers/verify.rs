//! Whether a token of an issuer (JWT) is good, and whom it names. Pure but for the clock that the library reads.
//!
//! The key alone says which algorithm its tokens have: RS256, ES256 or EdDSA. So a token cannot choose another one, none at
//! all, or HMAC with a public key as the secret.

use std::sync::{Arc, LazyLock};

use api::{Caller, Role};
use domain::order::UNAUTHENTICATED;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Header, Validation, decode};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;
use signature::Verifier;

/// What clocks may differ by, in seconds.
pub(crate) const LEEWAY_S: u64 = 60;
/// Keys of an issuer that are kept.
pub(super) const KEYS_MAX: usize = 100;
/// The claim with the reply channels that the caller's orders may name.
const CHANNELS_CLAIM: &str = "reply_channels";
/// The longest name of a caller, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// The issuer of `serve --jwt-issuer`, and what its tokens must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    /// The URL of the issuer, as its tokens have it.
    pub issuer: String,
    /// The name of this API at the issuer.
    pub audience: String,
    /// The claim with the roles: its name, or a JSON pointer.
    pub roles_claim: String,
}

/// A key that verifies tokens.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Why a token is not accepted. For the log: the caller learns nothing of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// Of the library.
    #[error("{0}")]
    Bad(String),
    #[error(
        "its `sub` is no name of a caller: 1 to {NAME_BYTES_MAX} visible characters without brackets, and neither local nor anonymous"
    )]
    Name,
    #[error("its claim {0} names no role")]
    NoRole(String),
    #[error("its claim {CHANNELS_CLAIM} is neither a text nor a list of texts")]
    Channels,
}

impl Key {
    /// The key of an issuer, if tokens can be verified with it here.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else the library knows is refused")]
    pub(super) fn of(jwk: &Jwk) -> Option<Self> {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
            _ => return None,
        };
        let is_for_it = jwk.common.key_algorithm.is_none_or(|named| named == algorithm.into());
        let is_to_verify = jwk.common.public_key_use.as_ref().is_none_or(|to| *to == PublicKeyUse::Signature);
        let key = DecodingKey::from_jwk(jwk).ok().filter(|_| is_for_it && is_to_verify)?;
        Some(Self { id: jwk.common.key_id.clone(), algorithm, key })
    }
}

/// The key of a token among those of its issuer: by its id. A token without an id has the only key.
pub(super) fn key_of<'a>(header: &Header, keys: &'a [Key]) -> Option<&'a Key> {
    match (&header.kid, keys) {
        (Some(id), keys) => keys.iter().find(|key| key.id.as_ref() == Some(id)),
        (None, [key]) => Some(key),
        (None, _) => None,
    }
}

/// The caller of a token that this key signed.
pub(super) fn verified(token: &str, key: &Key, expected: &JwtSettings) -> Result<Caller, Refusal> {
    LazyLock::force(&INSTALLED);
    let mut validation = Validation::new(key.algorithm);
    validation.set_issuer(&[&expected.issuer]);
    validation.set_audience(&[&expected.audience]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    (validation.leeway, validation.validate_nbf) = (LEEWAY_S, true);
    let decoded = decode::<Value>(token, &key.key, &validation).map_err(|error| Refusal::Bad(error.to_string()))?;
    if decoded.header.crit.is_some() {
        return Err(Refusal::Bad("it has critical headers, which are not known here".to_owned()));
    }
    if !decoded.header.typ.as_deref().is_none_or(is_of_access) {
        return Err(Refusal::Bad("it is a token of another kind (typ)".to_owned()));
    }
    let claims = decoded.claims;
    // The library also takes a list that has the issuer in it.
    if claims["iss"].as_str() != Some(&expected.issuer) {
        return Err(Refusal::Bad("iss is not one text".to_owned()));
    }
    let name = claims["sub"].as_str().filter(|name| is_name(name)).ok_or(Refusal::Name)?;
    let roles = texts(claim(&claims, &expected.roles_claim)).unwrap_or_default();
    // An issuer may have roles of other programs.
    let roles: Vec<Role> = roles.iter().filter_map(|role| role.parse().ok()).collect();
    if roles.is_empty() {
        return Err(Refusal::NoRole(expected.roles_claim.clone()));
    }
    let channels = match claims.get(CHANNELS_CLAIM) {
        None => None,
        Some(channels) => Some(texts(Some(channels)).ok_or(Refusal::Channels)?.into_iter().map(Arc::from).collect()),
    };
    Ok(Caller::with(name, &roles, channels))
}

/// Whether a token of this type is one for an API: RFC 9068, or the usual name of any JWT. A proof of possession or a
/// logout is none.
fn is_of_access(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt")
}

/// A claim by its name, which may be a URL, or by a pointer.
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') { claims.pointer(name) } else { claims.get(name) }
}

/// The texts of a list, or those between the blanks of one text.
fn texts(value: Option<&Value>) -> Option<Vec<&str>> {
    match value? {
        Value::String(text) => Some(text.split_ascii_whitespace().collect()),
        Value::Array(values) => values.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A bracket would let it look like a caller that is known by another name.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"[]".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) && !UNAUTHENTICATED.contains(&name)
}

/// The library has one provider for the process.
static INSTALLED: LazyLock<()> = LazyLock::new(|| {
    // An error means that there is one, and nothing else here installs any.
    let _ = RING.install_default();
});

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(ByRing { algorithm: *algorithm, key: key.clone() })),
    key_utils: KeyUtils::new_unimplemented(),
};

struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signed)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signed)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signed)
            }
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}
