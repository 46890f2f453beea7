//! `GET /overview`: what an operator looks at first, in one answer.
//!
//! Whoever watches asks again and again, so what it takes is bounded however many orders there are: a state is counted up to
//! a bound, and what is finished only as far as it is among the newest orders. The answer says where it stopped.

mod failures;
mod minutes;

use std::sync::Arc;

use bytes::Bytes;
use domain::limits::PAGE_MAX;
use domain::ports::LetterRecord;
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use futures_util::future::{try_join, try_join4};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::door::Door;
use crate::leases::{self, LeaseView};
use crate::problem::Problem;
use crate::services::{self, ServiceView};
use crate::{ApiPorts, list, reply};
use failures::Failure;
use minutes::{Minute, Window};

/// Orders of a state that are looked at.
const ORDERS_MAX: usize = 1_000;
/// Dead letters that are counted: one that nobody can read has a body of up to 160 KiB.
const LETTERS_MAX: usize = 100;
/// Pages of the store read for one state; a store may give pages that are short.
const PAGES_MAX: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Overview<'a> {
    at: Timestamp,
    counts: Vec<Count>,
    minutes: Vec<Minute>,
    /// Whether `minutes` and the counts of what is finished tell of all orders of their time.
    minutes_complete: bool,
    failures: Vec<Failure<'a>>,
    services: Vec<ServiceView<'a>>,
    leases: Vec<LeaseView<'a>>,
    dead_letters: DeadLetters,
}

/// How many orders are in a state.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Count {
    state: ProcessState,
    count: usize,
    /// Whether there are, or may be, more.
    at_least: bool,
    /// Where only orders are counted that were submitted since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeadLetters {
    count: usize,
    at_least: bool,
    /// When the last of them was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_at: Option<Timestamp>,
}

/// Tasks of a list, from its beginning.
pub(super) struct Taken {
    pub(super) tasks: Vec<Arc<Task>>,
    /// Whether the list goes on behind them.
    pub(super) more: bool,
}

/// How the orders stand, what is wrong with those that wait for an operator, and who looks after them.
pub(crate) async fn overview(ports: &impl ApiPorts, door: &Door) -> Result<Response<Bytes>, Problem> {
    let now = ports.now();
    let window = Window::until(now);
    let all = |_: &Task| true;
    let (under_way, (failed, recent, health, (leases, letters))) = try_join(
        under_way(ports),
        try_join4(
            take(ports, Some(ProcessState::Error), all),
            take(ports, None, |task| task.submitted_at().is_none_or(|at| at >= window.since())),
            async { ports.all_health().await.map_err(Problem::unread) },
            try_join(async { ports.all_leases().await.map_err(Problem::unread) }, async {
                ports.letters(LETTERS_MAX + 1).await.map_err(Problem::unread)
            }),
        ),
    )
    .await?;
    let [pending, processing, compensating] = under_way;
    let error = Count::of(ProcessState::Error, &failed);
    let minutes = window.minutes(&recent.tasks);
    let finished = |state| Count::finished(state, &recent, &window);
    let overview = Overview {
        at: now,
        counts: vec![
            pending,
            processing,
            finished(ProcessState::Processed),
            error,
            compensating,
            finished(ProcessState::Compensated),
        ],
        minutes,
        minutes_complete: window.is_whole(&recent),
        failures: failures::grouped(&failed),
        services: services::views(&health, door),
        leases: leases::views(&leases, now),
        dead_letters: DeadLetters::of(&letters),
    };
    Ok(reply::json(StatusCode::OK, &overview))
}

async fn under_way(ports: &impl ApiPorts) -> Result<[Count; 3], Problem> {
    let count = async |state| Ok::<_, Problem>(Count::of(state, &take(ports, Some(state), |_| true).await?));
    let (pending, (processing, compensating)) = try_join(
        count(ProcessState::Pending),
        try_join(count(ProcessState::Processing), count(ProcessState::Compensating)),
    )
    .await?;
    Ok([pending, processing, compensating])
}

/// The first tasks of a list, until one is not wanted, or there are enough.
async fn take(
    ports: &impl ApiPorts,
    state: Option<ProcessState>,
    is_wanted: impl Fn(&Task) -> bool,
) -> Result<Taken, Problem> {
    let mut taken = Taken { tasks: Vec::new(), more: true };
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = list::page(ports, state, after.as_deref(), PAGE_MAX.min(ORDERS_MAX - taken.tasks.len())).await?;
        let is_enough = page.tasks.last().is_some_and(|task| !is_wanted(task));
        taken.tasks.extend(page.tasks);
        taken.more = page.next.is_some();
        after = page.next;
        if is_enough || !taken.more || taken.tasks.len() >= ORDERS_MAX {
            break;
        }
    }
    Ok(taken)
}

impl Count {
    fn of(state: ProcessState, taken: &Taken) -> Self {
        Self { state, count: taken.tasks.len(), at_least: taken.more, since: None }
    }

    /// Of what is finished there may be millions: the count is that of the recent ones.
    fn finished(state: ProcessState, recent: &Taken, window: &Window) -> Self {
        let count = recent.tasks.iter().filter(|task| task.process_state == state && window.has(task)).count();
        Self { state, count, at_least: !window.is_whole(recent), since: Some(window.since()) }
    }
}

impl DeadLetters {
    fn of(letters: &[LetterRecord]) -> Self {
        Self {
            count: letters.len().min(LETTERS_MAX),
            at_least: letters.len() > LETTERS_MAX,
            newest_at: letters.first().map(|letter| letter.settled_at),
        }
    }
}

#[cfg(test)]
mod tests;
