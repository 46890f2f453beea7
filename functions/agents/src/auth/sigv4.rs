//! AWS Signature Version 4, for calls of services on AWS and for the stores of secrets there.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningError, SigningSettings, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use bytes::Bytes;
use config::TRACE;
use config::auth::Scope;
use domain::time::Timestamp;
use http::Request;
use http_body_util::Full;
use tracing::dispatcher::{Dispatch, with_default};

use super::secret::Secret;

/// The source of the keys, for the signer's messages.
const PROVIDER: &str = "stepwarden";

/// Signs calls. The keys have no `Debug` output.
#[derive(Debug, Clone)]
pub(super) struct SigV4 {
    scope: Scope,
    identity: Identity,
}

impl SigV4 {
    pub(super) fn new(scope: Scope, access_key: &Secret, secret_key: &Secret, session_token: Option<&Secret>) -> Self {
        let token = session_token.map(|token| token.expose().to_owned());
        let keys = Credentials::new(access_key.expose(), secret_key.expose(), token, None, PROVIDER);
        Self { scope, identity: keys.into() }
    }

    /// Adds the signature over method, URL, body, date and all headers that the request has. It does not cover
    /// `traceparent`, which a proxy may replace.
    ///
    /// # Errors
    /// [`SigningError`] if the URL cannot be signed.
    pub(super) fn sign(
        &self,
        request: &mut Request<Full<Bytes>>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), SigningError> {
        let mut settings = SigningSettings::default();
        // Not every service requires it. It makes the hash of the body a header of its own.
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.epoch_ms()).unwrap_or(0));
        let Scope { service, region } = &self.scope;
        let params = SigningParams::builder().identity(&self.identity).region(region).name(service).time(now);
        let params = params.settings(settings).build().expect("all that it needs is given").into();
        let url = request.uri().to_string();
        // A signature covers visible ASCII only.
        let headers = request.headers().iter().filter(|(name, _)| **name != TRACE);
        let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(request.method().as_str(), url, headers, SignableBody::Bytes(body))?;
        // The signer logs the headers, and some are secret.
        let signed = with_default(&Dispatch::none(), || sign(signable, &params));
        signed?.into_parts().0.apply_to_request_http1x(request);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From AWS's published test suite: "post-x-www-form-urlencoded".
    #[test]
    fn the_published_example_has_the_published_signature() {
        let scope = Scope { service: "service".to_owned(), region: "us-east-1".to_owned() };
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let signer = SigV4::new(scope, &Secret::new("AKIDEXAMPLE"), &secret, None);
        let mut request = Request::post("https://example.amazonaws.com/")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("content-length", "13")
            .header(TRACE, "not signed")
            .body(Full::default())
            .unwrap();
        // 2015-08-30T12:36:00Z
        signer.sign(&mut request, b"Param1=value1", Timestamp::from_epoch_ms(1_440_938_160_999)).unwrap();
        assert_eq!(request.headers()["x-amz-date"], "20150830T123600Z");
        assert_eq!(
            request.headers()["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=content-length;content-type;host;x-amz-content-sha256;x-amz-date, \
             Signature=d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"
        );
    }
}
