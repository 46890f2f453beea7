//! The record in one instance: cached reads, and conditional writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::id::OrderId;
use domain::limits::{CONFLICTS_MAX, DEFERRAL_MS_MAX};
use domain::message::Request;
use domain::observe::METRICS;
use domain::ports::{Answers, Breaker, Commit, Environment, PortError, Records, Seen, ServiceHealth};
use domain::task::Direction;
use domain::time::Timestamp;
use futures_util::lock::Mutex as Turns;

use crate::health::evidence::{add_orders, is_its_own, is_own, lets_in};
use crate::health::known::Known;
use crate::health::machine::{Change, Event, Phase, blank, phase, transition};
use crate::health::pass::{Failed, NO_ERA, Pass};
use crate::health::rejections::{Said, add, one, turns};
use crate::health::release::{INTERVAL_MS, SPREAD_INTERVALS};
use crate::health::{HealthPolicy, release};
use crate::ports::AgentPorts;

/// The longest time for which an instance trusts its last read, in milliseconds.
const CACHED_MS: u64 = 1_000;
/// The shortest time between two writes of an instance that only add answers, in milliseconds.
const ANSWERS_WRITTEN_MS: u64 = 1_000;

/// Whether a call may be made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gate {
    /// It may; its end must be reported.
    Open(Pass),
    /// Not now.
    Shut {
        /// When to ask again.
        wait_ms: u64,
        /// Whether the order's own failures shut it, and those of a few others.
        is_its_own: bool,
    },
}

/// The health of one service in one instance.
#[derive(Debug)]
pub(crate) struct SharedHealth {
    pub(super) policy: HealthPolicy,
    known: Mutex<Known>,
    /// Reads and writes of the record, one after the other. If a hundred calls fail at once, one of them writes, and
    /// the others find it written.
    pub(super) turns: Turns<()>,
}

impl SharedHealth {
    pub(crate) fn new(service: Arc<str>, policy: HealthPolicy) -> Self {
        let known = Mutex::new(Known::of(blank(service, &policy)));
        Self { policy, known, turns: Turns::new(()) }
    }

    /// Whether a call may be made now. `waits_since`: an outage since then may have delayed its request. `probe_ms`: the
    /// longest time of the call, in case it is the probe. The brake on mass rejection does not hold up undos: their
    /// answers say nothing about rejections. Failures of a few orders do not hold up another one: its call shows whether
    /// it is the service.
    pub(crate) async fn ask(
        &self,
        ports: &impl AgentPorts,
        request: &Request,
        waits_since: Option<Timestamp>,
        probe_ms: u64,
    ) -> Gate {
        self.refresh(ports).await;
        let now = ports.environment().now();
        let (phase, pass, is_braked) = {
            let known = self.known();
            (phase(&known.record, now), known.pass(now), known.record.is_braked())
        };
        if is_braked && request.direction == Direction::Undo {
            return Gate::Open(Pass { era: NO_ERA, ..pass });
        }
        match phase {
            Phase::Healthy => Gate::Open(pass),
            Phase::Recovering if waits_since.is_some_and(|at| pass.failed_since(at)) => {
                self.ask_for_release(ports, request.order_id).await
            }
            Phase::Recovering => Gate::Open(pass),
            Phase::Recovered => {
                self.apply(ports, Event::ReleaseOver).await;
                Gate::Open(self.known().pass(now))
            }
            Phase::ProbeDue => match self.apply(ports, Event::Probe { probe_ms }).await {
                Some(Change { after, .. }) => {
                    Gate::Open(Pass { era: after.era, probe: true, ..self.known().pass(now) })
                }
                None => self.shut_for(ports, phase, request.order_id),
            },
            Phase::Parked { .. } | Phase::Probing => {
                let mut known = self.known();
                if lets_in(&known.record, request.order_id, &self.policy) && known.lets_in_at <= now {
                    known.lets_in_at = now.plus_ms(probe_ms);
                    return Gate::Open(Pass { other: true, ..known.pass(now) });
                }
                drop(known);
                self.shut_for(ports, phase, request.order_id)
            }
        }
    }

    /// The wait before a retry makes sense, in milliseconds, if the service is known to fail.
    pub(crate) async fn failing(&self, ports: &impl AgentPorts) -> Option<u64> {
        self.refresh(ports).await;
        let now = ports.environment().now();
        let phase = phase(&self.known().record, now);
        match phase {
            Phase::Healthy | Phase::Recovering | Phase::Recovered => None,
            Phase::Parked { .. } | Phase::ProbeDue | Phase::Probing => {
                Some(wait_ms(phase, now, ports.environment().random()))
            }
        }
    }

    /// The same, but only while this order may make no call: the next probe is not due, or in flight.
    pub(crate) async fn shut(&self, ports: &impl AgentPorts, order: OrderId) -> Option<u64> {
        self.refresh(ports).await;
        let now = ports.environment().now();
        let (phase, lets_in) = {
            let record = &self.known().record;
            (phase(record, now), lets_in(record, order, &self.policy))
        };
        (matches!(phase, Phase::Parked { .. } | Phase::Probing) && !lets_in)
            .then(|| wait_ms(phase, now, ports.environment().random()))
    }

    /// The same as [`Self::failing`], and also if a request sent at `sent_at` may have waited for the service or in its
    /// line.
    pub(crate) async fn held_back_since(&self, ports: &impl AgentPorts, sent_at: Timestamp) -> Option<u64> {
        let failing_ms = self.failing(ports).await;
        let now = ports.environment().now();
        match failing_ms {
            None if self.known().held_back_since(sent_at, now) => {
                Some(wait_ms(Phase::Probing, now, ports.environment().random()))
            }
            wait_ms => wait_ms,
        }
    }

    /// The service did a step or rejected it. Whether that counts: while most steps are rejected, a rejection does not,
    /// and is asked again. Costs no write while the service rejects nothing and no failure is recorded.
    pub(super) async fn said(&self, ports: &impl AgentPorts, pass: Pass, order: OrderId, said: Said) -> bool {
        if said == Said::No {
            // Another instance may have opened the breaker during the call.
            self.refresh(ports).await;
        }
        let now = ports.environment().now();
        let due = {
            let mut known = self.known();
            (known.record.era == pass.era).then(|| self.note(&mut known, pass, order, said, now)).flatten()
        };
        if let Some(answers) = due {
            self.apply(ports, Event::Said { era: pass.era, order, said, answers: &answers }).await;
        }
        said == Said::Yes || self.policy.rejections.is_none() || !self.known().record.is_braked()
    }

    /// Notes an answer. All answers that are due to be written, if a write is due.
    fn note(&self, known: &mut Known, pass: Pass, order: OrderId, said: Said, now: Timestamp) -> Option<Vec<Answers>> {
        let mut is_due = known.answered(order, said == Said::Yes, now, &self.policy) || pass.probe || pass.other;
        if let Some(policy) = self.policy.rejections {
            add(&mut known.answers, &[one(said, now, policy)], now, policy);
            let turns = || turns(&known.record.rejections, &known.answers, now, policy);
            let waits =
                || known.answers_written_at.is_some_and(|at| at <= now && at.ms_until(now) < ANSWERS_WRITTEN_MS);
            is_due |= match said {
                Said::Yes => known.record.rejections.accepted.is_some() && turns(),
                Said::No => !waits() || turns(),
            };
        }
        if !is_due {
            return None;
        }
        known.answers_written_at = Some(now);
        Some(std::mem::take(&mut known.answers))
    }

    /// The service answered anything else. Costs no write while no failure is recorded.
    pub(super) async fn succeeded(&self, ports: &impl AgentPorts, pass: Pass, order: OrderId, is_taken: bool) {
        {
            let (now, mut known) = (ports.environment().now(), self.known());
            if known.record.era != pass.era {
                return;
            }
            let is_due = known.answered(order, is_taken, now, &self.policy);
            if !is_due && !pass.probe && !pass.other {
                return;
            }
        }
        self.apply(ports, Event::Succeeded { era: pass.era, order, is_taken }).await;
    }

    /// A call failed; whether that is the order's own, by what others were answered since then. Then it says nothing about
    /// the service. Writes the record only with a full batch of failures, or to open the breaker.
    pub(super) async fn failed(
        &self,
        ports: &impl AgentPorts,
        pass: Pass,
        order: OrderId,
        since: Timestamp,
        failed: Failed<'_>,
    ) -> bool {
        let now = ports.environment().now();
        let (is_own, failures) = {
            let mut known = self.known();
            known.lately.count(now);
            // After a wait that the service asked for, it may be the first call of its attempt.
            let since = since.min(now.minus_ms(failed.after_ms.unwrap_or(0).min(DEFERRAL_MS_MAX)));
            let is_own = is_own(&known.record, &known.own, order, since, &self.policy);
            if is_own {
                // The next answer to another one shows it again.
                add_orders(&mut known.orders, &[order]);
            }
            let counts = !is_own && known.record.era == pass.era;
            (is_own, counts.then(|| known.failed(order, pass, failed, now, &self.policy)).flatten())
        };
        if let Some(failures) = &failures {
            self.apply(ports, Event::Failed { era: pass.era, is_probe: pass.probe, failures }).await;
        } else if is_own {
            self.give_back(ports, pass).await;
        }
        is_own
    }

    /// The call was not made, or says nothing. If it was to be the probe, another request may probe.
    pub(crate) async fn give_back(&self, ports: &impl AgentPorts, pass: Pass) {
        self.is_back(pass);
        if pass.probe {
            self.apply(ports, Event::GivenBack { era: pass.era }).await;
        }
    }

    /// The call that this was for is over. If it was let in by itself, another one may be.
    pub(super) fn is_back(&self, pass: Pass) {
        if pass.other {
            self.known().lets_in_at = Timestamp::default();
        }
    }

    /// Emits the breaker's state as this instance knows it: 0 closed, 1 half-open, 2 open.
    pub(crate) fn emit(&self) {
        if tracing::enabled!(target: METRICS, tracing::Level::DEBUG) {
            let (service, state) = {
                let known = self.known();
                (known.record.service.clone(), known.record.state)
            };
            let level: u64 = match state {
                Breaker::Closed => 0,
                Breaker::HalfOpen => 1,
                Breaker::Open => 2,
            };
            tracing::debug!(target: METRICS, service = &*service, gauge.breaker_state = level, "{state:?}");
        }
    }

    async fn ask_for_release(&self, ports: &impl AgentPorts, order: OrderId) -> Gate {
        let _turn = self.turns.lock().await;
        let now = ports.environment().now();
        let interval = {
            let mut known = self.known();
            let since = known.record.since;
            let Some(interval) = known.record.release.map(|release| release::interval(release, since, now)) else {
                // The release ended, or the breaker opened, while this request waited for its turn. It asks again
                // shortly.
                return Gate::Shut { wait_ms: INTERVAL_MS, is_its_own: false };
            };
            if known.use_permit(interval) {
                return Gate::Open(Pass { released: true, ..known.pass(now) });
            }
            interval
        };
        let failed = std::mem::take(&mut self.known().failed_in_release);
        match self.apply_in_turn(ports, Event::Release { failed }).await {
            Some(Change { after, permits, .. }) => {
                let mut known = self.known();
                known.interval = after.release.map_or(interval, |release| release.interval);
                known.permits = permits.saturating_sub(1);
                Gate::Open(Pass { released: true, ..known.pass(now) })
            }
            None => self.shut_for(ports, Phase::Probing, order),
        }
    }

    async fn refresh(&self, ports: &impl AgentPorts) {
        let is_fresh = || {
            let (read_at, now) = (self.known().read_at, ports.environment().now());
            // After a clock was set back, the cached record must not stay fresh for longer.
            read_at.is_some_and(|read_at| read_at <= now && read_at.ms_until(now) < CACHED_MS)
        };
        if is_fresh() {
            return;
        }
        let _turn = self.turns.lock().await;
        if !is_fresh() {
            self.read(ports).await;
        }
    }

    /// Reads the record. If that fails, the last known one stays.
    pub(super) async fn read(&self, ports: &impl AgentPorts) {
        let service = self.known().record.service.clone();
        let read = ports.records().get::<ServiceHealth>(&service).await;
        let mut known = self.known();
        known.read_at = Some(ports.environment().now());
        match read {
            Ok(Some(record)) => known.keep(record),
            Ok(None) => known.keep(blank(service, &self.policy)),
            Err(error) => tracing::warn!("the health of the service cannot be read, calls flow: {error}"),
        }
    }

    /// The change of the record by this event, if any.
    async fn apply(&self, ports: &impl AgentPorts, event: Event<'_>) -> Option<Change> {
        let _turn = self.turns.lock().await;
        self.apply_in_turn(ports, event).await
    }

    pub(super) async fn apply_in_turn(&self, ports: &impl AgentPorts, event: Event<'_>) -> Option<Change> {
        for _ in 0..CONFLICTS_MAX {
            let before = self.known().record.clone();
            let change =
                transition(&before, event, ports.environment().now(), ports.environment().random(), &self.policy)?;
            let seen = Seen::version(before.version, ports.environment().now());
            match ports.records().put(seen, &change.after).await {
                Ok(Commit::Committed) => {
                    let mut known = self.known();
                    known.read_at = Some(ports.environment().now());
                    known.keep(change.after.clone());
                }
                Ok(Commit::Conflict) => {
                    self.read(ports).await;
                    continue;
                }
                Err(error) => self.keep_unwritten(before.version, &change.after, &error),
            }
            announce(&before, &change);
            return Some(change);
        }
        None
    }

    /// The change counts in this instance, under the stored version, so that the next write finds the stored state.
    fn keep_unwritten(&self, stored_version: u64, after: &ServiceHealth, error: &PortError) {
        tracing::warn!("the health of the service cannot be written, it counts here only: {error}");
        let mut record = after.clone();
        record.version = stored_version;
        self.known().keep(record);
    }

    fn shut_for(&self, ports: &impl AgentPorts, phase: Phase, order: OrderId) -> Gate {
        let wait_ms = wait_ms(phase, ports.environment().now(), ports.environment().random());
        Gate::Shut { wait_ms, is_its_own: is_its_own(&self.known().record, order, &self.policy) }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While the breaker is open, parked requests come back within one interval after its end, so that they are there for
/// the recovery. At any other time they come back within several, since their number is not known.
fn wait_ms(phase: Phase, now: Timestamp, draw: u64) -> u64 {
    match phase {
        Phase::Parked { until } => now.ms_until(until) + draw % INTERVAL_MS,
        Phase::Healthy | Phase::Recovering | Phase::Recovered | Phase::ProbeDue | Phase::Probing => {
            INTERVAL_MS + draw % ((SPREAD_INTERVALS - 1) * INTERVAL_MS)
        }
    }
}

fn announce(before: &ServiceHealth, Change { after, permits, .. }: &Change) {
    let service = &*after.service;
    match (before.state, after.state) {
        (Breaker::Closed | Breaker::HalfOpen, Breaker::Open) => {
            let (failures, open_ms) = (after.failures_in_a_row, after.since.ms_until(after.until));
            let outage = after.outage.as_ref();
            let (reason, problem) =
                (outage.map(|outage| tracing::field::debug(outage.reason)), outage.map(|outage| &*outage.problem));
            tracing::warn!(monotonic_counter.agent_opened = 1, service, failures, open_ms, reason, problem, "opened");
        }
        (Breaker::Open | Breaker::HalfOpen, Breaker::HalfOpen) => {
            tracing::info!(monotonic_counter.agent_probe = 1, service, "probe");
        }
        (Breaker::Open | Breaker::HalfOpen, Breaker::Closed) => {
            tracing::info!(monotonic_counter.agent_closed = 1, service, "closed");
        }
        (Breaker::Closed, Breaker::Closed) if *permits > 0 => {
            tracing::info!(monotonic_counter.agent_released = *permits, service, "released");
        }
        (Breaker::Closed, Breaker::Closed | Breaker::HalfOpen) | (Breaker::Open, Breaker::Open) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_parked_by_an_open_breaker_comes_back_within_one_interval_and_others_within_several() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        let parked = Phase::Parked { until: now.plus_ms(5_000) };
        let waits = |phase| [0, 999, 1_000, 2_999, 3_000].map(|draw| wait_ms(phase, now, draw));
        assert_eq!(waits(parked), [5_000, 5_999, 5_000, 5_999, 5_000]);
        assert_eq!(waits(Phase::Probing), [1_000, 1_999, 2_000, 3_999, 1_000]);
    }
}
