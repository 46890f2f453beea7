//! The parts that operations share: parameters, headers, and schemas that have no type.

use domain::limits::{NAME_CHARS_MAX, PAGE_MAX, TEXT_CHARS_MAX};
use domain::task::ProcessState;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use wire::contract::VISIBLE;

use crate::problem_kind::Kind;

/// A parameter: the name of one that several operations have, or one of its own.
pub(super) enum Parameter {
    Shared(&'static str),
    Own(Value),
}

/// A parameter that several operations have.
pub(super) const fn shared(name: &'static str) -> Parameter {
    Parameter::Shared(name)
}

/// A parameter of the query.
pub(super) fn query(name: &str, description: &str, schema: &Value) -> Parameter {
    Parameter::Own(json!({"name": name, "in": "query", "description": description, "schema": schema}))
}

/// The name of a kind of problem.
pub(super) fn problem_name() -> Parameter {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    Parameter::Own(json!({
        "name": "name",
        "in": "path",
        "required": true,
        "description": "The last segment of the problem's `type`.",
        "schema": {"type": "string", "enum": names},
        "example": Kind::NoOrder.name(),
    }))
}

/// A text.
pub(super) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

/// Any object.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": true})
}

/// A reference to a header.
pub(super) fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

/// The parameters that several operations have, by name.
pub(super) fn parameters() -> Value {
    json!({
        "OrderID": {
            "name": "id",
            "in": "path",
            "required": true,
            "description": "The order.",
            "schema": {"$ref": "#/components/schemas/OrderID"},
        },
        "JobID": {
            "name": "id",
            "in": "path",
            "required": true,
            "description": "The job.",
            "schema": {
                "type": "string",
                "pattern": "^[0-9a-f]{12}-[0-9a-f]{16}$",
                "examples": ["0193e5c1a7f2-5f0c9f4be0118a21"],
            },
        },
        "ServiceName": {
            "name": "name",
            "in": "path",
            "required": true,
            "description": "The service: the name of its agent.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$", "examples": ["payment"]},
        },
        "Limit": {
            "name": "limit",
            "in": "query",
            "description": "Entries on a page.",
            "schema": {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 50},
        },
        "Cursor": {
            "name": "cursor",
            "in": "query",
            "description": "NextCursor of the previous page, with the same other parameters.",
            "schema": {"type": "string", "minLength": 12, "maxLength": 2048, "pattern": "^[A-Za-z0-9_-]+$"},
        },
        "Prefer": {
            "name": "Prefer",
            "in": "header",
            "description": "`wait=N` (RFC 7240): the answer comes when the order is settled, at the latest after \
                            N seconds (0 to 20). Other preferences are ignored.",
            "schema": {"type": "string"},
            "examples": {"wait": {"value": "wait=1"}},
        },
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": "The ETag that the caller saw. If the version has changed, the answer is 412. Without \
                            it, any version matches.",
            "schema": {
                "type": "string",
                "format": "entity-tags",
                "pattern": "^(\\*|[ ,]*(W/)?\"[!#-~]*\"( *,[ ,]*(W/)?\"[!#-~]*\")*[ ,]*)$",
            },
            "examples": {"any": {"value": "*"}},
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The ETag that the caller has. If it is still current, the answer is 304.",
            "schema": {
                "type": "string",
                "format": "entity-tags",
                "pattern": "^(\\*|[ ,]*(W/)?\"[!#-~]*\"( *,[ ,]*(W/)?\"[!#-~]*\")*[ ,]*)$",
            },
            "examples": {"weak": {"value": "W/\"0\""}},
        },
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "Idempotency key: the same key and document give the same order. The answers (202, \
                            422) tell any caller with the submitter's name whether a key was used, and whether \
                            for this document. So a key should be neither a secret nor guessable. 1 to 255 \
                            visible ASCII characters, with quotes (as in the IETF draft) or without.",
            "schema": {"type": "string", "pattern": "^([!#-~][!-~]{0,254}|\"([!#-\\[\\]-~]|\\\\[\"\\\\]){1,255}\")$"},
            "examples": {"plain": {"value": "order-7"}, "quoted": {"value": "\"order-8\""}},
        },
        "WorkflowName": {
            "name": "name",
            "in": "path",
            "required": true,
            "description": "The name of a workflow.",
            "schema": {"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "pattern": "^[A-Za-z0-9_-]+$"},
        },
        "WorkflowVersion": {
            "name": "version",
            "in": "path",
            "required": true,
            "description": "A version of the workflow, from 1.",
            "schema": {"type": "integer", "minimum": 1, "maximum": u32::MAX},
        },
        "CallbackToken": {
            "name": "token",
            "in": "path",
            "required": true,
            "description": "The last segment of the call's Callback-Url: URL-safe characters, at most 420. It is \
                            a secret.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{68,420}$"},
            "example": "AQGTSy4cWn09OiFfDJ9L4BEAY2hhcmdlLXBheW1lbnR0aGUgc2lnbmF0dXJlIG9mIDMyIGJ5dGVzISE",
        },
    })
}

/// What the list of orders is narrowed by.
pub(super) fn filters() -> Vec<Parameter> {
    vec![
        query(
            "state",
            "Only orders in this state.",
            &json!({"type": "string", "enum": ProcessState::ALL.map(ProcessState::name)}),
        ),
        query(
            "reason",
            "Only orders whose Reason has this code.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["exhausted"]}),
        ),
        query(
            "step",
            "Only orders that wait for an operator because of this step: the step is in Error, or Reason names \
             it.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["charge-payment"]}),
        ),
        query(
            "since",
            "Only orders submitted at this time or later.",
            &json!({"type": "string", "format": "date-time", "examples": ["2026-11-20T17:00:00Z"]}),
        ),
        query(
            "until",
            "Only orders submitted at this time or earlier.",
            &json!({"type": "string", "format": "date-time", "examples": ["2026-11-20T18:00:00Z"]}),
        ),
        query(
            "correlation",
            "Only orders with this CorrelationID. On AWS, orders from before the index are found with \
             `field=/CorrelationID`.",
            &json!({"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "examples": ["cart-7"]}),
        ),
        query(
            "field",
            "A JSON pointer (RFC 6901) into the document. Alone: only orders with this field. With `value`: only \
             orders whose field has that value. A redacted member is not allowed.",
            &json!({
                "type": "string",
                "maxLength": TEXT_CHARS_MAX,
                "pattern": "^(/([^~/]|~[01])*)*$",
                "examples": ["/Customer/Email"],
            }),
        ),
        query(
            "value",
            "The value of `field`, as text: the content of a string, the JSON of a number, true, false or null. \
             Without `field`: only orders in which any value has this text.",
            &json!({"type": "string", "maxLength": TEXT_CHARS_MAX, "examples": ["ann@example.org"]}),
        ),
        query(
            "workflow",
            "Only orders of this workflow, or of one version of it: `shop`, `shop/2`.",
            &json!({
                "type": "string",
                "minLength": 1,
                "maxLength": NAME_CHARS_MAX + 11,
                "pattern": "^[^/]+(/[1-9][0-9]{0,8})?$",
                "examples": ["shop/2"],
            }),
        ),
        query(
            "service",
            "Only orders under way that wait for this service: an attempt is in flight, or waits for its time.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["payment"]}),
        ),
        query("late", "`true`: only orders that were found late. `false`: only others.", &json!({"type": "boolean"})),
        query(
            "approval",
            "`true`: only orders that wait for an approval. `false`: only others.",
            &json!({"type": "boolean"}),
        ),
        query(
            "contradicted",
            "`true`: only orders whose end a later result contradicts. `false`: only others.",
            &json!({"type": "boolean"}),
        ),
        query(
            "with",
            "`index`: each order also has `Index`, the texts by which it is found. The API then reads the \
             document of each listed order.",
            &json!({"type": "string", "enum": ["index"]}),
        ),
    ]
}

/// The span of the numbers, and what each point has besides all orders.
pub(super) fn spans() -> Vec<Parameter> {
    vec![
        query(
            "last",
            "The span: 30m has a point for each minute, 24h for 10 minutes, 7d for each hour, 30d for 6 hours.",
            &json!({"type": "string", "enum": ["30m", "24h", "7d", "30d"], "default": "24h"}),
        ),
        query(
            "day",
            "A day of UTC in the place of last: today or one of the 30 days before. In another zone, the offset \
             in whole hours stands behind it. It has a point for each hour.",
            &json!({
                "type": "string",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}(Z|[+-][0-9]{2}:00)?$",
                "examples": ["2026-11-20", "2026-11-20+01:00"],
            }),
        ),
        query(
            "workflow",
            "Each point also has the attempts of this workflow.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["order"]}),
        ),
        query(
            "step",
            "Each point also has the attempts of this step.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["charge-payment"]}),
        ),
        query(
            "service",
            "Each point also has the attempts at this service. Given together, these three narrow each other.",
            &json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "examples": ["payment"]}),
        ),
    ]
}

/// The headers of answers.
pub(super) fn headers() -> Value {
    json!({
        "ETag": {
            "description": "The version, in quotes, for If-Match or If-None-Match.",
            "required": true,
            "schema": {"type": "string", "pattern": "^\"[0-9]+\"$", "examples": ["\"9\""]},
        },
        "Location": {
            "description": "The path of the order or job.",
            "required": true,
            "schema": {"type": "string", "format": "uri-reference", "pattern": "^/(orders|bulk)/[0-9a-f-]+$"},
        },
        "RetryAfter": {
            "description": "Seconds until the next request makes sense.",
            "required": true,
            "schema": {"type": "integer", "minimum": 1},
        },
        "Allow": {
            "description": "The methods that the path accepts.",
            "required": true,
            "schema": {"type": "string", "examples": ["GET, HEAD"]},
        },
        "PreferenceApplied": {
            "description": "The applied wait.",
            "required": false,
            "schema": {"type": "string", "pattern": "^wait=[0-9]+$", "examples": ["wait=10"]},
        },
        "CacheControl": {
            "description": "Not cacheable: the state of an order may change at any time.",
            "required": true,
            "schema": {"type": "string", "enum": ["no-store"]},
        },
        "CacheControlFixed": {
            "description": "Cacheable until the program changes.",
            "required": true,
            "schema": {"type": "string", "enum": ["no-cache"]},
        },
        "WwwAuthenticate": {"description": "The scheme of the token.", "schema": {"type": "string", "const": "Bearer"}},
    })
}

/// The body of a new order, by reference.
pub(super) fn document(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/components/schemas/Document"})
}

/// Its schema. It has no type of its own: its members are read one by one, and all are kept. Each of them may be null.
pub(super) fn document_schema() -> Value {
    json!({
        "type": "object",
        "description": "The order: any JSON object of at most 128 KiB and 64 levels. It is stored as sent, \
                        numbers digit for digit. No object in it has a member twice. Five members have a meaning, \
                        and one is reserved; all others are for the services.",
        "properties": {
            "ReplyChannel": {
                "type": ["string", "null"],
                "description": "Name of a registered reply channel for status messages.",
                "minLength": 1,
                "maxLength": TEXT_CHARS_MAX,
                "pattern": VISIBLE,
            },
            "CorrelationID": {
                "type": ["string", "null"],
                "description": "The application's own ID of the order, repeated in status messages.",
                "minLength": 1,
                "maxLength": TEXT_CHARS_MAX,
                "pattern": VISIBLE,
            },
            "Priority": {
                "type": ["string", "null"],
                "description": "The priority queue of the order's messages; the default is the workflow's.",
                "enum": ["high", "normal", null],
            },
            "Workflow": {
                "type": ["string", "null"],
                "description": "The workflow of the order: a name that `GET /workflows` lists. Without it, the \
                                default workflow.",
                "minLength": 1,
                "maxLength": NAME_CHARS_MAX,
                "pattern": "^[A-Za-z0-9_-]+$",
            },
            "NotBefore": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "No step of the order begins before this time, at most 400 days ahead.",
            },
            "CompleteBy": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "The deadline of the order: after now and `NotBefore`, at most 400 days ahead. It \
                                wins over that of the workflow.",
            },
        },
        "additionalProperties": true,
        "examples": [{"Item": "mug", "Quantity": 1, "Total": 12.5, "CorrelationID": "cart-7"}],
    })
}
