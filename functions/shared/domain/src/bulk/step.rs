//! One step of a job: from the stored records to the next record, and to the commands and new orders to send.

use super::job::{Entry, Job, JobState, Tally};
use super::{BulkAction, FOUND_MIN, RESEND_AFTER_MS, RESENDS_MAX, SAMPLE_MIN, UNDER_WAY_MAX};
use crate::id::CommandId;
use crate::limits::HISTORY_MAX;
use crate::message::{Command, Settled, Settlement};
use crate::order::AgainOf;
use crate::ports::Page;
use crate::task::{ProcessState, Step, Task, Watch, reason};
use crate::time::Timestamp;

/// Largest number of pages of the scan that a step reads.
pub const PAGES_AT_ONCE: usize = 5;

/// The progress of an order in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// In the state in which it was found: the command has had no effect yet, or there is no new order yet.
    Untouched,
    /// Handled, and not settled yet.
    OnItsWay,
    /// Handled, and at the end that the action is for.
    Recovered,
    /// Handled, and in `Error` still or again, or compensated instead of carried out.
    FailedAgain,
    /// Another operator or job changed it, or it is paused.
    PassedOver,
}

/// What to send about an order once the job is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The order, and when the message is delivered.
    pub entry: Entry,
    /// The message.
    pub errand: Errand,
    /// Its delay, in milliseconds.
    pub delay_ms: u64,
}

/// What a job sends about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// A command, in the order's priority.
    Command(Command),
    /// A new order of this origin, if the order may still be posted again and there is none.
    Again(AgainOf),
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The job to write; `None` if nothing changes.
    pub job: Option<Job>,
    /// The commands and new orders to send after the write. Sending them again is harmless.
    pub send: Vec<Outgoing>,
}

/// The progress of an order that the job sent a command to, from its present task.
#[must_use]
pub fn entry_state(job: &Job, entry: &Entry, task: Option<&Task>) -> EntryState {
    let Some(task) = task else {
        return EntryState::PassedOver;
    };
    let failed_in = task.reason.as_ref().map_or(0, |reason| reason.since_version);
    let was_cancelled = task.reason.as_ref().is_some_and(|reason| &*reason.code == reason::CANCELLED);
    // A full history may have lost the line. Then the order counts, so that a failure is not missed. The line of a cancel
    // or close is one of the last.
    let action = job.spec.action;
    let has_handled = job.has_handled(task);
    let is_guessed = !matches!(action, BulkAction::Cancel | BulkAction::Close) && task.history.len() >= HISTORY_MAX;
    let is_ours = has_handled || is_guessed;
    // A settle leaves an order in the same error if another of its steps is in `Error`.
    let is_half_done = action == BulkAction::Settle && has_handled;
    match (task.process_state, is_ours) {
        (ProcessState::Error, _) if failed_in <= entry.version && !is_half_done => EntryState::Untouched,
        (_, false) => EntryState::PassedOver,
        (ProcessState::Error, true) => EntryState::FailedAgain,
        (state, true) if is_recovery(action, entry, state) => EntryState::Recovered,
        (ProcessState::Compensating | ProcessState::Compensated, true)
            if was_cancelled && action != BulkAction::Cancel =>
        {
            EntryState::PassedOver
        }
        (ProcessState::Processed | ProcessState::Compensated, true) => EntryState::FailedAgain,
        (ProcessState::Closed, true) => EntryState::PassedOver,
        (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating, true) => open_state(task),
    }
}

/// The progress of an order that has not ended.
pub(super) fn open_state(task: &Task) -> EntryState {
    if task.steps.iter().any(Step::waits_longer) {
        // It reached its threshold again, and waits longer instead of coming into `Error` (rule 39).
        return EntryState::FailedAgain;
    }
    // An operator paused it, or it does nothing but wait for hours or days: the time of its end is unknown.
    match task.paused.is_some() || matches!(task.watch, Some(Watch::Wait(_))) {
        true => EntryState::PassedOver,
        false => EntryState::OnItsWay,
    }
}

/// Whether this is the end that the action is for.
fn is_recovery(action: BulkAction, entry: &Entry, state: ProcessState) -> bool {
    match action {
        BulkAction::Cancel => state == ProcessState::Compensated,
        BulkAction::Close => state == ProcessState::Closed,
        BulkAction::Resubmit | BulkAction::Settle => {
            state == ProcessState::Processed || (entry.undoing && state == ProcessState::Compensated)
        }
        BulkAction::Again => state == ProcessState::Processed,
    }
}

impl Job {
    /// Whether a step needs more orders of the scan, up to [`PAGES_AT_ONCE`] pages from `cursor` on.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.state.is_active() && !self.scanned && self.found.len() < FOUND_MIN
    }
}

/// The next step of a job. `entry_states` are those of its orders in flight, in their order. `pages` are the pages of
/// the scan from its cursor on. Orders for the next `tick_ms` begin at once, spread by the queue's delay, since the
/// next step comes only after that time.
#[must_use]
pub fn carry_on(job: &Job, entry_states: &[EntryState], pages: &[Page], now: Timestamp, tick_ms: u64) -> Next {
    let mut after = job.clone();
    let mut due = Vec::new();
    believe(&mut after, now, tick_ms);
    if job.state.is_active() {
        due = settle(&mut after, entry_states, now);
        for page in pages {
            after.absorb(page, now);
        }
        change_state(&mut after, now);
    }
    if !after.state.is_active() {
        due.clear();
    } else {
        due.extend(begin(&mut after, now, tick_ms));
    }
    let send = due.iter().map(|entry| outgoing(&after, entry, now)).collect();
    let changed = after != *job;
    after.version += 1;
    Next { job: changed.then_some(after), send }
}

/// Times of orders lie one tick ahead at most. Those further ahead were written by a wrong clock, and count as now (rule
/// 23).
fn believe(job: &mut Job, now: Timestamp, tick_ms: u64) {
    let times = job.under_way.iter_mut().map(|entry| &mut entry.at).chain([&mut job.next_at]);
    for at in times.filter(|at| at.is_beyond(now, tick_ms.saturating_add(1_000))) {
        *at = now;
    }
}

/// Removes the orders that are settled, and returns those whose command must be sent again.
fn settle(job: &mut Job, entry_states: &[EntryState], now: Timestamp) -> Vec<Entry> {
    let mut again = Vec::new();
    let mut open = Vec::with_capacity(job.under_way.len());
    let timeout_ms = job.timeout_ms();
    for (mut entry, entry_state) in std::mem::take(&mut job.under_way).into_iter().zip(entry_states) {
        match entry_state {
            EntryState::Recovered => job.tally.recovered += 1,
            EntryState::FailedAgain => job.tally.failed_again += 1,
            EntryState::PassedOver => job.tally.passed_over += 1,
            // Every wait ends: that of the other orders for a canary, and that of the job for its last order.
            EntryState::OnItsWay | EntryState::Untouched if entry.at.plus_ms(timeout_ms) <= now => {
                job.tally.failed_again += 1;
                job.tally.late += 1;
            }
            EntryState::OnItsWay => open.push(entry),
            EntryState::Untouched => {
                let due = resends_due(&entry, now);
                if due > entry.resent {
                    entry.resent = due;
                    again.push(entry);
                }
                open.push(entry);
            }
        }
    }
    job.under_way = open;
    again
}

/// How often the command of an unchanged order should have been sent again by now.
fn resends_due(entry: &Entry, now: Timestamp) -> u8 {
    let is_due = |n: &u8| entry.at.plus_ms(RESEND_AFTER_MS * ((1 << n) - 1)) <= now;
    (1..=RESENDS_MAX).take_while(is_due).last().unwrap_or(0)
}

/// Decides whether and how the job goes on.
fn change_state(job: &mut Job, now: Timestamp) {
    let nothing_waits = job.scanned && job.found.is_empty();
    let none_is_open = job.under_way.is_empty();
    let next = match job.state {
        JobState::Canary | JobState::Running if nothing_waits && none_is_open => Some(JobState::Done),
        JobState::Canary => {
            let all_settled = job.tally.settled() >= u64::from(job.spec.canary);
            all_settled.then(|| verdict(job, "canaries").unwrap_or(JobState::Running))
        }
        JobState::Running => {
            let is_sample = job.tally.settled() >= SAMPLE_MIN || none_is_open;
            is_sample.then(|| verdict(job, "settled orders")).flatten()
        }
        JobState::Planned | JobState::Done | JobState::Stopped(_) | JobState::Cancelled(_) => None,
    };
    if let Some(state) = next {
        job.state = state;
        job.since = now;
    }
}

/// Whether too many orders failed again.
fn verdict(job: &Job, of_what: &str) -> Option<JobState> {
    let Tally { failed_again: failed, late, .. } = job.tally;
    let settled = job.tally.settled();
    let percent_max = u64::from(job.spec.stop_at_failed_percent);
    let is_too_many = failed * 100 > percent_max * settled;
    let words = || {
        let late = if late == 0 { String::new() } else { format!(" ({late} of them were not settled in time)") };
        format!("{failed} of {settled} {of_what} failed again{late}, more than {percent_max} %")
    };
    is_too_many.then(|| JobState::Stopped(words().into()))
}

/// Begins the next orders, at the rate, and returns them.
fn begin(job: &mut Job, now: Timestamp, tick_ms: u64) -> Vec<Entry> {
    let gap_ms = u64::from(1_000_u32.div_ceil(job.spec.rate_per_second.max(1)));
    let room = UNDER_WAY_MAX.saturating_sub(job.under_way.len());
    // Settled canaries count, and not begun ones: an order that was passed over is replaced.
    let canaries = job.tally.settled() + job.under_way.len() as u64;
    let canaries_left = u64::from(job.spec.canary).saturating_sub(canaries);
    let may_begin = match job.state {
        JobState::Canary => room.min(usize::try_from(canaries_left).unwrap_or(room)),
        JobState::Running => room,
        JobState::Planned | JobState::Done | JobState::Stopped(_) | JobState::Cancelled(_) => 0,
    };
    let first_at = job.next_at.max(now);
    let until = now.plus_ms(tick_ms.max(1));
    let places = 0..may_begin.min(job.found.len()) as u64;
    let times: Vec<Timestamp> =
        places.map(|place| first_at.plus_ms(place * gap_ms)).take_while(|at| *at < until).collect();
    let next = job.found.drain(..times.len());
    let begun: Vec<Entry> = next.zip(times).map(|(entry, at)| Entry { at, ..entry }).collect();
    if let Some(last) = begun.last() {
        job.next_at = last.at.plus_ms(gap_ms);
        job.tally.begun += begun.len() as u64;
        job.under_way.extend(&begun);
        if job.state == JobState::Canary {
            job.since = now;
        }
    }
    begun
}

fn outgoing(job: &Job, entry: &Entry, now: Timestamp) -> Outgoing {
    let errand = match command(job, entry) {
        Some(command) => Errand::Command(command),
        None => Errand::Again(job.origin(entry)),
    };
    Outgoing { entry: *entry, errand, delay_ms: now.ms_until(entry.at) }
}

/// The command about an order; `None` if it is posted again.
pub(super) fn command(job: &Job, entry: &Entry) -> Option<Command> {
    let action = job.spec.action.command()?;
    let step = job.spec.selector.step.clone().filter(|_| job.spec.action == BulkAction::Settle);
    let settle = step.map(|step| {
        let outcome = if entry.undoing { Settled::Undone } else { Settled::Done };
        Settlement { step, outcome, output: None }
    });
    Some(Command {
        order_id: entry.order_id,
        action,
        by: job.spec.by.clone(),
        reason: job.spec.reason.clone(),
        command_id: CommandId::of_job(job.id.clone()),
        version: Some(entry.version),
        bulk: Some(job.id.clone()),
        settle,
        take: None,
        step: None,
    })
}
