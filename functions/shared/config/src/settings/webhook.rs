//! The settings of a webhook (rule 41).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;

use domain::located::{Reader, Table};

use super::auth::placed;
use super::pointer;
use crate::webhook::{EventMeaning, WebhookScheme, WebhookSettings};

/// Reads `webhook`.
pub(super) fn webhook(reader: &mut Reader<'_>, agent: &Table<'_>, has_memo: bool) -> Option<WebhookSettings> {
    let table = agent.table("webhook");
    if table.is_given() && has_memo {
        let fault = "cannot be told of results, since the agent has a memo: a memo knows only what a call is answered";
        reader.blame(table.at, format!("{} {fault}. Leave one of them out", table.path));
    }
    let meanings = [("done", EventMeaning::Done), ("no", EventMeaning::No), ("working", EventMeaning::Working)];
    let mut events = BTreeMap::new();
    for (key, meaning) in meanings {
        for entry in table.elements(key) {
            let Some(name) = entry.text() else { continue };
            match events.entry(name.to_owned()) {
                Place::Vacant(place) => {
                    place.insert(meaning);
                }
                Place::Occupied(_) => {
                    reader.blame_value(&entry, format_args!("names {name:?} again: an event has one meaning"));
                }
            }
        }
    }
    Some(WebhookSettings {
        secrets: table.one_or_more("secret").into_iter().map(placed).collect::<Option<_>>()?,
        scheme: table.word("scheme", &WebhookScheme::ALL)?,
        key: pointer(&table, "key")?,
        step: table.text("step").map(str::to_owned),
        step_at: table.at("step"),
        event: pointer(&table, "event")?,
        events,
        code: pointer(&table, "code"),
        message: pointer(&table, "message"),
        output: pointer(&table, "output"),
    })
}
