//! The SDK clients of a function, with one pool of connections and short patience.

use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::region::Region;

use crate::config::Access;
use crate::http_client::Pool;
pub use crate::http_client::TlsError;

/// How long one attempt of a request may take. All of ours are answered in milliseconds when all is well.
const ATTEMPT: Duration = Duration::from_secs(3);
/// How long a request may take with all its attempts and the waits between them.
const OPERATION: Duration = Duration::from_secs(10);
/// Attempts of a request. Whoever handles a message comes back to it anyway.
const ATTEMPTS_MAX: u32 = 3;
/// The longest first wait between two attempts; it doubles, and a random part of it is waited.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// The longest such wait.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

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
    /// Makes them. No connection is made yet.
    ///
    /// # Errors
    /// [`TlsError`] where an endpoint needs TLS, as those of AWS do, and the system has no root certificates.
    pub fn new(access: &Access) -> Result<Self, TlsError> {
        let urls = [&access.dynamodb_url, &access.sqs_url, &access.eventbridge_url];
        let pool = if urls.into_iter().all(is_plain) { Pool::plain() } else { Pool::tls()? };
        let pool = SharedHttpClient::new(pool);
        Ok(Self {
            dynamodb: dynamodb(access, pool.clone()),
            sqs: sqs(access, pool.clone()),
            eventbridge: eventbridge(access, pool),
        })
    }
}

/// A client for DynamoDB alone.
///
/// # Errors
/// [`TlsError`] where the endpoint needs TLS and the system has no root certificates.
pub fn dynamodb_alone(access: &Access) -> Result<aws_sdk_dynamodb::Client, TlsError> {
    let pool = if is_plain(&access.dynamodb_url) { Pool::plain() } else { Pool::tls()? };
    Ok(dynamodb(access, SharedHttpClient::new(pool)))
}

fn is_plain(url: &Option<std::sync::Arc<str>>) -> bool {
    url.as_deref().is_some_and(|url| url.starts_with("http:"))
}

/// The builders of the three clients have the same methods and no type in common.
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
            .timeout_config(timeouts())
            // Answers are small, and the attempt's time-out covers one that stalls.
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
