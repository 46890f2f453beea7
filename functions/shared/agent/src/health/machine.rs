//! What the record becomes, and where it stands. Pure.

use std::sync::Arc;

use domain::backoff::Backoff;
use domain::ports::{Breaker, Release, ServiceHealth};
use domain::time::Timestamp;

use crate::health::{HealthPolicy, release};

/// What a probe has beyond its call to report how it ended, in milliseconds, before it counts as orphaned.
const REPORT_MS: u64 = 1_000;

/// What happened, or is asked for. An era names those who were let through in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request would like to probe, and would take this long at most.
    Probe { probe_ms: u64 },
    /// The service answered.
    Succeeded { era: u64 },
    /// The service failed so many times, without an answer between.
    Failed { era: u64, failures: u32 },
    /// The probe was not made after all.
    GivenBack { era: u64 },
    /// A request that had to wait would like to go on, and to take some permits for others.
    Release,
    /// Nobody waits any more, it seems.
    ReleaseOver,
}

/// The record after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) after: ServiceHealth,
    /// Permits that it gave out.
    pub(crate) permits: u32,
}

/// What the record says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Go on.
    Healthy,
    /// New requests go on; others need a permit.
    Recovering,
    /// Go on; and nobody waits any more, which ought to be written.
    Recovered,
    /// Wait.
    Parked { until: Timestamp },
    /// Whoever asks first may probe.
    ProbeDue,
    /// Wait for the probe.
    Probing,
}

/// The record of a service of which nothing is known.
pub(crate) fn blank(service: Arc<str>, policy: &HealthPolicy) -> ServiceHealth {
    ServiceHealth {
        service,
        version: 0,
        era: 0,
        state: Breaker::Closed,
        failures_in_a_row: 0,
        until: Timestamp::default(),
        backoff: Backoff::new(policy.backoff),
        since: Timestamp::default(),
        release: None,
    }
}

/// What the record says to a request at `now`.
pub(crate) fn phase(record: &ServiceHealth, now: Timestamp) -> Phase {
    match (record.state, record.release) {
        (Breaker::Closed, None) => Phase::Healthy,
        (Breaker::Closed, Some(release)) if release::is_over(release::at(release, record.since, now)) => {
            Phase::Recovered
        }
        (Breaker::Closed, Some(_)) => Phase::Recovering,
        (Breaker::Open, _) if now < record.until => Phase::Parked { until: record.until },
        (Breaker::HalfOpen, _) if now < record.until => Phase::Probing,
        (Breaker::Open | Breaker::HalfOpen, _) => Phase::ProbeDue,
    }
}

/// What the record becomes; nothing if it stays as it is. `draw` is 64 random bits.
pub(crate) fn transition(
    record: &ServiceHealth,
    event: Event,
    now: Timestamp,
    draw: u64,
    policy: &HealthPolicy,
) -> Option<Change> {
    let counts = |era| era == record.era;
    let after = match (record.state, event) {
        (Breaker::Closed, Event::Failed { era, failures }) if counts(era) => {
            let failures_in_a_row = record.failures_in_a_row.saturating_add(failures);
            if failures_in_a_row >= policy.failures_to_open {
                open(record, failures_in_a_row, now, draw)
            } else {
                ServiceHealth { failures_in_a_row, since: known_since(record, now), ..record.clone() }
            }
        }
        (Breaker::Closed, Event::Succeeded { era }) if counts(era) && record.failures_in_a_row > 0 => {
            ServiceHealth { failures_in_a_row: 0, ..record.clone() }
        }
        (Breaker::Closed, Event::Release) => return give_permits(record, now, policy),
        (Breaker::Closed, Event::ReleaseOver) if phase(record, now) == Phase::Recovered => {
            ServiceHealth { release: None, ..record.clone() }
        }
        // An orphaned probe is over like an opening is.
        (Breaker::Open | Breaker::HalfOpen, Event::Probe { probe_ms }) if now >= record.until => {
            entering(record, Breaker::HalfOpen, now.plus_ms(probe_ms.saturating_add(REPORT_MS)), now)
        }
        (Breaker::HalfOpen, Event::Succeeded { era }) if counts(era) => ServiceHealth {
            failures_in_a_row: 0,
            backoff: Backoff::new(policy.backoff),
            release: Some(Release::default()),
            ..entering(record, Breaker::Closed, now, now)
        },
        (Breaker::HalfOpen, Event::Failed { era, failures }) if counts(era) => {
            open(record, record.failures_in_a_row.saturating_add(failures), now, draw)
        }
        (Breaker::HalfOpen, Event::GivenBack { era }) if counts(era) => entering(record, Breaker::Open, now, now),
        (Breaker::Closed, Event::Probe { .. } | Event::GivenBack { .. })
        | (Breaker::Open | Breaker::HalfOpen, Event::Probe { .. } | Event::Release | Event::ReleaseOver)
        | (Breaker::Closed, Event::ReleaseOver)
        // What began in another era says nothing about this one.
        | (_, Event::Succeeded { .. } | Event::Failed { .. } | Event::GivenBack { .. }) => return None,
    };
    Some(Change { after: ServiceHealth { version: record.version + 1, ..after }, permits: 0 })
}

/// Open for the next wait of the back-off. A draw may give no wait at all, and a breaker that is open for no time is none,
/// so it is one slot at least.
fn open(record: &ServiceHealth, failures_in_a_row: u32, now: Timestamp, draw: u64) -> ServiceHealth {
    let backoff = record.backoff.next(draw);
    let wait_ms = backoff.wait_time_ms.max(backoff.policy.slot_time_ms);
    ServiceHealth {
        failures_in_a_row,
        backoff,
        release: None,
        ..entering(record, Breaker::Open, now.plus_ms(wait_ms), now)
    }
}

fn entering(record: &ServiceHealth, state: Breaker, until: Timestamp, now: Timestamp) -> ServiceHealth {
    ServiceHealth { state, until, era: record.era + 1, since: now, ..record.clone() }
}

fn known_since(record: &ServiceHealth, now: Timestamp) -> Timestamp {
    if record.version == 0 { now } else { record.since }
}

fn give_permits(record: &ServiceHealth, now: Timestamp, policy: &HealthPolicy) -> Option<Change> {
    let present = release::at(record.release?, record.since, now);
    if release::is_over(present) {
        return None;
    }
    let (release, permits) = release::take(present, policy);
    let after = ServiceHealth { version: record.version + 1, release: Some(release), ..record.clone() };
    (permits > 0).then_some(Change { after, permits })
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
