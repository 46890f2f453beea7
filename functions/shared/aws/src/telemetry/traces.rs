//! Traces of a function: where the environment says that they go, and how they get there.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use trace::{NotPosted, Posting, Reading, Settings, Traces, Transport};

use crate::http_client::Pool;

/// How long a request to the collector may take at most, in milliseconds. An invocation is not answered before its spans
/// are sent, since the process may stand still from then on; nobody shall wait longer for a collector than that.
const EXPORT_MS_MAX: u64 = 1_000;
/// What carries the messages between the functions.
const MESSAGING: &str = "aws_sqs";

/// The traces of this process, if the environment names a collector, and what could not be read there.
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

/// How long may be spent on sending spans by an invocation that has so much time left.
pub(super) const fn patience(left_ms: u64) -> Duration {
    Duration::from_millis(if left_ms < EXPORT_MS_MAX { left_ms } else { EXPORT_MS_MAX })
}

fn way_to(settings: &Settings) -> Result<Collector, crate::clients::TlsError> {
    Ok(Collector(if settings.is_tls() { Pool::tls()? } else { Pool::plain() }))
}

/// The collector, over the kind of connections that everything else here goes over.
struct Collector(Pool);

impl Transport for Collector {
    fn post(&self, request: Request<Bytes>) -> Posting<'_> {
        Box::pin(async move { self.0.post(request).await.map_err(NotPosted::from) })
    }
}
