//! Orders with other lines: none, a few, and as many as there can be (rule 50).

use domain::limits::{ELEMENT_CHARS_MAX, RECORDS_MAX};
use serde_json::{Map, Value, json};

use super::{Place, places};
use crate::wishes::{pointer, put};

/// How many elements the array of an order gets.
const COUNTS: [usize; 5] = [0, 1, 2, 3, 7];
/// The elements where conditions look at them.
const WANTED: usize = 3;

/// The array that a workflow goes through.
pub(crate) struct Lines {
    array: Vec<String>,
    item_id: Option<Vec<String>>,
    /// The elements that an order may have.
    pub(crate) most: usize,
    /// Where conditions look, and for what.
    wanted: Vec<Place>,
}

impl Lines {
    /// That of this workflow, if it goes through one.
    pub(crate) fn of(workflow: &toml::Table) -> Option<Self> {
        let steps = workflow.get("step")?.as_array()?;
        let text = |step: &toml::Value, key: &str| step.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        let arrays: Vec<String> = steps.iter().filter_map(|step| text(step, "for_each")).collect();
        let mut array = pointer(arrays.first()?.trim_end_matches('?'))?;
        // Its root is the order.
        array.remove(0);
        Some(Self {
            array,
            item_id: steps.iter().find_map(|step| pointer(&text(step, "item_id")?)),
            most: (RECORDS_MAX + arrays.len()).saturating_sub(steps.len()) / arrays.len(),
            wanted: steps.iter().flat_map(|step| places(step, "Item")).collect(),
        })
    }

    /// How many elements a document has.
    pub(crate) fn count(&self, document: &Value) -> usize {
        self.elements(document).len()
    }

    /// The same document with other numbers of elements, and with elements in which what conditions look at is another.
    pub(super) fn varied(&self, document: &Value) -> Vec<Value> {
        let mut all: Vec<Value> = COUNTS.iter().map(|count| self.with(document, *count, |_, _| {})).collect();
        let choices = self.wanted.iter().map(|(_, values)| values.len() + 1).max().unwrap_or(0);
        let want = |element: &mut Value, choice: usize| {
            for (names, values) in &self.wanted {
                put(element, names, values.get(choice).cloned().unwrap_or(Value::Null));
            }
        };
        for choice in 0..choices {
            // All elements alike, and each another.
            all.push(self.with(document, WANTED, |element, _| want(element, choice)));
            all.push(self.with(document, WANTED, |element, place| want(element, (place + choice) % choices)));
        }
        all
    }

    /// The same document with as many elements as there can be.
    pub(super) fn largest(&self, document: &Value) -> Value {
        self.with(document, self.most, |_, _| {})
    }

    fn elements<'v>(&self, document: &'v Value) -> &'v [Value] {
        let found = self.array.iter().try_fold(document, |value, name| value.get(name));
        found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The document with this number of elements: copies of its own, each with a name of its own.
    fn with(&self, document: &Value, count: usize, change: impl Fn(&mut Value, usize)) -> Value {
        let samples = self.elements(document);
        let element = |place: usize| {
            let mut element = match samples.len() {
                0 => Value::Object(Map::new()),
                length => samples[place % length].clone(),
            };
            if let Some(item_id) = self.item_id.as_ref().filter(|_| place >= samples.len()) {
                let own = item_id.iter().try_fold(&element, |value, name| value.get(name));
                let name = named(own, place);
                put(&mut element, item_id, name);
            }
            change(&mut element, place);
            element
        };
        let mut other = document.clone();
        put(&mut other, &self.array, Value::Array((0..count).map(element).collect()));
        other
    }
}

/// A name for the copy of an element at this place.
fn named(own: Option<&Value>, place: usize) -> Value {
    match own {
        Some(Value::String(text)) => {
            let end = format!("-{}", place + 1);
            let start: String = text.chars().take(ELEMENT_CHARS_MAX - end.len()).collect();
            json!(start + &end)
        }
        Some(Value::Number(number)) if number.as_u64().is_some() => {
            json!(number.as_u64().unwrap_or(0).saturating_add(1_000_000 * place as u64))
        }
        Some(_) | None => json!(format!("item-{}", place + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(more: &str) -> Lines {
        let workflow = format!(
            "[[step]]\nname = \"pay\"\n[[step]]\nfor_each = \"/Order/Cart/Lines?\"\nitem_id = \"/SKU\"\n{more}\n\
             [[step]]\nfor_each = \"/Order/Cart/Lines?\"\nitem_id = \"/SKU\"\n"
        );
        Lines::of(&workflow.parse().unwrap()).unwrap()
    }

    #[test]
    fn orders_have_none_a_few_and_as_many_lines_as_there_can_be() {
        let (lines, document) = (lines(""), json!({"Cart": {"Lines": [{"SKU": "mug", "N": 1}, {"SKU": 7}]}}));
        let counts: Vec<usize> = lines.varied(&document).iter().map(|document| lines.count(document)).collect();
        assert_eq!(counts, COUNTS);
        let three = &lines.varied(&document)[3]["Cart"]["Lines"];
        assert_eq!(*three, json!([{"SKU": "mug", "N": 1}, {"SKU": 7}, {"SKU": "mug-3", "N": 1}]));
        let largest = lines.largest(&document);
        // One step, and two for each line.
        assert_eq!(lines.count(&largest), 99);
        let names = lines.elements(&largest).iter().map(|element| element["SKU"].to_string());
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), 99);
    }

    #[test]
    fn elements_are_others_where_a_condition_looks_at_them() {
        let lines = lines("when = \"/Item/Kind == 'gift'\"");
        let document = json!({"Cart": {"Lines": [{"SKU": "mug"}]}});
        let kinds = |of: Value| {
            let kinds = lines.elements(&of).iter().map(|element| element.get("Kind").cloned());
            kinds.map(|kind| kind.unwrap_or_default()).collect::<Vec<_>>()
        };
        let all: Vec<Vec<Value>> = lines.varied(&document).into_iter().skip(COUNTS.len()).map(kinds).collect();
        let [gift, other, none] = [json!("gift"), json!("not-gift"), Value::Null];
        assert!(all.contains(&vec![gift.clone(); 3]) && all.contains(&vec![other.clone(); 3]), "{all:?}");
        assert!(all.contains(&vec![gift, other, none]), "{all:?}");
    }
}
