//! An operation, and how it stands in the contract. What follows from its route, its parameters and its body is not said
//! again: methods, authorisation, and most of the problems that it answers with.

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wire::{Accepted, Task};

use super::parts::{Parameter, header};
use super::refusals::Refusal;
use crate::caller::Caller;
use crate::problem_kind::Kind;
use crate::route::{Route, Verb};

/// The schema of a type, by the generator of requests or of answers.
pub(super) type Of = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`.
pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What an operation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Orders,
    Operating,
    Watching,
    Services,
    About,
}

/// The path of the pages about problems.
pub(super) const PROBLEM_PAGE: &str = "/problems/{name}";

/// An operation.
pub(super) struct Call {
    /// With its parameters in braces.
    pub(super) path: &'static str,
    pub(super) verb: Verb,
    pub(super) id: &'static str,
    tag: Tag,
    summary: &'static str,
    description: &'static str,
    parameters: Vec<Parameter>,
    body: Option<Of>,
    answers: Vec<(u16, &'static str, Of)>,
    refusals: Vec<&'static str>,
}

/// An operation that reads.
pub(super) fn get(path: &'static str, id: &'static str, tag: Tag, summary: &'static str) -> Call {
    Call {
        path,
        verb: Verb::Get,
        id,
        tag,
        summary,
        description: "",
        parameters: Vec::new(),
        body: None,
        answers: Vec::new(),
        refusals: Vec::new(),
    }
}

/// An operation that changes something.
pub(super) fn post(path: &'static str, id: &'static str, tag: Tag, summary: &'static str) -> Call {
    Call { verb: Verb::Post, ..get(path, id, tag, summary) }
}

/// The generators, which collect the schemas that operations refer to.
pub(super) struct Generators<'a> {
    pub(super) bodies: &'a mut SchemaGenerator,
    pub(super) answers: &'a mut SchemaGenerator,
}

impl Call {
    pub(super) fn says(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    pub(super) fn takes(self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        Self { parameters: parameters.into_iter().collect(), ..self }
    }

    pub(super) fn reads(self, body: Of) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(super) fn gives(mut self, status: u16, text: &'static str, body: Of) -> Self {
        self.answers.push((status, text, body));
        self
    }

    /// The answers of a post that makes an order.
    pub(super) fn makes_an_order(self) -> Self {
        self.gives(200, "With Prefer: wait, the settled order.", of::<Task<'static>>).gives(
            202,
            "Accepted and stored durably. Also the answer if the wait ends before the order is settled.",
            of::<Accepted>,
        )
    }

    /// The problems that do not follow from its route, parameters and body.
    pub(super) fn refuses<const N: usize>(self, names: [&'static str; N]) -> Self {
        Self { refusals: names.into(), ..self }
    }

    /// Its route, in which each parameter is its own value.
    pub(super) fn route(&self) -> Route<'static> {
        let known = (self.path == PROBLEM_PAGE).then_some(Route::Problem(Kind::UnknownRoute));
        known.or_else(|| Route::of(self.path)).expect("an operation has a path that the API knows")
    }

    /// Whether it is for callers that are known, by their roles.
    fn is_known(&self, route: Route<'_>) -> bool {
        Caller::unknown().check(route, self.verb).is_err()
    }

    fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter, Parameter::Shared(shared) if *shared == name))
    }

    fn has_query(&self) -> bool {
        self.has("Limit")
            || self.parameters.iter().any(|parameter| matches!(parameter, Parameter::Own(own) if own["in"] == "query"))
    }

    /// The names of all its problems.
    fn refused(&self, route: Route<'_>) -> Vec<&'static str> {
        let is_callback = matches!(route, Route::Callback(_) | Route::Heartbeat(_));
        let (reads, is_known) = (self.body.is_some(), self.is_known(route));
        let found = [
            (true, "WrongMethod"),
            (is_known, "Unauthenticated"),
            (is_callback, "ForgedCallback"),
            (!route.is_cheap(), "CrossSite"),
            (self.tag != Tag::About, "Unavailable"),
            (reads, "BadBody"),
            (reads, "TooLarge"),
            (reads, "NotJsonType"),
            (!reads && self.has_query(), "BadParameter"),
            (!reads && (self.has("Prefer") || self.has("IfNoneMatch")), "BadHeader"),
            (self.has("IfMatch"), "VersionChanged"),
            (self.has("IfNoneMatch"), "NotModified"),
            (self.has("OrderID"), "NoOrder"),
            (self.has("JobID"), "NoJob"),
            (self.has("ServiceName"), "NoService"),
            (self.has("WorkflowName"), "NoWorkflow"),
        ];
        let found = found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name);
        found.chain(self.refusals.iter().copied()).collect()
    }

    /// As it stands in the contract.
    pub(super) fn shown(&self, refusals: &[Refusal], examples: &Value, generators: &mut Generators<'_>) -> Value {
        let route = self.route();
        let mut responses: BTreeMap<String, Value> = BTreeMap::new();
        for name in self.refused(route) {
            let status = refusals.iter().find(|refusal| refusal.name == name).map_or(StatusCode::OK, Refusal::status);
            let before =
                responses.insert(status.as_str().to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
            assert!(
                before.is_none() && status != StatusCode::OK,
                "{}: one of two problems of a status: {name}",
                self.id
            );
        }
        for (status, text, body) in &self.answers {
            responses.insert(status.to_string(), self.answer(route, *status, text, *body, examples, generators));
        }
        let parameters = self.parameters.iter().map(|parameter| match parameter {
            Parameter::Shared(name) => json!({"$ref": format!("#/components/parameters/{name}")}),
            Parameter::Own(own) => own.clone(),
        });
        let parameters: Vec<Value> = parameters.collect();
        let mut shown = json!({
            "operationId": self.id,
            "tags": [format!("{:?}", self.tag)],
            "summary": self.summary,
            "security": if self.is_known(route) { json!([{}, {"Token": []}]) } else { json!([]) },
            "responses": responses,
        });
        if !self.description.is_empty() {
            shown["description"] = self.description.into();
        }
        if !parameters.is_empty() {
            shown["parameters"] = parameters.into();
        }
        if let Some(body) = self.body {
            let schema = body(generators.bodies);
            shown["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        shown
    }

    fn answer(
        &self,
        route: Route<'_>,
        status: u16,
        text: &str,
        body: Of,
        examples: &Value,
        generators: &mut Generators<'_>,
    ) -> Value {
        let is_fixed = matches!(route, Route::Problem(_));
        let is_place = self.verb == Verb::Post && matches!(route, Route::Orders | Route::Again(_) | Route::Jobs);
        let mut headers = json!({"Cache-Control": header(if is_fixed { "CacheControlFixed" } else { "CacheControl" })});
        if matches!(route, Route::Order(_) | Route::Job(_) | Route::JobCommand(..)) {
            headers["ETag"] = header("ETag");
        }
        if status == 200 && self.has("Prefer") {
            headers["Preference-Applied"] = header("PreferenceApplied");
        }
        if is_place {
            headers["Location"] = header("Location");
        }
        let schema = body(generators.answers).to_value();
        let mut content = json!({"schema": schema});
        if let Some(example) = self.example(route, status, &schema, examples) {
            content["example"] = example;
        }
        let is_text = schema["type"] == "string";
        let mut shown = json!({
            "description": text,
            "headers": headers,
            "content": {if is_text { "text/plain" } else { "application/json" }: content},
        });
        if is_place {
            shown["links"] = links(route).into();
        }
        shown
    }

    /// The example of this operation, or else that of the schema.
    fn example(&self, route: Route<'_>, status: u16, schema: &Value, examples: &Value) -> Option<Value> {
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let keys = [self.id.to_owned(), format!("{name}.{status}"), name.to_owned()];
        let mut example = keys.iter().find_map(|key| examples.get(key))?.clone();
        if let Route::Command(_, action) = route {
            example["Action"] = action.name().into();
        }
        Some(example)
    }
}

/// What can be done with a new order or job.
fn links(route: Route<'_>) -> Map<String, Value> {
    let orders: &[(&str, &str, &str)] = &[
        ("Get", "getOrder", "Read the order."),
        ("Document", "getDocument", "Read the order's document."),
        ("Resubmit", "resubmitOrder", "Resubmit the order."),
        ("Cancel", "cancelOrder", "Cancel the order."),
        ("Pause", "pauseOrder", "Pause the order."),
        ("Resume", "resumeOrder", "Resume the order."),
    ];
    let jobs: &[(&str, &str, &str)] = &[
        ("Get", "getJob", "Read the job."),
        ("Start", "startJob", "Start the job."),
        ("Cancel", "cancelJob", "Cancel the job."),
    ];
    let (of, id) = if route == Route::Jobs { (jobs, "JobID") } else { (orders, "OrderID") };
    let link = |(name, call, text): &(&str, &str, &str)| {
        let id = format!("$response.body#/{id}");
        ((*name).to_owned(), json!({"operationId": call, "description": text, "parameters": {"id": id}}))
    };
    of.iter().map(link).collect()
}
