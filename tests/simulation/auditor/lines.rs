//! The lines of an order: steps that go through an array, and a line that is dropped (rule 50).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::causes::Causes;
use super::dossier::Dossier;
use super::mappings::Sent;
use super::records::Change;
use super::{Auditor, Finding, Flow, Invariant, must};
use rehearsal::observe::{hash_of, hash_of_all};
use rehearsal::seen::{Element, OrderState, Record, StepState, Way};

/// A step that goes through the array of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Each {
    /// Whether an element is called by its name, not by its position.
    pub is_named: bool,
    /// Whether it waits for all elements of the steps before it.
    pub after_all: bool,
    /// Whether its line is dropped if it is rejected.
    pub drops_rejected: bool,
    /// Whether its line is dropped if it is exhausted.
    pub drops_exhausted: bool,
    /// How many lines may be dropped.
    pub drop_max: Option<Most>,
    /// What the undo of a dropped line sends. `None`: the same as the undo.
    pub drop: Option<Sent>,
}

impl Each {
    /// Whether this key of its workflow drops a line.
    #[must_use]
    pub fn drops(&self, key: &str) -> bool {
        if key == "on_rejected" { self.drops_rejected } else { self.drops_exhausted }
    }
}

/// How many lines may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// So many.
    Lines(usize),
    /// So many of a hundred.
    Percent(usize),
}

impl Most {
    /// Of so many lines.
    const fn of(self, all: usize) -> usize {
        match self {
            Self::Lines(most) => most,
            Self::Percent(percent) => all * percent / 100,
        }
    }
}

/// What a step of an order is.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The index of its step in the workflow.
    pub base: usize,
    /// The position of its element, if it is of a line.
    pub line: Option<usize>,
    /// The name of its element.
    pub element: Arc<str>,
}

/// What a workflow says of lines, as an order with its elements has it.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// For each step of the order, what it is. Empty if the workflow has no lines.
    places: Vec<Place>,
    /// For each step of the workflow whether it goes through the array.
    has_lines: Vec<bool>,
    /// For each step of the workflow those of which it comes after its own element alone.
    singles: Vec<BTreeSet<usize>>,
    /// How many there are.
    count: usize,
}

/// The predecessors of each step of an order with this number of elements.
fn spread(after: &[Vec<usize>], each: &[Option<Each>], count: usize) -> Vec<Vec<usize>> {
    let mut firsts = Vec::new();
    let mut next = 0;
    for each in each {
        firsts.push(next);
        next += if each.is_some() { count } else { 1 };
    }
    let all = |step: usize| firsts[step]..firsts[step] + if each[step].is_some() { count } else { 1 };
    let mut spread = Vec::new();
    for (step, before) in after.iter().enumerate() {
        for line in 0..all(step).len() {
            let of = |&earlier: &usize| match (&each[step], &each[earlier]) {
                (Some(own), Some(_)) if !own.after_all => firsts[earlier] + line..firsts[earlier] + line + 1,
                _ => all(earlier),
            };
            let before = before.iter().flat_map(|&earlier| present(after, each, count, earlier));
            spread.push(before.collect::<BTreeSet<_>>().iter().flat_map(of).collect());
        }
    }
    spread
}

/// A step that the order has, or those before one that it has for no element.
fn present(after: &[Vec<usize>], each: &[Option<Each>], count: usize, step: usize) -> BTreeSet<usize> {
    match each[step].is_some() && count == 0 {
        true => after[step].iter().flat_map(|&earlier| present(after, each, count, earlier)).collect(),
        false => [step].into(),
    }
}

/// For each step of a workflow those of which it comes after its own element alone, on whatever path.
pub fn singles(after: &[Vec<usize>], each: &[Option<Each>]) -> Vec<BTreeSet<usize>> {
    let two = Flow { after: spread(after, each, 2), ..Flow::default() };
    let first = |step: usize| (0..step).map(|earlier| if each[earlier].is_some() { 2 } else { 1 }).sum::<usize>();
    let usual = Flow { after: after.to_vec(), ..Flow::default() };
    let of = |step: usize| {
        let (before, all) = (two.all_before(first(step)), usual.all_before(step));
        let is_single = |earlier: &usize| {
            each[step].is_some() && each[*earlier].is_some() && !before.contains(&(first(*earlier) + 1))
        };
        all.into_iter().filter(is_single).collect()
    };
    (0..after.len()).map(of).collect()
}

impl Flow {
    /// The same for an order with these elements: a step that goes through them is there for each of them.
    pub(super) fn of_order(&self, elements: &[Element]) -> Self {
        if self.each.iter().all(Option::is_none) {
            return self.clone();
        }
        let mut places = Vec::new();
        for (base, each) in self.each.iter().enumerate() {
            match each {
                None => places.push(Place { base, ..Place::default() }),
                Some(each) => places.extend(elements.iter().enumerate().map(|(line, element)| {
                    let number = || format!("{:04}", line + 1).into();
                    let element = if each.is_named { element.name.clone() } else { number() };
                    Place { base, line: Some(line), element }
                })),
            }
        }
        let lines = Lines {
            has_lines: self.each.iter().map(Option::is_some).collect(),
            singles: singles(&self.after, &self.each),
            count: elements.len(),
            places: places.clone(),
        };
        let bases: Vec<usize> = places.iter().map(|place| place.base).collect();
        Self {
            after: spread(&self.after, &self.each, elements.len()),
            bases: self.after.clone(),
            horizons_ms: of(&bases, &self.horizons_ms),
            within_ms: of(&bases, &self.within_ms),
            waits_ms: of(&bases, &self.waits_ms),
            awaited_ms: of(&bases, &self.awaited_ms),
            max_failures: of(&bases, &self.max_failures),
            longer: of(&bases, &self.longer),
            holds_rejected: of(&bases, &self.holds_rejected),
            holds_exhausted: of(&bases, &self.holds_exhausted),
            mapped: of(&bases, &self.mapped),
            ways: of(&bases, &self.ways),
            each: of(&bases, &self.each),
            lines,
            deadline: self.deadline,
            grace_ms: self.grace_ms,
        }
    }

    /// The index in the workflow of a step of the order.
    pub(super) fn base(&self, step: usize) -> usize {
        self.lines.places.get(step).map_or(step, |place| place.base)
    }

    /// The line of a step.
    pub(super) fn line(&self, step: usize) -> Option<usize> {
        self.lines.places.get(step)?.line
    }

    /// The name of a step.
    pub(super) fn name(&self, step: usize) -> String {
        let base = self.base(step);
        match self.line(step) {
            Some(_) => format!("s{base}/{}", self.lines.places[step].element),
            None => format!("s{base}"),
        }
    }

    /// All predecessors in the workflow of a step of the order.
    fn bases_before(&self, step: usize) -> BTreeSet<usize> {
        let after = if self.lines.places.is_empty() { &self.after } else { &self.bases };
        Self { after: after.clone(), ..Self::default() }.all_before(self.base(step))
    }

    /// Whether a step comes after its own element alone of a step of the workflow.
    fn is_single(&self, step: usize, base: usize) -> bool {
        self.lines.singles.get(self.base(step)).is_some_and(|singles| singles.contains(&base))
    }

    /// What a step sees of the output of a step of the workflow: its own element's, or those of all elements that are not
    /// dropped.
    pub(super) fn output(&self, step: usize, base: usize, record: &Record) -> Option<u64> {
        let is_of = |other: &usize| self.base(*other) == base;
        let mut found = (0..record.steps.len()).filter(is_of);
        let has_lines = self.lines.has_lines.get(base).copied().unwrap_or(false);
        if has_lines && self.base(step) != base && !self.is_single(step, base) {
            let element = |other: usize| match &record.steps[other] {
                seen if seen.dropped => None,
                seen => seen.output,
            };
            return Some(hash_of_all(found.map(|other| element(other).unwrap_or_else(|| hash_of("null")))));
        }
        let other = found.find(|other| !has_lines || self.line(*other) == self.line(step))?;
        record.steps[other].output
    }

    /// The outputs that a step sees of all those before it, and an undo of itself.
    pub(super) fn outputs(&self, step: usize, way: Way, record: &Record) -> Vec<(usize, u64)> {
        let own = (way == Way::Undo).then(|| self.base(step));
        let bases = self.bases_before(step).into_iter().chain(own);
        bases.filter_map(|base| Some((base, self.output(step, base, record)?))).collect()
    }

    /// The lines that a record shows as dropped.
    fn dropped(&self, record: &Record) -> BTreeSet<usize> {
        let of = |(step, seen): (usize, &_)| -> Option<usize> {
            let seen: &rehearsal::seen::StepSeen = seen;
            self.line(step).filter(|_| seen.dropped)
        };
        record.steps.iter().enumerate().filter_map(of).collect()
    }

    /// A step that was called before, and has sent what it knew of a line.
    fn uses(&self, line: usize, record: &Record) -> Option<usize> {
        let is_used = |step: &usize| {
            let is_of =
                |earlier: &usize| self.line(*earlier) == Some(line) && !self.is_single(*step, self.base(*earlier));
            record.steps[*step].attempt > 0 && self.all_before(*step).iter().any(is_of)
        };
        (0..record.steps.len()).find(is_used)
    }

    /// Whether one line more than a record shows may be dropped for this step.
    pub(super) fn may_drop(&self, step: usize, record: &Record) -> bool {
        let dropped = self.dropped(record).len() + 1;
        let most = self.each.get(step).and_then(|each| each.as_ref()?.drop_max);
        dropped < self.lines.count && most.is_none_or(|most| dropped <= most.of(self.lines.count))
    }

    /// Whether an operator may drop the line of a step.
    pub(super) fn may_be_dropped(&self, dossier: &Dossier, step: usize, record: &Record) -> bool {
        let Some(line) = self.line(step) else { return false };
        let is_pivot = |(other, seen): (usize, &rehearsal::seen::StepSeen)| {
            self.line(other) == Some(line) && dossier.ways(other).pivot && seen.way == Way::Forward && seen.attempt > 0
        };
        let is_past = record.steps.iter().enumerate().filter(|(other, _)| *other != step).any(is_pivot);
        self.dropped(record).len() + 1 < self.lines.count && self.uses(line, record).is_none() && !is_past
    }
}

impl Change<'_> {
    /// The whole order turns round in the write that ends the last attempt to undo a step of a dropped line: that begins
    /// afresh.
    pub(super) fn is_undone_afresh(&self) -> bool {
        let (b, _) = self.steps();
        let turns = (self.before.state, self.after.state) == (OrderState::Processing, OrderState::Compensating);
        let has_expired =
            self.flow.expires_ms(self.index, b, self.clock_ms).is_some_and(|at_ms| at_ms <= self.clock_ms);
        b.dropped && b.way == Way::Undo && turns && has_expired
    }
}

fn of<T: Clone>(bases: &[usize], all: &[T]) -> Vec<T> {
    bases.iter().filter_map(|base| all.get(*base).cloned()).collect()
}

impl Causes<'_> {
    /// Whether the failure of a step drops its line, as its workflow says it.
    pub(super) fn drops(&self, step: usize, drops: fn(&Each) -> bool) -> bool {
        self.flow.each.get(step).and_then(Option::as_ref).is_some_and(drops)
    }

    /// Why a line was dropped: a step of it failed whose workflow says so, or an operator wished it.
    fn is_reason(&self, step: usize) -> bool {
        let (before, dossier) = (&self.before.steps[step], self.dossier);
        let is_open = matches!(self.before.state, OrderState::Pending | OrderState::Processing);
        let is_rejected = is_open
            && self.drops(step, |each| each.drops_rejected)
            && !dossier.ways(step).optional
            && self.is_rejected(step)
            && self.is_refusal(step);
        // A step may be given up as soon as its order leaves Error.
        let goes_on = self.before.state == OrderState::Error && self.after.state != OrderState::Error;
        let is_exhausted = (is_open || goes_on)
            && self.drops(step, |each| each.drops_exhausted)
            && self.is_exhausted(step)
            && self.is_failure(step);
        before.way == Way::Forward && (is_rejected || is_exhausted || self.is_wished(step))
    }

    fn is_wished(&self, step: usize) -> bool {
        let before = &self.before.steps[step];
        let is_in_error = self.before.state == OrderState::Error && before.state == StepState::Error;
        is_in_error && self.dossier.drops.contains(&step)
    }
}

/// A line is dropped as a whole, for a reason of its own, while others are left. Nothing that comes after all lines has
/// begun with it.
pub(super) fn dropped_well(causes: &Causes<'_>, after: &Record) -> Finding {
    let (flow, before) = (causes.flow, causes.before);
    let (was, is) = (flow.dropped(before), flow.dropped(after));
    must(was.is_subset(&is), Invariant::Lines, || format!("a line is no longer dropped: {before}; and now: {after}"))?;
    let bad = |line: usize, words: &str| format!("line {line} is dropped, {words}: {before}; and now: {after}");
    let mut most_at_once = Vec::new();
    for &line in is.difference(&was) {
        let steps = || (0..after.steps.len()).filter(|step| flow.line(*step) == Some(line));
        let is_turned = |step: usize| {
            let (before, after) = (&before.steps[step], &after.steps[step]);
            let is_so = match before.attempt {
                0 => after.state == StepState::Skipped,
                _ => after.way == Way::Undo,
            };
            after.dropped && is_so
        };
        must(steps().all(is_turned), Invariant::Lines, || bad(line, "and not as a whole"))?;
        let limit = |step: usize| {
            let most = flow.each[step].as_ref().and_then(|each| each.drop_max).filter(|_| !causes.is_wished(step));
            most.map_or(usize::MAX, |most| most.of(flow.lines.count))
        };
        let Some(most) = steps().filter(|step| causes.is_reason(*step)).map(limit).max() else {
            return Err((Invariant::Lines, bad(line, "without a reason of its own")));
        };
        most_at_once.push(most);
        let used = flow.uses(line, before);
        must(used.is_none(), Invariant::Lines, || bad(line, &format!("and step {used:?} has begun with it")))?;
    }
    // Several may be dropped in one write, one after the other.
    most_at_once.sort_unstable();
    let too_many = most_at_once.iter().enumerate().any(|(nth, most)| was.len() + nth + 1 > *most);
    must(!too_many && (is.is_empty() || is.len() < flow.lines.count), Invariant::Lines, || {
        format!("lines {is:?} are dropped, one too many: {before}; and now: {after}")
    })?;
    let has_turned = |step: &usize| before.steps[*step].way != after.steps[*step].way && after.steps[*step].dropped;
    let stray =
        (0..after.steps.len()).filter(has_turned).find(|step| flow.line(*step).is_none_or(|line| !is.contains(&line)));
    must(stray.is_none(), Invariant::Lines, || format!("step {stray:?} is of no line that is dropped: {after}"))
}

/// An order that leaves `Error` goes on in its direction, unless it is cancelled.
pub(super) fn goes_on_well(dossier: &Dossier, before: &Record, after: &Record) -> Finding {
    let is_undone = matches!(after.state, OrderState::Compensating | OrderState::Compensated);
    let goes_forward = matches!(after.state, OrderState::Processing | OrderState::Processed);
    let was_in_error = before.state == OrderState::Error;
    // A step may be given up as soon as it goes on.
    let has_reason = after.reason.as_ref().is_some_and(|(_, since)| *since == after.version);
    let turns_round = was_in_error && is_undone;
    must(dossier.is_undoing || has_reason || !turns_round, Invariant::Lines, || {
        format!("it turns round as it leaves Error, and nobody wished it: {before}; and now: {after}")
    })?;
    let goes_on = was_in_error && goes_forward;
    must(!goes_on || !dossier.is_undoing, Invariant::Lines, || {
        format!("it was being undone, and goes forward: {before}; and now: {after}")
    })
}

/// A processed order says which lines it carries: those whose effects the services have.
pub(super) fn carries(dossier: &Dossier, last: &Record) -> Finding {
    let Some(flow) = dossier.flow.as_ref().filter(|_| last.state == OrderState::Processed) else { return Ok(()) };
    let mut lines: [BTreeSet<Arc<str>>; 2] = Default::default();
    for (step, place) in flow.lines.places.iter().enumerate().filter(|(_, place)| place.line.is_some()) {
        let dropped = last.steps.get(step).is_some_and(|seen| seen.dropped);
        lines[usize::from(dropped)].insert(place.element.clone());
        let effects = dossier.effects(step);
        let is_left = effects.forward > effects.undo;
        let is_so = !dropped || !is_left || dossier.has_no_undo(step) || dossier.raced.contains(&step);
        must(is_so, Invariant::Lines, || format!("step {step} is of a dropped line, and its effect is there: {last}"))?;
    }
    let said = last.lines.clone().map(BTreeSet::from_iter);
    must(said == lines, Invariant::Lines, || format!("it says that it carries {said:?}, and it is {lines:?}"))
}

impl Auditor {
    /// The key of a call is that of the order and the step, by the name of its element.
    pub(super) fn key_is_right(&self, of: rehearsal::seen::Try, key: &str) -> Finding {
        let Some(flow) = self.dossiers.get(&of.order).and_then(|dossier| dossier.flow.as_ref()) else { return Ok(()) };
        let undo = if of.way == Way::Undo { "/undo" } else { "" };
        let wanted = format!("{}/{}{undo}", of.order, flow.name(of.step));
        must(key == wanted, Invariant::OneEffect, || format!("{of} is called by the key {key}, and is {wanted}"))
    }
}
