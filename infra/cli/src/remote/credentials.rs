//! The caller's AWS credentials, from the environment or the `aws` command line tool. The tool supports profiles, single
//! sign-on and roles.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use domain::time::Timestamp;
use serde::Deserialize;

use super::aws_tool::Aws;
use super::environment::Environment;
use super::error::RemoteError;

/// Keys are refreshed this long before they expire, so that they stay valid during a request.
const RENEW_BEFORE: Duration = Duration::from_secs(60);
/// The source of the keys, for the signer's messages.
const PROVIDER: &str = "stepwarden";

/// The keys of the tool.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Exported {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// As text: keys without a readable expiry count as lasting.
    expiration: Option<serde_json::Value>,
}

impl From<Exported> for Credentials {
    fn from(exported: Exported) -> Self {
        let Exported { access_key_id, secret_access_key, session_token, expiration } = exported;
        let end = expiration.and_then(|text| serde_json::from_value::<Timestamp>(text).ok());
        let end = end.and_then(|end| u64::try_from(end.epoch_ms()).ok());
        let end = end.map(|end_ms| UNIX_EPOCH + Duration::from_millis(end_ms));
        Self::new(access_key_id, secret_access_key, session_token, end, PROVIDER)
    }
}

/// Whether they expire within a minute of `now`.
pub(super) fn end_soon(keys: &Credentials, now: SystemTime) -> bool {
    keys.expiry().is_some_and(|end| end <= now + RENEW_BEFORE)
}

/// The keys in the environment, unless a profile is given; otherwise the keys from the `aws` tool.
///
/// # Errors
/// [`RemoteError::NoKeys`]; its message names the searched places.
pub(super) async fn find(environment: &Environment, profile: Option<&str>) -> Result<Credentials, RemoteError> {
    let Environment { access_key_id, secret_access_key, session_token, .. } = environment;
    match (access_key_id, secret_access_key) {
        (Some(id), Some(secret)) if profile.is_none() => {
            return Ok(Credentials::new(id, secret, session_token.clone(), None, PROVIDER));
        }
        (Some(_), None) | (None, Some(_)) if profile.is_none() => {
            let half = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; only one of them is set";
            return Err(RemoteError::NoKeys(half.to_owned()));
        }
        (_, _) => {}
    }
    let aws = Aws::new(None, profile);
    let exported = aws.call::<Exported>(&["configure", "export-credentials", "--format", "process"]).await;
    exported.map(Into::into).map_err(|error| {
        let places = "neither the environment nor `aws configure export-credentials` has any";
        RemoteError::NoKeys(format!("no AWS credentials: {places}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(access_key_id: Option<&str>, secret_access_key: Option<&str>) -> Environment {
        Environment {
            access_key_id: access_key_id.map(str::to_owned),
            secret_access_key: secret_access_key.map(str::to_owned),
            session_token: Some("t".to_owned()),
            ..Environment::default()
        }
    }

    #[tokio::test]
    async fn keys_in_the_environment_are_taken_as_they_are() {
        let keys = find(&environment(Some("AKIA1"), Some("s")), None).await.unwrap();
        assert_eq!((keys.access_key_id(), keys.session_token()), ("AKIA1", Some("t")));
        assert!(!end_soon(&keys, UNIX_EPOCH));
    }

    #[tokio::test]
    async fn half_of_the_keys_is_a_mistake_that_is_told() {
        for (id, secret) in [(Some("AKIA1"), None), (None, Some("s"))] {
            let error = find(&environment(id, secret), None).await.unwrap_err();
            assert!(error.to_string().contains("only one of them is set"), "{error}");
        }
    }

    #[test]
    fn what_the_tool_gives_is_read_with_its_end() {
        let given = r#"{"Version": 1, "AccessKeyId": "ASIA1", "SecretAccessKey": "s", "SessionToken": "t",
                        "Expiration": "2026-11-20T17:26:43+00:00"}"#;
        let keys = |given| Credentials::from(serde_json::from_str::<Exported>(given).unwrap());
        let end = UNIX_EPOCH + Duration::from_secs(1_795_195_603);
        let before = |seconds| end - Duration::from_secs(seconds);
        assert!(end_soon(&keys(given), before(30)) && !end_soon(&keys(given), before(90)));
        let without = keys(r#"{"Version": 1, "AccessKeyId": "AKIA1", "SecretAccessKey": "s"}"#);
        assert!(!end_soon(&without, end));
    }
}
