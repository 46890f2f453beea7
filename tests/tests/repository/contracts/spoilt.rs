//! Messages with one fault: the code refuses exactly the messages that the schemas forbid.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::read::read;
use super::schemas::{Schemas, files};

/// Messages from operators and from agents in other languages, and messages between the functions.
const CONSUMED: [&str; 5] = ["submission", "wake", "reply", "command", "request"];

/// Where the code is content with more than a writer may write: lengths and ranges, which are cut or dropped later, and
/// the spelling of times. Each is the place, and the value there.
const LOOSE: [(&str, &str); 50] = [
    // An attempt that never existed: such a reply is dropped.
    ("reply/Attempt", "0"),
    ("request/Attempt", "0"),
    ("command/Version", "0"),
    // The same as absent.
    ("command/Step", "null"),
    // More than ever counts, or than any step has.
    ("reply/WaitMs", "18446744073709551615"),
    ("request/BudgetMs", "18446744073709551615"),
    // It is only counted and shown.
    ("reply/CallMs", "any value"),
    // The same as absent: the result is awaited all the same.
    ("reply/Poll", "any value"),
    // Names that no step has, or texts that are empty or long.
    ("submission/Name", "\"\""),
    ("submission/Name", "\"Ä\""),
    ("submission/Name", LONG),
    // A version that there is not: the order stays on its queue.
    ("submission/Version", "0"),
    ("reply/Step", "\"\""),
    ("reply/Step", "\"Ä\""),
    ("reply/Step", LONG),
    ("reply/Code", "\"\""),
    ("reply/Code", LONG),
    ("reply/Message", LONG),
    ("reply/Problem", LONG),
    ("request/Step", "\"\""),
    ("request/Step", "\"Ä\""),
    ("request/Step", LONG),
    ("request/Agent", "\"\""),
    ("request/Agent", LONG),
    ("request/IdempotencyKey", "\"\""),
    ("request/IdempotencyKey", LONG),
    ("command/By", "\"\""),
    ("command/By", LONG),
    ("command/Reason", "\"\""),
    ("command/Reason", LONG),
    ("command/CommandID", "\"\""),
    ("command/CommandID", "\"Ä\""),
    ("command/CommandID", LONG),
    ("command/Step", "\"\""),
    ("command/Step", "\"Ä\""),
    ("command/Step", LONG),
    ("submission/Fingerprint", "any text"),
    ("submission/ReplyChannel", "any text"),
    ("submission/CorrelationID", "any text"),
    // An optional member may also be null.
    ("submission/ReplyChannel", "null"),
    ("submission/CorrelationID", "null"),
    ("reply/MayRunUntil", "null"),
    ("reply/Fallback", "null"),
    ("submission/Priority", "null"),
    ("submission/Workflow", "null"),
    ("command/Version", "null"),
    ("command/Settle", "null"),
    ("command/Take", "null"),
    // A document is an object at the API. Later functions do not check it again.
    ("submission/Document", "any value"),
    ("request/Order", "any value"),
];
/// Stands for a text of 500 characters.
const LONG: &str = "long";

fn spoilers() -> Vec<Value> {
    let long = "x".repeat(500);
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!("Ä"),
        json!(long),
        json!([]),
        json!({}),
        json!({"Done": 1, "Failed": {"Code": "x", "Message": "x"}}),
    ]
}

/// Whether the code may read what the schema forbids.
fn is_loose(name: &str, place: &str, spoiler: Option<&Value>) -> bool {
    let Some(spoiler) = spoiler else { return false };
    let member = place.rsplit('/').next().unwrap_or_default();
    let place = format!("{name}/{member}");
    LOOSE.iter().filter(|(loose, _)| *loose == place).any(|(_, value)| match *value {
        LONG => spoiler.as_str().is_some_and(|text| text.len() == 500),
        "any text" => spoiler.is_string(),
        "any value" => true,
        value => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *spoiler),
    })
}

/// The paths of all members, but not those within a document or an output.
fn places(value: &Value, place: &str) -> Vec<String> {
    let Value::Object(members) = value else { return Vec::new() };
    let mut found = Vec::new();
    for (name, inner) in members {
        let place = format!("{place}/{name}");
        if !["Document", "Order", "Outputs", "Output", "Done"].contains(&name.as_str()) {
            found.extend(places(inner, &place));
        }
        found.push(place);
    }
    found
}

/// The message with the member at this path replaced or removed.
fn spoilt(message: &Value, place: &str, spoiler: Option<&Value>) -> Value {
    let mut message = message.clone();
    let (parent, member) = place.rsplit_once('/').unwrap();
    let Some(Value::Object(members)) = message.pointer_mut(parent) else { panic!("no {parent}") };
    match spoiler {
        Some(spoiler) => members.insert(member.to_owned(), spoiler.clone()),
        None => members.remove(member),
    };
    message
}

#[test]
fn what_the_schemas_forbid_is_refused_and_what_they_allow_is_read() {
    let (schemas, files, spoilers) = (Schemas::open(), files("schemas"), spoilers());
    let (mut tried, mut refused, mut loose) = (0, 0, BTreeSet::new());
    for name in CONSUMED {
        for example in files[name]["examples"].as_array().unwrap() {
            for place in places(example, "") {
                for spoiler in spoilers.iter().map(Some).chain([None]) {
                    let message = spoilt(example, &place, spoiler);
                    let (allowed, read) = (schemas.check(name, &message), read(name, &message));
                    tried += 1;
                    refused += usize::from(read.is_err());
                    match (allowed, read) {
                        (Ok(()), Ok(_)) | (Err(_), Err(_)) => {}
                        (Ok(()), Err(problem)) => panic!("{name}{place} may be {spoiler:?}, but: {problem}"),
                        (Err(problem), Ok(_)) => {
                            assert!(is_loose(name, &place, spoiler), "{place} = {spoiler:?} is read, but: {problem}");
                            loose.insert((name, place.rsplit('/').next().unwrap_or_default().to_owned()));
                        }
                    }
                }
            }
        }
    }
    assert!(tried > 500 && refused > 300, "{refused} of {tried}");
    let listed: BTreeSet<String> = LOOSE.iter().map(|(place, _)| (*place).to_owned()).collect();
    let met: BTreeSet<String> = loose.iter().map(|(name, member)| format!("{name}/{member}")).collect();
    assert_eq!(listed, met, "nothing is listed as loose that is not");
}
