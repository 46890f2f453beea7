//! The file `stepwarden.toml`: the default workflow, the agents, and the reply channels and sinks of alerts of one
//! machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::limits::NAME_CHARS_MAX;
use domain::located::{Entry, Faults, Reader};
use http::Uri;

use crate::FILE_BYTES_MAX;
use crate::auth::Placed;
use crate::settings::Settings;
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
}

/// A reply channel of one machine.
#[derive(Debug, Clone)]
pub struct Channel {
    /// The URL.
    pub url: String,
    /// The secret of Standard Webhooks.
    pub signature: Option<Placed>,
}

/// Whether a text is the URL of a reply channel.
#[must_use]
pub fn is_web_address(text: &str) -> bool {
    let uri: Option<Uri> = text.parse().ok();
    uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}

impl DeploymentFile {
    /// Reads the file.
    ///
    /// # Errors
    /// All faults of the text, each with its line, its column and advice.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let (mut reader, _, file) = Self::read(text);
        if text.len() > FILE_BYTES_MAX {
            reader = Reader::new("").0;
            reader.blame(0, format!("has more than {FILE_BYTES_MAX} bytes: shorten it"));
        }
        reader.finish(file)
    }

    /// Reads the file, with the place of `default`. The faults are in the reader, so that others can be added.
    pub(crate) fn read(text: &str) -> (Reader<'_>, usize, Self) {
        let (mut reader, mut root) = Reader::new(text);
        reader.set_homes(&[(&["default"], "write it at the top of the file, above the first table")]);
        let default = root.take("default");
        let default = reader.exact_text(default);
        let at = default.as_ref().map_or(0, |(_, entry)| entry.at);
        let agents = root.take("agents");
        let settings = Settings::read(&mut reader, agents);
        let channels = root.take("reply_channels");
        let reply_channels = reply_channels(&mut reader, channels);
        let alerts = root.take("alerts");
        let sinks = sinks::read(&mut reader, alerts);
        reader.end(root);
        (reader, at, Self { default: default.map(|(name, _)| name.into()), settings, reply_channels, sinks })
    }
}

fn reply_channels(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> BTreeMap<Arc<str>, Channel> {
    let mut channels = BTreeMap::new();
    let Some(mut table) = reader.table(entry) else { return channels };
    for (name, at, entry) in table.take_all() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            let words = format!("use 1 to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.'");
            reader.blame(at, format!("{} is not a valid name of a reply channel: {words}", entry.path));
        }
        if let Some(channel) = channel(reader, entry) {
            channels.insert(name.into(), channel);
        }
    }
    channels
}

/// Its URL alone, or a table.
fn channel(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Channel> {
    let (url, signature) = if entry.value.is_table() {
        let mut table = reader.table(Some(entry))?;
        let (url, signature) = (reader.required(&mut table, "url"), table.take("signature"));
        let signature = sinks::signature(reader, signature);
        reader.end(table);
        (url?, signature)
    } else {
        (entry, None)
    };
    let (url, entry) = reader.text(Some(url))?;
    if !is_web_address(&url) {
        reader.blame_value(&entry, "must be a URL such as \"http://localhost:9000/replies\"");
    }
    Some(Channel { url, signature })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_text_is_read_again_without_the_folder() {
        let file = DeploymentFile::parse("default = \"shop\"\n[agents.bank]\nurl = \"http://localhost:1\"").unwrap();
        assert_eq!(file.default.as_deref(), Some("shop"), "its workflow may be stored already");
        assert_eq!(file.settings.of("bank").and_then(|agent| agent.url()), Some("http://localhost:1"));
        let long = format!("# {}", "x".repeat(FILE_BYTES_MAX));
        assert_eq!(DeploymentFile::parse(&long).unwrap_err().to_string(), "1:1: has more than 65536 bytes: shorten it");
    }
}
