//! What to change, and what it cures.

use std::sync::Arc;

use toml::{Table, Value};

use super::text::{escaped, many, number, sentence};
use crate::edit::{Edit, Files};
use crate::report::Report;
use crate::search::{Finding, Findings};
use crate::story;

/// Findings with the change that they share, by their number.
type Group<'a> = (Vec<&'a Edit>, Vec<(usize, &'a Finding)>);

/// The changes, each with its findings. Those for which no change was found come last.
pub(super) fn groups(findings: &Findings) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (index, finding) in findings.all.iter().enumerate() {
        let edits: Vec<&Edit> = finding.edits().collect();
        match groups.iter_mut().find(|(known, _)| *known == edits) {
            Some((_, members)) => members.push((index, finding)),
            None => groups.push((edits, vec![(index, finding)])),
        }
    }
    groups.sort_by_key(|(edits, _)| edits.is_empty());
    groups
}

/// The section. None if nothing went wrong.
pub(super) fn section(report: &Report<'_>) -> String {
    let groups = groups(report.findings);
    if groups.is_empty() {
        return String::new();
    }
    let blocks: String = groups.iter().map(|group| block(report, group)).collect();
    format!("<section class=\"panel\"><h2>What to change</h2>{blocks}{}</section>", confirmed(report.findings))
}

fn confirmed(findings: &Findings) -> String {
    let (tone, words) = match findings.confirmed {
        None => return String::new(),
        Some((worlds, 0)) => {
            ("good", format!("With all changes {} ran, and nothing went wrong.", many(worlds, "world")))
        }
        Some((worlds, bad)) => {
            let bad = number(bad);
            ("bad", format!("With all changes {} ran, and something still went wrong in {bad}.", many(worlds, "world")))
        }
    };
    format!("<p class=\"notice\" data-tone=\"{tone}\">{words}</p>")
}

fn block(report: &Report<'_>, (edits, members): &Group<'_>) -> String {
    let change = match &**edits {
        [] => "<p>No change of one key or two ends this. Its story below shows where it begins.</p>".to_owned(),
        edits => edits.iter().map(|edit| change(&report.folder.given.files, edit)).collect(),
    };
    let cured = |&(index, finding): &(usize, &Finding)| {
        let violation = &finding.violation;
        let workflow = violation.workflow.iter().map(|pin| format!("{}/{}", pin.name, pin.version));
        let of: Vec<String> = violation.step.iter().map(|step| step.to_string()).chain(workflow).collect();
        let of = if of.is_empty() { String::new() } else { format!(" <small>{}</small>", escaped(&of.join(" of "))) };
        let told = if finding.story.is_some() {
            format!(" <a href=\"#story-{}\">Its story</a>", index + 1)
        } else {
            String::new()
        };
        format!(
            "<li><p><b>{}</b>{of}<span class=\"count\">{} of {}</span></p><p>{}{told}</p></li>",
            capital(violation.kind.name()),
            number(finding.worlds),
            many(report.seen.counts.worlds, "world"),
            sentence(&story::sentence(report.folder, finding))
        )
    };
    let cured: String = members.iter().map(cured).collect();
    let what = if edits.is_empty() { "What goes wrong" } else { "It cures" };
    format!("<article class=\"change\">{change}<h3>{what}</h3><ul class=\"cured\">{cured}</ul></article>")
}

/// A name with a capital, escaped.
pub(super) fn capital(name: &str) -> String {
    let with_stop = sentence(name);
    with_stop.strip_suffix('.').unwrap_or(&with_stop).to_owned()
}

/// The lines of the file to write, below those that they replace. A sign before a line is none of its text, so that
/// the lines can be copied.
fn change(files: &Files, edit: &Edit) -> String {
    let before = table_of(files, edit).unwrap_or_default();
    let after = edit.applied(files).and_then(|files| table_of(&files, edit)).unwrap_or_default();
    let text = files.iter().find(|(name, _)| **name == *edit.file).map_or("", |(_, text)| text);
    let (context, above, names) = place(edit, text, &before);
    let inner =
        |table: &Table| above.iter().try_fold(Value::from(table.clone()), |value, name| value.get(&**name).cloned());
    let before = inner(&before).unwrap_or(Value::from(Table::new()));
    // Where a short form stands and the key needs a table, the whole table is written.
    let is_short = names.len() > 1 && before.get(&*names[0]).is_some_and(|value| !value.is_table());
    let written = if is_short { &names[..1] } else { names };
    let old = line(&before, written);
    let new = edit.value.as_ref().and_then(|_| line(&inner(&after)?, written));
    let span = |class: &str, text: &str| format!("<span class=\"{class}\">{}</span>", escaped(text));
    let mut lines: String = context.iter().map(|text| span("context", text)).collect();
    lines.extend(old.iter().map(|text| span("old", text)));
    lines.extend(new.map(|text| span("new", &text)));
    let verb = if edit.value.is_some() { "In" } else { "Leave the line out in" };
    let step = match &edit.step {
        Some(step) => format!(", step <b>{}</b>", escaped(step)),
        None if context.is_empty() && old.is_none() => ", above its first line in brackets".to_owned(),
        None => String::new(),
    };
    format!("<p>{verb} <code>{}</code>{step}:</p><pre class=\"paste\"><code>{lines}</code></pre>", escaped(&edit.file))
}

/// Where a key stands in its file: the lines above it; the names of the header above it that are the key's own; the names
/// from there to the key.
fn place<'a>(edit: &'a Edit, text: &str, table: &Table) -> (Vec<String>, &'a [Arc<str>], &'a [Arc<str>]) {
    let header = |names: &[Arc<str>]| format!("[{}]", Edit { names: names.to_vec(), step: None, ..edit.clone() }.key());
    let (mut context, outer, names) = match (&edit.step, &*edit.names) {
        (Some(step), names) => {
            (vec!["[[step]]".to_owned(), format!("name = {}", Value::from(&**step))], vec!["step".into()], names)
        }
        (None, [agents, agent, names @ ..]) if &**agents == "agents" && !names.is_empty() => {
            let outer = vec![agents.clone(), agent.clone()];
            (vec![header(&outer)], outer, names)
        }
        (None, names) => (Vec::new(), Vec::new(), names),
    };
    for count in (1..names.len()).rev() {
        let (above, rest) = names.split_at(count);
        let header = header(&[&*outer, above].concat());
        let inner = above.iter().try_fold(Value::from(table.clone()), |value, name| value.get(&**name).cloned());
        if inner.is_some_and(|value| value.is_table()) && text.lines().any(|line| line.trim() == header) {
            if edit.step.is_none() {
                context.clear();
            }
            context.push(header);
            return (context, above, rest);
        }
    }
    (context, &[], names)
}

/// The line of a key with the value that it has in a table.
fn line(table: &Value, names: &[Arc<str>]) -> Option<String> {
    let value = names.iter().try_fold(table, |value, name| value.get(&**name))?.clone();
    Edit { file: "".into(), step: None, names: names.to_vec(), value: Some(value) }.line()
}

/// The table with the key: of the step, of the agent, or the file's.
fn table_of(files: &Files, edit: &Edit) -> Option<Table> {
    let (_, text) = files.iter().find(|(name, _)| **name == *edit.file)?;
    let root: Table = text.parse().ok()?;
    match (&edit.step, &*edit.names) {
        (Some(step), _) => {
            let steps = root.get("step")?.as_array()?;
            let it = steps.iter().find(|of| of.get("name").and_then(Value::as_str) == Some(step))?;
            it.as_table().cloned()
        }
        (None, [agents, agent, _, ..]) if &**agents == "agents" => {
            root.get("agents")?.get(&**agent)?.as_table().cloned()
        }
        (None, _) => Some(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let agents = "[agents.bank]\nforward = \"pay\"\nsettles_within = \"20s\"\n";
        let workflow = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a<b\"\nundo = \"none\"\n";
        [("stepwarden.toml", agents), ("workflows/w.toml", workflow)]
            .map(|(name, text)| (name.into(), text.into()))
            .into()
    }

    fn lines(edit: &Edit) -> Vec<String> {
        let block = change(&files(), edit);
        let parts = block.split("<span class=\"").skip(1);
        parts.map(|part| part.split("</span>").next().unwrap().replace("\">", " ").replace("&quot;", "\"")).collect()
    }

    #[test]
    fn a_line_stands_below_the_one_that_it_replaces() {
        let edit = Edit::of_agent(&"bank".into(), &["settles_within"], Value::from("45s"));
        let expected = ["context [agents.bank]", "old settles_within = \"20s\"", "new settles_within = \"45s\""];
        assert_eq!(lines(&edit), expected);
        let added = Edit::of_agent(&"bank".into(), &["memo"], Value::from(true));
        assert_eq!(lines(&added), ["context [agents.bank]", "new memo = true"]);
    }

    #[test]
    fn a_short_form_is_replaced_by_its_table() {
        let edit = Edit::of_agent(&"bank".into(), &["forward", "status", "409"], Value::from("conflict"));
        let lines = lines(&edit);
        assert_eq!(lines[1], "old forward = \"pay\"");
        let table: Table = lines[2].strip_prefix("new ").unwrap().parse().unwrap();
        assert_eq!(table["forward"]["status"]["409"].as_str(), Some("conflict"));
        assert_eq!(table["forward"]["operation"].as_str(), Some("pay"));
    }

    #[test]
    fn a_key_of_a_table_with_a_header_stands_below_that() {
        let text = "[agents.bank]\n[agents.bank.forward]\noperation = \"pay\"\n".to_owned();
        let edit = Edit::of_agent(&"bank".into(), &["forward", "status", "409"], Value::from("conflict"));
        let block = change(&vec![("stepwarden.toml".to_owned(), text)], &edit);
        assert!(block.contains("[agents.bank.forward]</span><span class=\"new\">status.409 = "), "{block}");
    }

    #[test]
    fn a_new_key_of_a_workflow_stands_above_its_steps() {
        let edit = Edit::of_workflow(&"workflows/w.toml".into(), None, &["complete_within"], Value::from("1m"));
        assert_eq!(lines(&edit), ["new complete_within = \"1m\""]);
        assert!(change(&files(), &edit).contains("above its first line in brackets"));
    }

    #[test]
    fn a_line_is_left_out_and_a_step_is_named_without_markup() {
        let edit = Edit::of_workflow(&"workflows/w.toml".into(), Some(&"a<b".into()), &["undo"], None);
        assert_eq!(lines(&edit), ["context [[step]]", "context name = \"a&lt;b\"", "old undo = \"none\""]);
        assert!(!change(&files(), &edit).contains("a<b"));
    }
}
