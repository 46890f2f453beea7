//! A change of a task as the expressions of one `UpdateItem`. It writes only the paths that differ, on the conditions
//! of rule 1.
//!
//! Attributes of tasks and steps that this version does not know stay as they are, except in steps that are written
//! whole.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::task::Task;

use super::record::{Item, number, step_state, task_item};

/// The expressions of an update.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) update: String,
    pub(super) condition: String,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

/// The longest update expression of single members, in bytes. DynamoDB allows 4,096. A change of very many steps at
/// once writes whole steps instead.
const UPDATE_BYTES_MAX: usize = 3_500;

/// The most claims that a write has conditions of its own for: an expression has at most 4,096 bytes. An order of many
/// lines claims more at once, and its version says the same.
const CLAIMS_MAX: usize = 20;

/// The update that turns the item of `before` into that of `after`, if no other write came in between.
pub(super) fn change(before: &Task, after: &Task) -> Change {
    let (item_before, item_after) = (task_item(before), task_item(after));
    let mut change = Draft::new(&item_before, &item_after, Steps::ByMember);
    if change.update().len() > UPDATE_BYTES_MAX {
        change = Draft::new(&item_before, &item_after, Steps::Whole);
    }
    change.condition(before, after);
    change.end()
}

/// The update that turns one item into another, if this member of it is still the same. It removes what `after` does not
/// have, also attributes that this version does not know.
pub(super) fn replacement(before: &Item, after: &Item, same: &str) -> Change {
    let mut draft = Draft::new(before, after, Steps::Whole);
    let name = draft.name(same);
    let seen = before.get(same).map(|seen| draft.value(seen.clone()));
    draft.conditions.push(match seen {
        Some(seen) => format!("{name}={seen}"),
        None => format!("attribute_not_exists({name})"),
    });
    draft.end()
}

/// The form in which changed steps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Each changed member separately.
    ByMember,
    /// Each changed step as a whole.
    Whole,
}

#[derive(Debug, Default)]
struct Draft {
    set: Vec<String>,
    remove: Vec<String>,
    conditions: Vec<String>,
    names: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Draft {
    fn new(before: &Item, after: &Item, steps: Steps) -> Self {
        let mut draft = Self::default();
        for name in names_of(before, after) {
            let path = draft.name(name);
            match (before.get(name), after.get(name)) {
                (Some(AttributeValue::L(from)), Some(AttributeValue::L(to)))
                    if name == "Steps" && from.len() == to.len() =>
                {
                    draft.steps(&path, from, to, steps);
                }
                (_, to) => draft.write(path, to),
            }
        }
        draft
    }

    fn steps(&mut self, steps_path: &str, before: &[AttributeValue], after: &[AttributeValue], steps: Steps) {
        for (place, (from, to)) in before.iter().zip(after).enumerate() {
            let path = format!("{steps_path}[{place}]");
            match (from, to) {
                _ if from == to => {}
                (AttributeValue::M(from), AttributeValue::M(to)) if steps == Steps::ByMember => {
                    for name in names_of(from, to) {
                        let path = format!("{path}.{}", self.name(name));
                        self.write(path, to.get(name));
                    }
                }
                (_, to) => self.write(path, Some(to)),
            }
        }
    }

    fn write(&mut self, path: String, value: Option<&AttributeValue>) {
        match value {
            Some(value) => {
                let value = self.value(value.clone());
                self.set.push(format!("{path}={value}"));
            }
            None => self.remove.push(path),
        }
    }

    /// The conditions of the write. The version is the one that was read. Each step that this change claims still has
    /// the state and the holder that were read.
    fn condition(&mut self, before: &Task, after: &Task) {
        let (version, seen) = (self.name("Version"), self.value(number(before.version)));
        self.conditions.push(format!("{version}={seen}"));
        let steps = before.steps.iter().zip(&after.steps).enumerate();
        for (place, (from, _)) in steps.filter(|(_, (from, to))| to.attempt != from.attempt).take(CLAIMS_MAX) {
            let (steps, holder, state) = (self.name("Steps"), self.name("LockedBy"), self.name("ProcessState"));
            let seen = self.value(AttributeValue::S(step_state(from).into()));
            self.conditions.push(format!("{steps}[{place}].{state}={seen}"));
            let is_as_seen = match &from.locked_by {
                None => {
                    let null = self.value(AttributeValue::S("NULL".into()));
                    format!("attribute_type({steps}[{place}].{holder},{null})")
                }
                Some(instance) => {
                    let instance = self.value(AttributeValue::S(instance.to_string()));
                    format!("{steps}[{place}].{holder}={instance}")
                }
            };
            self.conditions.push(is_as_seen);
        }
    }

    fn update(&self) -> String {
        let clauses = [("SET ", &self.set), ("REMOVE ", &self.remove)];
        let clauses = clauses.into_iter().filter(|(_, paths)| !paths.is_empty());
        clauses.map(|(clause, paths)| clause.to_owned() + &paths.join(",")).collect::<Vec<_>>().join(" ")
    }

    fn end(self) -> Change {
        let (update, condition) = (self.update(), self.conditions.join(" AND "));
        let names = self.names.into_iter().enumerate().map(|(place, name)| (format!("#{place}"), name));
        let values = self.values.into_iter().enumerate().map(|(place, value)| (format!(":{place}"), value));
        Change { update, condition, names: names.collect(), values: values.collect() }
    }

    /// The placeholder of a name. Many of our names are reserved words.
    fn name(&mut self, name: &str) -> String {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("#{place}")
    }

    /// The placeholder of a value.
    fn value(&mut self, value: AttributeValue) -> String {
        let place = self.values.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        format!(":{place}")
    }
}

/// The names of members that differ. They are sorted, so that the same change is always the same request.
fn names_of<'a>(before: &'a Item, after: &'a Item) -> Vec<&'a str> {
    let either = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let mut names: Vec<_> = either.map(String::as_str).filter(|name| before.get(*name) != after.get(*name)).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::json::Json;
    use domain::limits::{BATCH_MAX, RECORDS_MAX, SHARDS};
    use domain::machine::{Event, Moment, decide, decide_together, request};
    use domain::message::Outcome;
    use domain::order::{Given, Order};
    use domain::task::{ProcessState, StepState};
    use domain::time::Timestamp;
    use domain::workflow::Workflow;

    use super::super::record::item_bytes;
    use super::*;

    /// The largest order, and its workflow.
    fn largest() -> (Order, Arc<Workflow>) {
        let file = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\nfor_each = \"/Order/Lines\"\n\
                    send = \"/Item\"\nundo = \"none\"";
        let workflow = Arc::new(Workflow::parse(file, &["any"]).unwrap());
        let lines = vec!["{}"; RECORDS_MAX].join(",");
        let document = Json::document(format!("{{\"Lines\":[{lines}]}}").as_bytes()).unwrap();
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        let id = domain::id::OrderId::from_idempotency_key("shop", "k");
        let order = Given::read(document, "shop".into(), now, || id).unwrap().order;
        let workflow = workflow.of_accepted(&order.document);
        (order, workflow)
    }

    #[test]
    fn what_is_written_of_an_order_with_many_lines_is_at_most_three_times_its_item() {
        let (order, workflow) = largest();
        let instance: Arc<str> = "scheduler-1f3a9c2e".into();
        let moment = Moment { now: order.submitted_at, instance: &instance, nonce: 7, draw: 1 };
        let new = Task::new(&order, &workflow, SHARDS, 1);
        let event = Event::Wake { hops: 0, redelivered: false };
        let mut task = decide(&new, &workflow, event, moment).unwrap().change.unwrap();
        let mut written = item_bytes(&task_item(&task));
        let steps: Vec<usize> = (0..RECORDS_MAX).collect();
        for batch in steps.chunks(BATCH_MAX) {
            let reply = |step: &usize| {
                let (_, request) = request(&task, &workflow, *step, &order, order.submitted_at, 1).unwrap().unwrap();
                request.reply(Outcome::Done(Json::of(&"A-17-3")))
            };
            let replies: Vec<_> = batch.iter().map(reply).collect();
            let events: Vec<_> = replies.iter().map(|reply| Event::Reply { reply, redelivered: false }).collect();
            let after = decide_together(&task, &workflow, &events, moment).unwrap().change.unwrap();
            let Change { update, condition, names, values } = change(&task, &after);
            let item: Item = values.into_iter().collect();
            let names: usize = names.iter().map(|(place, name)| place.len() + name.len()).sum();
            written += update.len() + condition.len() + names + item_bytes(&item);
            task = after;
        }
        let last = item_bytes(&task_item(&task));
        println!("{written} bytes written of an item of {last}");
        assert_eq!(task.process_state, ProcessState::Processed);
        assert!(written <= 3 * last, "{written} of {last}");
    }

    #[test]
    fn a_claim_of_every_line_of_the_largest_order_fits_into_the_expressions() {
        let (order, workflow) = largest();
        let before = Task::new(&order, &workflow, SHARDS, 1);
        let mut after = Task { version: before.version + 1, ..before.clone() };
        for step in &mut after.steps {
            (step.process_state, step.attempt, step.locked_by) = (StepState::Processing, 1, Some("scheduler-1".into()));
            step.complete_by = Some(order.submitted_at);
        }
        let Change { update, condition, .. } = change(&before, &after);
        assert_eq!(before.steps.len(), RECORDS_MAX);
        assert!(update.len() <= 4_096 && condition.len() <= 4_096, "{} {}", update.len(), condition.len());
        assert!(condition.contains("[0]") && condition.contains(&format!("[{}]", CLAIMS_MAX - 1)));
    }
}
