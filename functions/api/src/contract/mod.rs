//! The contract of the API, for `infra/contracts`, which writes it (feature `contract`). No program that ships has it.

mod call;
mod calls;
mod parts;
mod refusals;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::problem_kind::Kind;
use crate::route::Verb;

/// The paths, with their operations. The generators collect the schemas that these refer to.
///
/// # Panics
/// On a fault in the table of operations.
pub fn paths(examples: &Value, bodies: &mut SchemaGenerator, answers: &mut SchemaGenerator) -> Value {
    let refusals = refusals::refusals();
    let generators = &mut call::Generators { bodies, answers };
    let mut paths = Map::new();
    for call in calls::calls() {
        let method = if call.verb == Verb::Post { "post" } else { "get" };
        paths.entry(call.path).or_insert_with(|| json!({}))[method] = call.shown(&refusals, examples, generators);
    }
    paths.into()
}

/// Adds the schema of problems, which operations answer with by reference alone.
pub fn problem(answers: &mut SchemaGenerator) {
    answers.subschema_for::<wire::Problem<'static>>();
}

/// What operations share, without the schemas.
#[must_use]
pub fn components() -> Value {
    let refusals = refusals::refusals();
    let responses: Map<String, Value> =
        refusals.iter().map(|refusal| (refusal.name.to_owned(), refusal.shown())).collect();
    json!({"parameters": parts::parameters(), "headers": parts::headers(), "responses": responses})
}

/// Schemas that have no type, and the values that no type knows, in the collected ones.
pub fn complete(schemas: &mut Map<String, Value>) {
    schemas.insert(
        "GatewayError".to_owned(),
        json!({
            "type": "object",
            "description": "What Amazon API Gateway answers by itself, before the API is asked.",
            "properties": {
                "message": {"type": "string", "description": "A message for people.", "examples": ["Unauthorized"]},
            },
        }),
    );
    schemas.insert("Document".to_owned(), parts::document_schema());
    if let Some(problem) = schemas.get_mut("Problem") {
        let kinds: Vec<String> = Kind::ALL.iter().map(|kind| kind.uri()).collect();
        problem["properties"]["type"]["examples"] = kinds.into();
        // A gateway, or a service, writes others.
        problem.as_object_mut().map(|problem| problem.remove("required"));
    }
}

#[cfg(test)]
mod tests;
