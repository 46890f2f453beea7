//! Checks the invariants from observations alone. It knows nothing of the code's internals: it sees each write, message,
//! call and answer in types of its own, and reports each violation.
//!
//! Modules: `seen` has the observations, `dossier` the memory of one order. `records` checks writes, `states` what they say of the order, `causes` the reasons
//! of errors and compensations, `calls` requests, replies and services, `custody` the messages of orders, `commands`
//! operators' commands, `asked` what services ask of callers, `mappings` the bodies of calls, `outside` status messages and
//! alerts, `under_way` the calls without an answer, `endings` the end
//! state after the faults, `late` deadlines of orders, `lines` the lines of orders, `reasons` why orders turn round, `versions` the versions that orders begin with,
//! `wanted` calls for what is over, `ways` skipped steps and pivots.

mod asked;
mod calls;
mod causes;
mod commands;
mod custody;
mod dossier;
mod endings;
pub mod late;
pub mod lines;
pub mod mappings;
mod outcomes;
mod outside;
mod reasons;
mod records;
mod states;
mod under_way;
mod verdict;
mod versions;
mod wanted;
pub mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::id::OrderId;

use dossier::{Dossier, Posted};
use late::Deadline;
use lines::{Each, Lines};
use mappings::Mapped;
use rehearsal::seen::{Choices, Ending, Seen, StepSeen, Way};
use rehearsal::watcher::Watcher;
pub use verdict::{Invariant, Violation};
use ways::Ways;

/// The auditor's knowledge of the deployment.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The workflows by version.
    pub workflows: BTreeMap<u32, Flow>,
    /// For each agent: the margin before the deadline in which no call starts, in milliseconds.
    pub margins_ms: Vec<i64>,
    /// For each agent: the true time from the start of a call within which it has its effect, in milliseconds.
    pub settled_ms: Vec<i64>,
    /// The versions of new orders at the start of the world.
    pub choices: Choices,
    /// Whether clocks or leaders are wrong in this world (invariant 13).
    pub wrong_clocks: bool,
    /// For each agent whether its service is careless.
    pub are_careless: Vec<bool>,
}

/// What the auditor knows of a workflow.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// For each step the indexes of its predecessors.
    pub after: Vec<Vec<usize>>,
    /// For each step its horizon, in milliseconds.
    pub horizons_ms: Vec<i64>,
    /// For each step its `complete_within`, in milliseconds.
    pub within_ms: Vec<i64>,
    /// For each step its wait before the first claim, in milliseconds.
    pub waits_ms: Vec<i64>,
    /// For each step the time for which a result that comes later is awaited, in milliseconds.
    pub awaited_ms: Vec<i64>,
    /// For each step the failures at which it is given up.
    pub max_failures: Vec<u32>,
    /// For each step the failures from which on it waits longer, and how long (rule 39).
    pub longer: Vec<Option<(u32, i64)>>,
    /// For each step whether a rejection holds the order instead of compensating it.
    pub holds_rejected: Vec<bool>,
    /// For each step whether exhaustion holds the order instead of compensating it.
    pub holds_exhausted: Vec<bool>,
    /// For each step its mappings; none for a workflow without.
    pub mapped: Vec<Mapped>,
    /// For each step whether it applies, may be missed, and turns round; nothing for a workflow without these keys.
    pub ways: Vec<Ways>,
    /// For each step whether it goes through the array of the order, and what becomes of a line that fails.
    pub each: Vec<Option<Each>>,
    /// What an order has of that.
    pub lines: Lines,
    /// For each step of the workflow the indexes of its predecessors, if an order has steps with lines.
    pub bases: Vec<Vec<usize>>,
    /// The deadline of its orders.
    pub deadline: Deadline,
    /// The grace after `CompleteBy`, in milliseconds.
    pub grace_ms: i64,
}

/// How far ahead a clock may be before a wait for a result counts as a wrong clock's (rule 23).
const DAY_MS: i64 = 86_400_000;

impl Flow {
    /// The longer wait that follows this number of failures of a step, in milliseconds. 0: a back-off follows it.
    fn longer_ms(&self, index: usize, failures: u32) -> i64 {
        let longer = self.longer.get(index).copied().flatten();
        longer.filter(|&(from, _)| failures >= from).map_or(0, |(_, wait_ms)| wait_ms)
    }

    /// When an attempt expires by this clock: at its deadline, or at the end of the wait for its result, plus the grace, or after its whole time since a doubt about
    /// it. A deadline further ahead than an attempt lasts is a wrong clock's, and so is a wait of more than twice its time,
    /// but for 20 minutes at least and a day at most (rule 23).
    fn expires_ms(&self, index: usize, step: &StepSeen, clock_ms: i64) -> Option<i64> {
        let within_ms = self.within_ms.get(index).copied().unwrap_or(0);
        let (by_ms, time_ms, longest_ms) = match step.waits_until_ms {
            Some(until_ms) => {
                let awaited_ms = self.awaited_ms.get(index).copied().unwrap_or(0);
                (until_ms, awaited_ms, awaited_ms + awaited_ms.clamp(20 * 60_000, DAY_MS))
            }
            None => (step.complete_by_ms?, within_ms, within_ms),
        };
        let again_ms = step.doubted_ms.map_or(by_ms, |at_ms| at_ms + time_ms);
        let ends_ms = if by_ms > clock_ms + longest_ms { again_ms } else { again_ms.max(by_ms) };
        Some(ends_ms.saturating_add(self.grace_ms))
    }
}

/// The auditor of one world.
#[derive(Debug, Default)]
pub struct Auditor {
    rules: Rules,
    dossiers: BTreeMap<OrderId, Dossier>,
    /// Dead letters that still need an alert.
    dead_letters_due: BTreeSet<Arc<str>>,
    violations: Vec<Violation>,
    /// The versions of new orders since a time, in milliseconds since the start of the world.
    choices: Vec<(i64, Choices)>,
    /// The end of the last jump of a clock, in milliseconds since the start of the world; 0 without one.
    jumped_until_ms: i64,
    /// Until when something goes wrong somewhere, in milliseconds since the start of the world.
    troubled_until_ms: i64,
    at_ms: i64,
}

/// A violation that a check found.
type Finding = Result<(), (Invariant, String)>;

/// The result of a check.
fn must(holds: bool, invariant: Invariant, words: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err((invariant, words())) }
}

impl Auditor {
    /// The auditor of a world with these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { choices: vec![(0, rules.choices.clone())], rules, ..Self::default() }
    }

    /// The violations, in order.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn complain(&mut self, invariant: Invariant, order: Option<OrderId>, words: String) {
        let (at_ms, under_wrong_clocks) = (self.at_ms, self.rules.wrong_clocks);
        self.violations.push(Violation { invariant, under_wrong_clocks, order, at_ms, words });
    }

    fn dossier(&mut self, order: OrderId) -> &mut Dossier {
        self.dossiers.entry(order).or_default()
    }
}

impl Watcher for Auditor {
    fn see(&mut self, at_ms: i64, seen: &Seen) {
        self.at_ms = at_ms;
        let finding = match seen {
            Seen::Accepted { order, fingerprint, posted_ms } => self.accepted(*order, fingerprint, *posted_ms),
            Seen::Posted { order, fingerprint, document, channel, elements, pinned } => {
                let (fingerprint, channel) = (fingerprint.clone(), channel.clone());
                let version = pinned.as_ref().map(|pinned| pinned.version);
                let elements = elements.clone();
                let posted = Posted { fingerprint, document: *document, channel, elements, pinned: version };
                self.dossier(*order).posted.push(posted);
                pinned.as_ref().map_or(Ok(()), |pinned| self.pinned(pinned))
            }
            Seen::PostsAgain { order, of } => self.posts_again(*order, *of),
            Seen::Applied { choices } => {
                self.applied(choices);
                Ok(())
            }
            Seen::Kept { order } => {
                self.dossier(*order).kept += 1;
                Ok(())
            }
            Seen::LetGo { order } => self.let_go(*order),
            Seen::Inserted { fingerprint, record, by, clock_ms } => self.inserted(fingerprint, record, *by, *clock_ms),
            Seen::Written { record, by, clock_ms } => self.written(record, *by, *clock_ms),
            Seen::TakenForOwn { order: _, is_same } => must(*is_same, Invariant::Claims, || {
                "a write was answered with success, but what is stored is another's".to_owned()
            }),
            Seen::Requested { of, complete_by_ms, budget_ms, clock_ms } => {
                self.requested(*of, *complete_by_ms, *budget_ms, *clock_ms).and_then(|()| self.undo_has_waited(*of))
            }
            Seen::Handed { of, to, until_ms, budget_ms, message, overlaps, is_copied, fresh_until_ms } => {
                let handed = &mut self.dossier(of.order).handed;
                let handed = handed.entry((of.step, of.attempt, to.clone())).or_insert((*until_ms, *budget_ms));
                *handed = (*until_ms, handed.1.min(*budget_ms));
                self.handed_as(*of, message, *overlaps, *is_copied);
                self.receives(*of, to, *fresh_until_ms);
                self.asked_no_more(*of, to);
                Ok(())
            }
            Seen::Looked { order, by } => {
                self.looks(*order, by);
                Ok(())
            }
            Seen::Refused { of } => {
                self.refuses(*of);
                Ok(())
            }
            Seen::Replied { of, ending, output, kept, code, by, clock_ms } => {
                if *ending == Ending::Done && of.way == Way::Forward && by.starts_with("api") {
                    self.is_told_done(*of);
                }
                self.replied(*of, (*ending, *output), by, *clock_ms)
                    .and_then(|()| self.was_rejected(*of, *ending, code.as_ref()))
                    .and_then(|()| self.kept_is_right(*of, *ending, kept.as_ref()))
            }
            Seen::Unsent { of, by } => {
                *self.dossier(of.order).unsent.entry((of.step, of.attempt, *by)).or_default() += 1;
                Ok(())
            }
            Seen::Dismissed { of, by, returned } => self.dismissed(*of, *by, *returned),
            Seen::Buried { of } => {
                self.dossier(of.order).dead_letters.push(*of);
                Ok(())
            }
            Seen::Called { of, call, key, body, twins, agent, by, clock_ms } => self
                .begins(*of, *call, *agent)
                .called(*of, (key, body), *twins)
                .and_then(|()| self.calls_alone(*of, *agent))
                .and_then(|()| self.key_is_right(*of, key))
                .and_then(|()| self.body_is_right(*of, body))
                .and_then(|()| self.call_in_time(*of, *agent, by, *clock_ms))
                .and_then(|()| self.is_wanted_still(*of, by, *clock_ms))
                .and_then(|()| self.waits_as_asked(*of, by)),
            Seen::FetchesToken { by, twins } => Self::fetches_alone(by, *twins),
            Seen::SendsAgain { of, by } => {
                self.sends_again(*of, by);
                Ok(())
            }
            Seen::AskedToWait { of, by, until_ms } => {
                self.asked_to_wait(*of, by, *until_ms);
                Ok(())
            }
            Seen::Answered { of, call, heard } => {
                self.answered(*of, *call, heard);
                Ok(())
            }
            Seen::Effect { of } => self.effect(*of),
            Seen::Confirmed { of } => self.confirmed(*of),
            Seen::Telling { order, kind, version, channel } => {
                self.telling(*order, *kind, *version, channel.as_deref())
            }
            Seen::Told { order, kind, version } => {
                self.dossier(*order).told.insert((*kind, *version));
                Ok(())
            }
            Seen::DeadLetterDue { id } => {
                self.dead_letters_due.insert(id.clone());
                Ok(())
            }
            Seen::LetterTold { id } => {
                self.dead_letters_due.remove(id);
                Ok(())
            }
            Seen::DeadLetterGone { id } => must(!self.dead_letters_due.contains(id), Invariant::Alert, || {
                format!("dead letter {id} is let go, and nobody will ever be told of it")
            }),
            Seen::Decided { order, step, approves } => {
                self.decided(*order, *step, *approves);
                Ok(())
            }
            Seen::Wished { order, action, settled } => {
                self.wished(*order, action, settled.as_ref());
                Ok(())
            }
            Seen::NoteQueued { order, words, take } => {
                self.note_queued(*order, words, *take);
                Ok(())
            }
            Seen::NoteHandled { order, words, looked_at } => self.note_handled(*order, words, *looked_at),
            Seen::Promised { order, action } => self.promised(*order, action),
            Seen::Granted { order, action, looked_at, step, clock_ms } => {
                self.granted(*order, action, *looked_at, *step, *clock_ms)
            }
            Seen::Acknowledged { order, by, earlier, given_ms, is_whole, clock_ms } => {
                self.acknowledged(*order, *by, (earlier, *given_ms), *is_whole, *clock_ms)
            }
            Seen::Panicked { words } => Err((Invariant::Panic, words.to_string())),
            Seen::EndIsDue { since_ms, bound_ms } => self.end_is_due(*since_ms, *bound_ms),
            Seen::DrainIsDue { queued } => self.drain_is_due(*queued),
        };
        if let Err((invariant, words)) = finding {
            self.complain(invariant, seen.order(), words);
        }
    }

    fn troubled(&mut self, until_ms: i64) {
        self.troubled_until_ms = until_ms;
    }

    fn jumped(&mut self, until_ms: i64) {
        self.jumped_until_ms = until_ms;
    }

    fn is_done(&self) -> bool {
        !self.violations.is_empty()
    }
}
