//! The headers of each call.

use domain::header;
use domain::located::{Document, Entry, Reader, Table};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::auth::secret;
use crate::auth::Placed;
use crate::keys::DEPLOYMENT;

/// A stored file without the values of headers and the URLs of sinks: each may be a secret. `None` if it cannot be read.
#[must_use]
pub fn without_likely_secrets(text: &str) -> Option<String> {
    let document = Document::new(text);
    let (reader, root) = document.read(DEPLOYMENT);
    let tables = |name| root.named(name).into_iter().filter_map(|(_, _, entry)| entry.table());
    let headers = tables("agents").flat_map(|agent| agent.named("headers")).map(|(_, _, entry)| entry);
    let urls = tables("alerts").flat_map(|sink| ["slack", "webhook"].map(|key| sink.get(key)));
    let mut values: Vec<Entry<'_>> = headers.chain(urls.flatten()).filter(|entry| entry.value.is_str()).collect();
    values.sort_by_key(|entry| entry.at);
    let mut shown = text.to_owned();
    for Entry { at, end, .. } in values.into_iter().rev() {
        shown.replace_range(at..end, "\"[redacted]\"");
    }
    (!reader.is_broken()).then_some(shown)
}

/// The headers with a value, and those with a secret.
pub(super) fn headers(reader: &mut Reader<'_>, table: &Table<'_>) -> (HeaderMap, Vec<(HeaderName, Placed)>) {
    let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
    for (name, at, entry) in table.named("headers") {
        let Ok(name) = HeaderName::try_from(name) else { continue };
        if let Some(table) = entry.clone().table() {
            secrets.extend(secret(&table, "secret").map(|secret| (name, secret)));
        } else if entry.value.is_str() && header::is_secret(name.as_str()) {
            let advice = "write a reference to it, such as { secret = \"env:PAYMENT_KEY\" }";
            reader.blame_value(&entry, format_args!("is a secret, and none may stand in this file: {advice}"));
        } else if let Some(mut value) = entry.text().and_then(|text| HeaderValue::try_from(text).ok()) {
            // It may be a secret, so no `Debug` shows it.
            value.set_sensitive(true);
            if headers.insert(name, value).is_some() {
                reader.blame(at, format!("{} is given twice", entry.path));
            }
        }
    }
    (headers, secrets)
}
