//! The settings of a webhook (rule 41).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;

use domain::located::{Entry, Reader, Table};
use domain::search::Pointer;
use domain::workflow::is_name;

use super::auth::reference;
use crate::auth::Placed;
use crate::webhook::{EventMeaning, WebhookScheme, WebhookSettings};

/// Secrets of one webhook: the present one, the next one and the one before.
const SECRETS_MAX: usize = 3;
/// Events of one list.
const EVENTS_MAX: usize = 32;
/// Longest name of an event, in characters.
const EVENT_CHARS_MAX: usize = 128;

/// Reads `webhook`.
pub(super) fn webhook(reader: &mut Reader<'_>, table: &mut Table<'_>, has_memo: bool) -> Option<WebhookSettings> {
    let entry = table.take("webhook");
    let mut table = reader.table(entry)?;
    if has_memo {
        let fault = "cannot be told of results, since the agent has a memo: a memo knows only what a call is answered";
        reader.blame(table.at, format!("{} {fault}. Leave one of them out", table.path));
    }
    let secret = reader.required(&mut table, "secret");
    let secrets = secret.and_then(|entry| secrets(reader, entry));
    let scheme = reader.required(&mut table, "scheme");
    let scheme = reader.word(scheme, &WebhookScheme::ALL);
    let key = reader.required(&mut table, "key");
    let key = pointer(reader, key);
    let step = table.take("step");
    let step_at = step.as_ref().map_or(0, |entry| entry.at);
    let step = reader.text(step).map(|(name, entry)| {
        if !is_name(&name) {
            reader.blame_value(&entry, "must be the name of a step");
        }
        name
    });
    let event = reader.required(&mut table, "event");
    let event = pointer(reader, event);
    let done = reader.required(&mut table, "done");
    let [no, working] = ["no", "working"].map(|key| table.take(key));
    let mut events = BTreeMap::new();
    for (entry, meaning) in [(done, EventMeaning::Done), (no, EventMeaning::No), (working, EventMeaning::Working)] {
        for event in reader.array(entry, EVENTS_MAX).unwrap_or_default() {
            add(reader, &mut events, event, meaning);
        }
    }
    let [code, message, output] = ["code", "message", "output"].map(|key| table.take(key));
    let [code, message, output] = [code, message, output].map(|entry| pointer(reader, entry));
    reader.end(table);
    let (secrets, scheme, key, event) = (secrets?, scheme?, key?, event?);
    Some(WebhookSettings { secrets, scheme, key, step, step_at, event, events, code, message, output })
}

/// One reference, or an array of them.
fn secrets(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Vec<Placed>> {
    if !entry.value.is_array() {
        return reference(reader, Some(entry)).map(|secret| vec![secret]);
    }
    let elements = reader.array(Some(entry), SECRETS_MAX)?;
    elements.into_iter().map(|element| reference(reader, Some(element))).collect()
}

fn pointer(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Pointer> {
    let (text, entry) = reader.text(entry)?;
    Pointer::parse(&text).map_err(|problem| reader.blame_value(&entry, problem)).ok()
}

fn add(reader: &mut Reader<'_>, events: &mut BTreeMap<String, EventMeaning>, event: Entry<'_>, meaning: EventMeaning) {
    let Some((name, entry)) = reader.text(Some(event)) else { return };
    if name.is_empty() || name.chars().nth(EVENT_CHARS_MAX).is_some() {
        let fault = format_args!("must be the name of an event, of 1 to {EVENT_CHARS_MAX} characters");
        reader.blame_value(&entry, fault);
        return;
    }
    match events.entry(name) {
        Place::Vacant(place) => {
            place.insert(meaning);
        }
        Place::Occupied(earlier) => {
            let fault = format!("names {:?} again: an event has one meaning", earlier.key());
            reader.blame_value(&entry, fault);
        }
    }
}
