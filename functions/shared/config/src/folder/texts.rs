//! The texts that a workflow sends and keeps: none is a template of another language.

use domain::located::{Document, Entry, Faults, Table};
use domain::template::{LITERAL, if_meant};
use domain::text::in_quotes;
use domain::workflow::{StepRule, WORKFLOW, Workflow};
use toml::de::DeValue;

use super::members;
use crate::foreign::{advice, in_name, in_path, in_pointer};

const KEPT: &str = "would be kept as this text: a place in the answer begins with a slash, such as \"/id\"";

const UNDOES_NOTHING: &str = "has the output of its own step alone, which there is none of after a rejection or without an answer: \
                              also send what is known before the call, such as order = \"/OrderID\"";

/// Whether no text of a workflow means something in another language.
///
/// # Errors
/// Each that does.
pub(super) fn check(text: &str, workflow: &Workflow) -> Result<(), Faults> {
    let document = Document::new(text);
    let (mut reader, root) = document.read(WORKFLOW);
    members::check(&mut reader, &root);
    for step in root.elements("step").into_iter().filter_map(Entry::table) {
        let rule = workflow.steps.iter().find(|rule| step.exact_text("name") == Some(&rule.name));
        if let Some(undo) = step.get("undo").filter(|_| rule.is_some_and(StepRule::may_undo_nothing)) {
            reader.blame_value(&undo, UNDOES_NOTHING);
        }
    }
    let mut check = |entry: Option<Entry<'_>>, problem: &dyn Fn(&str) -> Option<&'static str>, has_escape: bool| {
        let Some(entry) = entry else { return };
        each_text(entry.at, entry.value, &mut |at, value, is_name| {
            let found = match is_name {
                true => in_name(value).map(str::to_owned),
                false if has_escape && value.starts_with(LITERAL) => needless_escape(value, problem),
                false => problem(value)
                    .map(|advice| advice.to_owned() + &if has_escape { if_meant(value) } else { String::new() }),
            };
            if let Some(problem) = found {
                reader.blame(at, format!("{}: {value:?} {problem}", entry.path));
            }
        });
    };
    let kept = |value: &str| match value {
        // Read already, and no other part of an answer can be named.
        part if part.starts_with("header:") || part.starts_with("answer:") => None,
        pointer if pointer.starts_with('/') => in_pointer(pointer),
        _ => Some(KEPT),
    };
    for step in root.elements("step").into_iter().filter_map(Entry::table) {
        check(step.get("keep"), &kept, true);
        check(step.table("poll").get("path"), &in_path, false);
        let undo: Table<'_> = step.table("undo");
        for table in [&step, &undo] {
            check(table.get("send"), &advice, true);
            check(table.get("headers"), &advice, true);
            check(table.get("path"), &in_path, false);
        }
    }
    reader.finish(())
}

/// Why a text begins with a backslash in vain: it would be sent without it.
fn needless_escape(text: &str, problem: &dyn Fn(&str) -> Option<&'static str>) -> Option<String> {
    let rest = text.trim_start_matches(LITERAL);
    // A part of an answer is named where something is kept.
    let is_filled = rest.starts_with(['/', '=']) || rest.starts_with("header:") || rest.starts_with("answer:");
    if is_filled || problem(rest).is_some() {
        return None;
    }
    let quote = if text.contains('"') { '\'' } else { '"' };
    let computed = in_quotes(&format!("= {quote}{text}{quote}"));
    Some(format!(
        "would be sent without its first backslash, which nothing needs here: leave it out, or write {computed} to send all"
    ))
}

/// Calls `visit` with each text that is filled or sent, and with each name of a member: where it stands, and whether it is a
/// name.
pub(super) fn each_text(at: usize, value: &DeValue<'_>, visit: &mut impl FnMut(usize, &str, bool)) {
    match value {
        DeValue::String(text) => visit(at, text, false),
        DeValue::Array(elements) => {
            elements.iter().for_each(|element| each_text(element.span().start, element.get_ref(), visit));
        }
        DeValue::Table(members) => {
            for (name, value) in members.iter() {
                visit(name.span().start, name.get_ref(), true);
                each_text(value.span().start, value.get_ref(), visit);
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::Folder;

    /// The faults of a folder whose step sends and keeps these values.
    fn faults(send: &str, keep: &str) -> Vec<String> {
        let step = format!("send = {{ x = {send} }}\nkeep = {{ y = {keep} }}\n[step.undo]\nsend = {{}}\n");
        let workflow = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n{step}");
        let files = [("stepwarden.toml", "[agents.bank]"), ("workflows/w-1.toml", &workflow)];
        let checked = Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned())));
        checked.err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
    }

    const LINES: &str = include_str!("texts.txt");

    #[test]
    fn rule_19_what_another_language_would_fill_is_refused_with_its_place_and_what_means_itself_is_not() {
        let (nonsense, sensible) = LINES.split_once("=== sensible\n").unwrap();
        let lines = |text: &'static str| text.lines().filter(|line| !line.is_empty() && !line.starts_with("=== "));
        assert!(lines(nonsense).count() >= 40 && lines(sensible).count() >= 100);
        let mut wrong = Vec::new();
        for line in lines(nonsense) {
            let found = faults(&format!("{line:?}"), "\"/id\"");
            let place = "workflows/w-1.toml:6:14: step \"pay\": send";
            wrong.extend((!found.iter().any(|fault| fault.starts_with(place))).then_some((line, found)));
        }
        for line in lines(sensible) {
            let found = faults(&format!("{line:?}"), "\"/id\"");
            wrong.extend((!found.is_empty()).then_some((line, found)));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_backslash_says_that_a_text_means_itself_and_what_is_kept_is_a_place() {
        assert_eq!(faults(r"'\{{ Order.Total }}'", r"'\id'"), [""; 0]);
        let found = faults("1", "\"id\"");
        assert!(
            found.len() == 1 && found[0].contains("workflows/w-1.toml:7:14: step \"pay\": keep: \"id\" would be kept"),
            "{found:?}"
        );
        assert!(faults("1", "\"/items/*/id\"")[0].contains("names several values"));
        for part in ["header:Location", "answer:status?", "answer:text"] {
            assert_eq!(faults("1", &format!("{part:?}")), [""; 0], "a part of the answer beside its body");
        }
        let header = faults("1 }\nheaders = { X-Ref = \"{{Order.Ref}}\"", "\"/id\"");
        assert!(header.len() == 1 && header[0].contains(":7:21: step \"pay\": headers"), "{header:?}");
        for name in ["amount.$", "{{k}}", "Fn::Join"] {
            let found = faults(&format!("{{ {name:?} = 1 }}"), "\"/id\"");
            assert!(found.len() == 1 && found[0].contains(":6:16: step \"pay\": send: "), "{found:?}");
            assert!(found[0].contains("would be sent as this name"), "{found:?}");
        }
    }

    #[test]
    fn a_path_has_its_values_in_braces_and_no_other_syntax() {
        let of_path = |path: &str| {
            let step = format!("name = \"pay\"\nagent = \"bank\"\npath = {path:?}\n");
            let workflow = format!("name = \"w\"\nversion = 1\n[[step]]\n{step}");
            let files = [("stepwarden.toml", "[agents.bank]"), ("workflows/w-1.toml", &workflow)];
            let checked = Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned())));
            checked.err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
        };
        for path in [
            "${/Order/Ref}",
            "a/:id/b",
            "orders/$ref",
            "orders/OrderID",
            "a/Order.Ref",
            "{/Order/Lines/*}",
            "{/Order/x|upper}",
        ] {
            let found = of_path(path);
            assert!(found.len() == 1 && found[0].contains(":6:8: step \"pay\": path: "), "{path}: {found:?}");
        }
        for path in
            ["v1/items:cancel", "a/{/Order/Ref}/b", "{/OrderID}", "a$b", "orders/{/Order/Ref}:cancel", "Order/5"]
        {
            assert_eq!(of_path(path), [""; 0], "{path}");
        }
    }
}
