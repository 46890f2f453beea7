//! Pointers that find nothing: one beside them that finds something, or a mark that nothing is fine too.

use std::sync::Arc;

use domain::workflow::{StepRule, Workflow};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::Blame;
use crate::edit::Edit;
use crate::judge::Kind;
use crate::wishes::{has, pointer};

/// Places that are tried in the place of one that is empty.
const PLACES_MAX: usize = 4;
/// The deepest place of an answer that is looked at.
const DEPTH_MAX: usize = 6;

impl Blame<'_> {
    /// What a step sends that was never there.
    pub(super) fn of_sent(&self) -> Vec<Edit> {
        let (Some(rule), Some(workflow), Some((is_undo, why))) = (self.rule, self.workflow, self.unsent) else {
            return Vec::new();
        };
        let Some((file, table)) = self.table_of(workflow, rule) else { return Vec::new() };
        let above: &[&str] = if *is_undo { &["undo"] } else { &[] };
        let mut edits = Vec::new();
        for key in ["send", "path", "headers"] {
            let names: Vec<&str> = above.iter().copied().chain([key]).collect();
            let value = names.iter().try_fold(Value::Table(table.clone()), |of, name| of.get(name).cloned());
            let Some(value) = value else { continue };
            let mut places = Vec::new();
            outputs_in(&value, &mut places);
            for place in places.iter().filter(|place| why.contains(&***place)) {
                let others =
                    self.outputs(workflow, place).into_iter().chain(key.ne("path").then(|| format!("{place}?")));
                edits.extend(others.map(|other| {
                    Edit::of_workflow(&file, Some(&rule.name), &names, Some(replaced(&value, place, &other)))
                }));
            }
        }
        edits
    }

    /// What `keep` names, and a service's answer that its user wrote down has not.
    pub(super) fn of_keep(&self) -> Vec<Edit> {
        let Some(workflow) = self.workflow else { return Vec::new() };
        if !self.is(&[Kind::GivenUp, Kind::GivenUpInOutage, Kind::Late, Kind::Stuck, Kind::NotShipped]) {
            return Vec::new();
        }
        workflow.steps.iter().flat_map(|rule| self.of_keep_of(workflow, rule)).collect()
    }

    fn of_keep_of(&self, workflow: &Workflow, rule: &StepRule) -> Vec<Edit> {
        let Some((file, table)) = self.table_of(workflow, rule) else { return Vec::new() };
        let Some(Value::Table(keep)) = table.get("keep") else { return Vec::new() };
        let Some(body) = self.folder.answer_to(rule) else { return Vec::new() };
        let mut edits = Vec::new();
        for (name, place) in keep {
            let Some(text) = place.as_str().filter(|text| !text.ends_with('?')) else { continue };
            if pointer(text).is_none_or(|names| has(&body, &names)) {
                continue;
            }
            let others = alike(text, &body, "").into_iter().chain([format!("{text}?")]);
            let edit = |other: String| Edit::of_workflow(&file, Some(&rule.name), &["keep", name], Value::from(other));
            edits.extend(others.map(edit));
        }
        edits
    }

    /// Places of the output that this place is in.
    fn outputs(&self, workflow: &Workflow, place: &str) -> Vec<String> {
        let names = pointer(place).unwrap_or_default();
        let Some(of) = names.get(1).and_then(|name| workflow.steps.iter().find(|rule| *rule.name == **name)) else {
            return Vec::new();
        };
        let prefix = format!("/Outputs/{}", of.name);
        let kept = self.table_of(workflow, of).and_then(|(_, table)| table.get("keep").cloned());
        match (kept, self.folder.answer_to(of)) {
            (Some(Value::Table(keep)), _) => {
                let kept = keep.keys().map(|name| (name.clone(), Json::Null));
                alike(place, &Json::Object(kept.collect()), &prefix)
            }
            (None, Some(body)) => alike(place, &body, &prefix),
            (_, _) => Vec::new(),
        }
    }

    fn table_of(&self, workflow: &Workflow, rule: &StepRule) -> Option<(Arc<str>, Table)> {
        let of = self.folder.checked.workflows.iter().find(|one| one.workflow.pin() == workflow.pin())?;
        let root: Table = of.text.parse().ok()?;
        let is_it = |table: &&Table| table.get("name").and_then(Value::as_str) == Some(&*rule.name);
        let table = root.get("step")?.as_array()?.iter().filter_map(Value::as_table).find(is_it)?;
        Some((of.file.clone(), table.clone()))
    }
}

/// The places below these roots, those first whose names look like this place's.
fn alike(place: &str, of: &Json, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    places_of(of, prefix.to_owned(), &mut found, 0);
    found.retain(|other| other != place);
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_lowercase();
    let wanted = last(place);
    let likeness = |other: &String| {
        let other = last(other);
        let from_start = wanted.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
        let from_end = wanted.chars().rev().zip(other.chars().rev()).take_while(|(one, two)| one == two).count();
        from_start.max(from_end)
    };
    found.sort_by_key(|other| std::cmp::Reverse(likeness(other)));
    found.truncate(PLACES_MAX);
    found
}

fn places_of(value: &Json, at: String, found: &mut Vec<String>, depth: usize) {
    if let Json::Object(members) = value
        && depth < DEPTH_MAX
    {
        for (name, value) in members {
            let name = name.replace('~', "~0").replace('/', "~1");
            places_of(value, format!("{at}/{name}"), found, depth + 1);
        }
    }
    if depth > 0 {
        found.push(at);
    }
}

/// The places in outputs that a template names.
fn outputs_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let ends = |c: char| c.is_whitespace() || "{},()[]?\"'".contains(c);
            let texts = text.split(ends).filter(|text| text.starts_with("/Outputs/"));
            found.extend(texts.map(str::to_owned));
        }
        Value::Array(elements) => elements.iter().for_each(|element| outputs_in(element, found)),
        Value::Table(members) => members.values().for_each(|member| outputs_in(member, found)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// The same template with another place.
fn replaced(value: &Value, place: &str, other: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(place, other)),
        Value::Array(elements) => {
            Value::Array(elements.iter().map(|element| replaced(element, place, other)).collect())
        }
        Value::Table(members) => {
            Value::Table(members.iter().map(|(name, value)| (name.clone(), replaced(value, place, other))).collect())
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_that_looks_like_the_empty_one_is_tried_first() {
        let body = json!({"status": "ok", "iccid": "8949", "card": {"id": 1}});
        assert_eq!(alike("/icc", &body, ""), ["/iccid", "/card/id", "/card", "/status"]);
        assert_eq!(alike("/Outputs/sim/card/it", &body, "/Outputs/sim")[0], "/Outputs/sim/card/id");
    }

    #[test]
    fn a_template_is_changed_where_it_names_the_place() {
        let value: Table = "send = { a = \"/Outputs/s/x\", b = [\"= /Outputs/s/x * 2\"] }\npath = \"p/{/Outputs/s/x}\""
            .parse()
            .unwrap();
        let value = Value::Table(value);
        let mut found = Vec::new();
        outputs_in(&value, &mut found);
        assert_eq!(found, ["/Outputs/s/x"; 3]);
        let other = replaced(&value, "/Outputs/s/x", "/Outputs/s/y").to_string();
        assert!(other.contains("= /Outputs/s/y * 2") && other.contains("p/{/Outputs/s/y}"), "{other}");
    }
}
