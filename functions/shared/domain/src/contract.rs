//! How values stand in the contracts of messages and of the API, where no type says it (feature `contract`). No program
//! that ships has this feature.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::limits::{DOCUMENT_BYTES_MAX, ELEMENT_CHARS_MAX, NAME_CHARS_MAX, NESTING_MAX};

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
pub(crate) use schemas;

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
    StepName, "Step" => json_schema!({
        "type": "string",
        "description": "The name of a step in its workflow; behind a slash, of its element.",
        "pattern": format!("^[A-Za-z0-9_-]{{1,{NAME_CHARS_MAX}}}(/[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}})?$", ELEMENT_CHARS_MAX - 1),
        "examples": ["charge-payment", "reserve/0001"],
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
}
