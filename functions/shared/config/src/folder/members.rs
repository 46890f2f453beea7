//! The members of an order that a workflow names beside its mappings: each is a name, or one place in the order. A text
//! that is neither would match no member, so it is a fault.

use domain::located::{Entry, Reader, Table};

use crate::foreign::{advice, in_pointer};

/// What begins a place beside the document, in a mapping.
const BESIDE: [&str; 4] = ["OrderID", "IdempotencyKey", "SubmittedAt", "Outputs"];
/// Signs that a name at any depth has not: the author means a place, a list or a pattern.
const NOT_OF_NAMES: &str = "./\\*?+^|~(){}[]<>=!&,;\"`";

/// Checks the keys that name members, and the role, which is the same for each order.
pub(super) fn check(reader: &mut Reader<'_>, root: &Table<'_>) {
    let mut check = |entry: &Entry<'_>, problem: &dyn Fn(&str) -> Option<String>| {
        if let Some((text, problem)) = entry.exact_text().and_then(|text| Some((text, problem(text)?))) {
            reader.blame_value(entry, format_args!("{text:?} {problem}"));
        }
    };
    for entry in root.elements("refuse") {
        check(&entry, &|text| match text.starts_with('/') {
            true => in_place(text, "a name without slashes, such as \"Number\", is refused at any depth"),
            false => in_name(text),
        });
    }
    for entry in root.elements("index") {
        check(&entry, &|text| in_place(text, "an order is found by one text or number, as at \"/Order/Email\""));
    }
    for step in root.elements("step").into_iter().filter_map(Entry::table) {
        for (key, example) in [("not_by", "/Order/RequestedBy"), ("not_before", "/Order/DeliverOn")] {
            // Where there is nothing, anybody may decide, and nothing is waited for.
            let is_wrong = |text: &str| is_no_place(text) || has_dots(text);
            let problem =
                format!("names no single place: names stand between slashes, without other signs, as in {example:?}");
            let problem = |text: &str| is_wrong(text).then(|| problem.clone());
            step.get(key).iter().for_each(|entry| check(entry, &problem));
        }
        step.get("role").iter().for_each(|entry| check(entry, &in_role));
    }
}

/// Whether a name has a dot between letters, as a path of another language has.
fn has_dots(text: &str) -> bool {
    let is_letter = |sign: Option<char>| sign.is_some_and(char::is_alphabetic);
    text.match_indices('.')
        .any(|(at, _)| is_letter(text[..at].chars().next_back()) && is_letter(text[at + 1..].chars().next()))
}

/// Why a text is no role. A role is shown, and nothing is filled into it.
fn in_role(text: &str) -> Option<String> {
    let is_foreign = text.starts_with(['/', '=']) || advice(text).is_some();
    is_foreign.then(|| "would be shown as this text: a role is the same for each order, such as \"manager\"".to_owned())
}

/// Why a text is no name of a member.
fn in_name(text: &str) -> Option<String> {
    let is_name = text == text.trim()
        && text.chars().any(char::is_alphanumeric)
        && !text.contains(|sign: char| NOT_OF_NAMES.contains(sign) || sign.is_control())
        && !text.contains("::");
    let names: Vec<&str> = text.split(|sign: char| !sign.is_alphanumeric() && !"_- ".contains(sign)).collect();
    let names: Vec<&str> =
        names.into_iter().map(str::trim).filter(|name| !name.is_empty() && *name != "Order").collect();
    let place = if names.is_empty() { "Card/Number".to_owned() } else { names.join("/") };
    let last = names.last().map_or("Number", |name| *name);
    (!is_name).then(|| {
        format!("would refuse nothing: write a name, such as {last:?}, or a place, such as \"/Order/{place}\"")
    })
}

/// Why a text that begins with a slash is not the place of one member of the order.
fn in_place(text: &str, advice: &str) -> Option<String> {
    let first = text.split('/').nth(1).unwrap_or_default();
    if text == "/Order" {
        return Some("is the whole order: name a member below it".to_owned());
    }
    if BESIDE.contains(&first) {
        return Some(format!("is not below the order: a member of this name is \"/Order{text}\""));
    }
    is_no_place(text)
        .then(|| format!("names no single place: names stand between slashes, without other signs; {advice}"))
}

/// Whether a pointer has signs of another language, names several values, or has an empty name.
fn is_no_place(text: &str) -> bool {
    let has_blank = text.split('/').any(|name| name != name.trim());
    text.ends_with('/') || text.starts_with("/Order.") || has_blank || in_pointer(text).is_some()
}
