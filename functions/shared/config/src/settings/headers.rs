//! The headers of each call.

use domain::located::{Reader, Table};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use toml::de::{DeTable, DeValue};

use super::auth::header;
use super::{CALLBACK_URL, IDEMPOTENCY_KEY, TRACE};
use crate::auth::Placed;

/// Headers of one agent.
pub(super) const HEADERS_MAX: usize = 32;
/// Longest value of a header, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 4 * 1024;
/// Headers of the protocol, and those that every call has.
const OWN_HEADERS: [HeaderName; 10] = [
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    IDEMPOTENCY_KEY,
    CALLBACK_URL,
    TRACE,
];

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
pub(super) fn headers(reader: &mut Reader<'_>, table: &mut Table<'_>) -> (HeaderMap, Vec<(HeaderName, Placed)>) {
    let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
    let table = table.take("headers");
    let Some(mut table) = reader.table(table) else { return (headers, secrets) };
    let (path, place) = (table.path.clone(), table.at);
    for (name, at, entry) in table.take_all() {
        let name = HeaderName::try_from(&name);
        match &name {
            Err(_) => reader.blame(at, format!("{} is not a valid name of a header", entry.path)),
            Ok(name) if OWN_HEADERS.contains(name) => {
                reader.blame(at, format!("{} is set by the agent itself: leave it out", entry.path));
            }
            Ok(_) => {}
        }
        if entry.value.is_table() {
            if let (Ok(name), Some(secret)) = (name, header(reader, entry)) {
                secrets.push((name, secret));
            }
            continue;
        }
        let Some((value, entry)) = reader.text(Some(entry)) else { continue };
        if name.as_ref().is_ok_and(|name| SECRET_HEADERS.contains(name)) {
            let advice = "write a reference to it, such as { secret = \"env:PAYMENT_KEY\" }";
            reader.blame_value(&entry, format_args!("is a secret, and none may stand in this file: {advice}"));
            continue;
        }
        let value = HeaderValue::try_from(&value).ok().filter(|value| value.len() <= HEADER_BYTES_MAX);
        match (name, value) {
            (Ok(name), Some(mut value)) => {
                // It may be a secret, so no `Debug` shows it.
                value.set_sensitive(true);
                if headers.insert(name, value).is_some() {
                    reader.blame(at, format!("{} is given twice", entry.path));
                }
            }
            (Err(_), Some(_)) => {}
            (_, None) => {
                let fault =
                    format_args!("cannot be sent: give a text in one line, of at most {HEADER_BYTES_MAX} bytes");
                reader.blame_value(&entry, fault);
            }
        }
    }
    let count = headers.len() + secrets.len();
    if count > HEADERS_MAX {
        reader.blame(place, format!("{path} has {count} headers: give at most {HEADERS_MAX}"));
    }
    (headers, secrets)
}
