//! The secrets of a machine: variables of the environment, files, and the stores of AWS.

use std::fs;
use std::sync::Arc;

use config::{Reference, SecretSource};
use serde_json::Value;

use super::aws::{Aws, Store};
use super::secret::{Now, Resolver, Secret};
use crate::client::HttpClients;

/// Reads a variable of the environment.
pub type Variable = fn(&str) -> Option<String>;

/// Reads secrets on this machine. The calls of AWS are signed with the credentials of the environment.
#[must_use]
pub fn machine_secrets(variable: Variable, now: Now, clients: &HttpClients) -> Resolver {
    let aws = Arc::new(Aws { variable: Box::new(variable), now, clients: clients.clone() });
    Arc::new(move |reference| {
        let aws = aws.clone();
        Box::pin(async move { read(&reference, &aws).await })
    })
}

async fn read(Reference { source, name, member }: &Reference, aws: &Aws) -> Result<Secret, String> {
    let text = match source {
        SecretSource::Environment => (aws.variable)(name).ok_or_else(|| "is not set in the environment".to_owned())?,
        SecretSource::File => fs::read_to_string(name).map_err(|error| format!("cannot be read: {error}"))?,
        SecretSource::Parameter => aws.fetch(Store::Parameters, name).await?,
        SecretSource::SecretsManager => aws.fetch(Store::Secrets, name).await?,
    };
    match member {
        None => Ok(Secret::new(&text)),
        Some(member) => {
            let object = serde_json::from_str::<Value>(&text).unwrap_or_default();
            let value = object.get(member).and_then(Value::as_str);
            value
                .map(Secret::new)
                .ok_or_else(|| "is no text: the secret must be a JSON object with this member".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in::{Received, Respond, StandIn, response};
    use crate::tests::NOW;

    async fn value(text: &str, variable: Variable) -> Result<String, String> {
        let resolver = machine_secrets(variable, || NOW, &HttpClients::new());
        let secret = resolver(Reference::parse(text).unwrap()).await?;
        Ok(secret.expose().to_owned())
    }

    #[tokio::test]
    async fn a_secret_is_a_variable_or_a_file_without_its_last_line_break() {
        let variable: Variable = |name| (name == "TOKEN#a").then(|| "value".to_owned());
        assert_eq!(value("env:TOKEN#a", variable).await.as_deref(), Ok("value"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token#a");
        fs::write(&file, "from a file\n").unwrap();
        assert_eq!(value(&format!("file:{}", file.display()), variable).await.as_deref(), Ok("from a file"));
    }

    #[tokio::test]
    async fn a_missing_secret_says_why() {
        for (text, expected) in [
            ("env:NONE", "is not set in the environment"),
            ("file:no/such/file", "cannot be read: No such file"),
            ("ssm:/shop/token", "needs a region: set AWS_REGION, or give an ARN"),
            (
                "secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:a",
                "needs AWS_ACCESS_KEY_ID in the environment",
            ),
        ] {
            let fault = value(text, |_| None).await.unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }

    /// The secret of this reference from a store that answers so, and the call.
    async fn stored(text: &str, respond: Respond) -> (Result<Secret, String>, Received) {
        let stand_in = StandIn::start([respond]).await;
        let endpoint = stand_in.base.clone();
        let variable = move |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("AKIA-2210".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret-3155".to_owned()),
            "AWS_SESSION_TOKEN" => Some("session-9017".to_owned()),
            "AWS_REGION" => Some("eu-central-1".to_owned()),
            "AWS_ENDPOINT_URL" => Some("http://localhost:1".to_owned()),
            "AWS_ENDPOINT_URL_SSM" | "AWS_ENDPOINT_URL_SECRETS_MANAGER" => Some(endpoint.clone()),
            _ => None,
        };
        let aws = Aws { variable: Box::new(variable), now: || NOW, clients: HttpClients::new() };
        let secret = read(&Reference::parse(text).unwrap(), &aws).await;
        (secret, stand_in.received().pop().unwrap())
    }

    #[tokio::test]
    async fn a_secret_on_aws_is_read_by_one_signed_call() {
        let parameter = response(200, &[], r#"{"Parameter":{"Type":"SecureString","Value":"of ssm\n"}}"#);
        let (secret, received) = stored("ssm:/shop/token", parameter).await;
        assert_eq!(secret, Ok(Secret::new("of ssm")));
        assert_eq!(received.body, serde_json::json!({"Name": "/shop/token", "WithDecryption": true}));
        assert_eq!(received.line, "POST / HTTP/1.1");
        for (name, value) in [
            ("x-amz-target", "AmazonSSM.GetParameter"),
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-date", "20261120T172643Z"),
            ("x-amz-security-token", "session-9017"),
        ] {
            assert_eq!(received.header(name), Some(value));
        }
        let scope = "AWS4-HMAC-SHA256 Credential=AKIA-2210/20261120/eu-central-1/ssm/aws4_request, ";
        assert!(received.header("authorization").unwrap().starts_with(scope));

        let arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-AbCdEf";
        let of_two = response(200, &[], r#"{"SecretString":"{\"user\":\"shop\",\"password\":\"of sm\"}"}"#);
        let (secret, received) = stored(&format!("secretsmanager:{arn}#password"), of_two).await;
        assert_eq!(secret, Ok(Secret::new("of sm")));
        assert_eq!(received.body, serde_json::json!({"SecretId": arn}));
        assert_eq!(received.header("x-amz-target"), Some("secretsmanager.GetSecretValue"));
        let scope = "AWS4-HMAC-SHA256 Credential=AKIA-2210/20261120/eu-west-1/secretsmanager/aws4_request, ";
        assert!(received.header("authorization").unwrap().starts_with(scope));
    }

    #[tokio::test]
    async fn a_store_that_gives_no_secret_says_what_to_do_and_repeats_nothing() {
        let named = |kind: &str| format!(r#"{{"__type":"{kind}","message":"hidden"}}"#);
        let denied = named("com.amazonaws.ssm#AccessDeniedException");
        for (text, status, body, expected) in [
            ("ssm:a", 400, &*denied, "cannot be read: allow the action ssm:GetParameter on it, and kms:Decrypt"),
            ("secretsmanager:a", 400, &*denied, "cannot be read: allow the action secretsmanager:GetSecretValue"),
            ("ssm:a", 400, &*named("ParameterNotFound"), "is not in eu-central-1: create it, or mend its name"),
            ("secretsmanager:a", 400, &*named("ResourceNotFoundException"), "is not in eu-central-1"),
            ("ssm:a", 400, &*named("ExpiredTokenException"), "cannot be read: the AWS credentials of this process"),
            ("ssm:a", 400, &*named("ThrottlingException"), "cannot be read: HTTP 400 Bad Request, ThrottlingException"),
            ("ssm:a", 400, &*named("hidden hidden"), "cannot be read: HTTP 400 Bad Request"),
            ("ssm:a", 503, "hidden", "cannot be read: HTTP 503 Service Unavailable"),
            ("ssm:a", 200, "hidden", "has no text in it"),
            ("secretsmanager:a", 200, r#"{"SecretBinary":"aGlkZGVu"}"#, "has no text in it"),
            ("secretsmanager:a#b", 200, r#"{"SecretString":"hidden"}"#, "is no text: the secret must be a JSON object"),
            ("secretsmanager:a#b", 200, r#"{"SecretString":"{\"b\":7}"}"#, "is no text: the secret must be"),
        ] {
            let fault = stored(text, response(status, &[], body)).await.0.unwrap_err();
            assert!(fault.starts_with(expected) && !fault.contains("hidden"), "{fault}");
        }
    }

    #[tokio::test]
    async fn without_an_endpoint_of_its_own_a_store_is_that_of_the_region() {
        let resolver = machine_secrets(
            |name| match name {
                "AWS_ENDPOINT_URL" => Some("https://[nonsense".to_owned()),
                _ => Some("eu-central-1".to_owned()),
            },
            || NOW,
            &HttpClients::new(),
        );
        let fault = resolver(Reference::parse("ssm:a").unwrap()).await.unwrap_err();
        assert!(fault.starts_with("cannot be read: the endpoint is not a URL"), "{fault}");
    }
}
