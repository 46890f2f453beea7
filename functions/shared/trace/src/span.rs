//! A finished span.

use std::borrow::Cow;

use domain::trace::TraceParent;

/// The most attributes of a span or an event; further ones are dropped.
pub(crate) const ATTRIBUTES_MAX: usize = 32;
/// The most events of a span; further ones are dropped.
pub(crate) const EVENTS_MAX: usize = 32;

/// A finished span.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) context: TraceParent,
    /// The parent span, and whether it is or may be remote.
    pub(crate) parent: Option<([u8; 8], Remote)>,
    pub(crate) link: Option<TraceParent>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) attributes: Attributes,
    pub(crate) events: Vec<Event>,
    pub(crate) error: Option<String>,
}

/// Whether a context came with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remote(pub(crate) bool);

/// The kind of a span, with the numbers of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Internal = 1,
    Server = 2,
    Client = 3,
    Consumer = 5,
}

/// An event in a span.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
}

/// Attributes by name, in their order.
pub(crate) type Attributes = Vec<(&'static str, Value)>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Yes(bool),
}

/// Sets an attribute; the last value of a name wins.
pub(crate) fn set(attributes: &mut Attributes, name: &'static str, value: Value) {
    if let Some((_, known)) = attributes.iter_mut().find(|(known, _)| *known == name) {
        *known = value;
    } else if attributes.len() < ATTRIBUTES_MAX {
        attributes.push((name, value));
    }
}
