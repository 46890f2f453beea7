//! A workflow as a picture of text: one line for each step, and on its left the lines from its predecessors.
//!
//! A step whose successors are still to come has a rail, one column of the picture. Steps of one level depend on none of
//! each other; a row of rails stands between two levels. A line that passes behind a rail is interrupted (`─│─`). If
//! there are more rails than fit, the steps without one are named by their successors.

mod rails;
#[cfg(test)]
mod tests;

use anstyle::Style;
use domain::keys::time_text;
use rails::{Rails, Row};

use super::table::plain;
use crate::paint::{Paint, tint};

/// Characters in a line of the picture.
const WIDTH: usize = 80;
/// Rails that fit beside long names, too.
const RAILS_MIN: usize = 4;
/// More rails are hard to follow.
const RAILS_MAX: usize = 24;

/// A step of the picture.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    /// With its marks.
    agent: String,
    /// Indexes of its predecessors.
    after: Vec<usize>,
    /// Predecessors that are no steps of the workflow. No API sends such.
    unknown: Vec<String>,
}

/// The waits of a step in words, from its `wait`, `not_before` and `wait_within`.
pub(crate) fn waits(wait_ms: Option<u64>, not_before: Option<&str>, within_ms: Option<u64>) -> Vec<String> {
    let wait = wait_ms.map(|ms| format!("waits {}", time_text(ms)));
    let not_before = not_before.map(|place| format!("not before {}", plain(place)));
    let within = within_ms.map(|ms| format!("result within {}", time_text(ms)));
    [wait, not_before, within].into_iter().flatten().collect()
}

/// The steps of a workflow: each with its agent, and behind it what is special about the step.
pub(crate) fn steps(steps: &[wire::WorkflowStep<'_>]) -> Vec<Step> {
    let place = |name: &str| steps.iter().position(|step| *step.name == *name);
    let step = |step: &wire::WorkflowStep<'_>| {
        let marks = [
            (!step.when.is_empty(), "when"),
            (step.optional, "optional"),
            (step.pivot, "pivot"),
            (step.no_undo, "no undo"),
        ];
        let marks = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| (*mark).to_owned());
        let waits = waits(step.wait_ms, step.not_before.as_deref(), step.wait_within_ms);
        let marks: Vec<String> = marks.chain(waits).collect();
        let agent = plain(&step.agent);
        Step {
            name: plain(&step.name),
            agent: if marks.is_empty() { agent } else { format!("{agent} ({})", marks.join(", ")) },
            after: step.after.iter().filter_map(|name| place(name)).collect(),
            unknown: step.after.iter().filter(|name| place(name).is_none()).map(|name| plain(name)).collect(),
        }
    };
    steps.iter().map(step).collect()
}

/// The picture, each line ended by a line break.
pub(crate) fn picture(steps: &[Step], paint: Paint) -> String {
    let names = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
    let agents = steps.iter().map(|step| step.agent.chars().count()).max().unwrap_or(0);
    // Two blanks stand before the names and before the agents.
    let rails_max = (WIDTH.saturating_sub(names + agents + 4) / 2).clamp(RAILS_MIN, RAILS_MAX);
    let rows = rows(steps, rails_max);
    let rails = rows.iter().map(|row| row.rails.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let Some(step) = row.step.map(|index| &steps[index]) else {
            line(&mut text, &[(&row.rails, tint::DIM, 0)], paint);
            continue;
        };
        let name = (&*step.name, tint::BOLD, names + 2);
        line(&mut text, &[(&row.rails, tint::DIM, rails + 2), name, (&step.agent, tint::DIM, 0)], paint);
        let named = row.named.iter().map(|index| &*steps[*index].name).chain(step.unknown.iter().map(|name| &**name));
        for named in wrapped(named, WIDTH.saturating_sub(rails + 4)) {
            line(&mut text, &[(&row.below, tint::DIM, rails + 4), (&named, tint::DIM, 0)], paint);
        }
    }
    text
}

/// The rows of the picture: all steps, level by level.
fn rows(steps: &[Step], rails_max: usize) -> Vec<Row> {
    let mut rails = Rails::new(steps, rails_max);
    let mut rows = Vec::new();
    for level in levels(steps) {
        if !rows.is_empty() {
            rows.push(rails.between());
        }
        rows.extend(level.into_iter().map(|step| rails.step(step)));
    }
    rows
}

/// The steps in levels: each step in the first one after all its predecessors. A circle, which no workflow has, is the
/// last level.
fn levels(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let mut open: Vec<usize> = (0..steps.len()).collect();
    while !open.is_empty() {
        let is_ready = |step: &usize| steps[*step].after.iter().all(|earlier| !open.contains(earlier));
        let ready: Vec<usize> = open.iter().copied().filter(is_ready).collect();
        let level = if ready.is_empty() { open.clone() } else { ready };
        open.retain(|step| !level.contains(step));
        levels.push(level);
    }
    levels
}

/// `after a, b`, in lines of at most this width if the names allow it.
fn wrapped<'a>(names: impl Iterator<Item = &'a str>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(last) if last.chars().count() + name.chars().count() + 3 <= width => {
                last.push_str(", ");
                last.push_str(name);
            }
            Some(last) => {
                last.push(',');
                lines.push(format!("      {name}"));
            }
            None => lines.push(format!("after {name}")),
        }
    }
    lines
}

/// A line of parts, each as wide as given. No line ends with blanks.
fn line(text: &mut String, parts: &[(&str, Style, usize)], paint: Paint) {
    let mut blanks = 0;
    for (part, tint, width) in parts {
        if !part.is_empty() {
            text.push_str(&" ".repeat(blanks));
            text.push_str(&paint.tint(*tint, part).to_string());
            blanks = 0;
        }
        blanks += width.saturating_sub(part.chars().count());
    }
    text.push('\n');
}
