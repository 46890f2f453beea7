//! Logs and metrics: what the functions tell through `tracing`, as lines of JSON on stdout, which Lambda keeps as their log.
//! And traces, where a collector is named.
//!
//! Events become log lines, as far as their level is wanted: time, level, target, message, function, and the fields of the
//! event and of the spans that it is in, side by side. Fields called `monotonic_counter.<name>`, `histogram.<name>` and
//! `gauge.<name>` become metrics instead, whatever the level: they are summed up, and [`flush`] writes the sums at the end
//! of each invocation as lines in CloudWatch's embedded metric format, of which CloudWatch makes the metrics.
//!
//! What must never happen here: telemetry fails or holds up the work; a line contains anything of an order's document or
//! of an output. The second is promised by whoever writes an event. What is done about it here: libraries that tell whole
//! requests at their lower levels are not listened to there, long texts are cut, and of a panic only what was written in
//! the source is told.
#![doc = ""]
#![doc = include_str!("metrics.md")]

mod emf;
mod fields;
mod layer;
mod levels;
mod line;
mod output;
mod panics;
mod settings;
mod sums;
#[cfg(test)]
mod tests;
mod traces;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use domain::time::Timestamp;
use trace::Traces;
use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;

use crate::environment;
use fields::Metric;
use layer::Listener;
use levels::Levels;
use output::{Output, Stdout};
pub use settings::Settings;
use sums::{Dimensions, Sums};

/// Set by the first [`start`] that was first.
static STARTED: OnceLock<Arc<Telemetry>> = OnceLock::new();

/// Starts logs and metrics of the process, and traces where a collector is named. To be called first in `main`.
///
/// `function` becomes the dimension `Function`. `RUST_LOG`, else `LOG_LEVEL`, has the levels, `METRICS_NAMESPACE` the
/// namespace (see [`Settings`]); for traces see [`trace::Settings`]. Never fails: where somebody else has started telemetry
/// of their own it does nothing.
pub fn start(function: &'static str) {
    let (traces, problems) = traces::from_environment(function);
    let settings = Settings::from_environment();
    let telemetry = Telemetry::with_traces(function, settings, environment::now, Stdout::open(), traces);
    if tracing::subscriber::set_global_default(telemetry.subscriber()).is_ok() && STARTED.set(telemetry).is_ok() {
        panics::tell();
    }
    problems.iter().for_each(|problem| tracing::warn!("{problem}"));
}

/// Writes the metrics since the last time. To be called after each invocation: until the next one the process is frozen,
/// and may not be thawed again.
pub fn flush() {
    if let Some(telemetry) = STARTED.get() {
        telemetry.flush();
    }
}

/// Sends the spans since the last time to the collector, if there is one. To be called, as [`flush`] is, before an
/// invocation is answered that has `left_ms` until it must be; takes no longer, and never longer than a second.
pub async fn send_traces(left_ms: u64) {
    if let Some(traces) = STARTED.get().and_then(|telemetry| telemetry.traces.as_ref()) {
        traces.flush(traces::patience(left_ms)).await;
    }
}

/// The telemetry of one function.
pub struct Telemetry {
    function: &'static str,
    namespace: String,
    levels: Levels,
    now: fn() -> Timestamp,
    output: Mutex<Output>,
    sums: Mutex<Sums>,
    traces: Option<Traces>,
}

impl Telemetry {
    /// Telemetry of `function` that writes to `output`.
    pub fn new(
        function: &'static str,
        settings: Settings,
        now: fn() -> Timestamp,
        output: impl Write + Send + 'static,
    ) -> Arc<Self> {
        Self::with_traces(function, settings, now, output, None)
    }

    /// The same, with traces.
    pub fn with_traces(
        function: &'static str,
        settings: Settings,
        now: fn() -> Timestamp,
        output: impl Write + Send + 'static,
        traces: Option<Traces>,
    ) -> Arc<Self> {
        let (output, sums) = (Mutex::new(Output::new(output)), Mutex::default());
        let Settings { levels, namespace } = settings;
        let levels = Levels::parse(&levels, traces.is_some());
        Arc::new(Self { function, namespace, levels, now, output, sums, traces })
    }

    /// What `tracing` has to be given.
    pub fn subscriber(self: &Arc<Self>) -> impl Subscriber + Send + Sync + use<> {
        let traces = self.traces.as_ref().map(Traces::layer);
        tracing_subscriber::registry().with(Listener::new(self.clone())).with(traces)
    }

    /// Writes the metrics since the last time.
    pub fn flush(&self) {
        let sums = std::mem::take(&mut *lock(&self.sums));
        self.write(sums);
    }

    /// Adds to the metrics. What would become too much to keep is written at once.
    fn count(&self, dimensions: Dimensions, metrics: &[Metric]) {
        let full = lock(&self.sums).add(dimensions, metrics);
        if let Some(full) = full {
            self.write(full);
        }
    }

    fn write(&self, sums: Sums) {
        let lines = emf::lines(&self.namespace, self.function, (self.now)(), sums);
        let mut output = lock(&self.output);
        for line in lines {
            output.write_line(&line);
        }
    }
}

/// Whoever panicked with a lock did not leave anything half done in it that would matter here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
