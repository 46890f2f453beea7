//! Logs and metrics: the functions emit them through `tracing`, and they become lines of JSON on stdout. Lambda keeps
//! stdout as the function's log. Traces are exported if a collector is configured.
//!
//! An event of an enabled level becomes a log line. The line has time, level, target, message, function, and the fields
//! of the event and of its spans, side by side. Fields called `monotonic_counter.<name>`, `histogram.<name>` and
//! `gauge.<name>` become metrics instead, at every level. Their values are summed up, and [`flush`] writes the sums at
//! the end of each invocation. The sums are lines in CloudWatch's embedded metric format, and CloudWatch extracts the
//! metrics from them.
//!
//! Must never happen here:
//! - telemetry fails or delays the work;
//! - a line contains any part of an order's document or of an output.
//!
//! The author of an event is responsible for the second rule. This module helps in three ways. It ignores the verbose
//! levels of libraries that log whole requests. It cuts long texts. It reports only the source text of a panic.
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

use domain::audit::Entry;
use domain::time::Timestamp;
use serde_json::json;
use trace::Traces;
use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;

use crate::environment;
use fields::{Dimensions, Metric};
use layer::Listener;
use levels::Levels;
use output::{Output, Stdout};
pub use settings::Settings;
use sums::Sums;

/// The first successful [`start`] sets it.
static STARTED: OnceLock<Arc<Telemetry>> = OnceLock::new();

/// Starts logs and metrics of the process, and traces if a collector is configured. Call it first in `main`.
///
/// `function` becomes the dimension `Function`. `RUST_LOG`, or else `LOG_LEVEL`, sets the levels; `METRICS_NAMESPACE`
/// sets the namespace (see [`Settings`]). For traces see [`trace::Settings`]. It never fails, and does nothing if
/// another subscriber is already set.
pub fn start(function: &'static str) {
    let (traces, problems) = traces::from_environment(function);
    let settings = Settings::from_environment();
    let telemetry = Telemetry::with_traces(function, settings, environment::now, Stdout::open(), traces);
    if tracing::subscriber::set_global_default(telemetry.subscriber()).is_ok() && STARTED.set(telemetry).is_ok() {
        panics::tell();
    }
    problems.iter().for_each(|problem| tracing::warn!("{problem}"));
}

/// Writes the metrics since the last flush. Call it after each invocation: the process is frozen until the next one,
/// and may never be thawed.
pub fn flush() {
    if let Some(telemetry) = STARTED.get() {
        telemetry.flush();
    }
}

/// Writes an entry of the audit stream (rule 43), at every level. Returns whether all of it was written.
pub fn audit(entry: &Entry<'_>) -> bool {
    STARTED.get().is_none_or(|telemetry| telemetry.audit(entry))
}

/// Sends the spans since the last call to the collector, if there is one. Call it, like [`flush`], before the answer of
/// an invocation. `left_ms` is the time left until that answer is due. The call takes at most this time, and at most
/// one second.
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
    /// Telemetry of `function` with `output` as its destination.
    pub fn new(
        function: &'static str,
        settings: Settings,
        now: fn() -> Timestamp,
        output: impl Write + Send + 'static,
    ) -> Arc<Self> {
        Self::with_traces(function, settings, now, output, None)
    }

    /// Like [`Self::new`], with traces.
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

    /// The subscriber for `tracing`.
    pub fn subscriber(self: &Arc<Self>) -> impl Subscriber + Send + Sync + use<> {
        let traces = self.traces.as_ref().map(Traces::layer);
        tracing_subscriber::registry().with(Listener::new(self.clone())).with(traces)
    }

    /// Writes the metrics since the last flush.
    pub fn flush(&self) {
        let sums = std::mem::take(&mut *lock(&self.sums));
        self.write(sums);
    }

    /// Writes an entry of the audit stream. Returns whether all of it was written.
    pub fn audit(&self, entry: &Entry<'_>) -> bool {
        let mut line = json!({ "audit": entry }).to_string();
        line.push('\n');
        lock(&self.output).write_line(line.as_bytes())
    }

    /// Adds to the metrics. Metrics that reach the limit are written at once.
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

/// Ignores poisoning: a panic under the lock leaves no harmful partial state here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
