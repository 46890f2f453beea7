//! What is said of a rehearsal: to programs ([`json`], [`junit`]), and on a page ([`html`]).

pub mod html;
pub mod json;
pub mod junit;

use crate::day::Assume;
use crate::doubts::doubts;
use crate::folder::Folder;
use crate::search::Findings;
pub use crate::story::time;
use crate::worlds::Seen;

/// A rehearsal that is over.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The folder's name.
    pub name: &'a str,
    /// The folder.
    pub folder: &'a Folder,
    /// What might go wrong.
    pub assume: Assume,
    /// What was seen.
    pub seen: &'a Seen,
    /// What went wrong, and what helps.
    pub findings: &'a Findings,
}

impl Report<'_> {
    /// Steps that were never carried out, and conditions that always held: by workflow and step, and what was never seen.
    #[must_use]
    pub fn never_seen(&self) -> Vec<(String, String, &'static str)> {
        let mut never = Vec::new();
        for workflow in self.folder.checked.workflows.iter().map(|one| &one.workflow) {
            for rule in &workflow.steps {
                let counts = self.seen.counts.steps.get(&(workflow.name.clone(), rule.name.clone()));
                let [done, skipped, undone, dropped] = counts.copied().unwrap_or_default();
                let mut note = |what| never.push((workflow.name.to_string(), rule.name.to_string(), what));
                if done == 0 && undone == 0 {
                    note("never carried out");
                }
                if skipped == 0 && !rule.when.is_empty() {
                    note("never skipped");
                }
                if dropped == 0 && rule.may_drop() {
                    note("never dropped with its line");
                }
            }
        }
        never
    }

    /// What a reader should know beside the verdict.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let counts = &self.seen.counts;
        let mut notes = Vec::new();
        for (step, orders) in &counts.helpless {
            notes.push(format!(
                "{step} was carried out more than once for {orders} orders: its service knows no keys, and a memo cannot \
                 tell what a call without an answer did. No key of the folder helps"
            ));
        }
        notes.extend(doubts(self.folder));
        if let Some(orders) = counts.ends.get("Error") {
            notes.push(format!(
                "{orders} orders wait in Error for a person: a step was given up for its horizon or failures, a service said \
                 no past a pivot, a child order that is done stays, or a service had forgotten a key, so that a resubmit might carry a step out again"
            ));
        }
        let unseen = counts.worlds / 3;
        notes.push(format!("what happens in fewer than 1 of {unseen} worlds may be unseen: --seeds runs more"));
        if self.folder.given.description.agents().next().is_none() {
            notes.push("no rehearsal.toml says how the services behave: they are taken to keep the rules".to_owned());
        }
        notes.extend(self.folder.problems.iter().cloned());
        notes
    }

    /// The longest outage in which no order was given up, in milliseconds, if outages were tried.
    #[must_use]
    pub fn longest_outage_ms(&self) -> Option<u64> {
        let outages = &self.seen.counts.outages;
        let lost = outages.iter().find(|(_, (_, lost))| *lost > 0).map_or(u64::MAX, |(ms, _)| *ms);
        outages.keys().filter(|ms| **ms < lost).max().copied()
    }
}
