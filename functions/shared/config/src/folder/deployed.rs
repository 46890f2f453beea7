//! The texts of `stepwarden.toml`: each means what it says. A stored file is not asked: it was checked by the rules of its day.

use domain::located::{Document, Entry, Faults};

use super::texts::conditions;
use crate::keys::DEPLOYMENT;

/// Whether no text of the file is meant otherwise.
///
/// # Errors
/// Each that is.
pub(super) fn check(text: &str) -> Result<(), Faults> {
    let document = Document::new(text);
    let (mut reader, root) = document.read(DEPLOYMENT);
    for agent in root.named("agents").into_iter().filter_map(|(_, _, entry)| Entry::table(entry)) {
        for call in ["forward", "undo"] {
            conditions(&mut reader, &agent.table(call));
        }
    }
    reader.finish(())
}
