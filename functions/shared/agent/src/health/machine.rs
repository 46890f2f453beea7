//! The transitions of the record, and its phase. Pure.

use std::sync::Arc;

use domain::backoff::Backoff;
use domain::id::OrderId;
use domain::limits::ERROR_CHARS_MAX;
use domain::ports::{Answers, Breaker, Evidence, OrderAt, Outage, OutageReason, Rejections, Release, ServiceHealth};
use domain::time::Timestamp;

use crate::health::evidence::{add_asked, add_orders, add_own, answered, asked_until, failures_to_open, is_of_service};
use crate::health::pace::{self, Asked, Places};
use crate::health::rejections::{Said, Share, add, share};
use crate::health::{HealthPolicy, release};

/// The time that a probe has after its call to report its end, in milliseconds. After it the probe is orphaned.
const REPORT_MS: u64 = 1_000;
/// How long fewer orders must fail until they show that the service is misconfigured, in milliseconds.
const FEW_ORDERS_MS: u64 = 60_000;

/// An event or a request. An era identifies the calls that were let through in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// A request asks to probe, with a call of at most this time.
    Probe { probe_ms: u64 },
    /// The service did a step or rejected it. With it come all answers that this instance did not write yet.
    Said { era: u64, order: OrderId, said: Said, answers: &'a [Answers] },
    /// The service answered anything else: it undid a step or did not, or is at work on the call, and so took it on.
    Succeeded { era: u64, order: OrderId, is_taken: bool },
    /// The service failed.
    Failed { era: u64, is_probe: bool, failures: &'a Failures<'a> },
    /// The probe was not made.
    GivenBack { era: u64 },
    /// A request that an outage may have delayed asks to go on, and takes some permits for others. With it come the
    /// failures that this instance did not write yet.
    Release { failed: u32 },
    /// No delayed request seems to be left.
    ReleaseOver,
    /// Requests ask for the times of their calls.
    Turns(Asked),
}

/// Failures that an instance reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failures<'a> {
    /// How many more than successes.
    pub(crate) count: u32,
    /// The calls of the instance that ended lately, and were in no report.
    pub(crate) calls: u32,
    /// The orders whose calls failed.
    pub(crate) orders: Vec<OrderId>,
    /// Those that the service asked for no call, and until when.
    pub(crate) asked: Vec<OrderAt>,
    /// Orders that failed before an answer to another one, as the instance saw it.
    pub(crate) own: Vec<OrderAt>,
    /// Why the last one failed.
    pub(crate) reason: OutageReason,
    /// The last problem.
    pub(crate) problem: &'a str,
}

/// The record after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) after: ServiceHealth,
    /// The permits that it grants.
    pub(crate) permits: u32,
    /// The places that it gives.
    pub(crate) places: Option<Places>,
}

impl Change {
    fn to(after: ServiceHealth, permits: u32) -> Self {
        Self { after, permits, places: None }
    }
}

/// The meaning of the record for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Call.
    Healthy,
    /// New requests are called; those that an outage may have delayed need a permit.
    Recovering,
    /// Call. The release is over, which should be written.
    Recovered,
    /// Wait.
    Parked { until: Timestamp },
    /// The first request to ask may probe.
    ProbeDue,
    /// Wait for the probe.
    Probing,
}

/// The record of a service without a stored one.
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
        outage: None,
        unsent: None,
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    }
}

/// The meaning of the record for a request at `now`.
pub(crate) fn phase(record: &ServiceHealth, now: Timestamp) -> Phase {
    // `Since` and `Until` are of one write. If it lies ahead, another clock wrote them, or this one was set back: what
    // they say is over (rule 23).
    let is_over = record.since.is_beyond(now, 0);
    match (record.state, record.release) {
        (Breaker::Closed, None) => Phase::Healthy,
        (Breaker::Closed, Some(release)) if is_over || release::is_over(release, record.since, now) => Phase::Recovered,
        (Breaker::Closed, Some(_)) => Phase::Recovering,
        (Breaker::Open, _) if now < record.until && !is_over => Phase::Parked { until: record.until },
        (Breaker::HalfOpen, _) if now < record.until && !is_over => Phase::Probing,
        (Breaker::Open | Breaker::HalfOpen, _) => Phase::ProbeDue,
    }
}

/// The next record; `None` if it does not change. `draw` is 64 random bits.
pub(crate) fn transition(
    record: &ServiceHealth,
    event: Event<'_>,
    now: Timestamp,
    draw: u64,
    policy: &HealthPolicy,
) -> Option<Change> {
    let counts = |era| era == record.era;
    let after_answer = |order, is_taken| answered(&record.evidence, order, is_taken, now, policy);
    let after = match (record.state, event) {
        (Breaker::Closed, Event::Failed { era, failures, .. }) if counts(era) => {
            let known = ServiceHealth { since: known_since(record, now), ..failed(record, failures) };
            if known.failures_in_a_row >= failures_to_open(known.evidence.calls, policy) {
                open(&known, failures.reason, failures.problem, now, draw, policy)
            } else {
                known
            }
        }
        (Breaker::Closed, Event::Succeeded { era, order, is_taken }) if counts(era) && record.failures_in_a_row > 0 => {
            ServiceHealth { failures_in_a_row: 0, evidence: after_answer(order, is_taken), ..record.clone() }
        }
        (Breaker::Closed, Event::Said { era, order, said, answers }) if counts(era) => {
            let (since, evidence) = (known_since(record, now), after_answer(order, said == Said::Yes));
            let known = ServiceHealth { since, failures_in_a_row: 0, evidence, ..record.clone() };
            count(known, answers, now, draw, policy)
        }
        (_, Event::Turns(asked)) => {
            let (pace, places) = pace::take(record.pace.unwrap_or_default(), asked, now, policy.rate?);
            let after = ServiceHealth { version: record.version + 1, pace: Some(pace), ..record.clone() };
            return Some(Change { places: Some(places), ..Change::to(after, 0) });
        }
        (Breaker::Closed, Event::Release { failed }) => return give_permits(record, failed, now, policy),
        (Breaker::Closed, Event::ReleaseOver) if phase(record, now) == Phase::Recovered => {
            ServiceHealth { release: None, ..record.clone() }
        }
        // The time of an orphaned probe runs out like that of an open breaker.
        (Breaker::Open | Breaker::HalfOpen, Event::Probe { probe_ms }) if phase(record, now) == Phase::ProbeDue => {
            entering(record, Breaker::HalfOpen, now.plus_ms(probe_ms.saturating_add(REPORT_MS)), now)
        }
        (Breaker::HalfOpen, Event::Said { era, said: Said::No, .. })
            if counts(era) && record.is_braked() && policy.rejections.is_some() =>
        {
            const TOO: &str = "; the last probe was rejected too";
            let before = record.outage.as_ref().map_or("", |outage| outage.problem.trim_end_matches(TOO));
            open(record, OutageReason::Rejections, &format!("{before}{TOO}"), now, draw, policy)
        }
        (Breaker::HalfOpen, Event::Said { era, order, said: Said::Yes, .. }) if counts(era) && record.is_braked() => {
            // The count starts afresh, or the next rejection would open it again.
            ServiceHealth { rejections: Rejections::default(), ..closed(record, after_answer(order, true), now, policy) }
        }
        // It is alive, and does not say whether it still rejects.
        (Breaker::HalfOpen, Event::Succeeded { era, .. }) if counts(era) && record.is_braked() => {
            entering(record, Breaker::Open, now.plus_ms(policy.backoff.slot_time_ms), now)
        }
        // Of the probe, or of another order than those that failed.
        (Breaker::Open | Breaker::HalfOpen, Event::Said { era, order, said, answers }) if counts(era) => {
            count(closed(record, after_answer(order, said == Said::Yes), now, policy), answers, now, draw, policy)
        }
        (Breaker::Open | Breaker::HalfOpen, Event::Succeeded { era, order, is_taken }) if counts(era) => {
            closed(record, after_answer(order, is_taken), now, policy)
        }
        (Breaker::HalfOpen, Event::Failed { era, is_probe: true, failures }) if counts(era) => {
            open(&failed(record, failures), failures.reason, failures.problem, now, draw, policy)
        }
        (Breaker::Open | Breaker::HalfOpen, Event::Failed { era, is_probe: false, failures }) if counts(era) => {
            out(&failed(record, failures), failures.reason, failures.problem, now, policy)
        }
        (Breaker::HalfOpen, Event::GivenBack { era }) if counts(era) => entering(record, Breaker::Open, now, now),
        (Breaker::Closed, Event::Probe { .. } | Event::GivenBack { .. })
        | (Breaker::Open | Breaker::HalfOpen, Event::Probe { .. } | Event::Release { .. } | Event::ReleaseOver)
        | (Breaker::Closed, Event::ReleaseOver)
        // A call of another era says nothing about this one.
        | (
            _,
            Event::Said { .. } | Event::Succeeded { .. } | Event::Failed { .. } | Event::GivenBack { .. },
        ) => return None,
    };
    (after != *record).then(|| Change::to(ServiceHealth { version: record.version + 1, ..after }, 0))
}

/// Counts answers of a closed service. The breaker opens if most of the answers are rejections, unless an operator said
/// that they are right.
fn count(known: ServiceHealth, more: &[Answers], now: Timestamp, draw: u64, policy: &HealthPolicy) -> ServiceHealth {
    let Some(rejections) = policy.rejections else { return known };
    let Rejections { mut answers, accepted } = known.rejections.clone();
    add(&mut answers, more, now, rejections);
    let (accepted, opens) = match share(&answers, rejections) {
        Share::Usual => (None, None),
        Share::Most { no, all } if accepted.is_none() => (None, Some((no, all))),
        Share::Most { .. } | Share::Unknown => (accepted, None),
    };
    let known = ServiceHealth { rejections: Rejections { answers, accepted }, ..known };
    match opens {
        Some((no, all)) => {
            let problem = format!("{no} of the last {all} answers were rejections");
            open(&known, OutageReason::Rejections, &problem, now, draw, policy)
        }
        None => known,
    }
}

/// With these failures.
fn failed(record: &ServiceHealth, failures: &Failures<'_>) -> ServiceHealth {
    let mut evidence = record.evidence.clone();
    evidence.calls = evidence.calls.saturating_add(failures.calls);
    add_asked(&mut evidence.asked, &failures.asked);
    add_own(&mut evidence.own, &failures.own);
    add_orders(&mut evidence.orders, &failures.orders);
    let failures_in_a_row = record.failures_in_a_row.saturating_add(failures.count);
    ServiceHealth { failures_in_a_row, evidence, ..record.clone() }
}

/// Closed by an answer, with the evidence after it. The release begins with what the service carried before.
fn closed(record: &ServiceHealth, evidence: Evidence, now: Timestamp, policy: &HealthPolicy) -> ServiceHealth {
    let rate = record.evidence.carried.clamp(policy.release_first, policy.release_max);
    ServiceHealth {
        release: Some(Release { rate, ..Release::default() }),
        evidence,
        ..record.closed(policy.backoff, now)
    }
}

/// Open for the next wait of the back-off, but at least for one slot: a draw may give no wait, and a breaker that
/// opens for no time has no effect. It is not called before the time that it asked for.
fn open(
    record: &ServiceHealth,
    reason: OutageReason,
    problem: &str,
    now: Timestamp,
    draw: u64,
    policy: &HealthPolicy,
) -> ServiceHealth {
    let backoff = record.backoff.next(draw);
    let until = now.plus_ms(backoff.wait_time_ms.max(backoff.policy.slot_time_ms));
    let until = asked_until(&record.evidence, policy).map_or(until, |asked_until| asked_until.max(until));
    let carried = match (record.state, record.release) {
        // It cannot carry so much.
        (Breaker::Closed, Some(release)) => release.rate / 2,
        (Breaker::Closed, None) => record.evidence.calls,
        (Breaker::Open | Breaker::HalfOpen, _) => record.evidence.carried,
    };
    let evidence = Evidence { carried, ..record.evidence.clone() };
    let known = ServiceHealth { backoff, release: None, evidence, ..entering(record, Breaker::Open, until, now) };
    out(&known, reason, problem, now, policy)
}

/// Its requests are held back for this reason.
fn out(
    record: &ServiceHealth,
    reason: OutageReason,
    problem: &str,
    now: Timestamp,
    policy: &HealthPolicy,
) -> ServiceHealth {
    let known = record.outage.as_ref();
    let since = known.map_or(now, |outage| outage.since);
    // What one order alone is told, such as an unknown address, may be its own fault.
    let is_known = is_of_service(&record.evidence, policy) || since.ms_until(now) >= FEW_ORDERS_MS;
    let reason = if reason == OutageReason::Misconfigured && !is_known { OutageReason::Failing } else { reason };
    // A reason that needs an operator stays, with its own problem: its end is the end of the outage. So there is one
    // alert for each.
    let stays = known.filter(|outage| outage.reason.alert().is_some());
    let problem = problem.chars().take(ERROR_CHARS_MAX).collect::<String>().into();
    let outage = match stays {
        Some(other) if other.reason != reason => other.clone(),
        Some(_) | None => Outage { reason, problem, since },
    };
    let is_alerted = stays.is_none() && reason.alert().is_some();
    ServiceHealth {
        unsent: if is_alerted { Some(outage.clone()) } else { record.unsent.clone() },
        outage: Some(outage),
        ..record.clone()
    }
}

fn entering(record: &ServiceHealth, state: Breaker, until: Timestamp, now: Timestamp) -> ServiceHealth {
    ServiceHealth { state, until, era: record.era + 1, since: now, ..record.clone() }
}

fn known_since(record: &ServiceHealth, now: Timestamp) -> Timestamp {
    if record.since == Timestamp::default() { now } else { record.since }
}

fn give_permits(record: &ServiceHealth, failed: u32, now: Timestamp, policy: &HealthPolicy) -> Option<Change> {
    let release = record.release?;
    let release = Release { failed: release.failed.saturating_add(failed), ..release };
    if phase(record, now) != Phase::Recovering {
        return None;
    }
    let (release, permits) = release::take(release::at(release, record.since, now, policy));
    let after = ServiceHealth { version: record.version + 1, release: Some(release), ..record.clone() };
    (permits > 0).then(|| Change::to(after, permits))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
