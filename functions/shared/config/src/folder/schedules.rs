//! What a schedule posts is an order that its workflow takes: found here, and not when it is due (rule 48).

use domain::located::{Document, Fault, Faults, known_names};
use domain::schedule::{DUE_AT, Schedule};
use domain::time::Timestamp;
use domain::workflow::{FAR_AHEAD, SOME_DAY, Workflow, Workflows};

use toml::de::DeTable;

use super::texts::each_text;
use super::{CheckedWorkflow, newest};
use crate::deployment::DeploymentFile;
use crate::foreign::{advice, in_name, is_place};
use crate::keys::DEPLOYMENT;

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
    let mut faults: Vec<Fault> = deployment.schedules.iter().filter_map(fault).collect();
    let document = Document::new(text);
    for schedule in document.read(DEPLOYMENT).1.elements("schedule") {
        let Some(order) = schedule.table().and_then(|schedule| schedule.get("order")) else { continue };
        each_text(order.at, order.value, &mut |at, text_of, is_name| {
            let found = if is_name { in_name(text_of).map(|_| AS_THIS_NAME) } else { in_order(text_of) };
            let problem = found.map(|problem| format!("{}: {text_of:?} {problem}", order.path));
            faults.extend(problem.map(|problem| Fault::at(text, at, problem)));
        });
        // Each order would have the same.
        for (name, at) in
            order.value.as_table().into_iter().flat_map(DeTable::keys).map(|key| (key.get_ref(), key.span().start))
        {
            let advice = match &**name {
                "OrderID" => "is made for each order: give a member of your own another name",
                name if name != DUE_AT && is_due_at(name) => {
                    "is almost DueAt, which is added with the due time: leave it out"
                }
                _ => continue,
            };
            faults.push(Fault::at(text, at, format!("{}: {name:?} {advice}", order.path)));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
}

const AS_THIS_NAME: &str = "would be posted as this name: a schedule fills nothing in";

/// Why a text of an order is not what its author means. Nothing is filled into it.
fn in_order(text: &str) -> Option<&'static str> {
    const AS_IT_IS: &str = "would be posted as this text: a schedule fills nothing in but the member DueAt, which a step sends as \
                            \"/Order/DueAt\"";
    let is_computed = text.starts_with("= ") || text.starts_with("=/");
    let is_due = text.trim().strip_prefix(['/', '{', '$', '<', '%']).is_some_and(|name| {
        let name = name.trim_matches(|sign: char| !sign.is_alphanumeric());
        is_due_at(name) || name.starts_with("aws.scheduler.")
    });
    match advice(text) {
        Some(advice) if advice.contains("secret") => Some(advice),
        Some(_) if text.starts_with('/') => None,
        Some(_) => Some(AS_IT_IS),
        None => (is_computed || is_due || is_place(text)).then_some(AS_IT_IS),
    }
}

fn is_due_at(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.eq_ignore_ascii_case(DUE_AT)
}

/// Why the first order of a schedule would be refused.
fn problem(schedule: &Schedule, workflow: Option<&Workflow>) -> Option<String> {
    let first = [SOME_DAY, Timestamp::from_epoch_ms(0)].into_iter().find_map(|after| schedule.timing.next(after))?;
    let order = match schedule.order("", first, FAR_AHEAD) {
        Ok(given) => given.order,
        Err(bad) => return Some(format!("order: {bad}")),
    };
    let refused = workflow?.never_accepts(&order, first)?;
    Some(format!("its orders would be refused: {refused}"))
}

#[cfg(test)]
mod tests {
    use crate::Folder;

    #[test]
    fn rule_48_a_time_that_a_step_reckons_may_be_years_ahead() {
        let settings = "default = \"w\"\n[agents.a]\nurl = \"http://localhost:1\"\n[[schedule]]\nname = \"renewals\"\n\
                        cron = \"0 3 1 * *\"\norder = { Item = \"mug\" }\n";
        let step = "[[step]]\nname = \"s\"\nagent = \"a\"\nundo = \"none\"\n\
                    send = { Until = \"= /SubmittedAt + 3650d\" }\n";
        let workflow = format!("name = \"w\"\nversion = 1\n{step}");
        let files = [("stepwarden.toml", settings.to_owned()), ("workflows/w.toml", workflow)];
        let found = Folder::check(&files.map(|(name, text)| (name.to_owned(), text)));
        assert!(found.is_ok(), "{:?}", found.err());
    }
}
