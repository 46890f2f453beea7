//! Looks for the key: the worlds in which something went wrong run once more, each time with another key changed, or with two.
//! The first change after which nothing goes wrong in them is the one to propose.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::day::Assume;
use crate::edit::{Edit, Files};
use crate::folder::{Folder, Given};
use crate::judge::{Group, Violation};
use crate::remedy::candidates;
use crate::watch::Story;
use crate::worlds::{Found, Keep, Seen, run, run_all};

/// Candidates of which two are tried together.
const PAIRED_MAX: usize = 10;
/// Of what few worlds show, more others have to be clean: this many times as many.
const RARE: u64 = 3;
const FEW_SEEDS: usize = 6;

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
    /// The other key that has to be changed with it, if one is not enough.
    pub and: Option<Edit>,
    /// Whether the change belongs to another finding too, which is shown first.
    pub is_same_edit: bool,
}

impl Finding {
    /// The changes that help.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.edit.iter().chain(&self.and)
    }
}

/// What was found, and whether the folder is clean with all changes.
#[derive(Debug, Clone)]
pub struct Findings {
    /// By what it costs.
    pub all: Vec<Finding>,
    /// Whether the search was stopped before its end.
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
    /// Set when the user stops the search.
    pub stop: &'a AtomicBool,
}

/// A change of one key, or of two.
type Change = Vec<Edit>;

/// Whether a change ends what goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Helps {
    /// It does.
    Well,
    /// It does, and something else goes wrong that did not before.
    ButElse,
    /// It does not.
    Not,
}

impl Search<'_> {
    /// Explains what was seen.
    #[must_use]
    pub fn findings(self, seen: &Seen) -> Findings {
        let longest_ms = seen.counts.calm_ms.within(1_000);
        let mut all: Vec<Finding> = Vec::new();
        let mut given = self.folder.given.clone();
        for found in seen.wrong() {
            let Some(&(orders, seed, order)) = found.seeds.first() else { continue };
            let told = order.map(|order| run(self.folder, seed, self.assume, Keep::Story(order)));
            // That of the order whose story it is: in another world it may be another line.
            let own = told.as_ref().and_then(|over| {
                let is_own = |other: &&Violation| other.group() == found.violation.group() && other.order == order;
                over.violations.iter().find(is_own)
            });
            let violation = own.unwrap_or(&found.violation).clone();
            let story = told.and_then(|over| over.story).map(|story| story.about(violation.index));
            let known =
                all.iter().map(|other| other.edits().cloned().collect()).filter(|change: &Change| !change.is_empty());
            let change = self.change(found, known.collect(), seen, longest_ms).unwrap_or_default();
            let is_same_edit = !change.is_empty() && all.iter().any(|other| other.edits().eq(&change));
            if let Some(files) = applied(&change, &given.files).filter(|_| !is_same_edit) {
                given.files = files;
            }
            let mut change = change.into_iter();
            let (edit, and) = (change.next(), change.next());
            all.push(Finding { violation, worlds: found.worlds, seed, orders, story, edit, and, is_same_edit });
        }
        let is_cut = self.stop.load(Ordering::Relaxed);
        let is_changed = !is_cut && all.iter().any(|finding| finding.edit.is_some());
        let confirmed = is_changed.then(|| self.confirmed(given, seen)).flatten();
        Findings { all, is_cut, confirmed }
    }

    /// The change after which nothing goes wrong in these worlds. One that helps elsewhere goes first, and one key before
    /// two.
    fn change(self, found: &Found, known: Vec<Change>, seen: &Seen, longest_ms: Option<u64>) -> Option<Change> {
        let all = candidates(self.folder, &found.violation, longest_ms);
        // What few worlds show may be gone by chance.
        let is_likely =
            |change: &Change| found.seeds.len() >= FEW_SEEDS || change.iter().all(|edit| all.contains(edit));
        let known = known.into_iter().filter(is_likely);
        let firsts: Vec<&Edit> = all.iter().take(PAIRED_MAX).collect();
        let pairs = firsts.iter().enumerate().flat_map(|(index, one)| {
            let others = firsts[index + 1..].iter().filter(|other| other.key() != one.key() || other.file != one.file);
            others.map(|other| vec![(*one).clone(), (*other).clone()])
        });
        let changes = known.chain(all.iter().map(|edit| vec![edit.clone()])).chain(pairs);
        // One that makes other things go wrong is better than none.
        let mut second = None;
        for change in changes {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.helps(&change, found, seen) {
                Helps::Well => return Some(change),
                Helps::ButElse => second = second.or(Some(change)),
                Helps::Not => {}
            }
        }
        second
    }

    fn helps(self, change: &[Edit], found: &Found, seen: &Seen) -> Helps {
        let files = applied(change, &self.folder.given.files);
        let Some(Ok(folder)) = files.map(|files| Given { files, ..self.folder.given.clone() }.ready()) else {
            return Helps::Not;
        };
        let group = found.violation.group();
        let mut helps = Helps::Well;
        // What was there before may stay, and has its own change.
        let mut look = |other: &Group| {
            if *other == group || (other.0 == group.0 && !seen.found.contains_key(other)) {
                helps = Helps::Not;
            } else if helps == Helps::Well && !seen.found.contains_key(other) {
                helps = Helps::ButElse;
            }
            helps != Helps::Not
        };
        for (_, seed, _) in &found.seeds {
            let over = run(&folder, *seed, self.assume, Keep::Verdict);
            if !over.violations.iter().all(|violation| look(&violation.group())) {
                return Helps::Not;
            }
        }
        let times = if found.seeds.len() < FEW_SEEDS { RARE } else { 1 };
        let others = run_all(&folder, 0..self.others * times, self.assume, self.threads, self.stop, &|_| {});
        others.wrong().for_each(|found| {
            look(&found.violation.group());
        });
        helps
    }

    /// Runs with all changes: each world in which something went wrong, and others.
    fn confirmed(self, given: Given, seen: &Seen) -> Option<(u64, u64)> {
        let folder = given.ready().ok()?;
        let mut seeds: Vec<u64> = seen.wrong().flat_map(|found| found.seeds.iter().map(|(_, seed, _)| *seed)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let is_bad = |seed: &&u64| {
            let over = run(&folder, **seed, self.assume, Keep::Verdict);
            over.violations.iter().any(|violation| !seen.counts.sends(violation))
        };
        let bad = seeds.iter().filter(is_bad).count() as u64;
        let others = run_all(&folder, 0..2 * self.others, self.assume, self.threads, self.stop, &|_| {});
        let bad_others: u64 = others.wrong().map(|found| found.worlds).sum();
        Some((seeds.len() as u64 + others.counts.worlds, bad + bad_others))
    }
}

fn applied(change: &[Edit], files: &Files) -> Option<Files> {
    change.iter().try_fold(files.clone(), |files, edit| edit.applied(&files))
}
