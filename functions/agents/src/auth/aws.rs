//! The stores of secrets on AWS: one signed JSON call each, instead of an SDK.

use std::time::Duration;

use config::auth::Scope;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::{Value, json};

use super::secret::{Now, Secret};
use super::sigv4::SigV4;
use crate::client::{HttpClients, chain};

/// The time for one call.
const CALL: Duration = Duration::from_secs(5);
/// Largest answer, in bytes. A secret has at most 64 KiB, and JSON may escape each of its characters.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Codes of AWS for credentials that are not valid.
const REFUSED_CREDENTIALS: [&str; 5] = [
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
];

/// A store of secrets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Store {
    /// Parameter Store of Systems Manager.
    Parameters,
    /// Secrets Manager.
    Secrets,
}

/// Reads a variable of the environment. A test's may have an endpoint of its own.
type Variables = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a call needs of the machine.
pub(super) struct Aws {
    pub(super) variable: Variables,
    pub(super) now: Now,
    pub(super) clients: HttpClients,
}

impl Store {
    /// The name of the service in signatures and host names.
    const fn service(self) -> &'static str {
        match self {
            Self::Parameters => "ssm",
            Self::Secrets => "secretsmanager",
        }
    }

    const fn endpoint(self) -> &'static str {
        match self {
            Self::Parameters => "AWS_ENDPOINT_URL_SSM",
            Self::Secrets => "AWS_ENDPOINT_URL_SECRETS_MANAGER",
        }
    }

    const fn target(self) -> &'static str {
        match self {
            Self::Parameters => "AmazonSSM.GetParameter",
            Self::Secrets => "secretsmanager.GetSecretValue",
        }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Parameters => "ssm:GetParameter",
            Self::Secrets => "secretsmanager:GetSecretValue",
        }
    }

    fn body(self, name: &str) -> Value {
        match self {
            Self::Parameters => json!({"Name": name, "WithDecryption": true}),
            Self::Secrets => json!({"SecretId": name}),
        }
    }

    fn value(self, answer: &Value) -> Option<&str> {
        let value = match self {
            Self::Parameters => &answer["Parameter"]["Value"],
            Self::Secrets => &answer["SecretString"],
        };
        value.as_str()
    }
}

impl Aws {
    /// The text of a secret. The name may be an ARN.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(super) async fn fetch(&self, store: Store, name: &str) -> Result<String, String> {
        let region = self.region(name)?;
        let request = self.request(store, name, &region)?;
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let is_encrypted = request.uri().scheme() == Some(&http::uri::Scheme::HTTPS);
        let client = self.clients.reaching(is_encrypted).map_err(|fault| format!("cannot be read: {fault}"))?;
        let called = async {
            let response = client.request(request).await.map_err(|error| chain(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok::<_, String>((status, body.map(http_body_util::Collected::to_bytes).unwrap_or_default()))
        };
        let answered = client.timer().within(CALL, called).await;
        let answered = answered.unwrap_or_else(|| Err(format!("not within {} s", CALL.as_secs())));
        let (status, body) = answered.map_err(|fault| format!("cannot be read: no answer of {host}: {fault}"))?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status != StatusCode::OK {
            return Err(refused(store, status, &answer, &region));
        }
        store.value(&answer).map(str::to_owned).ok_or_else(|| "has no text in it".to_owned())
    }

    /// That of the ARN, else that of the environment.
    fn region(&self, name: &str) -> Result<String, String> {
        let of_arn = name.strip_prefix("arn:").and_then(|arn| arn.split(':').nth(2)).map(str::to_owned);
        let region = of_arn.or_else(|| self.set("AWS_REGION")).or_else(|| self.set("AWS_DEFAULT_REGION"));
        region.ok_or_else(|| "needs a region: set AWS_REGION, or give an ARN".to_owned())
    }

    fn request(&self, store: Store, name: &str, region: &str) -> Result<Request<Full<bytes::Bytes>>, String> {
        let needed = |name| self.set(name).ok_or_else(|| format!("needs {name} in the environment"));
        let access_key = Secret::new(&needed("AWS_ACCESS_KEY_ID")?);
        let secret_key = Secret::new(&needed("AWS_SECRET_ACCESS_KEY")?);
        let token = self.set("AWS_SESSION_TOKEN").map(|token| Secret::new(&token));
        let (service, scope_region) = (store.service(), region.to_owned());
        let given = self.set(store.endpoint()).or_else(|| self.set("AWS_ENDPOINT_URL"));
        let endpoint = given.unwrap_or_else(|| {
            let china = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("https://{service}.{region}.amazonaws.com{china}")
        });
        let uri = format!("{}/", endpoint.trim().trim_end_matches('/')).parse::<Uri>();
        let uri = uri.map_err(|error| format!("cannot be read: the endpoint is not a URL ({error})"))?;
        let body = bytes::Bytes::from(store.body(name).to_string());
        let request = Request::post(uri).header(CONTENT_TYPE, "application/x-amz-json-1.1");
        let request = request.header("x-amz-target", store.target()).body(Full::new(body.clone()));
        let mut request = request.map_err(|error| format!("cannot be read: {error}"))?;
        let scope = Scope { service: service.to_owned(), region: scope_region };
        let signer = SigV4::new(scope, &access_key, &secret_key, token.as_ref());
        let signed = signer.sign(&mut request, &body, (self.now)());
        signed.map_err(|error| format!("cannot be read: the call cannot be signed: {error}"))?;
        Ok(request)
    }

    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }
}

/// AWS gives a code, such as `com.amazonaws.ssm#ParameterNotFound`. Its message is not repeated.
fn refused(store: Store, status: StatusCode, answer: &Value, region: &str) -> String {
    let code = answer["__type"].as_str().unwrap_or_default();
    let code = code.rsplit('#').next().unwrap_or_default();
    let action = store.action();
    match code {
        "AccessDeniedException" => {
            format!("cannot be read: allow the action {action} on it, and kms:Decrypt on a key of your own")
        }
        "ParameterNotFound" | "ResourceNotFoundException" => format!("is not in {region}: create it, or mend its name"),
        code if REFUSED_CREDENTIALS.contains(&code) => {
            format!("cannot be read: the AWS credentials of this process are not valid ({code})")
        }
        code if !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            format!("cannot be read: HTTP {status}, {code}")
        }
        _ => format!("cannot be read: HTTP {status}"),
    }
}
