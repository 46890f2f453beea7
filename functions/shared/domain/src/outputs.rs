//! The outputs of other steps that a step reads, under their names in the workflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::Json;
use crate::search::Pointer;

/// Outputs of steps. That of a step with lines is the array of those of its elements (rule 50).
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    of_steps: BTreeMap<Arc<str>, Json>,
    of_elements: BTreeMap<Arc<str>, Json>,
}

impl Outputs {
    /// Adds the output of a step.
    pub(crate) fn add(&mut self, step: &str, output: Json) {
        self.of_steps.insert(step.into(), output);
    }

    /// Adds the outputs of all elements of a step, each with its name. An element that was not done has none.
    pub(crate) fn add_all<'a>(&mut self, step: &str, elements: impl Iterator<Item = (&'a Arc<str>, Option<&'a Json>)>) {
        let mut array = Vec::new();
        for (name, output) in elements {
            array.push(output.map(Json::raw));
            self.of_elements.extend(output.map(|output| (name.clone(), output.clone())));
        }
        self.of_steps.insert(step.into(), Json::of(&array));
    }

    /// The value at this place of the output of a step. Of an array, the first name may be that of an element.
    pub(crate) fn find(&self, step: &str, names: &[String]) -> Option<&RawValue> {
        let element = names.split_first().filter(|_| !self.of_elements.is_empty());
        let element = element.and_then(|(id, rest)| Some((self.of_elements.get(&*format!("{step}/{id}"))?, rest)));
        match element {
            Some((output, rest)) => Pointer::walk(rest, output.raw()),
            None => Pointer::walk(names, self.of_steps.get(step)?.raw()),
        }
    }

    /// All, by the names of their steps.
    pub(crate) fn by_step(self) -> BTreeMap<Arc<str>, Json> {
        self.of_steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_found_by_its_position_and_by_its_name() {
        let [mug, cup] = [r#"{"ID":"m"}"#, r#"{"ID":"c"}"#].map(|text| Json::parse(text.as_bytes(), 100).unwrap());
        let names = ["reserve/mug", "reserve/gone", "reserve/1"].map(Arc::from);
        let mut outputs = Outputs::default();
        outputs.add_all("reserve", names.iter().zip([Some(&mug), None, Some(&cup)]));
        outputs.add("pay", mug.clone());
        let found = |step: &str, pointer: &str| {
            let pointer = Pointer::parse(pointer).unwrap();
            outputs.find(step, pointer.names()).map(|value| value.get().to_owned())
        };
        assert_eq!(found("reserve", "").as_deref(), Some(r#"[{"ID":"m"},null,{"ID":"c"}]"#));
        assert_eq!(found("reserve", "/mug/ID").as_deref(), Some(r#""m""#));
        assert_eq!(found("reserve", "/2/ID").as_deref(), Some(r#""c""#));
        assert_eq!(found("reserve", "/1/ID").as_deref(), Some(r#""c""#), "a name goes before a position");
        assert_eq!((found("reserve", "/gone"), found("reserve", "/gone/ID")), (None, None));
        assert_eq!(found("pay", "/ID").as_deref(), Some(r#""m""#));
    }
}
