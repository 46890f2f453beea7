//! The `aws` command line tool as a subprocess: it knows credentials, regions and endpoints, and a second AWS SDK is not
//! brought along for a look now and then.

use std::io;
use std::process::Stdio;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::process::Command;

/// How the tool is called.
#[derive(Debug)]
pub(crate) struct Aws {
    region: Option<String>,
    profile: Option<String>,
}

/// The tool did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AwsError {
    /// It is not installed, or cannot be started.
    #[error("{0}")]
    NotRun(String),
    /// The caller may not ask that.
    #[error("not allowed: {0}")]
    Denied(String),
    /// It says this, or something else than expected.
    #[error("{0}")]
    Failed(String),
}

impl Aws {
    pub(crate) fn new(region: Option<&str>, profile: Option<&str>) -> Self {
        Self { region: region.map(str::to_owned), profile: profile.map(str::to_owned) }
    }

    /// `aws {words}`, its answer read as `T`.
    pub(crate) async fn call<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, AwsError> {
        let mut command = Command::new("aws");
        command.args(words).args(["--output", "json"]);
        for (option, value) in [("--region", &self.region), ("--profile", &self.profile)] {
            if let Some(value) = value {
                command.args([option, value]);
            }
        }
        if self.profile.is_some() {
            // An explicit profile takes precedence over keys in the environment.
            for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] {
                command.env_remove(key);
            }
        }
        // Nobody is there to page through it.
        command.env("AWS_PAGER", "").stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| {
            AwsError::NotRun(match error.kind() == io::ErrorKind::NotFound {
                true => "there is no `aws` command line tool here".to_owned(),
                false => format!("the `aws` command line tool cannot be run: {error}"),
            })
        })?;
        if !output.status.success() {
            return Err(refusal(&String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| unreadable(words, &error))
    }

    /// The same, of which one member is read.
    pub(crate) async fn member<T: DeserializeOwned>(&self, name: &str, words: &[&str]) -> Result<T, AwsError> {
        let mut answer: Value = self.call(words).await?;
        let member = answer.get_mut(name).map(Value::take).unwrap_or_default();
        serde_json::from_value(member).map_err(|error| unreadable(words, &error))
    }
}

fn unreadable(words: &[&str], error: &serde_json::Error) -> AwsError {
    let call = words[..words.len().min(2)].join(" ");
    AwsError::Failed(format!("`aws {call}` answers something else than expected: {error}"))
}

fn refusal(said: &str) -> AwsError {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match ["AccessDenied", "UnauthorizedOperation", "not authorized to perform"].iter().any(|word| said.contains(word))
    {
        true => AwsError::Denied(said),
        false => AwsError::Failed(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_told_from_what_fails() {
        let denied = "\nAn error occurred (AccessDenied) when calling the DescribeStacks operation: no\n";
        assert!(matches!(refusal(denied), AwsError::Denied(_)));
        assert!(matches!(refusal("Could not connect to the endpoint URL"), AwsError::Failed(_)));
    }
}
