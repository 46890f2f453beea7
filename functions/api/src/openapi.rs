//! `GET /openapi.json`: the contract of this API, from `infra/contracts`, without its blanks, and with the schemas of the
//! workflows that new orders begin with.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::definition::{Catalogue, Pin};
use domain::json::Json;
use domain::schema::Schema;
use http::Response;
use serde_json::value::RawValue;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{reply, workflows};

/// OpenAPI 3.1, written from the types and the routes. Tests compare it with the running API.
const CONTRACT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
/// Before the first of its schemas.
const SCHEMAS: &str = r#""schemas":{"#;
/// The schema of the body of `POST /orders`. A try has an order as well, and names the workflow in its path.
const BODY: [&str; 2] = [r#""schema":"#, r##"{"$ref":"#/components/schemas/Document"}"##];
/// The schemas that are shown, in bytes: the answer of a function has a limit.
const SCHEMAS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What the workflows add to the contract.
#[derive(Default)]
struct Added {
    /// Their schemas by name, each with a comma at its end.
    schemas: String,
    /// Which of them an order must fit, by its workflow.
    rules: Vec<String>,
}

/// The contract.
pub(crate) async fn contract(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let added = match config.catalogue() {
        Some(catalogue) => Added::of(ports, catalogue).await?,
        None => Added::default(),
    };
    Ok(reply::changing("application/json", added.to_contract().into()))
}

impl Added {
    async fn of(ports: &impl ApiPorts, catalogue: &Catalogue) -> Result<Self, Problem> {
        let deployment = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
        let deployment = deployment.as_deref();
        let known = workflows::known(ports, catalogue).await.map_err(Problem::unread)?;
        let default = catalogue.default_name(deployment);
        let mut added = Self::default();
        for name in catalogue.names(deployment) {
            let Some(choice) = catalogue.taken(deployment, &name) else { continue };
            let of_version = |version| {
                let pin = Pin { name: name.clone(), version };
                known.get(&pin)?.schema().map(|schema| added.take(&pin, schema))?
            };
            let found: Option<Vec<String>> = choice.versions().map(of_version).collect();
            // An order may begin with a version that has none.
            let Some(found) = found else { continue };
            let fits = if let [one] = &*found { one.clone() } else { format!(r#"{{"anyOf":[{}]}}"#, found.join(",")) };
            let rule = |which: &str| format!(r#"{{"if":{{{which}}},"then":{fits}}}"#);
            added
                .rules
                .push(rule(&format!(r#""properties":{{"Workflow":{{"const":"{name}"}}}},"required":["Workflow"]"#)));
            if name == default {
                added.rules.push(rule(r#""properties":{"Workflow":{"type":"null"}}"#));
            }
        }
        Ok(added)
    }

    /// Adds the schema of a version, if there is room for it, and refers to it.
    fn take(&mut self, pin: &Pin, schema: &Schema) -> Option<String> {
        let place = format!("Order.{}.{}", pin.name, pin.version);
        let shown = format!(r#""{place}":{},"#, within(schema, &place));
        (self.schemas.len() + shown.len() <= SCHEMAS_BYTES_MAX).then(|| {
            self.schemas.push_str(&shown);
            format!(r##"{{"$ref":"#/components/schemas/{place}"}}"##)
        })
    }

    fn to_contract(&self) -> String {
        let mut contract = CONTRACT.replacen(SCHEMAS, &format!("{SCHEMAS}{}", self.schemas), 1);
        if !self.rules.is_empty() {
            let [before, document] = BODY;
            let rules = self.rules.join(",");
            let body = format!(r#"{before}{{"allOf":[{document},{rules}]}}"#);
            contract = contract.replacen(&BODY.concat(), &body, 1);
        }
        contract
    }
}

/// A schema, as it stands at this place of the contract, with its own references.
fn within(schema: &Schema, place: &str) -> String {
    let Ok(mut members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(schema.text()) else {
        return schema.text().to_owned();
    };
    // References are relative to the contract.
    members.retain(|name, _| !["$id", "$schema"].contains(&&**name));
    referring(&members, place)
}

/// The members of a schema, with its references. What stands where no schema does, as in `const`, stays as it is.
fn referring(members: &BTreeMap<String, &RawValue>, place: &str) -> String {
    let text = |name: &String, value: &RawValue| {
        let value = value.get();
        match &**name {
            "$ref" => serde_json::from_str(value).ok().and_then(|reference: String| {
                serde_json::to_string(&format!("#/components/schemas/{place}{}", reference.strip_prefix('#')?)).ok()
            }),
            "additionalProperties" | "contains" | "else" | "if" | "items" | "not" | "propertyNames" | "then" => {
                Some(subschema(value, place))
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                serde_json::from_str(value).ok().map(|all: Vec<&RawValue>| {
                    let all: Vec<String> = all.iter().map(|one| subschema(one.get(), place)).collect();
                    format!("[{}]", all.join(","))
                })
            }
            "$defs" | "patternProperties" | "properties" => serde_json::from_str(value)
                .ok()
                .map(|named: BTreeMap<String, &RawValue>| object(&named, |_, one| subschema(one.get(), place))),
            _ => None,
        }
        .unwrap_or_else(|| value.to_owned())
    };
    object(members, text)
}

/// A schema in another one: an object, or `true` or `false`.
fn subschema(text: &str, place: &str) -> String {
    serde_json::from_str(text).map_or_else(|_| text.to_owned(), |members| referring(&members, place))
}

fn object(members: &BTreeMap<String, &RawValue>, text: impl Fn(&String, &RawValue) -> String) -> String {
    let member = |(name, value): (&String, &&RawValue)| format!("{}:{}", Json::of(name).text(), text(name, value));
    let members: Vec<String> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests;
