//! The steps of an order as rows: those that go through an array are one row, with their counts.

use std::borrow::Cow;

use domain::task::{Direction, StepState};
use domain::workflow::{LINE, step_of};
use wire::Step;

use super::step::words;

/// The most elements that are shown below their step. Of more, only the failed and the slowest ones are shown.
const SHOWN_MAX: usize = 5;

/// A row of an order's steps.
pub(crate) enum Row<'a> {
    /// A step.
    One(&'a Step<'a>),
    /// A step for each element of an array.
    All(Vec<&'a Step<'a>>),
}

impl<'a> Row<'a> {
    /// All rows of an order.
    pub(crate) fn of(steps: &'a [Step<'a>]) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for step in steps {
            let is_of = |first: &&Step<'_>| step_of(&first.name) == step_of(&step.name);
            match rows.last_mut() {
                Some(Self::All(steps)) if steps.first().is_some_and(is_of) => steps.push(step),
                _ if step.name.contains(LINE) => rows.push(Self::All(vec![step])),
                _ => rows.push(Self::One(step)),
            }
        }
        rows
    }

    /// Its name.
    pub(crate) fn name(&self) -> Cow<'a, str> {
        match self {
            Self::One(step) => Cow::Borrowed(&step.name),
            Self::All(steps) => Cow::Borrowed(steps.first().map_or("", |step| step_of(&step.name))),
        }
    }

    /// Its state, in a word or two.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::One(step) => words(step),
            Self::All(steps) => counts(steps),
        }
    }

    /// The elements that are shown below it: the failed ones first, then those that take longest.
    pub(crate) fn shown(&self) -> Vec<&'a Step<'a>> {
        let Self::All(steps) = self else { return Vec::new() };
        let mut shown = steps.clone();
        if shown.len() > SHOWN_MAX {
            shown.retain(|step| !is_over(step) || step.dropped);
            shown.sort_by_key(|step| {
                let rank = if step.process_state == StepState::Error { 0 } else { 1 + usize::from(step.dropped) };
                (rank, std::cmp::Reverse(step.failure_count), step.started_at)
            });
            shown.truncate(SHOWN_MAX);
        }
        shown
    }

    /// How many elements are not among those.
    pub(crate) fn hidden(&self) -> usize {
        if let Self::All(steps) = self { steps.len() - self.shown().len() } else { 0 }
    }
}

fn is_over(step: &Step<'_>) -> bool {
    step.process_state.known().is_some_and(StepState::is_over)
}

/// Such as `17 of 18 done, 1 dropped`.
fn counts(steps: &[&Step<'_>]) -> String {
    let count = |is: &dyn Fn(&Step<'_>) -> bool| steps.iter().filter(|step| is(step)).count();
    let is_undo = |step: &Step<'_>| step.direction == Direction::Undo && !step.dropped;
    let undoing = count(&is_undo);
    let (begun, word) = if undoing > 0 { (undoing, "undone") } else { (steps.len(), "done") };
    let done =
        count(&|step| step.process_state == StepState::Processed && !step.dropped && is_undo(step) == (undoing > 0));
    let mut text = format!("{done} of {begun} {word}");
    for (word, number) in [
        ("failed", count(&|step| step.process_state == StepState::Error)),
        ("dropped", count(&|step| step.dropped)),
        ("skipped", count(&|step| step.process_state == StepState::Skipped && !step.dropped)),
    ] {
        if number > 0 {
            text.push_str(&format!(", {number} {word}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &str, state: &str, more: &serde_json::Value) -> serde_json::Value {
        let mut step = json!({
            "Name": name, "Agent": "a", "ProcessState": state, "Direction": "Forward", "Attempt": 1, "FailureCount": 0,
            "LockedBy": null, "CompleteBy": null,
        });
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    }

    fn rows_of(steps: &[serde_json::Value]) -> Vec<(String, String, Vec<String>, usize)> {
        let steps: Vec<Step<'_>> = serde_json::from_value(json!(steps)).unwrap();
        let names = |row: &Row<'_>| row.shown().iter().map(|step| step.name.to_string()).collect();
        Row::of(&steps).iter().map(|row| (row.name().into(), row.words(), names(row), row.hidden())).collect()
    }

    #[test]
    fn a_step_for_each_element_is_one_row_with_its_failed_ones_first() {
        let none = json!({});
        let dropped = json!({"Dropped": true, "Direction": "Undo"});
        let mut steps = vec![step("check", "Processed", &none)];
        steps.extend((1..=18).map(|n| match n {
            3 => step("pack/0003", "Processed", &dropped),
            9 => step("pack/0009", "Error", &none),
            7 => step("pack/0007", "Processing", &none),
            n => step(&format!("pack/{n:04}"), "Processed", &none),
        }));
        steps.push(step("pay", "Pending", &json!({"Attempt": 0})));
        let rows = rows_of(&steps);
        assert_eq!(rows.iter().map(|row| &*row.0).collect::<Vec<_>>(), ["check", "pack", "pay"]);
        assert_eq!(rows[1].1, "15 of 18 done, 1 failed, 1 dropped");
        assert_eq!((&rows[1].2, rows[1].3), (&vec!["pack/0009".into(), "pack/0007".into(), "pack/0003".into()], 15));
        assert_eq!((rows[0].2.len(), rows[0].3), (0, 0));
    }

    #[test]
    fn a_few_elements_are_all_shown_and_a_compensation_counts_what_is_undone() {
        let undo = json!({"Direction": "Undo"});
        let steps = vec![
            step("pack/a", "Processed", &undo),
            step("pack/b", "Pending", &undo),
            step("pack/c", "Skipped", &json!({"Attempt": 0})),
        ];
        let rows = rows_of(&steps);
        assert_eq!((&*rows[0].1, rows[0].2.len(), rows[0].3), ("1 of 2 undone, 1 skipped", 3, 0));
    }
}
