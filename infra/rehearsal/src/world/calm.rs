//! The phase after the faults: operators act, every order ends, and the end state is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::id::OrderId;
use domain::limits::{DEFERRAL_MS_MAX, SETTLES_WITHIN_MS_MAX, UNWATCHED_MS_MAX, WAIT_MS_MAX};
use domain::message::Action;
use domain::task::{ProcessState, Step};
use domain::workflow::Workflow;

use crate::event::Event;
use crate::faults::Fault;
use crate::seen::Seen;
use crate::setup::Setup;
use crate::world::World;

/// The first pause between two checks, in milliseconds.
const LOOK_MS: u64 = 60_000;
/// The longest pause between two checks where services are described, in milliseconds.
const DAY_MS: u64 = 24 * 60 * LOOK_MS;
/// The longest delay of a message: it is hours late, becomes a dead letter, and is redriven hours later.
const LATE_MS_MAX: u64 = 8 * 3_600_000;
/// The most commands of operators for one order.
const ACTS_MAX: u32 = 2;
/// The most where services are described and the order is past a pivot: of steps side by side, one may be given up after the
/// other.
const RESUBMITS_MAX: u32 = 5;

/// The progress of this phase.
#[derive(Debug, Default)]
pub struct Calm {
    since_ms: i64,
    /// Operators' commands by order. An order that they leave alone counts as handled for good.
    acts: BTreeMap<OrderId, u32>,
}

impl World {
    /// Faults stop.
    pub(crate) fn begin_calm(&mut self) {
        {
            let mut state = self.shared.lock();
            state.is_calm = true;
            state.end_jumps();
            state.tables.is_watch_changed = true;
            state.tell("faults stop");
            self.calm.since_ms = state.now_ms;
            for queue in 0..=state.setup.shape.dead_letters() {
                state.after(0, Event::Pump(queue));
            }
            state.after(LOOK_MS, Event::Look);
        }
        for invocation in 0..self.executor.next_number() {
            self.executor.resume(invocation);
        }
        // Clocks are right from now on: instances with wrong clocks are replaced.
        self.recycle(1_000);
    }

    /// Checks whether the phase is over, and lets operators act.
    pub(crate) fn look(&mut self) {
        let (is_quiet, bound_ms) = {
            let mut state = self.shared.lock();
            let bound_ms = bound_ms(&state.setup);
            let (now_ms, since_ms) = (state.now_ms, self.calm.since_ms);
            state.watcher.see(now_ms, &Seen::EndIsDue { since_ms, bound_ms });
            let is_told =
                state.tables.tasks().iter().all(|task| task.unsent.is_empty() && task.process_state.is_settled());
            (is_told && state.queues.is_empty() && self.jobs.is_empty(), bound_ms)
        };
        let acts = self.operate();
        let mut state = self.shared.lock();
        let limit_ms =
            self.calm.since_ms + bound_ms + i64::try_from(LATE_MS_MAX).unwrap_or(0) + resend_ms(&state.setup);
        let is_over =
            is_quiet && acts == 0 && self.customers.are_content() && state.remotes.are_idle() && !state.is_waited_for();
        if is_over || state.now_ms > limit_ms {
            let (world, queued) = (state.world.clone(), state.queues.len());
            state.see(&world, &Seen::DrainIsDue { queued });
            drop(state);
            return self.end();
        }
        // The pauses grow: only messages that are hours late are left.
        let since_ms = state.now_ms.abs_diff(self.calm.since_ms);
        // Those of a user may wait for a year.
        let longest_ms = if state.setup.is_described() { DAY_MS } else { 10 * LOOK_MS };
        state.after((since_ms / 4).clamp(LOOK_MS, longest_ms), Event::Look);
    }

    /// Operators resume paused orders, and resubmit, cancel, settle or leave orders in `Error`. Returns the number of orders acted
    /// on.
    fn operate(&mut self) -> usize {
        self.decide_some();
        if self.shared.lock().is_waited_for() {
            return 0;
        }
        let mut commands: Vec<(OrderId, Action)> = Vec::new();
        let settles = self.shared.lock().setup.plan.has(Fault::Settled);
        {
            let mut state = self.shared.lock();
            let tasks = state.tables.tasks();
            for task in tasks {
                let acts = self.calm.acts.entry(task.order_id).or_default();
                let is_described = state.setup.is_described();
                let only_resubmits = is_described && task.past_pivot().is_some();
                let acts_max = if only_resubmits { RESUBMITS_MAX } else { ACTS_MAX };
                if task.paused.is_some() && !task.process_state.is_settled() {
                    commands.push((task.order_id, Action::Resume));
                } else if task.process_state == ProcessState::Error && *acts < acts_max {
                    // An operator whose services are described tries first, and then cancels. One that knows no key of
                    // the order any more would carry it out again.
                    let is_forgotten = state.has_forgotten(task.order_id);
                    let choice = match is_described {
                        true if only_resubmits => 1,
                        true => u64::from(*acts) + 1,
                        false => state.rng.below(3),
                    };
                    match if is_described && is_forgotten { 0 } else { choice } {
                        0 => *acts = acts_max,
                        1 => {
                            *acts += 1;
                            commands.push((task.order_id, Action::Resubmit));
                        }
                        _ => {
                            *acts += 1;
                            commands.push((task.order_id, Action::Cancel));
                        }
                    }
                }
            }
        }
        for (order, action) in &commands {
            let is_settled = *action == Action::Resubmit && settles && self.settle_step(*order);
            if !is_settled {
                self.command(*order, *action);
            }
        }
        commands.len()
    }
}

impl World {
    /// People decide on some of the orders that wait for them. The others wait for as long as they may.
    fn decide_some(&mut self) {
        let asked: Vec<OrderId> = {
            let mut state = self.shared.lock();
            let is_asked = |task: &Arc<domain::task::Task>| task.steps.iter().any(Step::is_asked);
            let orders: Vec<OrderId> =
                state.tables.tasks().into_iter().filter(is_asked).map(|task| task.order_id).collect();
            orders.into_iter().filter(|_| state.rng.chance(5_000)).collect()
        };
        asked.into_iter().for_each(|order| self.decide(order));
    }
}

/// The time within which every order ends after the faults, in milliseconds. It sums limits, graces, back-offs and
/// supervisor periods in both directions, and the delays of messages and instances.
#[must_use]
pub fn bound_ms(setup: &Setup) -> i64 {
    // What is applied may double it.
    let settles_ms = setup.settles_within_ms() * if setup.applied.is_empty() { 1 } else { 2 };
    let of = |workflow: &Arc<Workflow>| -> u64 {
        let patience = &workflow.supervision;
        let doubt_ms = patience.doubt_after_ms.map_or(0, |ms| ms);
        let between_ms =
            patience.grace_ms + patience.backoff.wait_ms_max() + patience.wake_lost_after_ms + setup.tick_ms;
        let attempts = workflow.steps.iter().map(|rule| {
            let awaited_ms = rule.waits.within_ms.unwrap_or(0);
            let attempt_ms = 2 * rule.complete_within_ms + awaited_ms + between_ms + doubt_ms + setup.visibility_ms;
            // Forward and undo. A call under way is waited for, and an attempt that it kept from ending.
            let longer_ms = rule.longer.map_or(0, |longer| longer.wait_ms * u64::from(longer.times));
            rule.waits.before_ms.unwrap_or(0)
                + 2 * longer_ms
                + 2 * (u64::from(rule.failures_to_give_up() + 1) * attempt_ms + 3 * (settles_ms + attempt_ms))
        });
        attempts.sum()
    };
    let longest_ms = setup.shape.versions().map(of).max().unwrap_or(0);
    // A user's order may name when it begins.
    let waits = |workflow: &Arc<Workflow>| workflow.steps.iter().any(|rule| rule.waits.not_before.is_some());
    let names_a_time = setup.documents.iter().any(|document| document.contains("\"NotBefore\""));
    let begins_ms = if names_a_time || setup.shape.versions().any(waits) { WAIT_MS_MAX } else { 0 };
    // Operators act after an outage, at one of the looks, which are a day apart by then.
    let lasts_ms = setup.mishap.map(|mishap| mishap.lasts_ms).max(setup.failing_lines.map(|lines| lines.lasts_ms));
    let away_ms = lasts_ms.map_or(0, |ms| ms + 4 * DAY_MS);
    let longest_ms = longest_ms + away_ms + if setup.is_described() { begins_ms } else { 0 };
    // Starting instances, open circuit breakers, hidden messages, and clocks that were wrong until now.
    let rest_ms = 120_000 + 4 * setup.visibility_ms + 3 * setup.skew_ms + 10 * setup.tick_ms;
    // What wrong clocks have written: an order is found after the longest time unwatched, a back-off is as long as a
    // deferral, and an undo waits for the longest setting (rule 23).
    let ahead_ms =
        UNWATCHED_MS_MAX + 7 * setup.tick_ms * u64::from(setup.shards) + DEFERRAL_MS_MAX + SETTLES_WITHIN_MS_MAX;
    let ahead_ms = if setup.clocks_jump() { ahead_ms } else { 0 };
    i64::try_from(longest_ms + rest_ms + ahead_ms).unwrap_or(i64::MAX)
}

/// The longest pause before a notice is sent again, in milliseconds.
fn resend_ms(setup: &Setup) -> i64 {
    let pauses_ms = setup.shape.versions().map(|workflow| workflow.supervision.resend_after_ms << 8);
    i64::try_from(pauses_ms.max().unwrap_or(0)).unwrap_or(i64::MAX)
}
