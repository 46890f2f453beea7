//! Authentication of calls.

use aws_credential_types::Credentials;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use local::BadSetting;
use tokio::sync::Mutex;

use super::clock;
use super::credentials::{end_soon, find};
use super::environment::Environment;
use super::error::RemoteError;
use super::mode::AuthMode;
use super::sign::sign;
use super::target::Target;

/// The authentication of a caller.
#[derive(Debug)]
pub(super) enum Auth {
    /// None: a local API has no authentication.
    None,
    /// A token, as in the header.
    Bearer(HeaderValue),
    /// A signature with AWS credentials.
    Iam(Box<Iam>),
}

#[derive(Debug)]
pub(super) struct Iam {
    region: String,
    profile: Option<String>,
    environment: Environment,
    /// Fetched at the first call, and again shortly before they expire.
    keys: Mutex<Option<Credentials>>,
}

impl Auth {
    /// The requested mode. By default `iam` for an API Gateway URL. Elsewhere the token of the environment if there is
    /// one that may be sent there, and else none.
    pub(super) fn choose(
        mode: Option<AuthMode>,
        target: &Target,
        region: Option<&str>,
        profile: Option<&str>,
        environment: Environment,
    ) -> Result<Self, RemoteError> {
        let may_have_token = environment.token.is_some() && not_in_the_clear("a token", target).is_ok();
        let unasked = match target.region() {
            Some(_) => AuthMode::Iam,
            None if may_have_token => AuthMode::Bearer,
            None => AuthMode::None,
        };
        match mode.unwrap_or(unasked) {
            AuthMode::None => Ok(Self::None),
            AuthMode::Bearer => {
                let missing = "--auth bearer takes the token from STEPWARDEN_TOKEN, which is not set";
                let token = environment.token.ok_or_else(|| RemoteError::Unauthenticated(missing.to_owned()))?;
                not_in_the_clear("a token", target)?;
                let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| {
                    let bad = "STEPWARDEN_TOKEN is not a token: it has characters that a header cannot have";
                    RemoteError::Unauthenticated(bad.to_owned())
                })?;
                value.set_sensitive(true);
                Ok(Self::Bearer(value))
            }
            AuthMode::Iam => {
                not_in_the_clear("a signature", target)?;
                let region = region.or(target.region()).or(environment.region.as_deref());
                let advice = "--auth iam needs a region, and the URL has none; give --region or set AWS_REGION";
                let region = region.ok_or_else(|| BadSetting::new(advice))?.to_owned();
                let profile = profile.map(str::to_owned);
                Ok(Self::Iam(Box::new(Iam { region, profile, environment, keys: Mutex::new(None) })))
            }
        }
    }

    /// Authenticates an otherwise complete request.
    pub(super) async fn prove(&self, request: &mut Request<Bytes>) -> Result<(), RemoteError> {
        match self {
            Self::None => Ok(()),
            Self::Bearer(token) => {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
                Ok(())
            }
            Self::Iam(iam) => sign(request, &iam.keys().await?, &iam.region, clock::system_now()),
        }
    }

    /// The mode, for advice.
    pub(super) const fn mode(&self) -> AuthMode {
        match self {
            Self::None => AuthMode::None,
            Self::Bearer(_) => AuthMode::Bearer,
            Self::Iam(_) => AuthMode::Iam,
        }
    }
}

/// Secrets are not sent over a network without TLS.
fn not_in_the_clear(what: &str, target: &Target) -> Result<(), BadSetting> {
    if target.is_secure() || target.is_local() {
        return Ok(());
    }
    let to = target.authority();
    Err(BadSetting(format!("{what} is not sent to {to} without TLS; give an https:// URL")))
}

impl Iam {
    async fn keys(&self) -> Result<Credentials, RemoteError> {
        let mut kept = self.keys.lock().await;
        match &*kept {
            Some(keys) if !end_soon(keys, clock::system_now()) => Ok(keys.clone()),
            Some(_) | None => {
                let keys = find(&self.environment, self.profile.as_deref()).await?;
                Ok(kept.insert(keys).clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(mode: Option<AuthMode>, url: &str, environment: Environment) -> Result<Auth, RemoteError> {
        Auth::choose(mode, &Target::parse(url).unwrap(), None, None, environment)
    }

    #[test]
    fn an_api_of_api_gateway_is_signed_for_and_any_other_is_not() {
        let signed = chosen(None, "https://a1.execute-api.eu-central-1.amazonaws.com", Environment::default()).unwrap();
        assert!(matches!(&signed, Auth::Iam(iam) if iam.region == "eu-central-1"), "{signed:?}");
        let local = chosen(None, "http://127.0.0.1:3000", Environment::default()).unwrap();
        assert!(matches!(local, Auth::None), "{local:?}");
        let with_token = |url| chosen(None, url, Environment { token: Some("t".to_owned()), ..Environment::default() });
        for (url, is_sent) in [
            ("http://127.0.0.1:3000", true),
            ("https://orders.example.com", true),
            ("http://orders.example.com", false),
            ("https://a1.execute-api.eu-central-1.amazonaws.com", false),
        ] {
            assert_eq!(matches!(with_token(url).unwrap(), Auth::Bearer(_)), is_sent, "{url}");
        }
    }

    #[test]
    fn a_signature_needs_a_region_from_somewhere() {
        let error = chosen(Some(AuthMode::Iam), "https://orders.example.com", Environment::default()).unwrap_err();
        assert!(error.to_string().contains("--region"), "{error}");
        let environment = Environment { region: Some("eu-west-1".to_owned()), ..Environment::default() };
        assert!(chosen(Some(AuthMode::Iam), "https://orders.example.com", environment).is_ok());
    }

    #[test]
    fn a_token_is_not_sent_where_others_can_read_it() {
        let environment = || Environment { token: Some("secret".to_owned()), ..Environment::default() };
        let bearer = Some(AuthMode::Bearer);
        let error = chosen(bearer, "http://orders.example.com", environment()).unwrap_err();
        assert!(error.to_string().contains("without TLS"), "{error}");
        assert!(chosen(bearer, "http://localhost:3000", environment()).is_ok());
        let signing = || Environment { region: Some("eu-west-1".to_owned()), ..Environment::default() };
        for (url, is_fine) in [
            ("http://orders.example.com", false),
            ("http://a1.execute-api.eu-central-1.amazonaws.com", false),
            ("http://[::1]:3000", true),
            ("https://orders.example.com", true),
        ] {
            assert_eq!(chosen(Some(AuthMode::Iam), url, signing()).is_ok(), is_fine, "{url}");
        }
        let auth = chosen(bearer, "https://orders.example.com", environment()).unwrap();
        assert!(!format!("{auth:?}").contains("secret"), "{auth:?}");
        let error = chosen(bearer, "https://orders.example.com", Environment::default()).unwrap_err();
        assert!(error.to_string().contains("STEPWARDEN_TOKEN"), "{error}");
    }

    #[tokio::test]
    async fn the_proof_is_added_to_a_request() {
        let request = || Request::get("https://orders.example.com/orders").body(Bytes::new()).unwrap();
        let environment = Environment {
            token: Some("secret".to_owned()),
            region: Some("eu-west-1".to_owned()),
            access_key_id: Some("AKIA1".to_owned()),
            secret_access_key: Some("s".to_owned()),
            ..Environment::default()
        };
        for (mode, header) in
            [(AuthMode::Bearer, "Bearer secret"), (AuthMode::Iam, "AWS4-HMAC-SHA256 Credential=AKIA1/")]
        {
            let auth = chosen(Some(mode), "https://orders.example.com", environment.clone()).unwrap();
            let mut proven = request();
            auth.prove(&mut proven).await.unwrap();
            assert!(proven.headers()["authorization"].to_str().unwrap().starts_with(header), "{mode:?}");
        }
    }
}
