//! AWS Signature Version 4, for API Gateway.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use bytes::Bytes;
use http::Request;

use super::error::RemoteError;

/// The service name of an HTTP API in a signature.
const SERVICE: &str = "execute-api";
/// Signs a request for this region at `now`; the request has all its other headers. The host is signed too, from the URL.
///
/// # Errors
/// [`RemoteError::Unauthenticated`] if a header or the URL cannot be signed.
pub(super) fn sign(
    request: &mut Request<Bytes>,
    keys: &Credentials,
    region: &str,
    now: SystemTime,
) -> Result<(), RemoteError> {
    sign_for(SERVICE, request, keys, region, now)
}

fn sign_for(
    service: &str,
    request: &mut Request<Bytes>,
    keys: &Credentials,
    region: &str,
    now: SystemTime,
) -> Result<(), RemoteError> {
    let identity: Identity = keys.clone().into();
    let mut settings = SigningSettings::default();
    // API Gateway does not require it, but it detects a body that was changed on the way.
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let params = SigningParams::builder().identity(&identity).region(region).name(service).time(now).settings(settings);
    let params = params.build().expect("all that it needs is given").into();
    let url = request.uri().to_string();
    // A signature takes visible ASCII only, and so does the API in every header.
    let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let signable = SignableRequest::new(request.method().as_str(), url, headers, SignableBody::Bytes(request.body()));
    let signed = signable.and_then(|signable| sign_request(signable, &params));
    let unsigned = |error| RemoteError::Unauthenticated(format!("cannot sign the request: {error}"));
    let (instructions, _) = signed.map_err(unsigned)?.into_parts();
    instructions.apply_to_request_http1x(request);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// The keys of AWS's published examples.
    fn example() -> Credentials {
        keys("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
    }

    fn keys(secret: &str, session_token: Option<&str>) -> Credentials {
        Credentials::new("AKIDEXAMPLE", secret, session_token.map(str::to_owned), None, "test")
    }

    /// 2015-08-30T12:36:00Z, the time of the published examples.
    fn example_time() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_440_938_160)
    }

    fn signed(request: http::request::Builder, body: &'static str, keys: &Credentials) -> Request<Bytes> {
        let mut request = request.body(Bytes::from_static(body.as_bytes())).unwrap();
        sign_for("service", &mut request, keys, "us-east-1", example_time()).unwrap();
        request
    }

    fn header<'a>(request: &'a Request<Bytes>, name: &str) -> &'a str {
        request.headers()[name].to_str().unwrap()
    }

    /// From AWS's published test suite: "post-x-www-form-urlencoded".
    #[test]
    fn the_published_example_has_the_published_signature() {
        let request = Request::post("https://example.amazonaws.com/")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("content-length", "13");
        let request = signed(request, "Param1=value1", &example());
        assert_eq!(header(&request, "x-amz-date"), "20150830T123600Z");
        assert_eq!(
            header(&request, "authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=content-length;content-type;host;x-amz-content-sha256;x-amz-date, \
             Signature=d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"
        );
    }

    #[test]
    fn a_session_token_is_sent_and_signed() {
        let keys = keys("secret", Some("token"));
        let request = signed(Request::get("https://example.amazonaws.com/orders?limit=1"), "", &keys);
        assert_eq!(header(&request, "x-amz-security-token"), "token");
        assert!(header(&request, "authorization").contains("x-amz-security-token"));
    }

    #[test]
    fn every_part_of_a_request_counts() {
        let of = |uri: &str, body, keys: &Credentials| {
            header(&signed(Request::post(uri.to_owned()), body, keys), "authorization").to_owned()
        };
        let first = of("https://a.example/orders?limit=1", "{}", &example());
        let other_keys = keys("other", None);
        for other in [
            of("https://b.example/orders?limit=1", "{}", &example()),
            of("https://a.example/order?limit=1", "{}", &example()),
            of("https://a.example/orders?limit=2", "{}", &example()),
            of("https://a.example/orders?limit=1", "{ }", &example()),
            of("https://a.example/orders?limit=1", "{}", &other_keys),
        ] {
            assert_ne!(first, other);
        }
    }
}
