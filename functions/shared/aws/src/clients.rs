//! The SDK clients of a function. They share one connection pool and have short time-outs.

use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::region::Region;
use bytes::Bytes;
use futures_util::future::join_all;

use crate::config::Access;
use crate::environment::within;
use crate::http_client::Pool;
pub use crate::http_client::TlsError;

/// The time-out of one attempt of a request. A healthy service answers all our requests in milliseconds.
const ATTEMPT: Duration = Duration::from_secs(3);
/// The time-out of a request with all its attempts and the back-off between them.
const OPERATION: Duration = Duration::from_secs(10);
/// Attempts of a request. After the last one the caller's own repeat follows: a redelivery, a client or the next run.
const ATTEMPTS_MAX: u32 = 3;
/// The longest first back-off between two attempts. It doubles each time, with jitter.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// The longest back-off between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The longest time in which [`Clients::connected`] opens connections, in milliseconds.
const CONNECTED_MS_MAX: u64 = 1_000;

/// The SDK clients of a function.
#[derive(Debug, Clone)]
pub struct Clients {
    /// For the tables.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// For the queues.
    pub sqs: aws_sdk_sqs::Client,
    /// For the event bus.
    pub eventbridge: aws_sdk_eventbridge::Client,
}

impl Clients {
    /// Creates the clients. It opens no connection yet.
    ///
    /// # Errors
    /// [`TlsError`] if an endpoint needs TLS, as AWS's endpoints do, and the system has no root certificates.
    pub fn new(access: &Access) -> Result<Self, TlsError> {
        Ok(Self::over(access, SharedHttpClient::new(pool(access)?)))
    }

    /// Creates the clients, and opens a connection to DynamoDB and to SQS, which every function needs. Lambda
    /// initialises a function with a whole processor, and its first invocation may have a seventh of one. An endpoint
    /// that does not answer in time is connected to later.
    ///
    /// # Errors
    /// [`TlsError`] as for [`Clients::new`].
    pub async fn connected(access: &Access) -> Result<Self, TlsError> {
        let pool = pool(access)?;
        let urls = [("dynamodb", &access.dynamodb_url), ("sqs", &access.sqs_url)];
        let urls = urls.map(|(service, own)| own.as_deref().map_or_else(|| url(service, &access.region), Into::into));
        let connecting = urls.iter().map(async |url: &String| {
            // Whatever it answers, the connection is open.
            if let Ok(request) = http::Request::get(url).body(Bytes::new())
                && let Err(error) = pool.send(request).await
            {
                tracing::debug!(url, "no connection yet: {error}");
            }
        });
        within(CONNECTED_MS_MAX, join_all(connecting)).await;
        Ok(Self::over(access, SharedHttpClient::new(pool)))
    }

    /// Creates the clients over this HTTP client.
    #[must_use]
    pub fn over(access: &Access, http: SharedHttpClient) -> Self {
        Self {
            dynamodb: dynamodb(access, http.clone()),
            sqs: sqs(access, http.clone()),
            eventbridge: eventbridge(access, http),
        }
    }
}

/// A client for DynamoDB alone.
///
/// # Errors
/// [`TlsError`] if the endpoint needs TLS and the system has no root certificates.
pub fn dynamodb_alone(access: &Access) -> Result<aws_sdk_dynamodb::Client, TlsError> {
    let pool = if is_plain(&access.dynamodb_url) { Pool::plain() } else { Pool::tls()? };
    Ok(dynamodb(access, SharedHttpClient::new(pool)))
}

fn pool(access: &Access) -> Result<Pool, TlsError> {
    let urls = [&access.dynamodb_url, &access.sqs_url, &access.eventbridge_url];
    if urls.into_iter().all(is_plain) { Ok(Pool::plain()) } else { Pool::tls() }
}

/// The URL of a service in a region, as the SDK finds it.
fn url(service: &str, region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://{service}.{region}.{domain}")
}

fn is_plain(url: &Option<std::sync::Arc<str>>) -> bool {
    url.as_deref().is_some_and(|url| url.starts_with("http:"))
}

/// The builders of the three clients have the same methods but no common trait.
macro_rules! client {
    ($sdk:ident, $access:expr, $pool:expr, $url:expr) => {{
        let config = $sdk::config::Builder::new()
            .behavior_version($sdk::config::BehaviorVersion::latest())
            .region(Region::new($access.region.to_string()))
            .credentials_provider(SharedCredentialsProvider::new($access.credentials.clone()))
            // The keys do not change, so there is nothing to cache.
            .identity_cache($sdk::config::IdentityCache::no_cache())
            .http_client($pool)
            .retry_config(retries())
            // The SDK's budget of retries is one for the whole process, unless a client has its own.
            .retry_partition($sdk::config::retry::RetryPartition::custom("own").build())
            .timeout_config(timeouts())
            // Answers are small, and the time-out of the attempt covers a stalled one.
            .stalled_stream_protection($sdk::config::StalledStreamProtectionConfig::disabled());
        let config = match $url {
            Some(url) => config.endpoint_url(&**url),
            None => config,
        };
        $sdk::Client::from_conf(config.build())
    }};
}

fn dynamodb(access: &Access, pool: SharedHttpClient) -> aws_sdk_dynamodb::Client {
    client!(aws_sdk_dynamodb, access, pool, &access.dynamodb_url)
}

fn sqs(access: &Access, pool: SharedHttpClient) -> aws_sdk_sqs::Client {
    client!(aws_sdk_sqs, access, pool, &access.sqs_url)
}

fn eventbridge(access: &Access, pool: SharedHttpClient) -> aws_sdk_eventbridge::Client {
    client!(aws_sdk_eventbridge, access, pool, &access.eventbridge_url)
}

fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(ATTEMPTS_MAX)
        .with_initial_backoff(BACKOFF_FIRST)
        .with_max_backoff(BACKOFF_MAX)
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).operation_timeout(OPERATION).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeAws, access};

    #[tokio::test]
    async fn a_function_has_its_connections_before_its_first_request() {
        let [dynamodb, sqs] = [FakeAws::that_takes_everything().await, FakeAws::that_takes_everything().await];
        let access =
            Access { dynamodb_url: Some(dynamodb.url()), sqs_url: Some(sqs.url()), ..access("http://127.0.0.1:1") };
        let clients = Clients::connected(&access).await.unwrap();
        assert_eq!((dynamodb.connections(), sqs.connections()), (1, 1));
        clients.sqs.send_message_batch().queue_url("q").set_entries(Some(Vec::new())).send().await.unwrap();
        clients.dynamodb.list_tables().send().await.unwrap();
        assert_eq!((dynamodb.connections(), sqs.connections()), (1, 1), "the first requests use them");
    }

    #[tokio::test]
    async fn an_endpoint_that_is_not_there_keeps_no_function_from_its_start() {
        assert!(Clients::connected(&access("http://127.0.0.1:1")).await.is_ok());
    }

    #[tokio::test]
    async fn connections_are_to_the_endpoints_that_the_sdk_uses() {
        use aws_sdk_dynamodb::config::endpoint as of_dynamodb;
        use aws_sdk_dynamodb::config::endpoint::ResolveEndpoint as _;
        use aws_sdk_sqs::config::endpoint as of_sqs;
        use aws_sdk_sqs::config::endpoint::ResolveEndpoint as _;
        for region in ["eu-central-1", "us-east-1", "cn-north-1", "us-gov-west-1"] {
            let params = of_dynamodb::Params::builder().region(region).build().unwrap();
            let found = of_dynamodb::DefaultResolver::new().resolve_endpoint(&params).await.unwrap();
            assert_eq!(found.url(), url("dynamodb", region));
            let params = of_sqs::Params::builder().region(region).build().unwrap();
            let found = of_sqs::DefaultResolver::new().resolve_endpoint(&params).await.unwrap();
            assert_eq!(found.url(), url("sqs", region));
        }
    }
}
