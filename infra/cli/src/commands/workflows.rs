//! `stepwarden workflows`: the workflows that the API ships, with all their versions.

use wire::WorkflowList;

use super::context::Context;
use super::error::CommandError;
use crate::exit::Exit;
use crate::remote::Call;
use crate::show::table::{Cell, Table};
use crate::show::time::span;

pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let answer = context.remote.call(&Call::get("/workflows")).await?;
    if context.is_json() {
        return context.line(&answer.line()).map(|()| Exit::Fine);
    }
    let WorkflowList { workflows } = answer.read()?;
    let mut table =
        Table::new(&["WORKFLOW", "VERSION", "STEP", "AGENT", "AFTER", "WITHIN", "FAILURES", "REJECTED", "EXHAUSTED"]);
    for workflow in &workflows {
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
    context.print(&table.text(context.paint))?;
    Ok(Exit::Fine)
}
