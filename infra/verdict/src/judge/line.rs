//! A line of an order, as people know it (rule 50).

use std::fmt;
use std::sync::Arc;

use domain::workflow::{LINE, Workflow};

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its position, from 0.
    pub place: usize,
    /// How many lines the order has.
    pub of: usize,
    /// What the member is called that has its name, and its name. `None`: its position is its name.
    pub name: Option<(Arc<str>, Arc<str>)>,
}

impl Line {
    /// The line of a step of the workflow of an order.
    #[must_use]
    pub fn of(workflow: &Workflow, index: usize) -> Option<Self> {
        let rule = workflow.steps.get(index)?;
        let place = rule.line.as_ref()?.place;
        let of = workflow.steps.iter().filter(|other| other.line.is_some() && other.base() == rule.base()).count();
        let member = rule.for_each.as_ref().and_then(|each| each.item_id.as_ref()?.names().last());
        let name = member.zip(rule.name.split_once(LINE)).map(|(member, (_, id))| (member.as_str().into(), id.into()));
        Some(Self { place, of, name })
    }

    /// A step of the line, in words.
    #[must_use]
    pub fn of_step(&self, step: &str) -> String {
        format!("{step} of {self}")
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of {}", self.place + 1, self.of)?;
        match &self.name {
            Some((member, name)) => write!(f, " ({member} {name})"),
            None => Ok(()),
        }
    }
}
