//! The texts that a workflow sends and keeps: none is a template of another language.

use domain::located::{Document, Entry, Faults, Reader, Table};
use domain::template::{LITERAL, if_meant, never_computed};
use domain::text::in_quotes;
use domain::workflow::{StepRule, WORKFLOW, Workflow};
use toml::de::DeValue;

use super::members;
use crate::foreign::{
    ALONE, advice, in_condition, in_expression, in_kept, in_name, in_path, in_poll_path, in_step_header, in_when,
    names_an_output,
};

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
    let steps: Vec<Table<'_>> = root.elements("step").into_iter().filter_map(Entry::table).collect();
    let is_kept = |step: &str, member: &str| {
        let keeps = |table: &&Table<'_>| match table.get("keep").map(|keep| keep.value) {
            Some(DeValue::Table(members)) => members.contains_key(member),
            Some(_) | None => member == "ID",
        };
        steps.iter().filter(|table| table.exact_text("name") == Some(step)).any(|table| keeps(&table))
    };
    let names: Vec<&str> = steps.iter().filter_map(|table| table.exact_text("name")).collect();
    let of_send = |text: &str| {
        let output = || names_an_output(text.trim(), &names, &is_kept).then_some(ALONE);
        advice(text).or_else(output)
    };
    for step in root.elements("step").into_iter().filter_map(Entry::table) {
        check(step.get("keep"), &in_kept, true);
        check(step.table("poll").get("path"), &|path| in_poll_path(path, &is_kept), false);
        let undo: Table<'_> = step.table("undo");
        for table in [&step, &undo] {
            check(table.get("send"), &of_send, true);
            let of_header = |text: &str| of_send(text).or_else(|| in_step_header(text));
            check(table.get("headers"), &of_header, true);
            check(table.get("path"), &|path| in_path(path, &is_kept), false);
        }
    }
    for step in root.elements("step").into_iter().filter_map(Entry::table) {
        conditions(&mut reader, &step.table("poll"));
        for entry in step.one_or_more("when") {
            let text = entry.exact_text().unwrap_or_default();
            expression(&mut reader, entry.at, &entry.path, text);
            if let Some(advice) = in_when(text) {
                reader.blame(entry.at, format!("{}: {text:?} {advice}", entry.path));
            }
        }
        for table in [&step, &step.table("undo")] {
            for entry in ["send", "headers"].into_iter().filter_map(|key| table.get(key)) {
                each_text(entry.at, entry.value, &mut |at, value, is_name| {
                    if !is_name && value.starts_with('=') {
                        expression(&mut reader, at, &entry.path, value);
                    }
                });
            }
            if let Some(entry) = table.get("path") {
                // Its braces were checked.
                for inner in entry.exact_text().unwrap_or_default().split(['{', '}']).skip(1).step_by(2) {
                    expression(&mut reader, entry.at, &entry.path, inner);
                }
            }
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

/// Blames an expression that means something else than it says.
fn expression(reader: &mut Reader<'_>, at: usize, path: &str, text: &str) {
    if let Some((part, advice)) = in_expression(text) {
        reader.blame(at, format!("{path}: {part:?} {advice}"));
    } else if let Some(why) = never_computed(text) {
        reader.blame(at, format!("{path}: {text:?} can never be computed: {why}"));
    }
}

/// Blames the conditions of `answers` that do not ask the answer.
pub(super) fn conditions(reader: &mut Reader<'_>, table: &Table<'_>) {
    for answer in table.elements("answers").into_iter().filter_map(Entry::table) {
        let Some(entry) = answer.get("when") else { continue };
        if let Some((part, advice)) = entry.text().and_then(in_condition) {
            reader.blame(entry.at, format!("{}: {part} {advice}", entry.path));
        }
        expression(reader, entry.at, &entry.path, entry.exact_text().unwrap_or_default());
    }
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
        assert_eq!(faults("\"\u{feff}/Order/Total\"", "\"/id\"").len(), 1, "an invisible sign before a pointer");
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
        let of_order = ["/Order/Ref", "/Order", "/OrderID", "/Outputs/reserve/ID", "/OrderID?"];
        for place in
            of_order.into_iter().chain(["/header:Location", "/header/Location", "/body/id", "/charge.id", "/id? "])
        {
            let found = faults("1", &format!("{place:?}"));
            assert!(found.len() == 1 && found[0].contains(":7:14: step \"pay\": keep: "), "{place}: {found:?}");
            let meant = format!("{:?}", format!("answer:{}", place.trim_end()));
            assert_eq!(faults("1", &meant), [""; 0], "{place}");
        }
        for place in
            ["/Ref", "/order/id", "/OrderIDs", "/body", "/header", "/odata.error/code", "/v1.2", "/SubmittedAt"]
        {
            assert_eq!(faults("1", &format!("{place:?}")), [""; 0], "{place}");
        }
        let header = faults("1 }\nheaders = { X-Ref = \"{{Order.Ref}}\"", "\"/id\"");
        assert!(header.len() == 1 && header[0].contains(":7:21: step \"pay\": headers"), "{header:?}");
        for text in
            ["$TOKEN", "$.Order.Ref", "Bearer {token}", "Bearer env:TOKEN", "secret:TOKEN", "file:/run/secrets/x"]
        {
            let header = faults(&format!("1 }}\nheaders = {{ X-Ref = {text:?}"), "\"/id\"");
            assert!(header.len() == 1 && header[0].contains(":7:21: step \"pay\": headers"), "{header:?}");
        }
        for name in ["amount.$", "{{k}}", "Fn::Join"] {
            let found = faults(&format!("{{ {name:?} = 1 }}"), "\"/id\"");
            assert!(found.len() == 1 && found[0].contains(":6:16: step \"pay\": send: "), "{found:?}");
            assert!(found[0].contains("would be sent as this name"), "{found:?}");
        }
    }

    /// The faults of a folder where this is asked of the answers of a step's poll, and of its agent.
    fn asked(when: &str) -> Vec<String> {
        let answers = format!("answers = [{{ status = 200, when = {when:?}, means = \"done\" }}]");
        let step = format!("wait_within = \"1h\"\npoll.path = \"{{/id}}\"\npoll.{answers}\n");
        let workflow = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n{step}");
        let agent = format!("[agents.bank]\nforward.{answers}\nundo.{answers}\n");
        let files = [("stepwarden.toml", &agent), ("workflows/w-1.toml", &workflow)];
        let checked = Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned())));
        checked.err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn rule_33_a_text_in_quotes_is_no_place_of_the_order() {
        let when = |when: &str| faults(&format!("1 }}\nwhen = {when}\nheaders = {{ "), "\"/id\"");
        for text in
            ["/Order/Home", "/OrderID", "/Outputs/a/ID", "Order.Home", "$COUNTRY", "{{ x }}", "${x}", "{= /Order/Name}"]
        {
            for comparison in [format!("/Order/Country == \"{text}\""), format!("/Order/Country in ['DE', \"{text}\"]")]
            {
                let found = when(&format!("{comparison:?}"));
                let place = format!("workflows/w-1.toml:7:8: step \"pay\": when: {text:?} stands for itself");
                assert!(found.len() == 1 && found[0].starts_with(&place), "{comparison}: {found:?}");
            }
            for sent in [format!("= 'Hi {text}'"), format!("= if(/Order/a exists, /Order/a, '{text}')")] {
                let found = faults(&format!("{sent:?}"), "\"/id\"");
                let is_whole = sent.starts_with("= if") || ["{{ x }}", "${x}", "{= /Order/Name}"].contains(&text);
                assert!(
                    !is_whole || found.len() == 1 && found[0].contains(":6:14: step \"pay\": send: "),
                    "{sent}: {found:?}"
                );
            }
        }
        assert!(asked("/country == 'Order.Home'").len() == 3);
        for sensible in ["/orders/5", "/Order/", "DE", "Order 5", "order.created", "$5", "/", "Order/", "{x}"] {
            assert_eq!(when(&format!("{:?}", format!("/Order/Country == '{sensible}'"))), [""; 0], "{sensible}");
            assert_eq!(
                faults(&format!("{:?}", format!("= '{sensible}' + /OrderID")), "\"/id\""),
                [""; 0],
                "{sensible}"
            );
        }
        assert_eq!(when("\"at('/Order/First Name') == 'x'\""), [""; 0]);
        assert!(faults("\"= /SubmittedAt + '30d'\"", "\"/id\"")[0].contains("a time span has no quotes"));
        assert_eq!(faults("\"= text(/Order/Days) + 'd'\"", "\"/id\""), [""; 0]);
        for constant in ["1 == 2", "/Order/a == 1 / 0", "'/Order/a' exists == true"] {
            assert!(!when(&format!("{constant:?}")).is_empty(), "{constant}");
        }
        assert!(asked("/n == 1 / 0")[0].contains(": \"/n == 1 / 0\" can never be computed: it divides by zero"));
        let path = "1 }\npath = \"a/{= 'Order.Home' + /OrderID}\"\nheaders = { ";
        assert!(faults(path, "\"/id\"")[0].contains(":7:8: step \"pay\": path: \"Order.Home\" stands"));
    }

    #[test]
    fn rule_17_what_is_asked_of_an_answer_is_in_its_body() {
        for when in [
            "/Order/Country == 'DE'",
            "/Outputs/reserve/ID == 1",
            "/OrderID == /reference",
            "/status == 'ok' and not /IdempotencyKey == 'x'",
            "/body/status == 'ok'",
            "/header:X == 'a'",
            "/header/X == 'a'",
            "/answer:status == 200",
            "/error.code == 'x'",
            "-/Order/Total < 1",
            "'' == ''",
            "1 == 1",
            "'/status' == 'paid'",
        ] {
            let found = asked(when);
            let places = ["stepwarden.toml:2:43: ", "stepwarden.toml:3:40: ", "workflows/w-1.toml:8:40: "];
            assert!(
                found.len() == 3 && places.iter().zip(&found).all(|(at, it)| it.starts_with(at)),
                "{when}: {found:?}"
            );
        }
        for when in [
            "/status == 'ok'",
            "/body == 'ok'",
            "/order/id == '/id'",
            "at(\"/Order/Country\") == 'DE'",
            "/odata.error/code == 'x'",
            "sum(/lines, /Item/p) > 0",
            "count(/Orders) > 0 and /live == true",
            "at('/error.code') == 'x'",
        ] {
            assert_eq!(asked(when), [""; 0], "{when}");
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
            "orders/Order/Ref",
            "Outputs/pay/ID",
            "orders/$.id",
            "orders/@id",
            "orders/*",
            "?ref=/Order/Ref",
            "?ref=$ref",
            "?a=1&ref=:ref",
            "?ref=@ref",
            "?id=OrderID",
            "?id=Order.Ref",
            "?t=now()",
            "pay/ID",
            "{/Order/Lines/*}",
            "{/Order/x|upper}",
        ] {
            let found = of_path(path);
            assert!(found.len() == 1 && found[0].contains(":6:8: step \"pay\": path: "), "{path}: {found:?}");
        }
        for path in [
            "v1/items:cancel",
            "a/{/Order/Ref}/b",
            "{/OrderID}",
            "a$b",
            "orders/{/Order/Ref}:cancel",
            "Order/5",
            "Order/Cancel",
            "orders/{/Order/Ref}/",
            "pay/confirm",
            "npm/@shop/cake",
            "?assignee=%40me",
            "?$filter=x%20eq%201",
            "orders/%2A",
            "?to=/done",
            "?sort=-a,b&x=a@b.example",
        ] {
            assert_eq!(of_path(path), [""; 0], "{path}");
        }
        assert!(of_path("/orders/{/OrderID}")[0].ends_with("leave the slash at the start out"));
    }

    #[test]
    fn rule_36_a_poll_reads_the_answer_by_braces() {
        let of_path = |path: &str| {
            let answers = "poll.answers = [{ status = 200, when = \"/a == 1\", means = \"done\" }]";
            let step = format!("wait_within = \"1h\"\npoll.path = {path:?}\n{answers}\nheaders = {{ ");
            faults(&format!("1 }}\n{step}"), "\"/id\"")
        };
        for path in [
            "header:Location",
            "{header:Location}/x",
            "{header:Location}?a=1",
            "{/header:Location}",
            "a/{}",
            "a/{/}",
            "a/{/OrderId}",
            "a/{/body/id}",
            "a/{/charge.id}",
            "a?id=/id",
            "a?id=$id",
            "pay/y",
            "a/:id",
        ] {
            let found = of_path(path);
            assert!(found.len() == 1 && found[0].contains(":8:13: step \"pay\": poll.path: "), "{path}: {found:?}");
        }
        for path in [
            "{header:Location}",
            "jobs/{header:Location}",
            "{header:X-Job}/state",
            "a/{answer:/OrderId}",
            "a/{answer:/Order/id}?of={answer:/body/id?}",
            "transfers/{/id}/",
            "a/{/OrderID}?x={/Order/Ref?}",
            "/v1/a?id=%24id",
            "a/{/order/id}",
        ] {
            assert_eq!(of_path(path), [""; 0], "{path}");
        }
    }
}
