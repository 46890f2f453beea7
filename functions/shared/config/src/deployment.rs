//! The file `stepwarden.toml`: the default workflow, the agents, the schedules, and the reply channels and sinks of alerts
//! of one machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::located::{Document, Entry, Faults, Reader, Table};
use domain::schedule::Schedule;

use crate::FILE_BYTES_MAX;
use crate::auth::Placed;
use crate::keys::DEPLOYMENT;
use crate::settings::{Settings, secret};
use crate::sinks::{self, Sinks};

/// What the file says. Everything may be left out.
#[derive(Debug, Clone, Default)]
pub struct DeploymentFile {
    /// The workflow of orders that name none.
    pub default: Option<Arc<str>>,
    /// The settings of the agents.
    pub settings: Settings,
    /// The reply channels, by name.
    pub reply_channels: BTreeMap<Arc<str>, Channel>,
    /// The sinks of alerts.
    pub sinks: Sinks,
    /// The schedules.
    pub schedules: Vec<Schedule>,
}

/// A reply channel of one machine.
#[derive(Debug, Clone)]
pub struct Channel {
    /// The URL.
    pub url: String,
    /// The secret of Standard Webhooks.
    pub signature: Option<Placed>,
}

impl DeploymentFile {
    /// Reads the file.
    ///
    /// # Errors
    /// All faults of the text, each with its line, its column and advice.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let document = Document::new(text);
        let (mut reader, file) = Self::read(&document);
        if text.len() > FILE_BYTES_MAX {
            reader = Reader::new("");
            reader.blame(0, format!("has more than {FILE_BYTES_MAX} bytes: shorten it"));
        }
        reader.finish(file)
    }

    /// Reads the file. The faults are in the reader, so that others can be added.
    pub(crate) fn read<'a>(document: &Document<'a>) -> (Reader<'a>, Self) {
        let (mut reader, root) = document.read(DEPLOYMENT);
        let file = Self {
            default: root.exact_text("default").map(Arc::from),
            settings: Settings::read(&mut reader, &root),
            reply_channels: reply_channels(&root),
            sinks: sinks::read(&mut reader, &root),
            schedules: Schedule::read(&mut reader, &root),
        };
        (reader, file)
    }
}

fn reply_channels(root: &Table<'_>) -> BTreeMap<Arc<str>, Channel> {
    let channel = |(name, _, entry): (&str, usize, Entry<'_>)| {
        let Some(table) = entry.clone().table() else {
            return Some((name.into(), Channel { url: entry.text()?.to_owned(), signature: None }));
        };
        let signature = secret(&table.table("signature"), "standard_webhooks");
        Some((name.into(), Channel { url: table.text("url")?.to_owned(), signature }))
    };
    root.named("reply_channels").into_iter().filter_map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_text_is_read_again_without_the_folder() {
        let file = DeploymentFile::parse("default = \"shop\"\n[agents.bank]\nurl = \"http://localhost:1\"").unwrap();
        assert_eq!(file.default.as_deref(), Some("shop"), "its workflow may be stored already");
        assert_eq!(file.settings.of("bank").and_then(|agent| agent.url()), Some("http://localhost:1"));
        assert!(DeploymentFile::parse(&" ".repeat(FILE_BYTES_MAX)).is_ok());
        let long = " ".repeat(FILE_BYTES_MAX + 1);
        assert_eq!(DeploymentFile::parse(&long).unwrap_err().to_string(), "1:1: has more than 65536 bytes: shorten it");
    }
}
