//! Traces of the orders on this machine, if the environment names a collector.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Limited};
use tokio::task::JoinHandle;
use trace::{Layer, Posting, Reading, Settings, Traces, Transport};

use crate::client::Client;
use crate::stop::{self, Stopper};

/// The default service name.
const SERVICE: &str = "stepwarden";
/// The messaging system in spans: the engine's own queues.
const MESSAGING: &str = "stepwarden";
/// The most bytes read of a collector's answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Exports spans to a collector in the background. Without a collector it does nothing, at no cost.
#[derive(Debug, Default)]
pub struct Sending {
    under_way: Option<(Stopper, JoinHandle<()>)>,
}

/// Reads the variables that `lookup` gives (see [`trace::Settings`]).
///
/// Returns the traces, if enabled, and the unreadable settings as messages for the log.
pub fn read(lookup: impl Fn(&str) -> Option<String>) -> (Option<Traces>, Vec<String>) {
    let Reading { settings, mut problems } = Settings::read(lookup, SERVICE, MESSAGING);
    let Some(settings) = settings else { return (None, problems) };
    match Collector::reached_by(&settings) {
        Ok(collector) => (Some(Traces::new(settings, collector)), problems),
        Err(error) => {
            problems.push(format!("tracing is disabled: no root certificates for the collector: {error}"));
            (None, problems)
        }
    }
}

/// The layer for the log.
#[must_use]
pub fn layer(traces: Option<&Traces>) -> Option<Layer> {
    traces.map(Traces::layer)
}

impl Sending {
    /// Starts the export; it runs until the stop.
    #[must_use]
    pub fn start(traces: Option<Traces>) -> Self {
        let under_way = traces.map(|traces| {
            let (stopper, stop) = stop::pair();
            (stopper, tokio::spawn(async move { traces.run(stop.requested()).await }))
        });
        Self { under_way }
    }

    /// Exports the remaining spans, within two seconds. Call it after all other work.
    pub async fn stop(self) {
        if let Some((stopper, sending)) = self.under_way {
            stopper.stop();
            // Only a panic can fail it, and the panic is logged.
            let _ = sending.await;
        }
    }
}

/// The collector, over kept-alive connections.
struct Collector(Client);

impl Collector {
    /// # Errors
    /// If TLS is needed and the system has no root certificates.
    fn reached_by(settings: &Settings) -> std::io::Result<Self> {
        Ok(Self(if settings.is_tls() { Client::tls()? } else { Client::new() }))
    }
}

impl Transport for Collector {
    fn post(&self, request: Request<Bytes>) -> Posting<'_> {
        Box::pin(async move {
            let response = self.0.begin(request).await?;
            let (head, body) = response.into_parts();
            // The body is read only so that the connection can be reused.
            let _ = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            Ok(head)
        })
    }
}
