//! Whether two answers tell of one effect or of two. Nobody sees an effect from outside: what tells is a value that the
//! service made, such as an id. It is another one in the answer to each order, and was not sent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The length of an order's id, with which what was sent begins.
const ID_CHARS: usize = 36;

/// What two answers say of their effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Likeness {
    /// All that the service makes for each order is the same: one effect.
    Same,
    /// The first place is the same, the second differs: one effect, and something that is made for each answer.
    Mixed([String; 2]),
    /// All that the second answer has of it differs, such as this place: two effects.
    Other(String),
    /// The second answer has nothing of it, such as this place: it is another answer.
    Lacks(String),
    /// Neither has anything that the service makes for each order.
    Unknown,
}

/// The places in an answer where the service puts something that it makes for each order.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeSet<String>);

impl Marks {
    /// Of answers to different orders, each with what was sent for it.
    pub(super) fn of(answers: &[(&str, &str)]) -> Self {
        let leaves: Vec<_> = answers.iter().map(|(body, sent)| (leaves(body), *sent)).collect();
        let Some((first, _)) = leaves.first() else { return Self::default() };
        // An address with the id of the order in it is made of the order.
        let has_order = |value: &String, sent: &str| sent.get(..ID_CHARS).is_some_and(|order| value.contains(order));
        let is_made = |value: &String, sent: &str| {
            !is_time(value) && (value.len() < 4 || !sent.contains(value)) && !has_order(value, sent)
        };
        let is_mark = |place: &&String| {
            let values: Option<Vec<&String>> =
                leaves.iter().map(|(leaves, sent)| leaves.get(*place).filter(|value| is_made(value, sent))).collect();
            values.is_some_and(|values| values.len() > 1 && BTreeSet::from_iter(&values).len() == values.len())
        };
        Self(first.keys().filter(is_mark).cloned().collect())
    }

    /// What the second answer says, beside the first.
    pub(super) fn compare(&self, first: &str, second: &str) -> Likeness {
        let (first, second) = (leaves(first), leaves(second));
        let differs = |place: &&String| first.get(*place) != second.get(*place);
        if self.0.is_empty() {
            let is_time =
                |place: &&String| [&first, &second].iter().any(|it| it.get(*place).is_some_and(|it| is_time(it)));
            let mut other = first.keys().chain(second.keys()).filter(differs).filter(|place| !is_time(place));
            return other.next().map_or(Likeness::Unknown, |place| Likeness::Other(shown(place)));
        }
        let (same, other): (Vec<_>, Vec<_>) = self.0.iter().partition(|place| !differs(place));
        let has = |place: &&&String| second.contains_key(**place);
        match (same.first(), other.iter().find(has), other.first()) {
            (_, _, None) => Likeness::Same,
            (Some(same), _, Some(other)) => Likeness::Mixed([shown(same), shown(other)]),
            (None, Some(other), _) => Likeness::Other(shown(other)),
            (None, None, Some(lacking)) => Likeness::Lacks(shown(lacking)),
        }
    }
}

fn shown(place: &str) -> String {
    if place.is_empty() { "the body".to_owned() } else { place.to_owned() }
}

/// All values that are no containers, by their JSON pointers. A body that is no JSON is one.
fn leaves(body: &str) -> BTreeMap<String, String> {
    fn add(found: &mut BTreeMap<String, String>, place: String, value: Value) {
        match value {
            Value::Object(members) => {
                members.into_iter().for_each(|(name, value)| add(found, format!("{place}/{name}"), value));
            }
            Value::Array(elements) => {
                elements.into_iter().enumerate().for_each(|(at, value)| add(found, format!("{place}/{at}"), value));
            }
            Value::String(text) => drop(found.insert(place, text)),
            value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => drop(found.insert(place, value.to_string())),
        }
    }
    let mut found = BTreeMap::new();
    let value = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    add(&mut found, String::new(), value);
    found
}

/// Whether it looks like a date, or like seconds or milliseconds since 1970.
fn is_time(value: &str) -> bool {
    let is_date =
        value.len() >= 10 && value.as_bytes()[..4].iter().all(u8::is_ascii_digit) && value[4..].starts_with('-');
    let seconds = value.parse().unwrap_or(0.0);
    is_date || value.ends_with(" GMT") || (1e9..3e9).contains(&seconds) || (1e12..3e12).contains(&seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_service_tells_and_what_was_sent_or_is_a_time_does_not() {
        let answer = |id: &str, order: &str, at: u32| {
            format!(
                r#"{{"a": [{{"ID": {id}}}], "order": "{order}", "at": "2026-01-01T00:00:0{at}Z", "n": {at}, "ok": true}}"#
            )
        };
        let [first, other] = [answer("1", "order-1", 1), answer("\"2\"", "order-2", 1)];
        let marks = Marks::of(&[(&first, "{order-1}"), (&other, "{order-2}")]);
        assert_eq!(marks.compare(&first, &answer("1", "order-1", 2)), Likeness::Same);
        assert_eq!(marks.compare(&first, &answer("3", "order-1", 1)), Likeness::Other("/a/0/ID".to_owned()));
        assert_eq!(marks.compare(&first, "{}"), Likeness::Lacks("/a/0/ID".to_owned()));
        let [one, again, other] = [("1", "a"), ("1", "b"), ("2", "c")]
            .map(|(id, request)| format!(r#"{{"id": {id}, "request": "{request}"}}"#));
        let marks = Marks::of(&[(&one, ""), (&other, "")]);
        assert_eq!(marks.compare(&one, &again), Likeness::Mixed(["/id".to_owned(), "/request".to_owned()]));
        let order = |n: u32| format!("0193c5f8-9d3e-7c4a-8b1f-2a6d4e5f70{n:02}");
        let link = |n| format!(r#"{{"link": "/charges/{}"}}"#, order(n));
        let marks = Marks::of(&[(&link(1), &order(1)), (&link(2), &order(2))]);
        assert_eq!(marks.compare(&link(1), &link(1)), Likeness::Unknown, "an address of the order is of the order");
        let none = Marks::of(&[(&first, "")]);
        assert_eq!(none.compare("{\"at\": 1767225600}", "{\"at\": 1767225601}"), Likeness::Unknown);
        assert_eq!(none.compare("ok", "again"), Likeness::Other("the body".to_owned()));
    }
}
