//! Versions of workflows: an order begins with a version that new orders had when it was posted, and keeps it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::dossier::Dossier;
use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{Choices, Pinned};

impl Auditor {
    /// New orders begin with these versions from now on.
    pub(super) fn applied(&mut self, choices: &Choices) {
        self.choices.push((self.at_ms, choices.clone()));
    }

    /// The API pins an order to a version that orders of its name began with at a time that the API may know of.
    pub(super) fn pinned(&self, pinned: &Pinned) -> Finding {
        let name: Arc<str> = pinned.named.clone().unwrap_or_default();
        let ends_ms = self.choices.iter().skip(1).map(|(from_ms, _)| *from_ms).chain([i64::MAX]);
        let known = self.choices.iter().zip(ends_ms).filter(|(_, end_ms)| *end_ms >= pinned.since_ms);
        let mut versions = known.filter_map(|((_, choices), _)| choices.get(&name)).flatten();
        must(versions.any(|version| *version == pinned.version), Invariant::Version, || {
            format!("an order begins with version {}, which no new order of {name:?} has", pinned.version)
        })
    }
}

impl Dossier {
    /// The order is stored with the version that it is pinned to.
    pub(super) fn begins_with(&self, version: u32) -> Finding {
        let pins: BTreeSet<Option<u32>> = self.posted.iter().map(|posted| posted.pinned).collect();
        must(pins.contains(&None) || pins.contains(&Some(version)), Invariant::Version, || {
            format!("the order begins with version {version} of its workflow, and is pinned to {pins:?}")
        })
    }
}
