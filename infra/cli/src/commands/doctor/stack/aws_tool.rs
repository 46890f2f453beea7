//! The `aws` command line tool as a subprocess: it knows credentials, regions and endpoints, and a second AWS SDK is not
//! brought along for a look now and then.

use std::io;
use std::process::Stdio;

use serde::de::DeserializeOwned;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// Calls at the same time: each is a process of its own, and a Python at that.
const AT_ONCE_MAX: usize = 4;

/// How the tool is called.
#[derive(Debug)]
pub(super) struct Aws {
    region: Option<String>,
    profile: Option<String>,
    /// Where SQS is, if not at AWS. Version 1 of the tool reads this variable for every service but this one.
    sqs_endpoint: Option<String>,
    permits: Semaphore,
}

/// The tool did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AwsError {
    #[error("there is no `aws` command line tool here")]
    Missing,
    #[error("the `aws` command line tool cannot be run: {0}")]
    Run(#[source] io::Error),
    /// What was asked for is not there.
    #[error("not there: {0}")]
    Gone(String),
    /// The caller may not ask that.
    #[error("not allowed: {0}")]
    Denied(String),
    #[error("{0}")]
    Failed(String),
    #[error("`aws {call}` answers something else than expected: {source}")]
    Unreadable {
        call: String,
        #[source]
        source: serde_json::Error,
    },
}

impl Aws {
    pub(super) fn new(region: Option<&str>, profile: Option<&str>, sqs_endpoint: Option<&str>) -> Self {
        let [region, profile, sqs_endpoint] = [region, profile, sqs_endpoint].map(|given| given.map(str::to_owned));
        Self { region, profile, sqs_endpoint, permits: Semaphore::new(AT_ONCE_MAX) }
    }

    /// `aws {words}`, its answer read as `T`. No answer at all is read as an empty object.
    pub(super) async fn call<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, AwsError> {
        let _permit = self.permits.acquire().await;
        let mut command = Command::new("aws");
        command.args(words).args(["--output", "json"]);
        let sqs_endpoint = self.sqs_endpoint.as_ref().filter(|_| words.first() == Some(&"sqs"));
        let given = [("--region", self.region.as_ref()), ("--profile", self.profile.as_ref())];
        for (option, value) in given.into_iter().chain([("--endpoint-url", sqs_endpoint)]) {
            if let Some(value) = value {
                command.args([option, value]);
            }
        }
        // Nobody is there to page through it.
        command.env("AWS_PAGER", "").stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound { AwsError::Missing } else { AwsError::Run(error) }
        })?;
        if !output.status.success() {
            return Err(refusal(&String::from_utf8_lossy(&output.stderr)));
        }
        let text = if output.stdout.trim_ascii().is_empty() { b"{}".as_slice() } else { &output.stdout };
        serde_json::from_slice(text)
            .map_err(|source| AwsError::Unreadable { call: words[..words.len().min(2)].join(" "), source })
    }
}

fn refusal(said: &str) -> AwsError {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if has(&["AccessDenied", "UnauthorizedOperation", "not authorized to perform"]) {
        AwsError::Denied(said)
    } else if has(&["NotFound", "NonExistentQueue", "NoSuchEntity", "does not exist"]) {
        AwsError::Gone(said)
    } else {
        AwsError::Failed(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_told_from_what_fails() {
        let denied = "\nAn error occurred (AccessDenied) when calling the GetRole operation: no\n";
        assert!(matches!(refusal(denied), AwsError::Denied(_)));
        let gone = refusal("An error occurred (ResourceNotFoundException) when calling X: gone");
        assert!(matches!(&gone, AwsError::Gone(said) if said.contains("gone")), "{gone}");
        assert!(matches!(refusal("Could not connect to the endpoint URL"), AwsError::Failed(_)));
    }
}
