//! `GET /overview`: the first view of an operator, in one answer.
//!
//! A watching client asks again and again, so the work is bounded for any number of orders. Each state is counted up
//! to a bound, and finished orders only among the newest ones. The answer says where the count stopped.

mod failures;
mod minutes;

use bytes::Bytes;
use domain::limits::PAGE_MAX;
use domain::ports::{DeadLetterRecord, DeadLetterRecords, Environment, Leases, Records};
use domain::task::{ProcessState, Task};
use futures_util::future::{try_join, try_join4};
use http::{Response, StatusCode};
use wire::{Count, DeadLetterCount, Overview};

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{cursor, leases, reply, services};
use failures::Failures;
use minutes::{Newest, Window};

/// Tasks read for one list; the page that reaches this number is the last. A store without an index by state reads
/// many tasks to find a few.
const READ_MAX: usize = 1_000;
/// Largest number of dead letters that are counted: an unreadable one has a body of up to 160 KiB.
const DEAD_LETTERS_MAX: usize = 100;
/// Pages of the store read for one list; a store may return empty pages.
const PAGES_MAX: usize = 20;

/// The progress of a walk through a list, from its beginning.
struct Walked {
    /// Tasks in it so far.
    count: usize,
    /// Whether the list continues after them.
    more: bool,
}

/// The orders by state, the errors of those that wait for an operator, and the supervisors.
pub(crate) async fn overview(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let now = ports.environment().now();
    let (mut failures, mut newest) = (Failures::default(), Newest::of(Window::until(now)));
    let (under_way, (failed, recent, health, (leases, dead_letters))) = try_join(
        under_way(ports),
        try_join4(
            walk(ports, Some(ProcessState::Error), |task| {
                failures.take(task);
                true
            }),
            walk(ports, None, |task| newest.take(task)),
            async { ports.records().list(usize::MAX).await.map_err(Problem::unread) },
            try_join(async { ports.leases().all_leases().await.map_err(Problem::unread) }, async {
                ports.dead_letter_records().newest(DEAD_LETTERS_MAX + 1).await.map_err(Problem::unread)
            }),
        ),
    )
    .await?;
    let [pending, processing, compensating] = under_way;
    let error = count_of(ProcessState::Error, &failed);
    let minutes_complete = newest.is_whole(recent.more);
    let finished = |state: ProcessState, count| Count {
        state: state.into(),
        count,
        at_least: !minutes_complete,
        since: Some(newest.window().since()),
    };
    let configured = config.services(ports).await.map_err(Problem::unread)?;
    let overview = Overview {
        at: now,
        paused: config.is_paused(),
        counts: vec![
            pending,
            processing,
            finished(ProcessState::Processed, newest.processed()),
            error,
            compensating,
            finished(ProcessState::Compensated, newest.compensated()),
        ],
        minutes_complete,
        failures: failures.grouped(failed.more),
        services: services::views(&health, &configured),
        leases: leases::views(&leases, now),
        dead_letters: Some(counted(&dead_letters)),
        minutes: newest.into_minutes(),
    };
    Ok(reply::json(StatusCode::OK, &overview))
}

async fn under_way(ports: &impl ApiPorts) -> Result<[Count; 3], Problem> {
    let count = async |state| Ok::<_, Problem>(count_of(state, &walk(ports, Some(state), |_| true).await?));
    let (pending, (processing, compensating)) = try_join(
        count(ProcessState::Pending),
        try_join(count(ProcessState::Processing), count(ProcessState::Compensating)),
    )
    .await?;
    Ok([pending, processing, compensating])
}

/// Visits the first tasks of a list, until the visitor has enough after a page, or enough was read. No task is kept:
/// each may have outputs of many KiB.
async fn walk(
    ports: &impl ApiPorts,
    state: Option<ProcessState>,
    mut wants_more: impl FnMut(&Task) -> bool,
) -> Result<Walked, Problem> {
    let mut walked = Walked { count: 0, more: true };
    let (mut read, mut after) = (0, None);
    for _ in 0..PAGES_MAX {
        let page = cursor::page(ports, state, after.as_deref(), PAGE_MAX.min(READ_MAX - read)).await?;
        read += page.read.max(page.tasks.len());
        walked.count += page.tasks.len();
        let is_enough = page.tasks.iter().fold(false, |_, task| !wants_more(task));
        walked.more = page.next.is_some();
        after = page.next;
        if is_enough || !walked.more || read >= READ_MAX {
            break;
        }
    }
    Ok(walked)
}

fn count_of(state: ProcessState, walked: &Walked) -> Count {
    Count { state: state.into(), count: walked.count, at_least: walked.more, since: None }
}

/// The number of dead letters; one more than the limit shows that there are more.
fn counted(dead_letters: &[DeadLetterRecord]) -> DeadLetterCount {
    DeadLetterCount {
        count: dead_letters.len().min(DEAD_LETTERS_MAX),
        at_least: dead_letters.len() > DEAD_LETTERS_MAX,
        newest_at: dead_letters.first().map(|dead_letter| dead_letter.settled_at),
    }
}

#[cfg(test)]
mod tests;
