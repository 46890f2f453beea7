//! The tables of keys in the documents: each is made from the keys that the configuration is read by.

use config::keys::{DEPLOYMENT, keys_of, markdown};
use domain::workflow::WORKFLOW;
use rehearsal::description::REHEARSAL;

/// The documents with such tables.
pub const DOCUMENTS: [&str; 4] =
    ["functions/README.md", "functions/shared/agent/README.md", "infra/README.md", "infra/cli/README.md"];
const BEGIN: &str = "<!-- keys of ";
const END: &str = "<!-- end of keys -->";

/// A document, its tables as they must be.
///
/// # Panics
/// If a mark is not closed, or names no table.
#[must_use]
pub fn with_tables(document: &str) -> String {
    let mut parts = document.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (mark, _) = part.split_once('\n').expect("a mark is a line");
        let (_, rest) = part.split_once(END).expect("a mark has an end");
        let name = mark.split(':').next().unwrap_or_default();
        text += &format!("{BEGIN}{mark}\n\n{}\n{END}{rest}", table(name));
    }
    text
}

fn table(name: &str) -> String {
    match name {
        "a workflow" => markdown(WORKFLOW, |path| path.starts_with("step")),
        "a step" => markdown(keys_of(WORKFLOW, "step"), |path| path.starts_with("undo.")),
        "stepwarden.toml" => markdown(DEPLOYMENT, |path| path.starts_with("agents.") || path.starts_with("alerts.")),
        "an agent" => markdown(keys_of(DEPLOYMENT, "agents"), |_| false),
        "a sink" => markdown(keys_of(DEPLOYMENT, "alerts"), |_| false),
        "rehearsal.toml" => markdown(REHEARSAL, |_| false),
        other => panic!("there are no keys of {other}"),
    }
}
