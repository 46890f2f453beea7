//! The keys that say whether a step applies, may be rejected, and lets the order turn round (rules 33 and 34).

#[cfg(test)]
mod tests;

use crate::limits::WHEN_MAX;
use crate::located::{Entry, Reader, Table};
use crate::search::Pointer;
use crate::template::PathTemplate;
use crate::workflow::mapping::{Output, Parts};
use crate::workflow::when::Comparison;
use crate::workflow::{Mapping, Remedy, Root, StepRule};

const REMEDIES: [(&str, Remedy); 2] = [("compensate", Remedy::Compensate), ("hold", Remedy::Hold)];

/// A step, and what the checks of the whole graph need of it.
pub(super) struct Draft<'e> {
    pub(super) rule: StepRule,
    pub(super) at: usize,
    pub(super) after: Vec<Entry<'e>>,
    pub(super) after_at: usize,
    pub(super) forward: Parts<'e>,
    pub(super) undo: Parts<'e>,
    pub(super) ways: Ways<'e>,
}

/// The values of these keys, with their places.
pub(super) struct Ways<'e> {
    /// Comparisons, each with its text in the file.
    when: Vec<(Entry<'e>, Comparison)>,
    optional: bool,
    pivot: bool,
    on_rejected: Option<Entry<'e>>,
    on_exhausted: Option<Entry<'e>>,
}

/// The undo of a step as its file has it.
#[derive(Default)]
pub(super) struct Undo<'e> {
    pub(super) parts: Parts<'e>,
    pub(super) is_none: bool,
}

impl<'e> Ways<'e> {
    pub(super) fn take(reader: &mut Reader<'_>, table: &mut Table<'e>, on_exhausted: Option<Entry<'e>>) -> Self {
        let when = table.take("when").map(|entry| comparisons(reader, entry)).unwrap_or_default();
        let (optional, pivot) = (table.take("optional"), table.take("pivot"));
        let optional = reader.flag(optional).unwrap_or(false);
        let pivot = reader.flag(pivot).unwrap_or(false);
        let on_rejected = table.take("on_rejected");
        if let Some(entry) = on_rejected.as_ref().filter(|_| optional) {
            reader
                .blame_value(entry, "has no use: an optional step that is rejected is skipped. Leave one of them out");
        }
        Self { when, optional, pivot, on_rejected, on_exhausted }
    }

    /// Writes the values into the rule of the step.
    pub(super) fn apply(&self, reader: &mut Reader<'_>, rule: &mut StepRule) {
        rule.when = self.when.iter().map(|(_, comparison)| comparison.clone()).collect();
        (rule.optional, rule.pivot) = (self.optional, self.pivot);
        rule.on_rejected = reader.word(self.on_rejected.clone(), &REMEDIES).unwrap_or(rule.on_rejected);
        rule.on_exhausted = reader.word(self.on_exhausted.clone(), &REMEDIES).unwrap_or(rule.on_exhausted);
    }
}

/// Reads `undo`: a table, or the word `none`.
pub(super) fn undo<'e>(reader: &mut Reader<'_>, entry: Option<Entry<'e>>) -> Undo<'e> {
    let Some(entry) = entry else { return Undo::default() };
    if entry.value.as_str() == Some("none") {
        return Undo { is_none: true, ..Undo::default() };
    }
    if !entry.value.is_table() {
        reader.blame_value(&entry, "must be a table, or \"none\" for a step that is never undone");
        return Undo::default();
    }
    let parts = reader.table(Some(entry)).map(|mut table| {
        let parts = Parts::take(&mut table);
        reader.end(table);
        parts
    });
    Undo { parts: parts.unwrap_or_default(), is_none: false }
}

/// One comparison, or an array of them.
fn comparisons<'e>(reader: &mut Reader<'_>, entry: Entry<'e>) -> Vec<(Entry<'e>, Comparison)> {
    let entries = match entry.value.is_array() {
        true => reader.array(Some(entry), WHEN_MAX).unwrap_or_default(),
        false => vec![entry],
    };
    let mut read = |entry| {
        let (text, entry) = reader.exact_text(Some(entry))?;
        let comparison = Comparison::parse(&text).map_err(|problem| reader.blame_value(&entry, problem)).ok()?;
        Some((entry, comparison))
    };
    entries.into_iter().filter_map(&mut read).collect()
}

/// Checks what a step needs of the steps before it: those whose outputs it compares come before, and those whose
/// outputs its paths need are never skipped.
pub(super) fn check(reader: &mut Reader<'_>, draft: &Draft<'_>, before: &[(&StepRule, Output<'_>)]) {
    for (entry, comparison) in &draft.ways.when {
        let Some((step, names)) = comparison.output() else { continue };
        let problem = match before.iter().find(|(rule, _)| *rule.name == *step) {
            Some((_, output)) => output.problem(names),
            None => {
                let known: Vec<&str> = before.iter().map(|(rule, _)| &*rule.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Some(format!("step {step:?} does not come before this one. Steps before it: {known}"))
            }
        };
        if let Some(problem) = problem {
            reader.blame(entry.at, format!("{}: {comparison}: {problem}", entry.path));
        }
    }
    for (mapping, parts) in [(&draft.rule.forward, &draft.forward), (&draft.rule.undo, &draft.undo)] {
        check_path(reader, draft, (mapping, parts), before);
    }
}

/// A path needs all its values, so it names no output of a step that may be skipped, unless the step demands it.
fn check_path(
    reader: &mut Reader<'_>,
    draft: &Draft<'_>,
    (mapping, parts): (&Mapping, &Parts<'_>),
    before: &[(&StepRule, Output<'_>)],
) {
    let pointers = mapping.path.iter().flat_map(PathTemplate::pointers);
    let may_lack = |pointer: &&Pointer| {
        let Some(Root::Output(step, _)) = Root::of(pointer) else { return false };
        let is_demanded = draft.ways.when.iter().any(|(_, comparison)| comparison.demands(pointer));
        !is_demanded && before.iter().any(|(rule, _)| *rule.name == *step && rule.may_be_skipped())
    };
    for pointer in pointers.filter(may_lack) {
        let Some(entry) = &parts.path else { continue };
        let text = pointer.text();
        let advice = format!("its step may be skipped, and a path needs its values. Add `{text} exists` to `when`");
        reader.blame(entry.at, format!("{}: {text}: {advice}", entry.path));
    }
}

/// A step after a pivot holds the order by default, since nothing turns it round there (rule 34).
pub(super) fn hold_after_pivots(reader: &mut Reader<'_>, drafts: &[Draft<'_>], steps: &mut [StepRule]) {
    for (index, draft) in drafts.iter().enumerate() {
        let pivot = steps[index].ancestors.iter().find(|&&earlier| steps[earlier].pivot);
        let Some(pivot) = pivot.map(|&pivot| steps[pivot].name.clone()) else { continue };
        let step = &mut steps[index];
        for (entry, remedy) in
            [(&draft.ways.on_rejected, &mut step.on_rejected), (&draft.ways.on_exhausted, &mut step.on_exhausted)]
        {
            match entry {
                Some(entry) if *remedy == Remedy::Compensate => reader.blame_value(
                    entry,
                    format_args!(
                        "must be \"hold\": the step comes after the pivot {pivot:?}, and no order turns round there"
                    ),
                ),
                Some(_) | None => *remedy = Remedy::Hold,
            }
        }
    }
}
