//! `GET /overview`: the first view of an operator, in one answer.
//!
//! A watching client asks again and again, so the work is bounded for any number of orders. Each state is counted up
//! to a bound, and finished orders only among the newest ones. The answer says where the count stopped.

mod failures;
mod minutes;

use bytes::Bytes;
use domain::ports::{DeadLetterRecord, Environment, Records};
use domain::task::ProcessState;
use domain::time::Timestamp;
use futures_util::future::{try_join, try_join3};
use http::{Response, StatusCode};
use wire::{Count, DeadLetterCount, Minute, Overview, Took};

use crate::config::ApiConfig;
use crate::numbers::{self, Counted};
use crate::ports::ApiPorts;
use crate::problem::{Problem, reason_of};
use crate::walk::{Walked, count_of, under_way, walk};
use crate::{leases, reply, services};
use failures::Failures;
use minutes::{Newest, Window};

/// Largest number of dead letters that are counted: an unreadable one has a body of up to 320 KiB.
const DEAD_LETTERS_MAX: usize = 100;

/// The orders by state, the errors of those that wait for an operator, and the supervisors.
pub(crate) async fn overview(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let (records, now) = (ports.records(), ports.environment().now());
    let mut failures = Failures::default();
    let (orders, (failed, health, (leases, dead_letters))) = try_join(
        async {
            match numbers::of_minutes(ports, now, minutes::MINUTES).await? {
                Some(counted) => Ok(Orders::counted(counted)),
                None => Orders::found(ports, now).await,
            }
        },
        try_join3(
            walk(ports, Some(ProcessState::Error), |task| {
                failures.take(task);
                true
            }),
            async { records.list(usize::MAX).await.map_err(Problem::unread) },
            async {
                let (leases, dead_letters) = (records.list(usize::MAX), records.list(DEAD_LETTERS_MAX + 1));
                try_join(leases, dead_letters).await.map_err(Problem::unread)
            },
        ),
    )
    .await?;
    let configured = config.services(ports).await.map_err(Problem::unread)?;
    let waiting = services::waiting(ports, &health).await?;
    // A paused server says so itself.
    let is_ready = if config.is_paused() { None } else { config.is_ready().await };
    let unready = is_ready.and_then(Result::err).map(|error| reason_of(&error).into());
    let overview = Overview {
        at: now,
        paused: config.is_paused(),
        unready,
        counts: orders.counts(&failed),
        counted_since: orders.counted_since,
        approvals: orders.approvals,
        minutes_complete: orders.is_complete,
        took: orders.took,
        failures: failures.grouped(failed.more),
        services: services::views(&health, &configured, waiting.as_ref()),
        leases: leases::views(&leases, now),
        dead_letters: Some(counted(&dead_letters)),
        minutes: orders.minutes,
    };
    Ok(reply::json(StatusCode::OK, &overview))
}

/// The orders by state, and those of the last minutes.
struct Orders {
    /// In the states that [`walk`] did not count: all but `Error`, or all.
    counts: Vec<Count>,
    counted_since: Option<Timestamp>,
    approvals: Option<u64>,
    is_complete: bool,
    took: Option<Took>,
    minutes: Vec<Minute>,
}

impl Orders {
    /// As the store counted them.
    fn counted(counted: Counted) -> Self {
        let minute = |point: &wire::Point| {
            let wire::OrderNumbers { accepted, processed, compensated, closed, failed, .. } = point.orders;
            let [accepted, processed, compensated, closed, error, under_way] =
                [accepted, processed, compensated, closed, failed, point.under_way]
                    .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            Minute { at: point.at, accepted, processed, compensated, closed, error, under_way }
        };
        Self {
            took: counted.took(),
            counts: counted.counts,
            counted_since: counted.numbers.since,
            approvals: Some(counted.numbers.total.orders().approvals()),
            is_complete: true,
            minutes: counted.points.iter().map(minute).collect(),
        }
    }

    /// As far as a bounded walk through the lists finds them.
    async fn found(ports: &impl ApiPorts, now: Timestamp) -> Result<Self, Problem> {
        let mut newest = Newest::of(Window::until(now));
        let (under_way, recent) = try_join(under_way(ports), walk(ports, None, |task| newest.take(task))).await?;
        let is_complete = newest.is_whole(recent.more);
        let since = Some(newest.window().since());
        let finished = |state: ProcessState| {
            let count = newest.finished(state);
            Count { state: state.into(), count, at_least: !is_complete, since, oldest_at: None }
        };
        let is_final = |state: &ProcessState| state.is_final();
        let finals = ProcessState::ALL.into_iter().filter(is_final).map(finished);
        let counts = under_way.into_iter().chain(finals).collect();
        Ok(Self {
            counts,
            counted_since: None,
            approvals: None,
            is_complete,
            took: None,
            minutes: newest.into_minutes(),
        })
    }

    /// Each state once, in the order of [`ProcessState::ALL`].
    fn counts(&self, failed: &Walked) -> Vec<Count> {
        let of = |state: ProcessState| self.counts.iter().find(|count| count.state == state).cloned();
        let states = ProcessState::ALL.into_iter();
        states.map(|state| of(state).unwrap_or_else(|| count_of(state, failed))).collect()
    }
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
