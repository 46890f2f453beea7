//! Traces of a function: their destination from the environment, and their export.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use trace::{NotPosted, Posting, Reading, Settings, Traces, Transport};

use crate::http_client::Pool;

/// The longest time that a request to the collector may take, in milliseconds. An invocation sends its spans before its
/// answer, because the process may be frozen afterwards. This limit bounds the delay of the answer.
const EXPORT_MS_MAX: u64 = 1_000;
/// The messaging system between the functions.
const MESSAGING: &str = "aws_sqs";

/// The traces of this process, if the environment names a collector, and the problems of the trace settings.
pub(super) fn from_environment(function: &str) -> (Option<Traces>, Vec<String>) {
    #[expect(clippy::disallowed_methods, reason = "traces have to be there before the configuration can be wrong")]
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = said("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|| format!("stepwarden-{function}"));
    let Reading { settings, mut problems } = Settings::read(said, &name, MESSAGING);
    let Some(settings) = settings else { return (None, problems) };
    let settings = settings.within_ms(EXPORT_MS_MAX).with("faas.name", &name).with("cloud.provider", "aws");
    let settings = match said("AWS_REGION") {
        Some(region) => settings.with("cloud.region", &region),
        None => settings,
    };
    match way_to(&settings) {
        Ok(way) => (Some(Traces::new(settings, way)), problems),
        Err(error) => {
            problems.push(format!("no traces are made: {error}"));
            (None, problems)
        }
    }
}

/// The time limit for sending spans in an invocation that has `left_ms` left.
pub(super) const fn patience(left_ms: u64) -> Duration {
    Duration::from_millis(if left_ms < EXPORT_MS_MAX { left_ms } else { EXPORT_MS_MAX })
}

fn way_to(settings: &Settings) -> Result<Collector, crate::clients::TlsError> {
    Ok(Collector(if settings.is_tls() { Pool::tls()? } else { Pool::plain() }))
}

/// The collector. It uses the same kind of connection pool as the other clients here.
struct Collector(Pool);

impl Transport for Collector {
    fn post(&self, request: Request<Bytes>) -> Posting<'_> {
        Box::pin(async move { self.0.send(request).await.map_err(NotPosted::from) })
    }
}
