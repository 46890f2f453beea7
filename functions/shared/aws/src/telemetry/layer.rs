//! The subscriber layer for `tracing`.

use std::sync::Arc;

use domain::trace::TRACES;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::fields::{AGENT, Dimensions, Fields, Named, SERVICE, set};
use super::{Telemetry, line, lock};

/// Turns events into log lines and metrics.
pub(super) struct Listener(Arc<Telemetry>);

/// The fields of a span.
struct Said(Named);

impl Listener {
    pub(super) const fn new(telemetry: Arc<Telemetry>) -> Self {
        Self(telemetry)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    /// The decision to listen depends on the place in the source alone, so `tracing` asks once for each place. An
    /// ignored place costs nothing from then on.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.0.levels.listen(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.0.levels.listen(metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() == TRACES {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Said(fields.named));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(Said(said)) = span.extensions_mut().get_mut()
        {
            for (name, value) in fields.named {
                set(said, name, value);
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Self(telemetry) = self;
        let metadata = event.metadata();
        if metadata.target() == TRACES {
            return;
        }
        let is_logged = telemetry.levels.log(metadata);
        let mut fields = if is_logged { Fields::default() } else { Fields::metrics_only() };
        event.record(&mut fields);
        let said = said(event, &context);
        if !fields.metrics.is_empty() {
            telemetry.count(dimensions(&fields, &said), &fields.metrics);
        }
        if is_logged {
            let line = line::of(telemetry.function, (telemetry.now)(), metadata, &fields.message, said, fields.named);
            lock(&telemetry.output).write_line(&line);
        }
    }
}

/// The fields of the spans around the event. The innermost span's value of a name holds.
fn said<S: Subscriber + for<'a> LookupSpan<'a>>(event: &Event<'_>, context: &Context<'_, S>) -> Named {
    let mut all = Named::new();
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        if let Some(Said(said)) = span.extensions().get() {
            for (name, value) in said {
                set(&mut all, name, value.clone());
            }
        }
    }
    all
}

/// The dimensions of the event itself. If the event names neither agent nor service, the agent of its span is added.
fn dimensions(fields: &Fields, said: &Named) -> Dimensions {
    let mut dimensions = fields.dimensions();
    let is_named = dimensions.iter().any(|(name, _)| [AGENT.1, SERVICE.1].contains(name));
    let agent = said.iter().find(|(name, _)| *name == AGENT.0).and_then(|(_, value)| value.as_str());
    if let Some(agent) = agent.filter(|_| !is_named) {
        dimensions.push((AGENT.1, agent.to_owned()));
    }
    dimensions
}
