//! What AWS refuses, and emulators take. A program that relies on an emulator would fail with the first customer.

use serde_json::Value;

/// Bytes of a message of SQS with its attributes; also of all messages, or of all events, of a request.
const BYTES_MAX: usize = 1024 * 1024;
const DELAY_S_MAX: u64 = 900;
const WAIT_S_MAX: u64 = 20;
const VISIBILITY_S_MAX: u64 = 43_200;
/// The clauses of an update expression. Each may come once.
const CLAUSES: [&str; 4] = ["SET", "REMOVE", "ADD", "DELETE"];

/// Why AWS refuses a request; `None` if it may take it.
#[must_use]
pub fn refusal(operation: &str, body: &Value) -> Option<String> {
    match operation {
        "UpdateItem" => update(body),
        "TransactWriteItems" => {
            list(&body["TransactItems"]).iter().filter_map(|item| item.get("Update")).find_map(update)
        }
        "SendMessage" => messages(std::slice::from_ref(body)),
        "SendMessageBatch" => messages(list(&body["Entries"])),
        "ReceiveMessage" => beyond(body, "WaitTimeSeconds", WAIT_S_MAX).or_else(|| visibility(body)),
        "ChangeMessageVisibility" => visibility(body),
        "ChangeMessageVisibilityBatch" => list(&body["Entries"]).iter().find_map(visibility),
        "PutEvents" => {
            let all = list(&body["Entries"]).iter();
            let bytes: usize = all
                .map(|entry| {
                    ["Source", "DetailType", "Detail"].map(|name| text(&entry[name]).len()).iter().sum::<usize>() + 14
                })
                .sum();
            (bytes > BYTES_MAX).then(|| format!("the events have {bytes} bytes"))
        }
        _ => None,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn beyond(body: &Value, name: &str, most: u64) -> Option<String> {
    let given = body[name].as_u64().filter(|given| *given > most)?;
    Some(format!("{name} is {given}, the limit is {most}"))
}

fn visibility(body: &Value) -> Option<String> {
    beyond(body, "VisibilityTimeout", VISIBILITY_S_MAX)
}

/// The attributes count, but for those of the system.
fn messages(all: &[Value]) -> Option<String> {
    let bytes = |message: &Value| {
        let attributes = message["MessageAttributes"].as_object().into_iter().flatten();
        let of = |(name, value): (&String, &Value)| {
            name.len() + text(&value["DataType"]).len() + text(&value["StringValue"]).len()
        };
        text(&message["MessageBody"]).len() + attributes.map(of).sum::<usize>()
    };
    let sum: usize = all.iter().map(bytes).sum();
    let too_large = (sum > BYTES_MAX).then(|| format!("the messages have {sum} bytes with their attributes"));
    too_large.or_else(|| all.iter().find_map(|message| beyond(message, "DelaySeconds", DELAY_S_MAX)))
}

/// No two paths may be equal, or one a prefix of the other. No clause may come twice.
fn update(body: &Value) -> Option<String> {
    let expression = text(&body["UpdateExpression"]);
    let clauses: Vec<&str> = expression.split_whitespace().filter(|word| CLAUSES.contains(word)).collect();
    if (1..clauses.len()).any(|place| clauses[..place].contains(&clauses[place])) {
        return Some(format!("a clause comes twice: {expression}"));
    }
    let name = |part: &str| body["ExpressionAttributeNames"][part].as_str().unwrap_or(part).to_owned();
    let paths: Vec<Vec<String>> =
        targets(expression).map(|path| path.replace('[', ".[").split('.').map(name).collect()).collect();
    for (place, path) in paths.iter().enumerate() {
        if let Some(other) = paths[..place].iter().find(|other| path.starts_with(other) || other.starts_with(path)) {
            return Some(format!("two paths overlap: {} and {}", other.join("."), path.join(".")));
        }
    }
    None
}

/// The paths that an expression writes: in each clause, the first word of each part between commas outside of brackets.
fn targets(expression: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = expression.split(move |character| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        character == ',' && depth == 0
    });
    let words = parts.flat_map(|part| {
        // A part may end one clause and begin the next.
        let mut is_first = true;
        part.split_whitespace().filter(move |word| {
            let is_clause = CLAUSES.contains(word);
            let is_target = is_first && !is_clause;
            is_first = is_clause;
            is_target
        })
    });
    words.map(|word| word.trim_end_matches('='))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_that_overlap_and_clauses_that_come_twice_are_refused() {
        let names = json!({"#0": "Steps", "#1": "Output", "#2": "Watch"});
        for (expression, is_refused) in [
            ("SET #0[0].#1 = :0, #2 = :1 REMOVE #0[1].#1", false),
            ("SET #0[1] = :0, #0[10] = :1", false),
            ("SET #2 = if_not_exists(#2, :0), #1 = :1", false),
            ("SET #2 = :0, #2 = :1", true),
            ("SET #0 = :0, #0[0].#1 = :1", true),
            ("SET #0[0].#1 = :0 REMOVE #0[0]", true),
            ("SET #0 = :0 REMOVE #0", true),
            ("SET #1 = :0 SET #2 = :1", true),
            ("REMOVE #1, Output", true),
        ] {
            let update = json!({"UpdateExpression": expression, "ExpressionAttributeNames": names});
            assert_eq!(refusal("UpdateItem", &update).is_some(), is_refused, "{expression}");
            let transaction = json!({"TransactItems": [{"Put": {}}, {"Update": update}]});
            assert_eq!(refusal("TransactWriteItems", &transaction).is_some(), is_refused, "{expression}");
        }
    }

    #[test]
    fn times_and_sizes_beyond_the_limits_are_refused() {
        for (name, at, operation) in [
            ("DelaySeconds", 900, "SendMessage"),
            ("WaitTimeSeconds", 20, "ReceiveMessage"),
            ("VisibilityTimeout", 43_200, "ChangeMessageVisibility"),
        ] {
            assert_eq!(refusal(operation, &json!({ name: at })), None);
            assert!(refusal(operation, &json!({ name: at + 1 })).is_some(), "{name}");
        }
        let message = |bytes: usize| {
            json!({
                "MessageBody": "x".repeat(bytes),
                "MessageAttributes": {"traceparent": {"DataType": "String", "StringValue": "0".repeat(55)}},
            })
        };
        let attributes = "traceparent".len() + "String".len() + 55;
        for (more, is_refused) in [(0, false), (1, true)] {
            let entries = json!({"Entries": [message(1_000), message(BYTES_MAX - 1_000 - 2 * attributes + more)]});
            assert_eq!(refusal("SendMessageBatch", &entries).is_some(), is_refused, "{more}");
            let event = json!({"Source": "s", "DetailType": "t", "Detail": "x".repeat(BYTES_MAX - 16 + more)});
            assert_eq!(refusal("PutEvents", &json!({"Entries": [event]})).is_some(), is_refused, "{more}");
        }
    }
}
