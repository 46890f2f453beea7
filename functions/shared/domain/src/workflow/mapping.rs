//! The mapping of a step: what its service gets of an order, and what is kept of the answer (rule 19).

use super::call::{Encoding, Method};
use crate::json::Json;
use crate::located::{Entry, Reader, Table};
use crate::search::Pointer;
use crate::template::{BadTemplate, Expression, PathTemplate, Place, Template, if_meant};

/// The call of a step in one direction. Without a mapping, the service gets the whole order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// The method.
    pub method: Method,
    /// The body. `None`: the order's document, and the outputs of the steps before; none with a method that usually has none.
    pub send: Option<Template>,
    /// The path below the URL of the operation, with its query.
    pub path: Option<PathTemplate>,
    /// Headers: an object of texts.
    pub headers: Option<Template>,
    /// The encoding of the body.
    pub encode: Encoding,
}

/// What a pointer of a mapping begins with.
pub(crate) enum Root<'a> {
    /// `/OrderID`
    OrderId,
    /// `/IdempotencyKey`
    IdempotencyKey,
    /// `/SubmittedAt`
    SubmittedAt,
    /// `/Order` and the rest.
    Order(&'a [String]),
    /// `/Item`, the element that the step stands for, and the rest.
    Item(&'a [String]),
    /// `/Outputs/{step}` and the rest.
    Output(&'a str, &'a [String]),
}

impl<'a> Root<'a> {
    pub(crate) fn of(pointer: &'a Pointer) -> Option<Self> {
        match pointer.names() {
            [root] if root == "OrderID" => Some(Self::OrderId),
            [root] if root == "IdempotencyKey" => Some(Self::IdempotencyKey),
            [root] if root == "SubmittedAt" => Some(Self::SubmittedAt),
            [root, rest @ ..] if root == "Order" => Some(Self::Order(rest)),
            [root, rest @ ..] if root == "Item" => Some(Self::Item(rest)),
            [root, step, rest @ ..] if root == "Outputs" => Some(Self::Output(step, rest)),
            _ => None,
        }
    }
}

/// The place in the document that a pointer below `/Order` names.
pub(super) fn place_in_order(text: &str) -> Option<Pointer> {
    Pointer::parse(text).ok()?.in_order()
}

/// Reads a template of a value.
pub(super) fn template(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    parse: fn(Json) -> Result<Template, BadTemplate>,
) -> Option<Template> {
    // A value may be one that TOML has and JSON has not.
    let template = entry.json().ok_or(BadTemplate::NotJson).and_then(parse);
    let place = |problem: &BadTemplate| {
        let (BadTemplate::Pointer(wrong, _) | BadTemplate::Answer(wrong) | BadTemplate::Expression(wrong, _)) = problem
        else {
            return entry.at;
        };
        entry.place_of(|text| text == wrong)
    };
    let remedy = |problem: &BadTemplate| {
        let (BadTemplate::Pointer(text, _) | BadTemplate::Expression(text, _) | BadTemplate::Answer(text)) = problem
        else {
            return String::new();
        };
        if_meant(text)
    };
    let fault = |problem: &BadTemplate| format!("{} {problem}{}", entry.path, remedy(problem));
    template.map_err(|problem| reader.blame(place(&problem), fault(&problem))).ok()
}

impl Mapping {
    /// Reads a mapping. `usual` is the encoding of one that names none.
    pub(super) fn read(reader: &mut Reader<'_>, table: &Table<'_>, usual: Encoding) -> Self {
        let mut read = |key| table.get(key).and_then(|entry| template(reader, &entry, Template::parse));
        let [send, headers] = ["send", "headers"].map(&mut read);
        let path = table.exact_text("path").and_then(|text| PathTemplate::parse(text).ok());
        let method = table.word("method", &Method::ALL).unwrap_or_default();
        let encode = table.word("encode", &[Encoding::Json, Encoding::Form, Encoding::Empty]);
        match (encode, table.get("encode"), table.get("send")) {
            (Some(Encoding::Form), Some(entry), None) => reader.blame_value(&entry, "needs `send`"),
            (Some(Encoding::Empty), _, Some(send)) => {
                reader.blame(send.at, format!("{}: encode = \"none\" says that there is no body", send.path));
            }
            (Some(_) | None, ..) => {}
        }
        if let (Method::Get, Some(entry)) = (method, table.get("send")) {
            let advice = "leave it out, and put values into the path, such as path = \"?ref={/OrderID}\"";
            reader.blame(entry.at, format!("{}: a GET has no body: {advice}", entry.path));
        }
        for (index, (name, at, entry)) in table.named("headers").into_iter().enumerate() {
            let is_same = |(other, ..): &(&str, usize, Entry<'_>)| other.eq_ignore_ascii_case(name);
            if table.named("headers")[..index].iter().any(is_same) {
                reader.blame(at, format!("{} is given twice", entry.path));
            }
        }
        // An undo may have a body though its step has none.
        let usual = if usual == Encoding::Empty { Encoding::Json } else { usual };
        Self { method, send, path, headers, encode: encode.unwrap_or(usual) }
    }

    /// Whether the whole order goes out.
    #[must_use]
    pub(crate) const fn sends_all(&self) -> bool {
        self.send.is_none() && self.method.has_usual_body() && !matches!(self.encode, Encoding::Empty)
    }

    /// Whether nothing that it sends of the order is known before this step has an output.
    pub(super) fn sends_only_of(&self, step: &str) -> bool {
        let is_own =
            |(_, place): (_, &Place)| matches!(Root::of(&place.pointer), Some(Root::Output(of, _)) if of == step);
        !self.sends_all() && self.places().next().is_some() && self.places().all(is_own)
    }

    /// All places, each with its key.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&'static str, &Place)> {
        let [send, headers] = [("send", &self.send), ("headers", &self.headers)]
            .map(|(key, template)| template.iter().flat_map(Template::places).map(move |place| (key, place)));
        let path = self.path.iter().flat_map(PathTemplate::places).map(|place| ("path", place));
        send.chain(headers).chain(path)
    }

    /// The pointers that must find a value where they are looked at, each with its key.
    pub(super) fn required(&self) -> impl Iterator<Item = (&'static str, &Pointer)> {
        self.places().filter(|(_, place)| !place.is_optional).map(|(key, place)| (key, &place.pointer))
    }

    /// All expressions, each with its key.
    pub(super) fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let [send, headers] = [("send", &self.send), ("headers", &self.headers)]
            .map(|(key, of)| of.iter().flat_map(Template::expressions).map(move |expression| (key, expression)));
        let path = self.path.iter().flat_map(PathTemplate::expressions).map(|expression| ("path", expression));
        send.chain(headers).chain(path)
    }

    /// Checks that every pointer begins with the order, or with the output of one of these steps, and that this output
    /// is kept.
    ///
    /// An undo may also use the step's `own` output, where it may be missing. The path before its query may not: it needs all
    /// its values. A step that got no answer, or a rejection, has no output.
    pub(super) fn check(
        &self,
        reader: &mut Reader<'_>,
        table: &Table<'_>,
        before: &[Output<'_>],
        own: Option<Output<'_>>,
        has_item: bool,
    ) {
        for (key, place) in self.places() {
            let (pointer, is_optional, text) = (&place.pointer, place.is_optional, place.text());
            let usable = own.filter(|_| key != "path" || is_optional);
            let Some(entry) = table.get(key) else { continue };
            let problem = match Root::of(pointer) {
                Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Order(_)) => None,
                Some(Root::Item(_)) => (!has_item).then(|| NO_ITEM.to_owned()),
                Some(Root::Output(step, names)) => {
                    match before.iter().copied().chain(usable).find(|output| output.step == step) {
                        Some(output) if own.is_some_and(|own| own.step == step) && !is_optional => {
                            let no_output = if place.is_within { NO_VALUE } else { NO_OUTPUT };
                            Some(output.problem(names).unwrap_or_else(|| no_output.to_owned()))
                        }
                        Some(output) => output.problem(names),
                        None if own.is_some_and(|own| own.step == step) => Some(NO_PATH.to_owned()),
                        None => {
                            let known: Vec<&str> = before.iter().map(|output| output.step).collect();
                            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                            Some(format!("step {step:?} does not come before this one. Steps before it: {known}"))
                        }
                    }
                }
                None => {
                    let remedy = if key == "path" || place.is_within { String::new() } else { if_meant(&text) };
                    Some(format!("{ROOTS}{remedy}"))
                }
            };
            if let Some(problem) = problem {
                let at = entry.place_of(|value| value == text || (value.starts_with('=') && value.contains(&text)));
                reader.blame(at, format!("{}: {text}: {problem}", entry.path));
            }
        }
    }
}

const ROOTS: &str = "must begin with /Order, /OrderID, /IdempotencyKey, /SubmittedAt or /Outputs/{step}";

/// Why a step without elements reads none.
pub(super) const NO_ITEM: &str =
    "is an element in a step with for_each, or in the second part of a sum, and nothing here";

const NO_OUTPUT: &str = "the step has no output if it got no answer, or a rejection: end the pointer with ?, and the undo \
                         is sent without it";

const NO_PATH: &str = "the step has no output if it got no answer, or a rejection, and a path needs its values: use what is \
                       known before, such as {/OrderID}, or a parameter that may be left out, such as ?id={/Outputs/pay/ID?}";

const NO_VALUE: &str = "the step has no output if it got no answer, or a rejection: write ?? behind the pointer, and what \
                        is sent then";

/// The output of a step, as a mapping may use it.
#[derive(Clone, Copy)]
pub(super) struct Output<'s> {
    /// The step.
    pub(super) step: &'s str,
    /// What is kept of it. `None`: all, or it is not known.
    pub(super) keep: Option<&'s Template>,
    /// Whether it is the array of those of all elements.
    pub(super) is_array: bool,
}

impl Output<'_> {
    /// Why there is never a value at this place.
    pub(super) fn problem(&self, names: &[String]) -> Option<String> {
        let names = if self.is_array { names.get(1..).unwrap_or_default() } else { names };
        let keep = self.keep.filter(|keep| !keep.may_have(names))?;
        let kept = keep.members().join(", ");
        Some(format!("step {:?} does not keep it. Its `keep` has: {kept}", self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HEADERS_MAX;
    use crate::located::Faults;
    use crate::workflow::Workflow;

    fn parse(more: &str) -> Result<Workflow, Faults> {
        let step = |name: &str, after: &str, more: &str| {
            format!("[[step]]\nname = {name:?}\nagent = \"any\"\nafter = [{after}]\n{more}\n")
        };
        let steps = [step("a", "", ""), step("side", "", ""), step("b", "\"a\"", more)].concat();
        Workflow::parse(&format!("name = \"w\"\nversion = 1\n{steps}"), &["any"])
    }

    fn fault(more: &str) -> String {
        let text = parse(more).unwrap_err().to_string();
        assert!(text.contains("step \"b\""), "{text}");
        text
    }

    #[test]
    fn a_step_says_what_it_sends_in_each_direction() {
        let workflow = parse(
            "send = { x = \"/Outputs/a/ID\" }\nencode = \"form\"\nkeep = { ID = \"/id\" }\n\
             [step.undo]\nsend = { id = \"/Outputs/b/ID?\" }\npath = \"r/{/Outputs/a/ID}\"",
        );
        let rule = workflow.unwrap().steps.remove(2);
        assert!(rule.forward.send.is_some() && rule.forward.path.is_none() && rule.keep.is_some());
        assert!(rule.undo.send.is_some() && rule.undo.path.is_some());
        assert_eq!((rule.forward.encode, rule.undo.encode), (Encoding::Form, Encoding::Form));
        let own = parse("send = {}\nencode = \"form\"\nundo = { send = {}, encode = \"json\" }").unwrap();
        assert_eq!(own.steps[2].undo.encode, Encoding::Json);
        let empty = parse("encode = \"none\"\nundo = { send = {} }").unwrap().steps.remove(2);
        assert_eq!((empty.forward.sends_all(), empty.undo.encode), (false, Encoding::Json));
        assert!(parse("send = {}\n[step.undo]\nencode = \"none\"").is_ok(), "nor does it send the whole order");
        assert!(fault("send = {}\nencode = \"none\"").contains("send: encode = \"none\" says that there is no body"));
        assert_eq!(parse("").unwrap().steps[2].forward, Mapping::default());
    }

    #[test]
    fn a_step_that_sends_a_part_in_one_direction_does_not_send_the_whole_in_the_other() {
        assert!(fault("send = {}").contains("undo.send is missing"));
        assert!(fault("undo = { send = {} }").contains(": send is missing"));
        assert!(parse("send = {}\nundo = { send = {} }").is_ok());
    }

    #[test]
    fn a_get_has_no_body_and_needs_no_undo_and_a_delete_sends_no_order() {
        let step = |more: &str| parse(more).unwrap().steps.remove(2);
        assert!(step("method = \"GET\"").no_undo && !step("method = \"GET\"\n[step.undo]").no_undo);
        assert!(!step("method = \"PUT\"").no_undo);
        let delete = step("send = {}\n[step.undo]\nmethod = \"DELETE\"");
        assert!(!delete.undo.sends_all() && step("").undo.sends_all());
        assert!(fault("method = \"GET\"\nsend = {}\nundo = \"none\"").contains("a GET has no body"));
        assert!(fault("method = \"get\"").contains("GET"));
        assert!(fault("send = {}\n[step.undo]\nmethod = \"PUT\"").contains("undo.send is missing"));
    }

    #[test]
    fn a_step_names_headers_but_none_of_the_protocol_and_no_secret() {
        let step = parse("headers = { X-A = \"/Order/a\", X-B = \"b\" }").unwrap().steps.remove(2);
        assert_eq!(step.forward.required().map(|(key, _)| key).collect::<Vec<_>>(), ["headers"]);
        for (name, words) in [
            ("Idempotency-Key", "set by the agent itself"),
            ("content-type", "set by the agent itself"),
            ("Authorization", "has a secret"),
            ("X-API-Key", "has a secret"),
            ("a b", "not a valid name"),
            ("content-encoding", "set by the agent itself"),
        ] {
            assert!(fault(&format!("headers = {{ {name:?} = \"x\" }}")).contains(words), "{name}");
        }
        assert!(fault("headers = { X-A = \"/Order/a\", x-a = \"b\" }").contains("headers.x-a is given twice"));
        for text in ["Zo\u{eb}", " a", "a\\nb"] {
            assert!(
                fault(&format!("headers = {{ X-A = \"{text}\" }}")).contains("must be ASCII in one line"),
                "{text}"
            );
        }
        assert!(fault("headers = { X-A = \"/Outputs/side/a\" }").contains("does not come before this one"));
        let many: Vec<String> = (0..=HEADERS_MAX).map(|n| format!("X-{n} = \"x\"")).collect();
        assert!(fault(&format!("headers = {{ {} }}", many.join(", "))).contains("32"));
        assert!(parse(&format!("headers = {{ {} }}", many[1..].join(", "))).is_ok());
    }

    #[test]
    fn an_undo_computes_with_its_own_output_only_where_there_may_be_none() {
        let undo = |of: &str| format!("send = {{}}\nundo = {{ send = {{ id = '{of}' }} }}");
        for of in [
            "= /Outputs/b/ID + \"x\"",
            "= if(/Order/R == 1, /Outputs/b/ID, 0)",
            "= /Order/R == 1 and /Outputs/b/ID + 1 > 0",
        ] {
            assert!(fault(&undo(of)).contains("or a rejection: write ?? behind the pointer"), "{of}");
        }
        for of in ["= /Outputs/b/ID ?? 0", "= if(/Outputs/b/ID exists, 1, 0)", "= /Outputs/b/ID == 7"] {
            assert!(parse(&undo(of)).is_ok(), "{of}");
        }
    }

    #[test]
    fn a_result_that_comes_later_has_no_headers() {
        let text = fault("keep = { At = \"header:Location\" }\nwait_within = \"1h\"");
        assert!(text.contains("header:Location: a result within wait_within comes without it"), "{text}");
        assert!(parse("keep = { At = \"header:Location?\", ID = \"/id\" }\nwait_within = \"1h\"").is_ok());
        assert!(fault("keep = { At = \"answer:body\" }").contains("is no part of an answer"));
    }

    #[test]
    fn a_pointer_begins_with_the_order_or_with_a_step_before() {
        let forward = |pointer: &str| format!("send = {{ x = {pointer:?} }}\nundo = {{ send = {{}} }}");
        for pointer in ["/Order", "/Order/a/0", "/OrderID", "/IdempotencyKey", "/Outputs/a", "/Outputs/a/ID"] {
            assert!(parse(&forward(pointer)).is_ok(), "{pointer}");
        }
        for pointer in ["/order/x", "/", "/OrderID/x", "/Outputs", "/x"] {
            assert!(fault(&forward(pointer)).contains("must begin with /Order"), "{pointer}");
        }
        for step in ["side", "b", "z"] {
            let text = fault(&forward(&format!("/Outputs/{step}/ID")));
            assert!(text.contains("does not come before this one. Steps before it: a"), "{text}");
        }
        let undo = |step: &str| format!("send = {{}}\nundo = {{ send = {{}}, path = \"{{/Outputs/{step}/ID}}\" }}");
        assert!(parse(&undo("a")).is_ok());
        for step in ["side", "b"] {
            assert!(fault(&undo(step)).contains("undo.path"), "{step}");
        }
        assert!(parse("send = {}\nundo = { send = {}, path = \"?own={/Outputs/b/ID?}\" }").is_ok());
    }

    #[test]
    fn a_pointer_to_an_output_finds_something_that_is_kept() {
        let keep = "keep = { ID = \"/id\", Box = { Size = 3 }, All = [\"/a\", \"/b\"] }";
        let undo = |pointer: &str| format!("{keep}\nsend = {{}}\nundo = {{ send = {{ x = {pointer:?} }} }}");
        for pointer in ["", "/ID", "/ID/any", "/Box", "/Box/Size", "/All", "/All/1/any"] {
            assert!(parse(&undo(&format!("/Outputs/b{pointer}?"))).is_ok(), "{pointer}");
            let text = fault(&undo(&format!("/Outputs/b{pointer}")));
            assert!(text.contains("the step has no output if it got no answer"), "{text}");
        }
        for pointer in ["/id", "/Box/Width", "/Box/Size/x", "/All/2", "/All/x"] {
            let text = fault(&undo(&format!("/Outputs/b{pointer}?")));
            assert!(text.contains("step \"b\" does not keep it. Its `keep` has: All, Box, ID"), "{text}");
        }
        assert!(parse("keep = \"/data\"\nsend = {}\nundo = { send = { x = \"/Outputs/b/ID?\" } }").is_ok());
    }

    #[test]
    fn a_mapping_that_is_none_is_refused_and_its_key_named() {
        for (more, words) in [
            ("send = 7\nundo = { send = {} }", "send must be a table"),
            ("send = { at = 2026-11-20 }\nundo = { send = {} }", "send must have texts"),
            ("send = { x = nan }\nundo = { send = {} }", "send must have texts"),
            ("send = { x = \"/a~\" }\nundo = { send = {} }", "send \"/a~\" must"),
            ("path = \"a b\"", "path must be 1 to"),
            ("keep = [\"/id\"]", "keep must be a table"),
            ("encode = \"form\"", "encode needs `send`"),
        ] {
            let text = fault(more);
            assert!(text.contains(words), "{text}");
        }
        assert!(
            fault("undo = { keep = {} }")
                .contains("undo.keep is not a setting here: it belongs to [[step]]. Write it below that line")
        );
        assert!(fault("encode = \"xml\"").contains("encode must be \"json\" or \"form\""));
    }

    #[test]
    fn rule_19_a_literal_keeps_its_digits() {
        let literals =
            "a = 12345678901234567890, b = 10.00, c = 1e3, d = 1_000, e = 0x10, f = -0.0, g = +1.50, h = [\"é\", true]";
        let workflow = parse(&format!("send = {{ {literals} }}\n[step.undo]\nsend = {{}}")).unwrap();
        let send = workflow.steps[2].forward.send.as_ref().unwrap();
        let body = send.fill(&|_| None, 1_000).unwrap();
        let expected =
            r#"{"a":12345678901234567890,"b":10.00,"c":1e3,"d":1000,"e":16,"f":-0.0,"g":1.50,"h":["é",true]}"#;
        assert_eq!(body.text(), expected);
        for beyond in ["1979-05-27", "inf", "nan", "1e999", "99999999999999999999"] {
            let found = fault(&format!("send = {{ a = {beyond} }}\n[step.undo]\nsend = {{}}"));
            assert!(found.contains("must have texts, numbers"), "{found}");
        }
        let twice = parse("send = { a = 1, \"\\u0061\" = 2 }\n[step.undo]\nsend = {}").unwrap_err().to_string();
        assert!(twice.contains("duplicate key"), "{twice}");
    }
}
