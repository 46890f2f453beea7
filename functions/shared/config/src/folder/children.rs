//! The workflows of the orders that steps make (rule 49): each is one of the folder, and none comes back to itself.

use std::collections::BTreeSet;

use domain::definition::Pin;
use domain::located::{self, Document, Entry, known_names};
use domain::workflow::{WORKFLOW, Workflows};

use super::{CheckedWorkflow, Fault, newest};
use crate::settings::Settings;

/// What is wrong with them. `names`: of all workflows of the folder; `settings`: of its agents; `None`: they are not known.
pub(super) fn faults(
    workflows: &[CheckedWorkflow],
    names: Option<&BTreeSet<&str>>,
    settings: Option<&Settings>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let shipped = Workflows::shipped().ok();
    for CheckedWorkflow { file, text, workflow } in workflows {
        let document = Document::new(text);
        let (_, root) = document.read(WORKFLOW);
        for step in root.elements("step").into_iter().filter_map(Entry::table) {
            let Some(entry) = step.get("workflow") else { continue };
            let Some(name) = entry.exact_text() else { continue };
            let rule = workflow.steps.iter().find(|rule| step.exact_text("name") == Some(&rule.name));
            let sent = rule.and_then(|rule| rule.forward.send.as_ref()).zip(step.get("send"));
            if let (Some((sent, entry)), Some(child)) = (sent, newest(workflows, shipped.as_ref(), name))
                && let Some(problem) = child.refuses_all_of(sent)
            {
                let problem = format!("{}: workflow {name} would refuse its orders: {problem}", entry.path);
                faults.push(Fault { file: file.clone(), fault: located::Fault::at(text, entry.at, problem) });
            }
            let problem = match (names, way(workflows, name, &workflow.name)) {
                (Some(names), _) if !is_known(names, name) => {
                    let known = known_names(name, "Workflows", &names.iter().copied().collect::<Vec<_>>());
                    format!("names {name:?}, which is not a workflow of this folder{known}")
                }
                (Some(names), _) if !names.contains(name) && !without_table(settings).is_empty() => {
                    let tables = without_table(settings).join(", ");
                    format!(
                        "names {name:?}, the compiled example, whose agents this folder lacks: write {tables}, or name a \
                         workflow of this folder"
                    )
                }
                (_, Some(way)) => {
                    let way = [&[&*workflow.name], &*way].concat().join(" makes ");
                    format!("is a circle: {way}. No order would end")
                }
                (Some(_) | None, None) => continue,
            };
            let fault = located::Fault::at(text, entry.at, format!("{} {problem}", entry.path));
            faults.push(Fault { file: file.clone(), fault });
        }
    }
    faults
}

fn is_known(names: &BTreeSet<&str>, name: &str) -> bool {
    names.contains(name) || Workflows::shipped_text(&Pin { name: name.into(), version: 1 }).is_some()
}

/// The tables that the agents of the compiled workflow need. An applied folder has no other agents.
fn without_table(settings: Option<&Settings>) -> Vec<String> {
    let lacks = |agent: &&str| settings.is_some_and(|settings| settings.of(agent).is_none());
    Workflows::SHIPPED_AGENTS.into_iter().filter(lacks).map(|agent| format!("[agents.{agent}]")).collect()
}

/// The workflows by which an order of one makes an order of the other, in any of their versions.
fn way<'w>(workflows: &'w [CheckedWorkflow], from: &'w str, to: &str) -> Option<Vec<&'w str>> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![vec![from]];
    while let Some(way) = open.pop() {
        let last = way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        let of_last = workflows.iter().filter(|checked| *checked.workflow.name == *last);
        for next in of_last.flat_map(|checked| &checked.workflow.steps).filter_map(|step| step.child.as_deref()) {
            if seen.insert(next) {
                open.push([&*way, &[next]].concat());
            }
        }
    }
    None
}
