//! The keys that say whether a step applies, may be rejected, and lets the order turn round (rules 33 and 34).

#[cfg(test)]
mod tests;

use crate::located::{Entry, Reader, Table};
use crate::search::Pointer;
use crate::workflow::mapping::{NO_ITEM, Output};
use crate::workflow::when::Comparison;
use crate::workflow::{Mapping, Remedy, Root, StepRule};

/// A step, and its table in the file.
pub(super) struct Draft<'t> {
    pub(super) rule: StepRule,
    pub(super) table: Table<'t>,
}

/// The reactions of a step to a rejection, and to too many failures.
pub(super) fn remedies(reader: &mut Reader<'_>, table: &Table<'_>) -> (Remedy, Remedy) {
    if let Some(entry) = table.get("on_rejected").filter(|_| table.flag("optional")) {
        reader.blame_value(&entry, "has no use: an optional step that is rejected is skipped. Leave one of them out");
    }
    let on_rejected = table.word("on_rejected", &Remedy::ALL).unwrap_or(Remedy::Compensate);
    let (table, key) = on_exhausted(table);
    (on_rejected, table.word(key, &Remedy::ALL).unwrap_or(Remedy::Hold))
}

/// The words of a step that fails, each with what it says.
pub(super) fn failures<'t>(draft: &Draft<'t>) -> Vec<(Entry<'t>, Remedy)> {
    let (exhausted, key) = on_exhausted(&draft.table);
    let words =
        [(draft.table.get("on_rejected"), draft.rule.on_rejected), (exhausted.get(key), draft.rule.on_exhausted)];
    words.into_iter().filter_map(|(entry, remedy)| Some((entry?, remedy))).collect()
}

/// Where the word of `on_exhausted` is: at its key, or in its table with a longer wait.
fn on_exhausted<'t>(table: &Table<'t>) -> (Table<'t>, &'static str) {
    let longer = table.table("on_exhausted");
    if longer.is_given() { (longer, "then") } else { (table.clone(), "on_exhausted") }
}

/// The comparisons of `when`, each with its text in the file.
pub(super) fn comparisons<'t>(table: &Table<'t>) -> Vec<(Entry<'t>, Comparison)> {
    let read = |entry: Entry<'t>| Comparison::parse(entry.exact_text()?).ok().map(|comparison| (entry, comparison));
    table.one_or_more("when").into_iter().filter_map(read).collect()
}

/// Checks what a step needs of the steps before it: those whose outputs it compares come before, and those whose
/// outputs it needs are never skipped.
pub(super) fn check(reader: &mut Reader<'_>, draft: &Draft<'_>, before: &[(&StepRule, Output<'_>)]) {
    for (entry, comparison) in comparisons(&draft.table) {
        let problem = |(step, names): (&str, &[String])| match before.iter().find(|(rule, _)| *rule.name == *step) {
            Some((_, output)) => output.problem(names),
            None => {
                let known: Vec<&str> = before.iter().map(|(rule, _)| &*rule.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Some(format!("step {step:?} does not come before this one. Steps before it: {known}"))
            }
        };
        let reads_item = || comparison.pointers().any(|pointer| matches!(Root::of(pointer), Some(Root::Item(_))));
        if draft.rule.for_each.is_none() && reads_item() {
            reader.blame(entry.at, format!("{}: {comparison}: /Item {NO_ITEM}", entry.path));
        }
        if let Some(problem) = comparison.outputs().find_map(problem) {
            reader.blame(entry.at, format!("{}: {comparison}: {problem}", entry.path));
        }
    }
    let poll = draft.rule.poll.as_ref().map(|poll| (&poll.mapping, draft.table.table("poll")));
    let calls = [(&draft.rule.forward, draft.table.clone()), (&draft.rule.undo, draft.table.table("undo"))];
    for (mapping, table) in calls.into_iter().chain(poll) {
        check_needs(reader, draft, (mapping, &table), before);
    }
}

/// What must find a value names no output of a step that may be skipped, and nothing that a step may not keep, unless the
/// step demands it.
fn check_needs(
    reader: &mut Reader<'_>,
    draft: &Draft<'_>,
    (mapping, table): (&Mapping, &Table<'_>),
    before: &[(&StepRule, Output<'_>)],
) {
    let may_lack = |(_, pointer): &(&str, &Pointer)| {
        let Some(Root::Output(step, names)) = Root::of(pointer) else { return false };
        let is_demanded = draft.rule.when.iter().any(|comparison| comparison.demands(pointer));
        let is_missing =
            |rule: &StepRule| rule.may_be_skipped() || rule.keep.as_ref().is_some_and(|keep| keep.may_lack(names));
        // The array of all is always there, and perhaps none of its elements.
        let may_lack = |(rule, output): &(&StepRule, Output<'_>)| match output.is_array {
            true => !names.is_empty(),
            false => is_missing(rule),
        };
        !is_demanded && before.iter().any(|of| *of.0.name == *step && may_lack(of))
    };
    for (key, pointer) in mapping.required().filter(may_lack) {
        let Some(entry) = table.get(key) else { continue };
        let text = pointer.text();
        let or = if key == "path" { "" } else { ", or end the pointer with ?" };
        let advice = format!("its step may be skipped, or keep nothing there. Add `{text} exists` to `when`{or}");
        reader.blame(entry.place_of(|value| value == text), format!("{}: {text}: {advice}", entry.path));
    }
}

/// A step after a pivot holds the order by default, since nothing turns it round there (rule 34).
pub(super) fn hold_after_pivots(reader: &mut Reader<'_>, drafts: &[Draft<'_>], steps: &mut [StepRule]) {
    for (index, draft) in drafts.iter().enumerate() {
        let pivot = steps[index].ancestors.iter().find(|&&earlier| steps[earlier].pivot);
        let Some(pivot) = pivot.map(|&pivot| steps[pivot].name.clone()) else { continue };
        let step = &mut *steps[index];
        let (exhausted, key) = on_exhausted(&draft.table);
        let (rejected, exhausted) = (draft.table.get("on_rejected"), exhausted.get(key));
        for (entry, remedy) in [(rejected, &mut step.on_rejected), (exhausted, &mut step.on_exhausted)] {
            match entry {
                Some(entry) if *remedy == Remedy::Compensate => reader.blame_value(
                    &entry,
                    format_args!(
                        "must be \"hold\": the step comes after the pivot {pivot:?}, and no order turns round there"
                    ),
                ),
                Some(_) if *remedy == Remedy::Drop => {}
                Some(_) | None => *remedy = Remedy::Hold,
            }
        }
    }
}
