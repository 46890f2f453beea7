//! Reads a template. Each short form such as `!GetAtt Queue.Arn` becomes its long one, `{"Fn::GetAtt": "Queue.Arn"}`.

use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Map, Value, json};

/// A template, as JSON.
pub(crate) struct Template(Value);

/// One resource of a template.
#[derive(Clone, Copy)]
pub(crate) struct Resource<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) properties: &'a Value,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

impl Template {
    /// The template that is deployed.
    pub(crate) fn main() -> Self {
        Self::at("template.yaml")
    }

    pub(crate) fn at(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let documents = Yaml::load_from_str(&text).unwrap();
        Self(long_form(&documents[0]))
    }

    /// The template as it is deployed with this value of a parameter.
    pub(crate) fn with(mut self, parameter: &str, value: &str) -> Self {
        self.0["Parameters"][parameter]["Default"] = value.into();
        self
    }

    pub(crate) fn get(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or_else(|| panic!("the template has no {pointer}"))
    }

    pub(crate) fn resource<'a>(&'a self, id: &'a str) -> Resource<'a> {
        let resource = self.get(&format!("/Resources/{id}"));
        Resource { id, kind: resource["Type"].as_str().unwrap(), properties: &resource["Properties"] }
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = Resource<'_>> {
        self.get("/Resources").as_object().unwrap().keys().map(|id| self.resource(id))
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Resource<'_>> {
        let found: Vec<_> = self.resources().filter(|resource| resource.kind == kind).collect();
        assert!(!found.is_empty(), "the template has no {kind}");
        found
    }

    /// The text that a value comes to in a deployment with every parameter at its default and with nonsense for what
    /// only AWS knows. `None` for `AWS::NoValue`.
    pub(crate) fn text(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Object(call) if call.len() == 1 => {
                let (function, argument) = call.iter().next().unwrap();
                self.called(function, argument)
            }
            Value::Object(_) | Value::Array(_) | Value::Null => panic!("no text: {value}"),
        }
    }

    fn called(&self, function: &str, argument: &Value) -> Option<String> {
        match (function, argument) {
            ("Ref", Value::String(name)) => self.reference(name),
            ("Fn::GetAtt", Value::String(name)) => Some(attribute(name)),
            ("Fn::Sub", Value::String(text)) => Some(self.filled_in(text, &Map::new())),
            ("Fn::Sub", Value::Array(with_names)) => {
                Some(self.filled_in(with_names[0].as_str().unwrap(), with_names[1].as_object().unwrap()))
            }
            ("Fn::If", Value::Array(branches)) => {
                let holds = self.holds(self.get(&format!("/Conditions/{}", branches[0].as_str().unwrap())));
                self.text(&branches[if holds { 1 } else { 2 }])
            }
            ("Fn::Join", Value::Array(of)) => {
                let parts = of[1].as_array().unwrap().iter().filter_map(|part| self.text(part));
                Some(parts.collect::<Vec<_>>().join(of[0].as_str().unwrap()))
            }
            ("Fn::Select", Value::Array(from)) => {
                let place = usize::try_from(from[0].as_u64().unwrap()).unwrap();
                let (whole, separator) = match from[1].get("Fn::Split") {
                    Some(parts) => (self.text(&parts[1])?, parts[0].as_str().unwrap()),
                    // A parameter that is a list.
                    None => (self.text(&from[1])?, ","),
                };
                whole.split(separator).nth(place).map(str::to_owned)
            }
            _ => panic!("the test knows no {function}"),
        }
    }

    fn reference(&self, name: &str) -> Option<String> {
        match name {
            "AWS::NoValue" => return None,
            "AWS::StackId" => return Some("arn:aws:cloudformation:eu-west-1:1:stack/s/guid-of-the-stack".into()),
            _ => {}
        }
        if let Some(parameter) = self.0["Parameters"].get(name) {
            return self.text(&parameter["Default"]);
        }
        let is_queue = self.0["Resources"].get(name).is_some_and(|resource| resource["Type"] == "AWS::SQS::Queue");
        Some(if is_queue { format!("https://sqs.eu-west-1.amazonaws.com/1/{name}") } else { name.to_owned() })
    }

    fn filled_in(&self, text: &str, names: &Map<String, Value>) -> String {
        let mut parts = text.split("${");
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap();
            let value = match names.get(name) {
                Some(value) => self.text(value),
                None if !name.starts_with("AWS::") && name.contains('.') => Some(attribute(name)),
                None => self.reference(name),
            };
            filled.push_str(&value.unwrap_or_default());
            filled.push_str(rest);
        }
        filled
    }

    /// Whether a condition holds in such a deployment.
    pub(crate) fn holds(&self, condition: &Value) -> bool {
        if let Some(inner) = condition.get("Fn::Not") {
            return !self.holds(&inner[0]);
        }
        if let Some(all) = condition.get("Fn::And") {
            return all.as_array().unwrap().iter().all(|condition| self.holds(condition));
        }
        if let Some(name) = condition["Condition"].as_str() {
            return self.holds(self.get(&format!("/Conditions/{name}")));
        }
        let equals = &condition["Fn::Equals"];
        self.text(&equals[0]) == self.text(&equals[1])
    }
}

fn attribute(name: &str) -> String {
    match name.split_once('.') {
        Some((resource, "Arn")) => format!("arn:aws:service:eu-west-1:1:{resource}"),
        Some((resource, "StreamArn")) => format!("arn:aws:dynamodb:eu-west-1:1:table/{resource}/stream/1"),
        Some((resource, "RoleId")) => format!("AROA{resource}"),
        Some((resource, "ApiEndpoint")) => format!("https://{resource}.example"),
        _ => panic!("the test knows no {name}"),
    }
}

fn long_form(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(_) | Yaml::Representation(..) => scalar(yaml),
        Yaml::Sequence(items) => items.iter().map(long_form).collect(),
        Yaml::Mapping(members) => {
            let mut all = Map::new();
            for (key, value) in members {
                match (key.as_str().unwrap(), long_form(value)) {
                    ("<<", Value::Object(shared)) => all.extend(shared),
                    (key, value) => drop(all.insert(key.to_owned(), value)),
                }
            }
            Value::Object(all)
        }
        Yaml::Tagged(tag, inner) => match &*tag.suffix {
            "Ref" => json!({"Ref": long_form(inner)}),
            function => json!({format!("Fn::{function}"): long_form(inner)}),
        },
        Yaml::Alias(_) | Yaml::BadValue => panic!("CloudFormation takes no {yaml:?}"),
    }
}

fn scalar(yaml: &Yaml<'_>) -> Value {
    if let Some(number) = yaml.as_integer() {
        return number.into();
    }
    if let Some(flag) = yaml.as_bool() {
        return flag.into();
    }
    yaml.as_str().map_or(Value::Null, Value::from)
}
