//! The caller's AWS credentials, from the environment or the `aws` command line tool. The tool supports profiles, single
//! sign-on and roles.

use std::fmt;

use serde::Deserialize;

use super::aws_tool::{Aws, AwsError};
use super::environment::Environment;
use domain::time::Timestamp;

/// Keys are refreshed this long before they expire, so that they stay valid during a request.
const RENEW_BEFORE_MS: u64 = 60_000;

/// Access keys, with a session token if they are temporary.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Keys {
    /// The ID of the keys.
    pub(super) access_key_id: String,
    /// The signing key.
    pub(super) secret_access_key: String,
    /// The token of temporary keys.
    #[serde(default)]
    pub(super) session_token: Option<String>,
    /// Their expiry, if known.
    #[serde(default, rename = "Expiration")]
    pub(super) expires_at: Option<Expiry>,
}

/// The expiry, as the tool writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct Expiry(String);

/// There are no AWS credentials.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// Only one of the two variables is set.
    #[error("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; only one of them is set")]
    HalfKeys,
    /// Nor does the tool have any.
    #[error("no AWS credentials: neither the environment nor `aws configure export-credentials` has any: {0}")]
    None(#[from] AwsError),
}

/// Secrets are for signatures, not for logs.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl Keys {
    /// Whether they expire within a minute of `now`. Keys without a readable expiry count as lasting.
    #[must_use]
    pub(super) fn end_soon(&self, now: Timestamp) -> bool {
        let end = self
            .expires_at
            .as_ref()
            .and_then(|Expiry(text)| serde_json::from_value::<Timestamp>(serde_json::Value::String(text.clone())).ok());
        end.is_some_and(|end| end <= now.plus_ms(RENEW_BEFORE_MS))
    }
}

/// The keys in the environment, unless a profile is given; otherwise the keys from the `aws` tool.
///
/// # Errors
/// [`KeysError`]; its message names the searched places.
pub(super) async fn find(environment: &Environment, profile: Option<&str>) -> Result<Keys, KeysError> {
    let Environment { access_key_id, secret_access_key, session_token, .. } = environment;
    match (access_key_id, secret_access_key) {
        _ if profile.is_some() => {}
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => return Err(KeysError::HalfKeys),
        (Some(access_key_id), Some(secret_access_key)) => {
            return Ok(Keys {
                access_key_id: access_key_id.clone(),
                secret_access_key: secret_access_key.clone(),
                session_token: session_token.clone(),
                expires_at: None,
            });
        }
    }
    Ok(Aws::new(None, profile).call(&["configure", "export-credentials", "--format", "process"]).await?)
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
        assert_eq!((keys.access_key_id.as_str(), keys.session_token.as_deref()), ("AKIA1", Some("t")));
        assert!(!keys.end_soon(Timestamp::from_epoch_ms(0)));
    }

    #[tokio::test]
    async fn half_of_the_keys_is_a_mistake_that_is_told() {
        for (id, secret) in [(Some("AKIA1"), None), (None, Some("s"))] {
            let error = find(&environment(id, secret), None).await.unwrap_err();
            assert!(matches!(error, KeysError::HalfKeys), "{error}");
        }
    }

    #[test]
    fn what_the_tool_gives_is_read_with_its_end() {
        let given = r#"{"Version": 1, "AccessKeyId": "ASIA1", "SecretAccessKey": "s", "SessionToken": "t",
                        "Expiration": "2026-11-20T17:26:43+00:00"}"#;
        let keys: Keys = serde_json::from_str(given).unwrap();
        let end: Timestamp = serde_json::from_str(r#""2026-11-20T17:26:43.000Z""#).unwrap();
        assert!(keys.end_soon(end.minus_ms(30_000)) && !keys.end_soon(end.minus_ms(90_000)));
        let without: Keys =
            serde_json::from_str(r#"{"Version": 1, "AccessKeyId": "AKIA1", "SecretAccessKey": "s"}"#).unwrap();
        assert!(!without.end_soon(end));
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys: Keys = serde_json::from_str(r#"{"AccessKeyId": "AKIA1", "SecretAccessKey": "hush"}"#).unwrap();
        let shown = format!("{keys:?}");
        assert!(shown.contains("AKIA1") && !shown.contains("hush"), "{shown}");
    }
}
