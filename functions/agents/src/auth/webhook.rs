//! A signature that a service can check, after Standard Webhooks: HMAC-SHA256 over identifier, time and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::SIGNATURE_HEADERS;
use domain::time::Timestamp;
use http::{HeaderMap, HeaderValue};
use ring::hmac::{HMAC_SHA256, Key, sign};

use super::secret::Secret;

/// The prefix of a secret, before its base64.
const PREFIX: &str = "whsec_";
/// The length of a secret, in bytes.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs calls by Standard Webhooks. The key has no `Debug` output of its own.
#[derive(Debug, Clone)]
pub struct Signer(Key);

impl Signer {
    /// The signer with a secret such as `whsec_…`.
    ///
    /// # Errors
    /// The fault of the secret, without its value.
    pub fn new(secret: &Secret) -> Result<Self, String> {
        standard_key(secret).map(Self)
    }

    /// Adds the three headers. A key that no header can hold stays unsigned; the call itself then fails for it.
    pub fn sign(&self, headers: &mut HeaderMap, key: &str, body: &[u8], now: Timestamp) {
        let seconds = now.epoch_ms() / 1_000;
        let signed = [format!("{key}.{seconds}.").as_bytes(), body].concat();
        let signature = format!("v1,{}", STANDARD.encode(sign(&self.0, &signed)));
        for (name, value) in SIGNATURE_HEADERS.into_iter().zip([key.to_owned(), seconds.to_string(), signature]) {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

/// The key of a secret such as `whsec_…`.
///
/// # Errors
/// The fault of the secret, without its value.
pub(crate) fn standard_key(secret: &Secret) -> Result<Key, String> {
    let text = secret.expose().strip_prefix(PREFIX);
    let bytes = text.and_then(|text| STANDARD.decode(text).ok()).filter(|bytes| BYTES.contains(&bytes.len()));
    let bytes = bytes
        .ok_or_else(|| format!("must be {PREFIX} and the base64 of {} to {} bytes", BYTES.start(), BYTES.end()))?;
    Ok(Key::new(HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published example of Standard Webhooks.
    #[test]
    fn the_published_example_has_the_published_signature() {
        let signer = Signer::new(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
        let mut headers = HeaderMap::new();
        let now = Timestamp::from_epoch_ms(1_614_265_330_999);
        signer.sign(&mut headers, "msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#, now);
        let [id, timestamp, signature] = SIGNATURE_HEADERS;
        assert_eq!(headers[id], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers[timestamp], "1614265330");
        assert_eq!(headers[signature], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_of_another_form_is_refused_without_its_value() {
        for text in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_no base64"] {
            let fault = Signer::new(&Secret::new(text)).unwrap_err();
            assert_eq!(fault, "must be whsec_ and the base64 of 24 to 64 bytes");
        }
    }
}
