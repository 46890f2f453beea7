//! Looks for the key: the worlds in which something went wrong run once more, each time with another key changed. The
//! first change after which nothing goes wrong in them is the one to propose.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::day::Assume;
use crate::edit::Edit;
use crate::folder::{Folder, Given};
use crate::judge::Violation;
use crate::remedy::candidates;
use crate::watch::Story;
use crate::worlds::{Found, Keep, Seen, run, run_all};

/// What went wrong, what happened, and what helps.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What.
    pub violation: Violation,
    /// The worlds with it.
    pub worlds: u64,
    /// The world with the fewest orders.
    pub seed: u64,
    /// Its orders.
    pub orders: usize,
    /// What happened to the order.
    pub story: Option<Story>,
    /// The change that helps, if there is one.
    pub edit: Option<Edit>,
    /// Whether the change belongs to another finding too, which is shown first.
    pub is_same_edit: bool,
}

/// What was found, and whether the folder is clean with all changes.
#[derive(Debug, Clone)]
pub struct Findings {
    /// By what it costs.
    pub all: Vec<Finding>,
    /// Whether nobody waited for the end of the search.
    pub is_cut: bool,
    /// Worlds that ran with all changes, and those of them in which something went wrong.
    pub confirmed: Option<(u64, u64)>,
}

/// A search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The folder.
    pub folder: &'a Folder,
    /// What may go wrong.
    pub assume: Assume,
    /// Worlds in which a change must do no harm, beside those in which something went wrong.
    pub others: u64,
    /// Threads for the worlds.
    pub threads: usize,
    /// Set if nobody waits any more.
    pub stop: &'a AtomicBool,
}

impl Search<'_> {
    /// Explains what was seen.
    #[must_use]
    pub fn findings(self, seen: &Seen) -> Findings {
        let longest_ms = seen.counts.calm_ms.within(1_000);
        let mut all: Vec<Finding> = Vec::new();
        let mut given = self.folder.given.clone();
        for found in seen.found.values() {
            let Some(&(orders, seed, order)) = found.seeds.first() else { continue };
            let story = order.and_then(|order| run(self.folder, seed, self.assume, Keep::Story(order)).story);
            let known = all.iter().filter_map(|other| other.edit.clone());
            let edit = self.edit(found, known.collect(), longest_ms);
            let is_same_edit = edit.is_some() && all.iter().any(|other| other.edit == edit);
            if let Some(files) = edit.as_ref().filter(|_| !is_same_edit).and_then(|edit| edit.applied(&given.files)) {
                given.files = files;
            }
            let violation = found.violation.clone();
            all.push(Finding { violation, worlds: found.worlds, seed, orders, story, edit, is_same_edit });
        }
        let is_cut = self.stop.load(Ordering::Relaxed);
        let is_changed = !is_cut && all.iter().any(|finding| finding.edit.is_some());
        let confirmed = is_changed.then(|| self.confirmed(given, seen)).flatten();
        Findings { all, is_cut, confirmed }
    }

    /// The change after which nothing goes wrong in these worlds. One that helps elsewhere goes first.
    fn edit(self, found: &Found, known: Vec<Edit>, longest_ms: Option<u64>) -> Option<Edit> {
        let edits = known.into_iter().chain(candidates(self.folder, &found.violation, longest_ms));
        edits.into_iter().find(|edit| !self.stop.load(Ordering::Relaxed) && self.helps(edit, found))
    }

    fn helps(self, edit: &Edit, found: &Found) -> bool {
        let Some(files) = edit.applied(&self.folder.given.files) else { return false };
        let Ok(folder) = (Given { files, ..self.folder.given.clone() }).ready() else { return false };
        let group = found.violation.group();
        let is_gone = |seed: u64| {
            let over = run(&folder, seed, self.assume, Keep::Verdict);
            !over.violations.iter().any(|violation| violation.group() == group || violation.kind == group.0)
        };
        if !found.seeds.iter().all(|&(_, seed, _)| is_gone(seed)) {
            return false;
        }
        let others = run_all(&folder, 0..self.others, self.assume, self.threads, self.stop, &|_| {});
        !others.found.contains_key(&group)
    }

    /// Runs with all changes: each world in which something went wrong, and others.
    fn confirmed(self, given: Given, seen: &Seen) -> Option<(u64, u64)> {
        let folder = given.ready().ok()?;
        let mut seeds: Vec<u64> =
            seen.found.values().flat_map(|found| found.seeds.iter().map(|(_, seed, _)| *seed)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let is_bad = |seed: &&u64| !run(&folder, **seed, self.assume, Keep::Verdict).violations.is_empty();
        let bad = seeds.iter().filter(is_bad).count() as u64;
        let others = run_all(&folder, 0..2 * self.others, self.assume, self.threads, self.stop, &|_| {});
        let bad_others: u64 = others.found.values().map(|found| found.worlds).sum();
        Some((seeds.len() as u64 + others.counts.worlds, bad + bad_others))
    }
}
