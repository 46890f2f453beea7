//! The contract of the API: OpenAPI 3.1.

use std::io;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::examples;
use crate::tidy::{For, tidy};

/// The document.
pub(crate) fn document() -> io::Result<Value> {
    let examples = examples::played()?;
    let settings =
        || SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let (mut bodies, mut answers) = (settings().into_generator(), settings().for_serialize().into_generator());
    let mut paths = api::contract::paths(&examples, &mut bodies, &mut answers);
    api::contract::problem(&mut answers);
    let mut components = api::contract::components();
    components["securitySchemes"] = json!({"Token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `stepwarden token add`, where `serve` has `--tokens`. On AWS the gateway checks a \
             signature or a JWT; with `JwtRoles` the scopes of a JWT are roles, which the API checks too.",
    }});
    components["schemas"] = schemas(bodies, answers, &examples).into();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stepwarden",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
            "summary": "Orders as sagas over several services: each is completed or compensated",
            "description": "Names are in PascalCase. Times are RFC 3339 in UTC with milliseconds. The name of a \
                 duration ends with its unit. Readers ignore unknown members. An error is a problem document (RFC \
                 9457); its `type` is the address of a page about it. On one machine, the API has no authentication, \
                 and every GET may be a HEAD. On AWS, the deployment sets the authentication: requests are signed \
                 (SigV4) or carry a bearer token, except those of About. API Gateway answers 401 or 403 to other \
                 requests, and 429 above its rate limit. With tracing enabled, the API follows a W3C `traceparent`.",
        },
        "servers": [{"url": "/", "description": "The address that serves this contract."}],
        "tags": [
            {"name": "Orders", "description": "For applications."},
            {"name": "Operating", "description": "Commands of operators."},
            {"name": "Watching", "description": "Views for operators."},
            {"name": "Services", "description": "For the services that the agents call."},
            {"name": "About", "description": "The API itself; needs no authorisation."},
        ],
        "paths": paths.take(),
        "components": components,
    }))
}

/// The schemas of bodies and answers. What stands in both is as strict as it is for bodies.
fn schemas(bodies: SchemaGenerator, answers: SchemaGenerator, examples: &Value) -> Map<String, Value> {
    let mut schemas = collected(answers, For::Readers);
    for (name, mut schema) in collected(bodies, For::Writers) {
        // A member that the API does not know is refused.
        if schema["properties"].is_object() && schema["additionalProperties"].is_null() {
            schema["additionalProperties"] = false.into();
        }
        if let Some(examples) = examples.get(&name).filter(|examples| examples.is_array()) {
            schema["examples"] = examples.clone();
        }
        schemas.insert(name, schema);
    }
    listed(&mut schemas);
    api::contract::complete(&mut schemas);
    schemas
}

fn collected(mut generator: SchemaGenerator, whom: For) -> Map<String, Value> {
    let mut schemas = Value::Object(generator.take_definitions(false));
    tidy(&mut schemas, whom);
    if let Value::Object(schemas) = schemas { schemas } else { Map::new() }
}

/// A list leaves out members of unbounded size, and it alone has what its orders are found by.
fn listed(schemas: &mut Map<String, Value>) {
    let mut without = |of: &str, listed: &str, left_out: &str| {
        let mut schema = schemas[of].clone();
        remove(&mut schema, left_out);
        schemas.insert(listed.to_owned(), schema);
    };
    without("Step", "ListedStep", "Output");
    without("Task", "ListedTask", "History");
    remove(&mut schemas["Task"], "Index");
    schemas["ListedTask"]["description"] = "A task without its history and outputs.".into();
    schemas["ListedTask"]["properties"]["Steps"]["items"] = json!({"$ref": "#/components/schemas/ListedStep"});
    schemas["OrderList"]["properties"]["Orders"]["items"] = json!({"$ref": "#/components/schemas/ListedTask"});
}

fn remove(schema: &mut Value, member: &str) {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove(member);
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name != member);
    }
}
