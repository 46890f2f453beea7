//! `stepwarden workflows`: all of them as a table, or one as a drawing.

use wire::{Workflow, WorkflowList};

use super::context::{Context, body};
use super::error::CommandError;
use crate::args::{WorkflowName, WorkflowsArgs};
use crate::exit::Exit;
use crate::remote::Call;
use crate::show::drawing::{picture, steps};
use crate::show::table::{Cell, Table, plain};
use crate::show::time::span;

/// `stepwarden workflows [NAME[@VERSION]]`.
pub(super) async fn run(context: &Context, args: &WorkflowsArgs) -> Result<Exit, CommandError> {
    let answer = context.remote.call(&Call::get("/workflows")).await?;
    let Some(wanted) = &args.workflow else {
        if context.is_json() {
            return context.line(&answer.line()).map(|()| Exit::Fine);
        }
        let WorkflowList { workflows } = answer.read()?;
        let mut table = table();
        workflows.iter().for_each(|workflow| add(&mut table, workflow));
        return context.print(&table.text(context.paint)).map(|()| Exit::Fine);
    };
    let WorkflowList { workflows } = answer.read()?;
    let Some(workflow) = chosen(&workflows, wanted) else {
        context.note(&format!("there is no workflow {wanted}, but {}", names(&workflows)));
        return Ok(Exit::NotFound);
    };
    match context.is_json() {
        true => context.line(&body(workflow))?,
        false => context.print(&text(workflow, context))?,
    }
    Ok(Exit::Fine)
}

/// The wanted version. Without a version the one that new orders get, or else the last one.
fn chosen<'a, 'b>(workflows: &'a [Workflow<'b>], wanted: &WorkflowName) -> Option<&'a Workflow<'b>> {
    let named = || workflows.iter().filter(|workflow| *workflow.name == *wanted.name);
    match wanted.version {
        Some(version) => named().find(|workflow| workflow.version == version),
        None => named().find(|workflow| workflow.current).or_else(|| named().max_by_key(|workflow| workflow.version)),
    }
}

/// All names with their versions: `order@1, return@1`.
fn names(workflows: &[Workflow<'_>]) -> String {
    let names = workflows.iter().map(|workflow| format!("{}@{}", plain(&workflow.name), workflow.version));
    names.collect::<Vec<_>>().join(", ")
}

/// Its drawing, and its settings as a table.
fn text(workflow: &Workflow<'_>, context: &Context) -> String {
    let mut table = table();
    add(&mut table, workflow);
    let current = if workflow.current { ", for new orders" } else { "" };
    let head = format!("{}, version {}{current}", plain(&workflow.name), workflow.version);
    format!("{head}\n\n{}\n{}", picture(&steps(workflow), context.paint), table.text(context.paint))
}

fn table() -> Table {
    Table::new(&["WORKFLOW", "VERSION", "STEP", "AGENT", "AFTER", "WITHIN", "FAILURES", "REJECTED", "EXHAUSTED"])
}

/// Adds a row for each step.
fn add(table: &mut Table, workflow: &Workflow<'_>) {
    let version =
        if workflow.current { format!("{} (new orders)", workflow.version) } else { workflow.version.to_string() };
    for (place, step) in workflow.steps.iter().enumerate() {
        let (name, version) = if place == 0 { (&*workflow.name, &*version) } else { ("", "") };
        table.row([
            Cell::from(name),
            version.into(),
            Cell::from(&*step.name),
            Cell::from(&*step.agent),
            step.after.join(", ").into(),
            step.complete_within_ms.map(span).unwrap_or_default().into(),
            step.max_failures.map(|count| count.to_string()).unwrap_or_default().into(),
            step.on_rejected.as_deref().unwrap_or_default().into(),
            step.on_exhausted.as_deref().unwrap_or_default().into(),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_alone_means_the_version_of_new_orders_and_else_the_last_one() {
        let one = |name, version, current| json!({"Name": name, "Version": version, "Current": current});
        let workflows =
            [one("a", 1, false), one("a", 2, true), one("a", 3, false), one("b", 2, false), one("b", 1, false)];
        let workflows: Vec<Workflow<'static>> =
            workflows.into_iter().map(|workflow| serde_json::from_value(workflow).unwrap()).collect();
        for (wanted, expected) in [("a", Some(2)), ("a@3", Some(3)), ("a@4", None), ("b", Some(2)), ("c", None)] {
            let found = chosen(&workflows, &wanted.parse().unwrap());
            assert_eq!(found.map(|workflow| workflow.version), expected, "{wanted}");
        }
        assert_eq!(names(&workflows), "a@1, a@2, a@3, b@2, b@1");
    }
}
