//! The parts of an expression that are the same for each order: what cannot be computed of them never can.

use std::cell::{Cell, RefCell};

use serde_json::value::RawValue;

use super::{Expression, NoValue, Node, Scope};
use crate::json::Json;
use crate::search::Pointer;

impl Expression {
    /// Why a part of it has no value, whatever the order. In what is sent, the time and the ids of an order are texts.
    pub(in crate::template) fn fault_of_constants(&self, is_sent: bool) -> Option<NoValue> {
        let (time, id) = (Json::of(&"2026-11-20T17:26:43Z"), Json::of(&"id"));
        let find = |pointer: &Pointer| {
            let [root] = pointer.names() else { return None };
            let value = match &**root {
                "SubmittedAt" => &time,
                "OrderID" | "IdempotencyKey" => &id,
                _ => return None,
            };
            is_sent.then(|| value.raw())
        };
        match self.root.is_known(&find) {
            true => self.value(&find).err(),
            false => self.root.fault_of_constants(&find),
        }
    }
}

impl Node {
    fn is_known<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> bool {
        let is_unknown = matches!(self, Self::Place(place) | Self::OrElse(place, _) | Self::Exists(place, _)
            if find(&place.pointer).is_none());
        !is_unknown && self.children().into_iter().all(|node| node.is_known(find))
    }

    fn fault_of_constants<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Option<NoValue> {
        if !self.is_known(find) {
            return self.children().into_iter().find_map(|node| node.fault_of_constants(find));
        }
        self.value(Scope { find, item: None, steps: &Cell::default(), found: &RefCell::default() }).err()
    }
}

#[cfg(test)]
mod tests {
    use crate::template::never_computed;

    #[test]
    fn rule_19_a_constant_part_without_a_value_is_known_before_any_order() {
        for (text, why) in [
            ("= 10 / 0", "it divides by zero"),
            ("= /Order/Total * (1 / (2 - 2))", "it divides by zero"),
            ("= if(/Order/a exists, 1, -\"x\")", "a number is needed, and a text is there"),
            ("= /Order/a ?? (true + 1)", "a number is needed, and true or false is there"),
            ("= \"a\" + 1", "a number is needed, and a text is there"),
            ("= \"5\" * 2", "a number is needed, and a text is there"),
            ("= 30d", "a time to add it to is needed, and a time span alone is there"),
            ("= 2 * 30d", "a number is needed, and a time span is there"),
            ("= /SubmittedAt + 30", "a number is needed, and a text is there"),
            ("= /OrderID + 1", "a number is needed, and a text is there"),
            ("= count(\"abc\")", "an array is needed, and a text is there"),
            ("= sum(/Order/Lines, /Item/Price + \"x\" * 2)", "a number is needed, and a text is there"),
            ("= not 5", "true or false is needed, and a number is there"),
            ("/Order/a == 1 / 0", "it divides by zero"),
        ] {
            assert_eq!(never_computed(text).map(|fault| fault.to_string()).as_deref(), Some(why), "{text}");
        }
        for text in [
            "= /Order/a / 0.1",
            "= /SubmittedAt + 30d",
            "= \"a\" + /OrderID",
            "= 1 + 1",
            "= /Order/DueAt - 3d",
            "= if(/Order/a exists, /SubmittedAt + 1d, \"never\")",
            "= sum(/Order/Lines, /Item/Price)",
            "/OrderID + 1 == 2",
            "/Order/a + 1 == 2",
            "no expression",
        ] {
            assert_eq!(never_computed(text), None, "{text}");
        }
    }
}
