//! What a schedule posts is an order that its workflow takes: found here, and not when it is due (rule 48).

use domain::located::{Fault, Faults, known_names};
use domain::redaction::Redaction;
use domain::schedule::Schedule;
use domain::time::Timestamp;
use domain::workflow::{FAR_AHEAD, Workflow, Workflows};

use super::{CheckedWorkflow, newest};
use crate::deployment::DeploymentFile;

/// Checks the schedules of the text against the newest versions of the folder. `is_whole`: the folder has no other workflow.
pub(super) fn check(
    deployment: &DeploymentFile,
    text: &str,
    workflows: &[CheckedWorkflow],
    is_whole: bool,
) -> Result<(), Faults> {
    let shipped = Workflows::shipped().ok();
    let fault = |schedule: &Schedule| -> Option<Fault> {
        let Schedule { name, order_at, .. } = schedule;
        // Without a default of its own, the folder does not say which one applies.
        let wanted = schedule.workflow.as_ref().or(deployment.default.as_ref());
        let workflow = wanted.and_then(|wanted| newest(workflows, shipped.as_ref(), wanted));
        if let (Some(wanted), None, true) = (&schedule.workflow, workflow, is_whole) {
            let mut names: Vec<&str> = workflows.iter().map(|checked| &*checked.workflow.name).collect();
            names.dedup();
            let names = known_names(wanted, "Workflows", &names);
            let problem = format!("schedule {name:?} names {wanted:?}, which is not a workflow of this folder{names}");
            return Some(Fault::at(text, schedule.workflow_at, problem));
        }
        let problem = problem(schedule, workflow)?;
        Some(Fault::at(text, *order_at, format!("schedule {name:?}: {problem}")))
    };
    let faults: Vec<Fault> = deployment.schedules.iter().filter_map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
}

/// Why the first order of a schedule would be refused.
fn problem(schedule: &Schedule, workflow: Option<&Workflow>) -> Option<String> {
    let first = schedule.timing.next(Timestamp::from_epoch_ms(0))?;
    let mut order = match schedule.order("", first, FAR_AHEAD) {
        Ok(given) => given.order,
        Err(bad) => return Some(format!("order: {bad}")),
    };
    let refused = workflow?.accept(&mut order, FAR_AHEAD, &Redaction::default()).err()?;
    Some(format!("its orders would be refused: {refused}"))
}
