//! The headers of each call.

use domain::located::{Reader, Table};
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue};
use toml::de::{DeTable, DeValue};

use super::auth::secret;
use crate::auth::Placed;

/// Headers whose value is always a secret.
const SECRET_HEADERS: [HeaderName; 4] =
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, HeaderName::from_static("x-api-key")];
/// A stored file without the values of its headers: nobody marked them as secret, and one may be. `None` if it cannot be
/// read.
#[must_use]
pub fn without_header_values(text: &str) -> Option<String> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let mut values = Vec::new();
    if let Some(DeValue::Table(agents)) = named(root, "agents") {
        for (_, agent) in agents {
            let DeValue::Table(agent) = agent.into_inner() else { continue };
            let Some(DeValue::Table(headers)) = named(agent, "headers") else { continue };
            values.extend(headers.iter().filter(|(_, value)| value.get_ref().is_str()).map(|(_, value)| value.span()));
        }
    }
    values.sort_by_key(|span| span.start);
    let mut shown = text.to_owned();
    for span in values.into_iter().rev() {
        shown.replace_range(span, "\"[redacted]\"");
    }
    Some(shown)
}

fn named<'a>(table: DeTable<'a>, name: &str) -> Option<DeValue<'a>> {
    table.into_iter().find(|(key, _)| &**key.get_ref() == name).map(|(_, value)| value.into_inner())
}

/// The headers with a value, and those with a secret.
pub(super) fn headers(reader: &mut Reader<'_>, table: &Table<'_>) -> (HeaderMap, Vec<(HeaderName, Placed)>) {
    let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
    for (name, at, entry) in table.named("headers") {
        let Ok(name) = HeaderName::try_from(name) else { continue };
        if let Some(table) = entry.clone().table() {
            secrets.extend(secret(&table, "secret").map(|secret| (name, secret)));
        } else if entry.value.is_str() && SECRET_HEADERS.contains(&name) {
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
