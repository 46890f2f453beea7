//! What conditions and templates look at, so that documents and answers have it: read off their texts.

use domain::search::Pointer;
use serde_json::{Map, Value, json};

/// A place that is compared, and values of which one makes the comparison hold and others do not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wish {
    /// The names down to the place.
    pub(crate) names: Vec<String>,
    /// Values, those that make it hold first.
    pub(crate) values: Vec<Value>,
}

/// The comparisons of a text, from left to right.
pub(crate) fn wishes(text: &str) -> Vec<Wish> {
    let tokens = tokens(text);
    let mut wishes = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let Some(names) = pointer(token) else { continue };
        let next = |ahead: usize| tokens.get(index + ahead).map(String::as_str);
        let before = index.checked_sub(1).and_then(|index| tokens.get(index)).map(String::as_str);
        let literal = next(2).and_then(literal);
        let values = match (next(1), literal) {
            (Some("in"), _) => {
                let list = tokens[index + 2..].iter().skip(1).take_while(|token| *token != "]");
                let mut values: Vec<Value> = list.filter_map(|token| self::literal(token)).collect();
                values.push(json!("other"));
                values
            }
            (Some("exists"), _) => vec![json!("x"), Value::Null],
            (Some("missing"), _) => vec![Value::Null, json!("x")],
            (Some("=="), Some(value)) => vec![value.clone(), other(&value)],
            (Some("!="), Some(value)) => vec![other(&value), value],
            (Some(">" | ">="), Some(value)) => vec![moved(&value, 1), moved(&value, -1), value],
            (Some("<" | "<="), Some(value)) => vec![moved(&value, -1), moved(&value, 1), value],
            // What is reckoned with is a number.
            (Some("+" | "-" | "*" | "/"), _) => vec![json!(10)],
            (_, _) if before.is_some_and(|before| ["+", "-", "*", "/"].contains(&before)) => vec![json!(10)],
            (_, _) => vec![json!("x")],
        };
        wishes.push(Wish { names, values });
    }
    wishes
}

/// Puts a value at a place, with the objects and arrays above it. `null` takes it away.
pub(crate) fn put(root: &mut Value, names: &[String], value: Value) {
    let Some((name, rest)) = names.split_first() else {
        *root = value;
        return;
    };
    if let (Ok(index), false) = (name.parse::<usize>(), root.is_object()) {
        if !root.is_array() {
            *root = Value::Array(Vec::new());
        }
        if let Some(elements) = root.as_array_mut() {
            while elements.len() <= index.min(100) {
                elements.push(Value::Object(Map::new()));
            }
            if let Some(element) = elements.get_mut(index) {
                put(element, rest, value);
            }
        }
        return;
    }
    if !root.is_object() {
        *root = Value::Object(Map::new());
    }
    let Some(members) = root.as_object_mut() else { return };
    if rest.is_empty() && value.is_null() {
        members.remove(name);
        return;
    }
    put(members.entry(name.clone()).or_insert(Value::Null), rest, value);
}

/// Whether there is a value at a place.
pub(crate) fn has(root: &Value, names: &[String]) -> bool {
    names
        .iter()
        .try_fold(root, |value, name| value.get(name).or_else(|| value.get(name.parse::<usize>().ok()?)))
        .is_some()
}

/// The pointers of a template: its texts that begin with a slash.
pub(crate) fn pointers(template: &toml::Value, found: &mut Vec<Vec<String>>) {
    match template {
        toml::Value::String(text) => {
            let text = text.strip_prefix("answer:").unwrap_or(text);
            found.extend(pointer(text.strip_suffix('?').unwrap_or(text)));
        }
        toml::Value::Array(elements) => elements.iter().for_each(|element| pointers(element, found)),
        toml::Value::Table(members) => members.values().for_each(|member| pointers(member, found)),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) | toml::Value::Datetime(_) => {}
    }
}

/// The names of a pointer.
pub(crate) fn pointer(text: &str) -> Option<Vec<String>> {
    text.starts_with('/').then(|| Pointer::parse(text).ok().map(|pointer| pointer.names().to_vec()))?
}

fn literal(token: &str) -> Option<Value> {
    let text = ['"', '\''].into_iter().find_map(|quote| token.strip_prefix(quote)?.strip_suffix(quote));
    text.map(Value::from)
        .or_else(|| serde_json::from_str(token).ok().filter(|value: &Value| !value.is_object() && !value.is_array()))
}

fn other(value: &Value) -> Value {
    match value {
        Value::String(text) => format!("not-{text}").into(),
        Value::Bool(is) => (!is).into(),
        Value::Number(_) => moved(value, 1),
        Value::Null | Value::Array(_) | Value::Object(_) => json!("x"),
    }
}

fn moved(value: &Value, by: i64) -> Value {
    match (value.as_i64(), value.as_f64()) {
        (Some(number), _) => (number + by).into(),
        (None, Some(number)) => json!(number + by as f64),
        (None, None) => value.clone(),
    }
}

/// The words of an expression. A text keeps its quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '[' | ']' | '(' | ')' | ',' => 1,
            _ if first.is_whitespace() => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            _ => rest.find(|c: char| c.is_whitespace() || "[](),".contains(c)).unwrap_or(rest.len()),
        };
        tokens.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_says_what_makes_it_hold() {
        let of =
            |text: &str| wishes(text).into_iter().map(|wish| (wish.names.join("/"), wish.values)).collect::<Vec<_>>();
        assert_eq!(
            of("/status in [\"paid\", 'held'] and /Order/Total > 1000"),
            [
                ("status".to_owned(), vec![json!("paid"), json!("held"), json!("other")]),
                ("Order/Total".to_owned(), vec![json!(1001), json!(999), json!(1000)]),
            ]
        );
        assert_eq!(of("not (/a/b == \"x\")")[0].1, [json!("x"), json!("not-x")]);
        assert_eq!(of("/n missing")[0].1, [Value::Null, json!("x")]);
        assert_eq!(of("= round(/Order/Total * 100, 0, half-up)")[0].1, [json!(10)]);
    }

    #[test]
    fn a_value_is_put_with_all_above_it() {
        let mut value = json!({"a": 1});
        for (place, of) in [("/b/c", json!(2)), ("/l/1/x", json!(3)), ("/a", Value::Null)] {
            put(&mut value, &pointer(place).unwrap(), of);
        }
        assert_eq!(value, json!({"b": {"c": 2}, "l": [{}, {"x": 3}]}));
        assert!(has(&value, &pointer("/l/1/x").unwrap()) && !has(&value, &pointer("/a").unwrap()));
    }
}
