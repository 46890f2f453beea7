//! Steps that stand for one call for each element of an array of the order: its lines (rule 50).
//!
//! A workflow has such a step once. The workflow of an order has it for each element, under the name `reserve/0001`; the
//! names in the task say which, so the elements are those of the submission.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::mapping::place_in_order;
use super::{Mapping, Refuse, Remedy, StepKeys, StepRule, Workflow};
use crate::index::Index;
use crate::json::Json;
use crate::limits::{ELEMENT_CHARS_MAX, RECORDS_MAX};
use crate::located::{Reader, Table};
use crate::search::{Pointer, plain_text};

/// What stands between the name of a step and its element, in the name of a record.
pub const LINE: char = '/';

/// The array that a step goes through, and what becomes of a line that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForEach {
    /// Where the document has the array.
    pub array: Pointer,
    /// Whether the array may be missing: it then has no elements.
    pub is_optional: bool,
    /// Where an element has its name. `None`: its position is its name.
    pub item_id: Option<Pointer>,
    /// Whether it waits for all elements of the steps before it.
    pub after_all: bool,
    /// How many lines may be dropped.
    pub drop_max: Option<DropMax>,
    /// The call that undoes it if its line is dropped. `None`: that of the undo.
    pub drop: Option<Mapping>,
}

/// How many lines of an array may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropMax {
    /// So many.
    Lines(usize),
    /// A part of all.
    Percent(usize),
}

/// The element of an array that a step of an order stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The name of the step in the workflow.
    pub step: Arc<str>,
    /// The position of the element, from 0.
    pub place: usize,
}

/// Why an order has no lines for a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} {fault}")]
pub struct BadLines {
    /// Where in the document.
    pub place: String,
    /// What is wrong there.
    pub fault: String,
}

impl DropMax {
    /// Reads a part of all lines, such as `10%`.
    pub(super) fn percent(text: &str) -> Option<Self> {
        let percent = text.strip_suffix('%')?.parse().ok();
        percent.filter(|percent| (1..=100).contains(percent)).map(Self::Percent)
    }

    /// Whether this number of all lines may be dropped.
    #[must_use]
    pub const fn allows(self, dropped: usize, all: usize) -> bool {
        match self {
            Self::Lines(most) => dropped <= most,
            Self::Percent(percent) => dropped * 100 <= percent * all,
        }
    }
}

impl ForEach {
    /// Reads the keys of a step that stands for one call for each element. `calls` are those of the step and of its undo.
    pub(super) fn read(reader: &mut Reader<'_>, step: &Table<'_>, calls: [&Mapping; 2], no_undo: bool) -> Option<Self> {
        let Some(entry) = step.get("for_each") else {
            for entry in ["item_id", "after_all", "drop_max", "drop"].into_iter().filter_map(|key| step.get(key)) {
                reader.blame_value(&entry, "belongs to a step with for_each");
            }
            return None;
        };
        let text = entry.exact_text()?;
        let array = place_in_order(text.trim_end_matches('?'))?;
        if step.exact_text("kind") == Some("approval") {
            reader.blame_value(&entry, "has no use in an approval: people decide on the whole order");
        }
        let is_child = step.exact_text("kind") == Some("order");
        if let Some(entry) = step.get("drop").filter(|_| is_child) {
            reader.blame_value(&entry, "has no use in a step that makes an order: the undo of an order is its cancel");
        }
        let table = step.table("drop");
        let drop = table.is_given().then(|| Mapping::read(reader, &table, calls[0].encode));
        let undo = (calls[1], "undo.send", "its undo sends", !no_undo);
        let own = (calls[0], "send", "it sends", true);
        let dropped = drop.as_ref().map(|drop| (drop, "drop.send", "the undo of a dropped line sends", true));
        for (mapping, key, what, is_called) in [own, undo].into_iter().chain(dropped) {
            if is_called && mapping.sends_all() && !is_child {
                let example = "such as send = { sku = \"/Item/SKU\" }";
                reader.blame(
                    entry.at,
                    format!("{}: {key} is missing: say what {what} for an element, {example}", step.path),
                );
            }
        }
        Some(Self {
            array,
            is_optional: text.ends_with('?'),
            item_id: step.exact_text("item_id").and_then(|text| Pointer::parse(text).ok()),
            after_all: step.flag("after_all"),
            drop_max: match step.exact_text("drop_max") {
                Some(percent) => DropMax::percent(percent),
                None => step.number("drop_max").and_then(|lines| usize::try_from(lines).ok()).map(DropMax::Lines),
            },
            drop,
        })
    }

    /// The name of each element. More than an order can have are only counted.
    fn ids(&self, step: &str, document: &Json) -> Result<Vec<Arc<str>>, BadLines> {
        let place = self.array.text();
        let bad = |place: String, fault: String| BadLines { place, fault };
        let none =
            |what: &str| bad(place.clone(), format!("must be an array, and {what}: step {step:?} is for each element"));
        let elements = match self.array.of(document.raw()) {
            None if self.is_optional => return Ok(Vec::new()),
            Some(found) if found.get() == "null" && self.is_optional => return Ok(Vec::new()),
            None => return Err(none("nothing is there")),
            Some(found) => serde_json::from_str::<Vec<&RawValue>>(found.get()).map_err(|_| none("it is none"))?,
        };
        let Some(pointer) = self.item_id.as_ref().filter(|_| elements.len() <= RECORDS_MAX) else {
            return Ok((1..=elements.len()).map(|number| format!("{number:04}").into()).collect());
        };
        let mut ids = Vec::<Arc<str>>::with_capacity(elements.len());
        let mut seen = BTreeSet::new();
        for (index, element) in elements.iter().enumerate() {
            let at = || format!("{place}/{index}{}", pointer.text());
            let id = pointer.of(element).and_then(plain_text).filter(|id| is_element(id)).ok_or_else(|| {
                let what = "letters, digits, '-', '_' and '.', a letter or digit first, and not undo";
                bad(
                    at(),
                    format!("names its element for step {step:?}, and must be 1 to {ELEMENT_CHARS_MAX} of {what}"),
                )
            })?;
            if !seen.insert(id.clone()) {
                return Err(bad(
                    at(),
                    format!("is {id:?}, as in an element before: step {step:?} has a call for each"),
                ));
            }
            ids.push(id.into());
        }
        Ok(ids)
    }
}

/// Whether a text can name an element: it is a part of the idempotency key.
fn is_element(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=ELEMENT_CHARS_MAX).contains(&text.len())
        && text.bytes().all(is_safe)
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text != "undo"
}

/// The name in the workflow of a step of an order.
#[must_use]
pub fn step_of(name: &str) -> &str {
    name.split_once(LINE).map_or(name, |(step, _)| step)
}

impl StepRule {
    /// The element that it stands for, in the document.
    #[must_use]
    pub fn item_in<'a>(&self, document: &'a Json) -> Option<&'a RawValue> {
        let (each, line) = (self.for_each.as_ref()?, self.line.as_ref()?);
        let mut names = each.array.names().to_vec();
        names.push(line.place.to_string());
        Pointer::walk(&names, document.raw())
    }

    /// Whether both stand for the same element. A workflow goes through one array.
    #[must_use]
    pub fn is_of_line(&self, other: &Self) -> bool {
        let place = |rule: &Self| rule.line.as_ref().map(|line| line.place);
        place(self).is_some() && place(self) == place(other)
    }

    /// Its name in the workflow.
    #[must_use]
    pub fn base(&self) -> &str {
        self.line.as_ref().map_or(&self.name, |line| &line.step)
    }
}

impl StepKeys {
    /// Whether its failure may drop its line.
    #[must_use]
    pub fn may_drop(&self) -> bool {
        self.for_each.is_some() && [self.on_rejected, self.on_exhausted].contains(&Remedy::Drop)
    }
}

impl Workflow {
    /// Whether an order of it has steps for the elements of an array.
    pub(crate) fn has_lines(&self) -> bool {
        self.steps.iter().any(|rule| rule.for_each.is_some() && rule.line.is_none())
    }

    /// The workflow of an order with this document.
    ///
    /// # Errors
    /// [`BadLines`] if its array is not one that the workflow can go through.
    pub fn of_document(&self, document: &Json) -> Result<Cow<'_, Self>, BadLines> {
        if !self.has_lines() {
            return Ok(Cow::Borrowed(self));
        }
        let ids = |rule: &StepRule| rule.for_each.as_ref().map(|each| each.ids(&rule.name, document)).transpose();
        let ids = self.steps.iter().map(ids).collect::<Result<Vec<_>, _>>()?;
        let records: usize = ids.iter().map(|ids| ids.as_ref().map_or(1, Vec::len)).sum();
        if records > RECORDS_MAX {
            let place =
                self.steps.iter().find_map(|rule| Some(rule.for_each.as_ref()?.array.text())).unwrap_or_default();
            let fault = format!("makes an order of {records} steps, the limit is {RECORDS_MAX}: post it in parts");
            return Err(BadLines { place, fault });
        }
        Ok(Cow::Owned(self.with(&ids)))
    }

    /// The same for a workflow that is shared, which has accepted the document. A child that is never made has none, and no
    /// lines (rule 49).
    #[must_use]
    pub fn of_accepted(self: &Arc<Self>, document: &Json) -> Arc<Self> {
        match self.of_document(document) {
            Ok(Cow::Borrowed(_)) => self.clone(),
            Ok(Cow::Owned(own)) => Arc::new(own),
            Err(_) => self.of_steps(std::iter::empty()),
        }
    }

    /// The workflow of an order with steps of these names.
    #[must_use]
    pub fn of_steps<'n>(self: &Arc<Self>, names: impl Iterator<Item = &'n str>) -> Arc<Self> {
        if !self.has_lines() {
            return self.clone();
        }
        let mut names = names.peekable();
        let ids = |rule: &StepRule| {
            let element = |name: &str| {
                name.split_once(LINE).filter(|(step, _)| **step == *rule.name).map(|(_, id)| Arc::from(id))
            };
            if rule.for_each.is_none() {
                names.next();
                return None;
            }
            let mut ids = Vec::new();
            while let Some(id) = names.peek().and_then(|name| element(name)) {
                names.next();
                ids.push(id);
            }
            Some(ids)
        };
        Arc::new(self.with(&self.steps.iter().map(ids).collect::<Vec<_>>()))
    }

    /// Each step once, or once for each of its elements.
    fn with(&self, ids: &[Option<Vec<Arc<str>>>]) -> Self {
        let mut firsts = Vec::with_capacity(ids.len());
        let mut records = 0;
        for ids in ids {
            firsts.push(records);
            records += ids.as_ref().map_or(1, Vec::len);
        }
        let all = |step: usize| firsts[step]..firsts[step] + ids[step].as_ref().map_or(1, Vec::len);
        let mut steps = Vec::with_capacity(records);
        for (rule, ids) in self.steps.iter().zip(ids) {
            // That of the same element, or all.
            let records_of = |earlier: &[usize], place: usize| -> Vec<usize> {
                let of = |&step: &usize| match rule.in_line.contains(&step) {
                    true => firsts[step] + place..firsts[step] + place + 1,
                    false => all(step),
                };
                earlier.iter().flat_map(of).collect()
            };
            let Some(ids) = ids else {
                let (after, ancestors) = (records_of(&rule.after, 0), records_of(&rule.ancestors, 0));
                steps.push(StepRule { after, ancestors, ..rule.clone() });
                continue;
            };
            for (place, id) in ids.iter().enumerate() {
                steps.push(StepRule {
                    name: [&*rule.name, "/", id].concat().into(),
                    line: Some(Line { step: rule.name.clone(), place }),
                    after: records_of(&rule.after, place),
                    ancestors: records_of(&rule.ancestors, place),
                    in_line: records_of(&rule.in_line, place),
                    arrays: rule.arrays.clone(),
                    keys: rule.keys.clone(),
                });
            }
        }
        Self {
            name: self.name.clone(),
            steps,
            // What a post is accepted by has done its work.
            refuse: Refuse::default(),
            schema: None,
            index: Index::default(),
            ..*self
        }
    }
}
