//! The `tracing` layer that records spans.

use std::sync::Arc;

use domain::observe::{METRICS, ORDERS};
use domain::trace::{self, TRACES, TraceParent};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::buffer::Buffer;
use crate::chance::{Start, span_id};
use crate::fields::Fields;
use crate::sampler::Sampler;
use crate::span::{Done, EVENTS_MAX, Event as Happened, Kind, Remote, Value, set};

/// Records the spans of the target [`TRACES`]. The transitions of a task and the log events of orders become events of
/// their span.
#[derive(Debug)]
pub struct Layer {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) sampler: Sampler,
    /// The messaging system of the consumers.
    pub(crate) messaging: Arc<str>,
}

/// An open span.
struct Open {
    context: TraceParent,
    /// The previous span of the thread.
    before: Option<TraceParent>,
    /// The record, if the span is sampled.
    recorded: Option<Box<Recorded>>,
}

struct Recorded {
    start: Start,
    span: Done,
}

impl Layer {
    /// Whether the layer is interested in a callsite.
    #[must_use]
    pub fn wants(metadata: &Metadata<'_>) -> bool {
        [TRACES, METRICS, ORDERS].contains(&metadata.target())
    }

    /// A new span. Spans without an order are ignored.
    fn open(&self, name: &'static str, fields: Fields) -> Option<Open> {
        let Fields { order_id, name: own_name, kind, parent, link, error, message: _, mut attributes } = fields;
        let order_id = order_id?;
        let trace_id = order_id.as_bytes();
        let is_of_trace = |span: &TraceParent| span.trace_id() == trace_id;
        let (sent_by, within) = (parent.filter(is_of_trace), trace::current().filter(is_of_trace));
        let is_sampled = self.sampler.takes(trace_id, sent_by.or(within).or(link));
        let context = TraceParent::new(*trace_id, span_id(), is_sampled)?;
        let recorded = is_sampled.then(|| {
            if kind == Kind::Consumer {
                set(&mut attributes, "messaging.system", Value::Text(self.messaging.to_string()));
            }
            let start = Start::now();
            let span = Done {
                context,
                parent: sent_by.or(within).map(|parent| (*parent.span_id(), Remote(sent_by.is_some()))),
                link,
                name: own_name.map_or(name.into(), Into::into),
                kind,
                start_ns: start.epoch_ns(),
                end_ns: start.epoch_ns(),
                attributes,
                events: Vec::new(),
                error,
            };
            Box::new(Recorded { start, span })
        });
        Some(Open { context, before: None, recorded })
    }
}

impl Recorded {
    /// Fields recorded later.
    fn add(&mut self, fields: Fields) {
        let Fields { name, error, attributes, order_id: _, kind: _, parent: _, link: _, message: _ } = fields;
        for (name, value) in attributes {
            set(&mut self.span.attributes, name, value);
        }
        if let Some(name) = name {
            self.span.name = name.into();
        }
        // The first error is the cause of the others.
        self.span.error = self.span.error.take().or(error);
    }

    fn happened(&mut self, fields: Fields) {
        if self.span.events.len() < EVENTS_MAX {
            let (at_ns, Fields { message: name, attributes, .. }) = (self.start.now_ns(), fields);
            self.span.events.push(Happened { at_ns, name, attributes });
        }
    }
}

/// Calls a function with a span, if this layer records it.
fn with_open<S: for<'a> LookupSpan<'a>>(span: &SpanRef<'_, S>, work: impl FnOnce(&mut Open)) {
    if span.metadata().target() == TRACES
        && let Some(open) = span.extensions_mut().get_mut()
    {
        work(open);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.target() != TRACES {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(open) = self.open(metadata.name(), fields)
            && let Some(span) = context.span(id)
        {
            span.extensions_mut().insert(open);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            with_open(&span, |open| {
                if let Some(recorded) = &mut open.recorded {
                    let mut fields = Fields::default();
                    values.record(&mut fields);
                    recorded.add(fields);
                }
            });
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !Self::wants(event.metadata()) {
            return;
        }
        let spans = context.event_scope(event).into_iter().flatten();
        let Some(span) = spans.into_iter().find(|span| span.metadata().target() == TRACES) else { return };
        with_open(&span, |open| {
            if let Some(recorded) = &mut open.recorded {
                let mut fields = Fields::default();
                event.record(&mut fields);
                if event.metadata().target() == TRACES { recorded.add(fields) } else { recorded.happened(fields) }
            }
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            with_open(&span, |open| open.before = trace::set_current(Some(open.context)));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            with_open(&span, |open| {
                trace::set_current(open.before.take());
            });
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let recorded = span.extensions_mut().remove::<Open>().and_then(|open| open.recorded);
        if let Some(recorded) = recorded {
            let Recorded { start, span } = *recorded;
            self.buffer.put(Done { end_ns: start.now_ns(), ..span });
        }
    }
}
