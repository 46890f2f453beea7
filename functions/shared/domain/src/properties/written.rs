//! A task as a store keeps it: a version written whole, and the changes after it.

use crate::task::{Delta, Task};

/// The number of changes after which it is written whole again.
const CHANGES_MAX: usize = 6;

pub(super) struct Written {
    whole: Task,
    changes: Vec<String>,
}

impl Written {
    pub(super) const fn new(whole: Task) -> Self {
        Self { whole, changes: Vec::new() }
    }

    /// Writes the next version whole, and as one more change. Reads both.
    pub(super) fn check(&mut self, before: &Task, after: &Task) {
        let text = serde_json::to_string(after).expect("a record");
        assert_eq!(&serde_json::from_str::<Task>(&text).expect("a record"), after);
        let change = Delta::between(before, after).and_then(|change| serde_json::to_string(&change));
        self.changes.push(change.expect("a change"));
        let changes = self.changes.iter().map(|text| serde_json::from_str(text).expect("a change")).collect();
        assert_eq!(&Delta::apply(changes, self.whole.clone()).expect("the later version"), after);
        if self.changes.len() == CHANGES_MAX {
            *self = Self::new(after.clone());
        }
    }
}
