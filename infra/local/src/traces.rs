//! Traces of the orders on this machine, where the environment names a collector.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Limited};
use tokio::task::JoinHandle;
use trace::{Layer, Posting, Reading, Settings, Traces, Transport};

use crate::client::Client;
use crate::stop::{self, Stopper};

/// What the process is called where the environment says nothing.
const SERVICE: &str = "stepwarden";
/// What carries the messages between the functions: the engine's own queues.
const MESSAGING: &str = "stepwarden";
/// As much of a collector's answer is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Spans are sent to a collector, in the background. Nothing is, and nothing costs anything, where none is named.
#[derive(Debug, Default)]
pub struct Sending {
    under_way: Option<(Stopper, JoinHandle<()>)>,
}

/// Reads the variables that `lookup` gives (see [`trace::Settings`]).
///
/// Gives the traces, where there are any, and what could not be read, in words for the log.
pub fn read(lookup: impl Fn(&str) -> Option<String>) -> (Option<Traces>, Vec<String>) {
    let Reading { settings, mut problems } = Settings::read(lookup, SERVICE, MESSAGING);
    let Some(settings) = settings else { return (None, problems) };
    match Collector::reached_by(&settings) {
        Ok(collector) => (Some(Traces::new(settings, collector)), problems),
        Err(error) => {
            problems.push(format!("no root certificates to reach the collector with, no traces are made: {error}"));
            (None, problems)
        }
    }
}

/// What the log has to listen with.
#[must_use]
pub fn layer(traces: Option<&Traces>) -> Option<Layer> {
    traces.map(Traces::layer)
}

impl Sending {
    /// Begins to send, until it is told to stop.
    #[must_use]
    pub fn start(traces: Option<Traces>) -> Self {
        let under_way = traces.map(|traces| {
            let (stopper, stop) = stop::pair();
            (stopper, tokio::spawn(async move { traces.run(stop.requested()).await }))
        });
        Self { under_way }
    }

    /// Sends what is left, within two seconds. To be called when nothing more happens.
    pub async fn stop(self) {
        if let Some((stopper, sending)) = self.under_way {
            stopper.stop();
            // It can only fail by a panic, which the log has.
            let _ = sending.await;
        }
    }
}

/// The collector, over connections that are kept.
struct Collector(Client);

impl Collector {
    /// # Errors
    /// Where TLS is needed and the system has no root certificates.
    fn reached_by(settings: &Settings) -> std::io::Result<Self> {
        Ok(Self(if settings.is_tls() { Client::tls()? } else { Client::new() }))
    }
}

impl Transport for Collector {
    fn post(&self, request: Request<Bytes>) -> Posting<'_> {
        Box::pin(async move {
            let response = self.0.begin(request).await?;
            let status = response.status();
            // Read, so that the connection can be used again; what it says is of no account.
            let _ = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok(status)
        })
    }
}
