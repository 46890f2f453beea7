//! How values stand in the contracts of messages and of the API, where no type says it (feature `contract`). No program
//! that ships has this feature.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::id::OrderId;
use crate::index::Term;
use crate::json::Json;
use crate::limits::{DOCUMENT_BYTES_MAX, NAME_CHARS_MAX, NESTING_MAX};
use crate::message::Acceptance;
use crate::task::Watch;
use crate::template::Template;
use crate::time::Timestamp;

/// Marks a member that is always written, though its type lets it be absent.
pub const ALWAYS: &str = "x-always";
/// Marks a list of words that may grow.
pub const OPEN: &str = "x-open";

/// Defines schemas: the type, its name in the contract if it has one there, and the schema.
macro_rules! schemas {
    ($($of:ty, $name:expr => $schema:expr;)+) => {
        $(impl JsonSchema for $of {
            fn inline_schema() -> bool {
                $name.is_empty()
            }

            fn schema_name() -> Cow<'static, str> {
                if $name.is_empty() { stringify!($of).into() } else { $name.into() }
            }

            fn schema_id() -> Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($of)).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })+
    };
}

/// The name of a step.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepName;
/// The name of an agent.
#[derive(Debug)]
pub struct AgentName;
/// The document of an order.
#[derive(Debug)]
pub struct Document;
/// The body of a mapped call.
#[derive(Debug)]
pub struct Body;

schemas! {
    OrderId, "OrderID" => json_schema!({
        "type": "string",
        "description": "A UUID in lower case with hyphens. Version 7 contains the time of the post. Version 8 is derived from \
            an Idempotency-Key.",
        "format": "uuid",
        "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        "examples": ["01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"],
    });
    Timestamp, "Time" => json_schema!({
        "type": "string",
        "description": "RFC 3339 in UTC with milliseconds.",
        "format": "date-time",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
        "examples": ["2026-11-20T17:26:43.007Z"],
    });
    StepName, "Step" => json_schema!({
        "type": "string",
        "description": "The name of a step in its workflow.",
        "pattern": format!("^[A-Za-z0-9_-]{{1,{NAME_CHARS_MAX}}}$"),
        "examples": ["charge-payment"],
    });
    AgentName, "Agent" => json_schema!({
        "type": "string",
        "description": "The name of an agent in the workflow.",
        "minLength": 1,
        "maxLength": NAME_CHARS_MAX,
        "examples": ["payment"],
    });
    Document, "Document" => json_schema!({
        "type": "object",
        "description": format!(
            "The order document, as posted: any JSON object of up to {DOCUMENT_BYTES_MAX} bytes and {NESTING_MAX} levels.",
        ),
        "examples": [{"Customer": "Ada Lovelace", "Total": 32.9}],
    });
    Body, "" => json_schema!({
        "type": ["object", "array", "string", "number", "boolean"],
        "examples": [{"amount": 25.0, "currency": "EUR"}],
    });
    Template, "" => json_schema!({"type": ["object", "string"], "examples": [{"ChargeID": "/id"}]});
    Term, "" => json_schema!({"type": "string", "pattern": "^[0-9a-f]{32}$"});
    Watch, "" => json_schema!({"type": "string", "pattern": "^(due|wait|error)#[0-9]{2}$"});
    Acceptance, "" => json_schema!({"type": "object"});
    Json, "" => json_schema!(true);
}
