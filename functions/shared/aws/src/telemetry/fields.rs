//! The fields of an event or a span.

use std::fmt::{self, Write};

use domain::workflow::step_of;
use serde_json::Value;
use tracing::field::{Field, Visit};

/// The field and the dimension that name the agent of a request.
pub(super) const AGENT: (&str, &str) = ("agent", "Agent");
/// The field and the dimension that name a remote service.
pub(super) const SERVICE: (&str, &str) = ("service", "Service");
/// The field and the dimension that name a step.
const STEP: (&str, &str) = ("step", "Step");
/// Fields of an event that become dimensions of its metrics. Such a field must have few values: each value is a
/// separate metric and costs as much.
pub(super) const DIMENSIONS: [(&str, &str); 6] =
    [AGENT, SERVICE, STEP, ("workflow", "Workflow"), ("reason", "Reason"), ("outcome", "Outcome")];

/// Dimensions and their values, except the function.
pub(super) type Dimensions = Vec<(&'static str, String)>;

/// The maximum length of a field's text, in characters.
const TEXT_CHARS_MAX: usize = 1_000;

const COUNTER: &str = "monotonic_counter.";
const HISTOGRAM: &str = "histogram.";
const GAUGE: &str = "gauge.";

/// The aggregation of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The values are added.
    Counter,
    /// Each value counts separately.
    Histogram,
    /// The last value holds.
    Gauge,
}

/// One value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Metric {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) value: f64,
}

/// Whether a field of this name is a metric.
pub(super) fn is_metric(name: &'static str) -> bool {
    metric(name).is_some()
}

fn metric(name: &'static str) -> Option<(Kind, &'static str)> {
    let kinds = [(Kind::Counter, COUNTER), (Kind::Histogram, HISTOGRAM), (Kind::Gauge, GAUGE)];
    kinds.into_iter().find_map(|(kind, prefix)| name.strip_prefix(prefix).map(|name| (kind, name)))
}

/// Fields by name, in their order.
pub(super) type Named = Vec<(&'static str, Value)>;

/// Sets a field. The last value of a name holds.
pub(super) fn set(fields: &mut Named, name: &'static str, value: Value) {
    match fields.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => fields.push((name, value)),
    }
}

/// The fields of an event or of a span.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) named: Named,
    pub(super) metrics: Vec<Metric>,
    /// Whether the caller needs only the metrics and their dimensions.
    metrics_only: bool,
}

impl Fields {
    /// For an event that does not become a log line.
    pub(super) fn metrics_only() -> Self {
        Self { metrics_only: true, ..Self::default() }
    }

    /// The fields that are dimensions of the event's metrics.
    pub(super) fn dimensions(&self) -> Dimensions {
        let dimension = |&(field, name): &(&'static str, &'static str)| {
            let (_, value) = self.named.iter().find(|(known, _)| *known == field)?;
            let text = value.as_str().filter(|text| !text.is_empty())?;
            // The elements of a step count together, whatever an order calls them.
            Some((name, if name == STEP.1 { step_of(text) } else { text }.to_owned()))
        };
        DIMENSIONS.iter().filter_map(dimension).collect()
    }

    fn is_wanted(&self, name: &str) -> bool {
        !self.metrics_only || DIMENSIONS.iter().any(|(field, _)| *field == name)
    }

    fn number(&mut self, field: &Field, number: impl Into<Value>, as_metric: f64) {
        match metric(field.name()) {
            Some((kind, name)) => self.metrics.push(Metric { kind, name, value: as_metric }),
            None if self.is_wanted(field.name()) => set(&mut self.named, field.name(), number.into()),
            None => {}
        }
    }

    fn text(&mut self, field: &Field, value: &dyn fmt::Display) {
        if !self.is_wanted(field.name()) || is_metric(field.name()) {
            return;
        }
        let text = bounded(value);
        match field.name() {
            "message" => self.message = text,
            name => set(&mut self.named, name, text.into()),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, &value);
    }

    #[expect(clippy::cast_precision_loss, reason = "CloudWatch's values are of this kind")]
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value, value as f64);
    }

    #[expect(clippy::cast_precision_loss, reason = "CloudWatch's values are of this kind")]
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value, value as f64);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field, value, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if self.is_wanted(field.name()) && !is_metric(field.name()) {
            set(&mut self.named, field.name(), value.into());
        }
    }
}

/// The text of a value, cut at the limit. The rest is not even formatted.
fn bounded(value: &dyn fmt::Display) -> String {
    let mut text = Bounded { text: String::new(), left: TEXT_CHARS_MAX };
    match write!(text, "{value}") {
        Ok(()) => text.text,
        Err(fmt::Error) => text.text + "…",
    }
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        match part.char_indices().nth(self.left) {
            None => {
                self.left -= part.chars().count();
                self.text.push_str(part);
                Ok(())
            }
            Some((end, _)) => {
                self.left = 0;
                self.text.push_str(&part[..end]);
                Err(fmt::Error)
            }
        }
    }
}
