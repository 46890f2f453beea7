//! The texts that a workflow sends and keeps: none is a template of another language.

use domain::located;
use domain::template::Template;
use domain::workflow::Mapping;

use super::{CheckedWorkflow, Fault};
use crate::foreign::{advice, in_pointer};

const KEPT: &str = "would be kept as this text: a place in the answer begins with a slash, such as \"/id\"";
/// What follows the advice for a text that is no pointer.
const LITERAL: &str = ". If the text itself is meant, begin it with a backslash";

/// The texts of a workflow that mean something in another language, each as a fault.
pub(super) fn of(CheckedWorkflow { file, text, workflow }: &CheckedWorkflow) -> Vec<Fault> {
    let mut faults = Vec::new();
    for step in &workflow.steps {
        let begin = text.find(&format!("{:?}", step.name)).unwrap_or_default();
        let mut blame = |key: &str, value: &str, advice: &str| {
            // As it stands in the file, unless it has escapes there.
            let at = text[begin..].find(value).map_or(begin, |at| begin + at.saturating_sub(1));
            let literal = if value.starts_with('/') { "" } else { LITERAL };
            let problem = format!("step {:?}: {key}: {value:?} {advice}{literal}", step.name);
            faults.push(Fault { file: file.clone(), fault: located::Fault::at(text, at, problem) });
        };
        let sent = |mapping: &Mapping| mapping.send.iter().flat_map(Template::texts).collect::<Vec<_>>();
        for (key, texts) in [("send", sent(&step.forward)), ("undo.send", sent(&step.undo))] {
            for value in texts {
                advice(&value).into_iter().for_each(|advice| blame(key, &value, advice));
            }
        }
        for value in step.keep.iter().flat_map(Template::texts) {
            let advice = if value.starts_with('/') { in_pointer(&value) } else { Some(KEPT) };
            advice.into_iter().for_each(|advice| blame("keep", &value, advice));
        }
    }
    faults
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
            // With an escape it stands in another way in the file.
            let place = if line.contains(['"', '\\']) { "4:8" } else { "6:14" };
            let place = format!("workflows/w-1.toml:{place}: step \"pay\": send: ");
            wrong.extend((!found.iter().any(|fault| fault.starts_with(&place))).then_some((line, found)));
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
    }
}
