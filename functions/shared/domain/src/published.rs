//! How the types that write themselves stand in the contracts (feature `contract`).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::contract::schemas;
use crate::id::{CommandId, OrderId};
use crate::index::Term;
use crate::json::Json;
use crate::limits::COMMAND_ID_CHARS_MAX;
use crate::limits::PATH_CHARS_MAX;
use crate::message::Acceptance;
use crate::task::Watch;
use crate::template::{BodyCondition, PollPath, Template};
use crate::time::Timestamp;

schemas! {
    OrderId, "OrderID" => json_schema!({
        "type": "string",
        "description": "A UUID in lower case with hyphens. Version 7 contains the time of the post. Version 8 is derived from \
            an Idempotency-Key.",
        "format": "uuid",
        "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        "examples": ["01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"],
    });
    CommandId, "CommandID" => json_schema!({
        "type": "string",
        "description": "The id of a command about an order. A client may choose it; otherwise the API makes one. The line of \
            the history that the command makes has it, and a repeat of what was carried out changes nothing. Other calls \
            ignore it.",
        "pattern": format!("^[A-Za-z0-9._:-]{{1,{COMMAND_ID_CHARS_MAX}}}$"),
        "examples": ["0193494e-5c8f-7abc-8def-54a98ceb1f0a"],
    });
    Timestamp, "Time" => json_schema!({
        "type": "string",
        "description": "RFC 3339 in UTC with milliseconds.",
        "format": "date-time",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
        "examples": ["2026-11-20T17:26:43.007Z"],
    });
    Template, "" => json_schema!({"type": ["object", "string"], "examples": [{"ChargeID": "/id"}]});
    Term, "" => json_schema!({"type": "string", "pattern": "^[0-9a-f]{32}$"});
    Watch, "" => json_schema!({"type": "string", "pattern": "^(due|wait|error)#[0-9]{2}$"});
    Acceptance, "" => json_schema!({
        "type": "object",
        "properties": {"Poll": {
            "type": "string",
            "description": "Where the state of the call is asked by GET, as `Poll` of the request says. Absent: nowhere.",
            "pattern": format!("^[!-~]{{1,{PATH_CHARS_MAX}}}$"),
        }},
    });
    BodyCondition, "" => json_schema!({"type": "string", "examples": ["/status == \"failed\""]});
    PollPath, "" => json_schema!({"type": "string", "examples": ["transfers/{/id}", "{header:Location}"]});
    Json, "" => json_schema!(true);
}
