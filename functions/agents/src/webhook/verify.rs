//! The signatures of providers: who sent an event, and when.

use std::iter::repeat;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::WebhookScheme;
use domain::time::Timestamp;
use http::{HeaderMap, HeaderValue};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use crate::auth::{Secret, standard_key};

/// How far the time of an event may be from now, before and after, in milliseconds. It bounds the age of a replay, and
/// includes the difference of the clocks.
const TOLERANCE_MS: u64 = 5 * 60 * 1_000;
/// Most headers of Stripe's scheme: for each, the body is read once for each key. A provider sends one.
const SETS_MAX: usize = 8;
const STRIPE: &str = "Stripe-Signature";
const GITHUB: &str = "X-Hub-Signature-256";

/// Knows the secrets of one webhook, as they were read last. No `Debug` output shows them.
#[derive(Debug)]
pub(crate) struct Verifier {
    scheme: WebhookScheme,
    /// In the order of the settings. A secret that could not be read is as it was before. `None`: it never could.
    keys: Vec<Option<Key>>,
    /// Whether all of them could be read the last time. If not, an event may be genuine that none of them signed.
    pub(crate) is_complete: bool,
}

/// Why an event is not genuine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// A header is missing, is there too often, or has another form.
    #[error("the header {0} is missing, malformed or there too often")]
    Malformed(&'static str),
    /// The event is too old, or from the future.
    #[error("the time of the signature is more than 5 minutes from now")]
    Stale,
    /// No secret signed these bytes.
    #[error("no secret of this webhook signed the event")]
    Forged,
}

/// What a request says of its signature.
struct Signed {
    /// What stands before the body in the signed bytes.
    prefix: String,
    /// The time of the signature, in milliseconds. `None`: the scheme has none.
    at_ms: Option<i64>,
    signatures: Vec<Vec<u8>>,
}

/// The key of a secret.
///
/// # Errors
/// The fault of the secret, without its value.
pub(crate) fn key_of(scheme: WebhookScheme, secret: &Secret) -> Result<Key, String> {
    match scheme {
        WebhookScheme::StandardWebhooks => standard_key(secret),
        WebhookScheme::Stripe | WebhookScheme::Github if secret.expose().is_empty() => Err("is empty".to_owned()),
        WebhookScheme::Stripe | WebhookScheme::Github => Ok(Key::new(HMAC_SHA256, secret.expose().as_bytes())),
    }
}

impl Verifier {
    /// With these keys, each or the one before it. `None` if there is none at all.
    pub(crate) fn new(scheme: WebhookScheme, read: Vec<Option<Key>>, before: Option<&Self>) -> Option<Self> {
        let is_complete = read.iter().all(Option::is_some);
        let before = before.into_iter().flat_map(|before| before.keys.iter().cloned()).chain(repeat(None));
        let keys: Vec<_> = read.into_iter().zip(before).map(|(key, before)| key.or(before)).collect();
        keys.iter().any(Option::is_some).then_some(Self { scheme, keys, is_complete })
    }

    /// Whether one of the secrets signed this body, and just now if the scheme has a time. One good set of headers is
    /// enough.
    ///
    /// # Errors
    /// [`Refusal`] of the set that was looked at furthest.
    pub(crate) fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Refusal> {
        let sets = match self.scheme {
            WebhookScheme::StandardWebhooks => STANDARD_NAMES.map(|names| standard(headers, names)).into(),
            WebhookScheme::Stripe => stripe(headers),
            WebhookScheme::Github => vec![github(headers)],
        };
        let verified = sets.into_iter().map(|set| self.verify_set(set?, body, now));
        verified.reduce(better).unwrap_or(Err(Refusal::Malformed(STRIPE)))
    }

    fn verify_set(&self, set: Signed, body: &[u8], now: Timestamp) -> Result<(), Refusal> {
        let Signed { prefix, at_ms, signatures } = set;
        if at_ms.is_some_and(|at_ms| at_ms.abs_diff(now.epoch_ms()) > TOLERANCE_MS) {
            return Err(Refusal::Stale);
        }
        let signed = [prefix.as_bytes(), body].concat();
        // The body is read once for each key, however many signatures there are. Two tags are compared by their own tags:
        // that takes constant time, so that no answer tells how much of a signature is right.
        let is_signed = |key: &Key| {
            let right = sign(key, &signed);
            signatures.iter().any(|signature| verify(key, right.as_ref(), sign(key, signature).as_ref()).is_ok())
        };
        if self.keys.iter().flatten().any(is_signed) { Ok(()) } else { Err(Refusal::Forged) }
    }
}

/// The result of the set of headers that was looked at further.
fn better(one: Result<(), Refusal>, other: Result<(), Refusal>) -> Result<(), Refusal> {
    match (one, other) {
        (Ok(()), _) | (_, Ok(())) => Ok(()),
        (Err(Refusal::Malformed(_)), Err(Refusal::Stale)) | (_, Err(Refusal::Forged)) => other,
        (refused, _) => refused,
    }
}

/// The names of the headers of Standard Webhooks. Many providers still send those of the library that it came from.
const STANDARD_NAMES: [[&str; 3]; 2] =
    [["webhook-id", "webhook-timestamp", "webhook-signature"], ["svix-id", "svix-timestamp", "svix-signature"]];

/// Identifier, time, and signatures such as `v1,BASE64 v1,BASE64`.
fn standard(headers: &HeaderMap, [id, time, signature]: [&'static str; 3]) -> Result<Signed, Refusal> {
    let (id, seconds) = (only(headers, id)?, only(headers, time)?);
    let at_ms = Some(at_ms(seconds).ok_or(Refusal::Malformed(time))?);
    let texts: Vec<_> = headers.get_all(signature).iter().flat_map(|value| parts(value, b" ,")).collect();
    let signatures = texts.windows(2).filter(|pair| pair[0] == "v1").filter_map(|pair| STANDARD.decode(pair[1]).ok());
    Signed { prefix: format!("{id}.{seconds}."), at_ms, signatures: signatures.collect() }.signed_by(signature)
}

/// `t=SECONDS,v1=HEX,v1=HEX`. Each such header is a set of its own.
fn stripe(headers: &HeaderMap) -> Vec<Result<Signed, Refusal>> {
    let set = |value| {
        let parts = || parts(value, b",").filter_map(|part| part.split_once('='));
        let of = |name: &'static str| parts().filter(move |(key, _)| key.trim() == name).map(|(_, text)| text.trim());
        // Each signature is of one time.
        let mut times = of("t");
        let (Some(time), None) = (times.next(), times.next()) else { return Err(Refusal::Malformed(STRIPE)) };
        let at_ms = Some(at_ms(time).ok_or(Refusal::Malformed(STRIPE))?);
        Signed { prefix: format!("{time}."), at_ms, signatures: of("v1").filter_map(unhexed).collect() }
            .signed_by(STRIPE)
    };
    let sets: Vec<_> = headers.get_all(STRIPE).iter().map(set).collect();
    if sets.len() > SETS_MAX { Vec::new() } else { sets }
}

/// `sha256=HEX`.
fn github(headers: &HeaderMap) -> Result<Signed, Refusal> {
    let parts = headers.get_all(GITHUB).iter().flat_map(|value| parts(value, b" ,"));
    let signatures = parts.filter_map(|part| part.strip_prefix("sha256=").and_then(unhexed)).collect();
    Signed { prefix: String::new(), at_ms: None, signatures }.signed_by(GITHUB)
}

impl Signed {
    /// Itself, if this header has a signature that can be read. One that cannot be read spoils none beside it.
    fn signed_by(self, header: &'static str) -> Result<Self, Refusal> {
        if self.signatures.is_empty() { Err(Refusal::Malformed(header)) } else { Ok(self) }
    }
}

/// The parts of a header's value between these signs, without those that cannot be read.
fn parts<'a>(value: &'a HeaderValue, between: &'static [u8]) -> impl Iterator<Item = &'a str> + use<'a> {
    value.as_bytes().split(|byte| between.contains(byte)).filter_map(|part| str::from_utf8(part).ok())
}

/// The value of a header that must be there once.
fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
        (Some(value), None) => Ok(value),
        (_, _) => Err(Refusal::Malformed(name)),
    }
}

/// Whole seconds, in digits alone.
fn at_ms(seconds: &str) -> Option<i64> {
    let is_number = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    seconds.parse::<i64>().ok().filter(|_| is_number)?.checked_mul(1_000)
}

/// Bytes of hexadecimal digits in lower case: one signature has one form.
fn unhexed(text: &str) -> Option<Vec<u8>> {
    hex::decode(text).ok().filter(|_| !text.bytes().any(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests;
