//! The fields of spans and events.

use std::fmt::{self, Write};

use domain::id::OrderId;
use domain::trace::TraceParent;
use tracing::field::{Field, Visit};

use crate::span::{Attributes, Kind, Value, set};

/// The longest text of an attribute, in bytes.
const TEXT_BYTES_MAX: usize = 400;
/// The prefix of metric fields.
const METRICS: [&str; 3] = ["monotonic_counter.", "histogram.", "gauge."];

/// The fields of a span or of an event.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) order_id: Option<OrderId>,
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) parent: Option<TraceParent>,
    pub(crate) link: Option<TraceParent>,
    pub(crate) error: Option<String>,
    pub(crate) message: String,
    pub(crate) attributes: Attributes,
}

impl Fields {
    fn text(&mut self, field: &Field, value: &dyn fmt::Display) {
        let text = bounded(value);
        match field.name() {
            "order_id" => self.order_id = text.parse().ok(),
            "message" => self.message = text,
            "otel.name" => self.name = Some(text),
            "otel.kind" => self.kind = kind(&text),
            "otel.parent" => self.parent = text.parse().ok(),
            "otel.link" => self.link = text.parse().ok(),
            "otel.error" => self.error = Some(text),
            name => set(&mut self.attributes, name, Value::Text(text)),
        }
    }

    fn value(&mut self, field: &Field, value: Value) {
        if !METRICS.iter().any(|begin| field.name().starts_with(begin)) {
            set(&mut self.attributes, field.name(), value);
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

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, Value::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, Value::Whole(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.value(field, Value::Real(value));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, Value::Yes(value));
    }
}

fn kind(text: &str) -> Kind {
    match text {
        "server" => Kind::Server,
        "client" => Kind::Client,
        "consumer" => Kind::Consumer,
        _ => Kind::Internal,
    }
}

/// The text of a value, cut at the limit. Formatting stops there, too.
fn bounded(value: &dyn fmt::Display) -> String {
    let mut text = Bounded(String::new());
    // An error means that the text was cut.
    let _ = write!(text, "{value}");
    text.0
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let left = TEXT_BYTES_MAX - self.0.len();
        if part.len() <= left {
            self.0.push_str(part);
            return Ok(());
        }
        let end = (0..=left).rev().find(|&end| part.is_char_boundary(end)).unwrap_or(0);
        self.0.push_str(&part[..end]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        assert_eq!(bounded(&"ü".repeat(201)), "ü".repeat(200));
        assert_eq!(bounded(&format_args!("x{}{}", "ü".repeat(200), "more")), format!("x{}", "ü".repeat(199)));
        assert_eq!(bounded(&"short"), "short");
    }
}
