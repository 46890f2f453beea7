//! The record as one instance sees and changes it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::limits::CONFLICTS_MAX;
use domain::observe::METRICS;
use domain::ports::{Breaker, Commit, Environment, PortError, Records, Seen, ServiceHealth};
use domain::time::Timestamp;
use futures_util::lock::Mutex as Turns;

use crate::agent::AgentPorts;
use crate::health::machine::{Change, Event, Phase, blank, phase, transition};
use crate::health::release::{INTERVAL_MS, SPREAD_INTERVALS};
use crate::health::{HealthPolicy, release};

/// How long an instance goes by what it read, in milliseconds.
const CACHED_MS: u64 = 1_000;

/// Whether a call may be made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gate {
    /// It may, and its end is to be reported.
    Open(Pass),
    /// Not now.
    Shut {
        /// When to ask again.
        wait_ms: u64,
    },
}

/// What lets one call through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    era: u64,
    /// Whether this call is the probe.
    pub(crate) probe: bool,
    since: Timestamp,
}

impl Pass {
    /// Whether the breaker was anything but closed at any time since then.
    pub(crate) fn failed_since(self, at: Timestamp) -> bool {
        self.era > 0 && self.since >= at
    }
}

/// The health of one service in one instance.
#[derive(Debug)]
pub(crate) struct SharedHealth {
    policy: HealthPolicy,
    known: Mutex<Known>,
    /// Reads and writes of the record, one after the other: of a hundred calls that fail at once one writes, and the
    /// others find it written.
    turns: Turns<()>,
}

#[derive(Debug)]
struct Known {
    /// As last read or written.
    record: ServiceHealth,
    read_at: Option<Timestamp>,
    /// Failures in a row that the record has not heard of, all in its era.
    failures: u32,
    /// Permits that were taken in this interval of this era and not used yet.
    permits: u32,
    interval: u32,
}

impl Known {
    fn keep(&mut self, record: ServiceHealth) {
        if record.era != self.record.era {
            (self.failures, self.permits) = (0, 0);
        }
        self.record = record;
    }

    fn pass(&self) -> Pass {
        Pass { era: self.record.era, probe: false, since: self.record.since }
    }

    /// Uses one of the permits that are here.
    fn use_permit(&mut self, interval: u32) -> bool {
        let usable = self.interval == interval && self.permits > 0;
        self.permits -= u32::from(usable);
        usable
    }
}

impl SharedHealth {
    pub(crate) fn new(service: Arc<str>, policy: HealthPolicy) -> Self {
        let record = blank(service, &policy);
        let known = Mutex::new(Known { record, read_at: None, failures: 0, permits: 0, interval: 0 });
        Self { policy, known, turns: Turns::new(()) }
    }

    /// Whether a call may be made now. `waited`: it is for a request that had to wait already. `probe_ms`: how long the
    /// call may take, in case that it is the probe.
    pub(crate) async fn ask(&self, ports: &impl AgentPorts, waited: bool, probe_ms: u64) -> Gate {
        self.refresh(ports).await;
        let now = ports.environment().now();
        let (phase, pass) = {
            let known = self.known();
            (phase(&known.record, now), known.pass())
        };
        match phase {
            Phase::Healthy => Gate::Open(pass),
            Phase::Recovering if !waited => Gate::Open(pass),
            Phase::Recovering => self.ask_for_release(ports).await,
            Phase::Recovered => {
                self.apply(ports, Event::ReleaseOver).await;
                Gate::Open(self.known().pass())
            }
            Phase::ProbeDue => match self.apply(ports, Event::Probe { probe_ms }).await {
                Some(Change { after, .. }) => Gate::Open(Pass { era: after.era, probe: true, since: after.since }),
                None => shut(ports, phase),
            },
            Phase::Parked { .. } | Phase::Probing => shut(ports, phase),
        }
    }

    /// How long to wait before it makes sense to try again, in milliseconds, if the service is known to fail.
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

    /// The same, also if the service failed at any time since `sent_at`, so that a request of that age may have waited
    /// for it.
    pub(crate) async fn failed_since(&self, ports: &impl AgentPorts, sent_at: Timestamp) -> Option<u64> {
        match self.failing(ports).await {
            None if self.known().pass().failed_since(sent_at) => {
                Some(wait_ms(Phase::Probing, ports.environment().now(), ports.environment().random()))
            }
            wait_ms => wait_ms,
        }
    }

    /// The service answered. Costs nothing as long as nobody reported a failure.
    pub(crate) async fn succeeded(&self, ports: &impl AgentPorts, pass: Pass) {
        {
            let mut known = self.known();
            if known.record.era != pass.era {
                return;
            }
            known.failures = 0;
            if !pass.probe && known.record.failures_in_a_row == 0 {
                return;
            }
        }
        self.apply(ports, Event::Succeeded { era: pass.era }).await;
    }

    /// The service failed. Adds to the record only when there is enough to add, or when it opens the breaker.
    pub(crate) async fn failed(&self, ports: &impl AgentPorts, pass: Pass) {
        let failures = {
            let mut known = self.known();
            if known.record.era != pass.era {
                return;
            }
            known.failures = known.failures.saturating_add(1);
            let in_a_row = known.record.failures_in_a_row.saturating_add(known.failures);
            let enough = known.failures >= self.policy.failures_to_report() || in_a_row >= self.policy.failures_to_open;
            if !pass.probe && !enough {
                return;
            }
            std::mem::take(&mut known.failures)
        };
        self.apply(ports, Event::Failed { era: pass.era, failures }).await;
    }

    /// The call was not made after all: if it was to be the probe, somebody else may.
    pub(crate) async fn give_back(&self, ports: &impl AgentPorts, pass: Pass) {
        if pass.probe {
            self.apply(ports, Event::GivenBack { era: pass.era }).await;
        }
    }

    /// Tells the metrics how the breaker stands, as far as this instance knows: 0 closed, 1 half-open, 2 open.
    pub(crate) fn tell(&self) {
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

    async fn ask_for_release(&self, ports: &impl AgentPorts) -> Gate {
        let _turn = self.turns.lock().await;
        let now = ports.environment().now();
        let interval = {
            let mut known = self.known();
            let Some(present) = known.record.release.map(|release| release::at(release, known.record.since, now))
            else {
                // It was over, or the breaker opened, while this one waited for its turn: in a moment it will see.
                return Gate::Shut { wait_ms: INTERVAL_MS };
            };
            if known.use_permit(present.interval) {
                return Gate::Open(known.pass());
            }
            present.interval
        };
        match self.apply_in_turn(ports, Event::Release).await {
            Some(Change { after, permits }) => {
                let mut known = self.known();
                known.interval = after.release.map_or(interval, |release| release.interval);
                known.permits = permits.saturating_sub(1);
                Gate::Open(known.pass())
            }
            None => shut(ports, Phase::Probing),
        }
    }

    async fn refresh(&self, ports: &impl AgentPorts) {
        let is_fresh = || {
            let (read_at, now) = (self.known().read_at, ports.environment().now());
            // A clock that was set back must not keep it fresh for as long.
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

    /// Reads the record. Where that fails, what was known stays.
    async fn read(&self, ports: &impl AgentPorts) {
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

    /// What became of the record, if it changed by this event.
    async fn apply(&self, ports: &impl AgentPorts, event: Event) -> Option<Change> {
        let _turn = self.turns.lock().await;
        self.apply_in_turn(ports, event).await
    }

    async fn apply_in_turn(&self, ports: &impl AgentPorts, event: Event) -> Option<Change> {
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

    /// It counts in this instance, and under the stored version, so that the next write finds out what is true.
    fn keep_unwritten(&self, stored_version: u64, after: &ServiceHealth, error: &PortError) {
        tracing::warn!("the health of the service cannot be written, it counts here only: {error}");
        let mut record = after.clone();
        record.version = stored_version;
        self.known().keep(record);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shut(ports: &impl AgentPorts, phase: Phase) -> Gate {
    Gate::Shut { wait_ms: wait_ms(phase, ports.environment().now(), ports.environment().random()) }
}

/// Until an opening is over those who wait come back within one interval after it, so that they are there for the
/// recovery; at any other time within several, since nobody knows how many they are.
fn wait_ms(phase: Phase, now: Timestamp, draw: u64) -> u64 {
    match phase {
        Phase::Parked { until } => now.ms_until(until) + draw % INTERVAL_MS,
        Phase::Healthy | Phase::Recovering | Phase::Recovered | Phase::ProbeDue | Phase::Probing => {
            INTERVAL_MS + draw % ((SPREAD_INTERVALS - 1) * INTERVAL_MS)
        }
    }
}

fn announce(before: &ServiceHealth, Change { after, permits }: &Change) {
    let service = &*after.service;
    match (before.state, after.state) {
        (Breaker::Closed | Breaker::HalfOpen, Breaker::Open) => {
            let (failures, open_ms) = (after.failures_in_a_row, after.since.ms_until(after.until));
            tracing::warn!(monotonic_counter.agent_opened = 1, service, failures, open_ms, "opened");
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
    fn who_waits_for_an_opening_comes_back_within_one_interval_after_it_and_others_within_several() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        let parked = Phase::Parked { until: now.plus_ms(5_000) };
        let waits = |phase| [0, 999, 1_000, 2_999, 3_000].map(|draw| wait_ms(phase, now, draw));
        assert_eq!(waits(parked), [5_000, 5_999, 5_000, 5_999, 5_000]);
        assert_eq!(waits(Phase::Probing), [1_000, 1_999, 2_000, 3_999, 1_000]);
    }
}
