//! Runs the worlds of a folder, and counts what is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::id::OrderId;
use domain::task::{ProcessState, StepState};
use domain::workflow::{LINE, step_of};
use rehearsal::setup::Outage;
use rehearsal::trace::Line;
use rehearsal::world::World;

use crate::day::{self, Assume, Day};
use crate::folder::Folder;
use crate::judge::{Group, Violation, cannot_be_helped, judge};
use crate::watch::{Notes, Story};

/// The worlds of one group that are kept.
const WORLDS_KEPT: usize = 12;

/// A world that is over.
#[derive(Debug)]
pub struct Over {
    /// Its seed.
    pub seed: u64,
    /// Its day.
    pub day: Day,
    /// Its orders.
    pub orders: usize,
    /// What went wrong.
    pub violations: Vec<Violation>,
    /// The story that was asked for.
    pub story: Option<Story>,
    /// The trace that was asked for.
    pub lines: Vec<Line>,
    /// What was counted.
    pub counts: Counts,
}

/// What is counted over all worlds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The worlds.
    pub worlds: u64,
    /// The orders by end state.
    pub ends: BTreeMap<&'static str, u64>,
    /// The times of processed orders without an outage, in milliseconds.
    pub calm_ms: Times,
    /// The same with one.
    pub outage_ms: Times,
    /// The calls.
    pub calls: u64,
    /// The calls that were the first of their step and direction.
    pub first_calls: u64,
    /// The alerts.
    pub alerts: u64,
    /// By the length of an outage in milliseconds: worlds, and those in which an order was given up.
    pub outages: BTreeMap<u64, (u64, u64)>,
    /// By step: the orders for which it was carried out more than once though no key could help.
    pub helpless: BTreeMap<Arc<str>, u64>,
    /// The steps for which a service was called, each with whether it was an undo.
    pub called: BTreeSet<(Arc<str>, bool)>,
    /// By step, and whether it is its undo: the orders for which it could not be sent.
    pub unsendable: BTreeMap<(Arc<str>, bool), u64>,
    /// By workflow and step: how often it was carried out, skipped, undone, and dropped with its line.
    pub steps: BTreeMap<(Arc<str>, Arc<str>), [u64; 4]>,
}

/// Times, in classes that grow by a tenth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    classes: BTreeMap<u32, u64>,
    longest_ms: u64,
}

impl Times {
    /// Adds one, in milliseconds.
    pub fn add(&mut self, ms: u64) {
        // Ten classes for each doubling, about.
        let class = ((ms.max(1) as f64).ln() * 10.5) as u32;
        *self.classes.entry(class).or_default() += 1;
        self.longest_ms = self.longest_ms.max(ms);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes.values().sum()
    }

    /// The time, in milliseconds, within which this share of them lies, in thousandths.
    #[must_use]
    pub fn within(&self, share: u64) -> Option<u64> {
        let wanted = (self.count() * share).div_ceil(1_000).max(1);
        let mut seen = 0;
        self.classes.iter().find_map(|(class, count)| {
            seen += count;
            (seen >= wanted).then(|| ((f64::from(*class + 1) / 10.5).exp() as u64).min(self.longest_ms))
        })
    }

    /// By time in milliseconds, the count.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.classes.iter().map(|(class, count)| ((f64::from(*class) / 10.5).exp() as u64, *count))
    }

    fn merge(&mut self, other: &Self) {
        for (class, count) in &other.classes {
            *self.classes.entry(*class).or_default() += count;
        }
        self.longest_ms = self.longest_ms.max(other.longest_ms);
    }
}

impl Counts {
    /// Adds those of another part.
    pub fn merge(&mut self, other: &Self) {
        self.worlds += other.worlds;
        for (state, count) in &other.ends {
            *self.ends.entry(state).or_default() += count;
        }
        self.calm_ms.merge(&other.calm_ms);
        self.outage_ms.merge(&other.outage_ms);
        self.calls += other.calls;
        self.first_calls += other.first_calls;
        self.alerts += other.alerts;
        for (ms, (worlds, lost)) in &other.outages {
            let (all, of_them) = self.outages.entry(*ms).or_default();
            (*all, *of_them) = (*all + worlds, *of_them + lost);
        }
        for (step, count) in &other.helpless {
            *self.helpless.entry(step.clone()).or_default() += count;
        }
        self.called.extend(other.called.iter().cloned());
        for (step, count) in &other.unsendable {
            *self.unsendable.entry(step.clone()).or_default() += count;
        }
        for (step, counts) in &other.steps {
            let all = self.steps.entry(step.clone()).or_default();
            (0..4).for_each(|index| all[index] += counts[index]);
        }
    }
}

impl Counts {
    /// Whether a step that could not be sent in one world was sent in another: what it names may be there or not.
    #[must_use]
    pub fn sends(&self, violation: &Violation) -> bool {
        let of = violation.step.as_ref().zip(violation.unsent.as_ref());
        of.is_some_and(|(step, (is_undo, _))| self.called.contains(&(step.clone(), *is_undo)))
    }
}

/// How much of a world is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The verdict.
    Verdict,
    /// The story of an order too.
    Story(OrderId),
    /// Each action.
    Trace,
}

/// Runs the world of a seed.
#[must_use]
pub fn run(folder: &Folder, seed: u64, assume: Assume, keep: Keep) -> Over {
    let (rng, day, setup) = day::setup(folder, seed, assume);
    let orders = setup.orders;
    let notes = match keep {
        Keep::Story(order) => Notes::telling(order),
        Keep::Verdict | Keep::Trace => Notes::default(),
    };
    let state = World::new(rng, setup, Box::new(notes), keep == Keep::Trace).run();
    let watcher: &dyn std::any::Any = &*state.watcher;
    let empty = Notes::default();
    let notes: &Notes = watcher.downcast_ref().unwrap_or(&empty);
    let violations = judge(folder, day, &state, notes);
    let mut counts = Counts { worlds: 1, calls: notes.calls, alerts: notes.alerts, ..Counts::default() };
    counts.first_calls = notes.first_calls.len() as u64;
    let name_of = |order: OrderId, step: usize| Some(Arc::<str>::from(notes.step_of(order, step)?));
    let called =
        notes.first_calls.iter().filter_map(|(order, step, is_undo)| Some((name_of(*order, *step)?, *is_undo)));
    counts.called = called.collect();
    for (order, step, is_undo) in &notes.unsendable {
        let Some(name) = name_of(*order, *step) else { continue };
        *counts.unsendable.entry((name, *is_undo)).or_default() += 1;
    }
    for effect in state.effects().filter(|effect| effect.done > 1) {
        let name = notes.step_of(effect.order, effect.step);
        let rules = folder.shape.versions().flat_map(|workflow| &workflow.steps);
        if let Some(rule) = rules.into_iter().find(|rule| Some(&*rule.name) == name)
            && cannot_be_helped(folder, rule)
        {
            *counts.helpless.entry(rule.name.clone()).or_default() += 1;
        }
    }
    let mut is_lost = false;
    for task in state.tables.tasks() {
        let ended = match task.process_state {
            ProcessState::Processed => "Processed",
            ProcessState::Compensated => "Compensated",
            ProcessState::Closed => "Closed",
            ProcessState::Error => "Error",
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => "Unfinished",
        };
        *counts.ends.entry(ended).or_default() += 1;
        is_lost |= notes.errors.contains_key(&task.order_id);
        let times = notes.posted_ms.get(&task.order_id).zip(notes.ended_ms.get(&task.order_id));
        if let (ProcessState::Processed, Some((posted_ms, ended_ms))) = (task.process_state, times) {
            let ms = u64::try_from(ended_ms - posted_ms).unwrap_or(0);
            match day {
                Day::Outage => counts.outage_ms.add(ms),
                Day::Mishap => {}
                Day::Fair | Day::Slow | Day::Busy => counts.calm_ms.add(ms),
                Day::Rough | Day::Wild => {}
            }
        }
        for step in &task.steps {
            let name = if step.name.contains(LINE) { step_of(&step.name).into() } else { step.name.clone() };
            let all = counts.steps.entry((task.workflow.clone(), name)).or_default();
            all[3] += u64::from(step.dropped);
            let is_undo = step.direction == domain::task::Direction::Undo;
            match step.process_state {
                StepState::Processed if is_undo => all[2] += 1,
                StepState::Processed => all[0] += 1,
                StepState::Skipped => all[1] += u64::from(!step.dropped),
                StepState::Pending | StepState::Processing | StepState::Error => {}
            }
        }
    }
    let outages: Vec<Outage> = state.setup.outages.iter().copied().chain(state.mishap_outage()).collect();
    if let (Day::Outage | Day::Mishap, Some(outage)) = (day, outages.first()) {
        counts.outages.insert(outage.lasts_ms, (1, u64::from(is_lost)));
    }
    let story = notes.story().map(|story| story.with_outages(&outages));
    Over { seed, day, orders, violations, story, lines: state.trace.into_lines(), counts }
}

/// Violations of one cause, and some worlds with one, the smallest first.
#[derive(Debug, Clone)]
pub struct Found {
    /// One of them.
    pub violation: Violation,
    /// The worlds that have one.
    pub worlds: u64,
    /// Seeds and numbers of orders, with the order, of those that are kept.
    pub seeds: Vec<(usize, u64, Option<OrderId>)>,
}

/// What was seen so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The counts.
    pub counts: Counts,
    /// What was found.
    pub found: BTreeMap<Group, Found>,
}

impl Seen {
    /// What is wrong.
    pub fn wrong(&self) -> impl Iterator<Item = &Found> {
        self.found.values().filter(|found| !self.counts.sends(&found.violation))
    }

    fn add(&mut self, over: &Over) {
        self.counts.merge(&over.counts);
        let mut groups: Vec<(Group, &Violation)> =
            over.violations.iter().map(|violation| (violation.group(), violation)).collect();
        groups.sort_by(|one, other| one.0.cmp(&other.0));
        groups.dedup_by(|one, other| one.0 == other.0);
        for (group, violation) in groups {
            let found = self.found.entry(group).or_insert_with(|| Found {
                violation: violation.clone(),
                worlds: 0,
                seeds: Vec::new(),
            });
            found.worlds += 1;
            found.seeds.push((over.orders, over.seed, violation.order));
            found.seeds.sort_unstable();
            found.seeds.truncate(WORLDS_KEPT);
        }
    }
}

/// Runs the worlds of these seeds on all cores, until `stop` says so. Tells each number of worlds that are done.
#[must_use]
pub fn run_all(
    folder: &Folder,
    seeds: std::ops::Range<u64>,
    assume: Assume,
    threads: usize,
    stop: &AtomicBool,
    tell: &(dyn Fn(&Seen) + Sync),
) -> Seen {
    let next = AtomicU64::new(seeds.start);
    let seen = Mutex::new(Seen::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let work = || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let over = run(folder, seed, assume, Keep::Verdict);
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.add(&over);
                    tell(&seen);
                }
            };
            // A world's futures are deep in a build without optimisation.
            let thread = std::thread::Builder::new().stack_size(32 << 20);
            let spawned = thread.spawn_scoped(scope, work);
            spawned.unwrap_or_else(|fault| panic!("no thread for the worlds: {fault}"));
        }
    });
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_in_classes() {
        let mut times = Times::default();
        (1..=1_000).for_each(|ms| times.add(ms));
        let [half, most] = [500, 990].map(|share| times.within(share).unwrap());
        assert!((480..=600).contains(&half) && (980..=1_150).contains(&most), "{half} {most}");
        assert_eq!((times.count(), Times::default().within(500)), (1_000, None));
    }
}
