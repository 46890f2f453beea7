//! Spans in OTLP's JSON form: IDs are hexadecimal, 64-bit integers are texts.

use domain::trace::TraceParent;
use serde::{Serialize, Serializer};

use crate::span::{Done, Event as Happened, Remote, Value};

/// The resource: the name of the process and its environment.
pub(crate) type Resource = [(String, String)];

/// A request's body.
///
/// # Errors
/// If a value has no JSON form; every value here has one.
pub(crate) fn request(resource: &Resource, spans: &[Done]) -> serde_json::Result<Vec<u8>> {
    let scope_spans = [ScopeSpans { scope: SCOPE, spans: Each(spans) }];
    let resource = ResourceOf { attributes: Each(resource) };
    serde_json::to_vec(&Request { resource_spans: [ResourceSpans { resource, scope_spans }] })
}

const SCOPE: Scope = Scope { name: "stepwarden", version: env!("CARGO_PKG_VERSION") };
/// The status code of an error; the other codes mean unset and ok.
const ERROR: u8 = 2;
/// Flag of a span or a link: the trace is sampled.
const SAMPLED: u32 = 1;
/// Flag: it is known whether the parent, or the linked span, is remote.
const KNOWN: u32 = 0x100;
/// Flag: it is remote.
const REMOTE: u32 = 0x200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: ResourceOf<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct ResourceOf<'a> {
    attributes: Each<'a, (String, String)>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Each<'a, Done>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

/// A list of values in their wire form.
struct Each<'a, T>(&'a [T]);

/// A type with its own wire form.
trait Wire {
    type Form<'a>: Serialize
    where
        Self: 'a;

    fn form(&self) -> Self::Form<'_>;
}

impl<T> Each<'_, T> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Wire> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Wire::form))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    flags: u32,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Each<'a, (&'static str, Value)>,
    #[serde(skip_serializing_if = "Each::is_empty")]
    events: Each<'a, Happened>,
    #[serde(skip_serializing_if = "Each::is_empty")]
    links: Each<'a, TraceParent>,
    status: Status<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    time_unix_nano: String,
    name: &'a str,
    attributes: Each<'a, (&'static str, Value)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    trace_id: String,
    span_id: String,
    flags: u32,
}

#[derive(Serialize)]
struct Status<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: AnyValue<'a>,
}

#[derive(Serialize)]
enum AnyValue<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "doubleValue")]
    Real(f64),
    #[serde(rename = "boolValue")]
    Yes(bool),
}

impl Wire for Done {
    type Form<'a> = Span<'a>;

    fn form(&self) -> Span<'_> {
        let Self { context, parent, link, name, kind, start_ns, end_ns, attributes, events, error } = self;
        let is_remote = matches!(parent, Some((_, Remote(true))));
        Span {
            trace_id: hex::encode(context.trace_id()),
            span_id: hex::encode(context.span_id()),
            parent_span_id: parent.map(|(span_id, _)| hex::encode(span_id)),
            flags: flags(context.is_sampled(), is_remote),
            name,
            kind: *kind as u8,
            start_time_unix_nano: start_ns.to_string(),
            end_time_unix_nano: end_ns.to_string(),
            attributes: Each(attributes),
            events: Each(events),
            links: Each(link.as_slice()),
            status: Status { code: error.as_ref().map(|_| ERROR), message: error.as_deref() },
        }
    }
}

impl Wire for Happened {
    type Form<'a> = Event<'a>;

    fn form(&self) -> Event<'_> {
        let Self { at_ns, name, attributes } = self;
        Event { time_unix_nano: at_ns.to_string(), name, attributes: Each(attributes) }
    }
}

impl Wire for TraceParent {
    type Form<'a> = Link;

    fn form(&self) -> Link {
        let (trace_id, span_id) = (hex::encode(self.trace_id()), hex::encode(self.span_id()));
        Link { trace_id, span_id, flags: flags(self.is_sampled(), true) }
    }
}

impl Wire for (&'static str, Value) {
    type Form<'a> = Attribute<'a>;

    fn form(&self) -> Attribute<'_> {
        let value = match &self.1 {
            Value::Text(text) => AnyValue::Text(text),
            Value::Whole(number) => AnyValue::Whole(number.to_string()),
            Value::Real(number) => AnyValue::Real(*number),
            Value::Yes(yes) => AnyValue::Yes(*yes),
        };
        Attribute { key: self.0, value }
    }
}

impl Wire for (String, String) {
    type Form<'a> = Attribute<'a>;

    fn form(&self) -> Attribute<'_> {
        Attribute { key: &self.0, value: AnyValue::Text(&self.1) }
    }
}

const fn flags(is_sampled: bool, is_remote: bool) -> u32 {
    let remote = if is_remote { REMOTE } else { 0 };
    let sampled = if is_sampled { SAMPLED } else { 0 };
    KNOWN | remote | sampled
}
