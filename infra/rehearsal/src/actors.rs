//! The instances of the functions, and the start of their invocations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use agents::{Fleet, NothingApplied};
use domain::instance::Instance;
use domain::message::{Request, decode};
use domain::redaction::Redaction;
use supervisor::Settings;

use crate::executor::{Done, Work};
use crate::faults::Fault;
use crate::ports::Ports;
use crate::seen::{Seen, Try, WANTED_MS};
use crate::setup::Setup;
use crate::shape::{FIRST_AGENT, SCHEDULER, SUBMISSION};
use crate::state::queues::Given;
use crate::state::{Shared, State};
use crate::who::{BETWEEN, Who};
use crate::wire::fleet;

/// The function of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Stores orders.
    Submits,
    /// Decides.
    Schedules,
    /// Calls for the agent at this place.
    Calls(usize),
    /// Records what could not be handled.
    Buries,
    /// Supervisor with this number.
    Supervises(usize),
    /// Serves the API.
    ApiConfig,
}

impl Role {
    /// The queue that it consumes.
    pub(crate) fn queue(self, setup: &Setup) -> Option<usize> {
        match self {
            Self::Submits => Some(SUBMISSION),
            Self::Schedules => Some(SCHEDULER),
            Self::Calls(place) => Some(FIRST_AGENT + place),
            Self::Buries => Some(setup.shape.dead_letters()),
            Self::Supervises(_) | Self::ApiConfig => None,
        }
    }

    fn name(self, setup: &Setup) -> String {
        match self {
            Self::Submits => "submission".to_owned(),
            Self::Schedules => "scheduler".to_owned(),
            Self::Buries => "letters".to_owned(),
            Self::Calls(place) => format!("agent-{}", setup.shape.agents[place]),
            Self::Supervises(number) => format!("supervisor-{number}"),
            Self::ApiConfig => "api".to_owned(),
        }
    }
}

/// One instance.
pub struct Slot {
    /// Its function.
    pub role: Role,
    /// The invocation in flight.
    pub busy: Option<u32>,
    /// It is still starting.
    pub is_starting: bool,
    /// It is replaced as soon as it is free.
    pub is_old: bool,
    name: Arc<str>,
    skew_ms: i64,
    generation: u32,
    instance: Arc<Instance>,
    /// What calls, of an agent.
    fleet: Option<Arc<Fleet<NothingApplied>>>,
}

impl Slot {
    /// A new instance, with its own clock and memory.
    pub fn new(shared: &Shared, role: Role, number: usize, generation: u32) -> Self {
        let (name, skew_ms, instance) = {
            let mut state = shared.lock();
            let skew_ms = state.draw_skew();
            let name: Arc<str> = format!("{}-{number}.{generation}", role.name(&state.setup)).into();
            let is_deployed = state.setup.deployed_at_ms.is_some_and(|at_ms| at_ms <= state.now_ms);
            let shape = &state.setup.shape;
            let catalogue = state.setup.catalogue(if is_deployed { &shape.both } else { &shape.first });
            let instance = Instance { name: name.clone(), catalogue, shards: state.setup.shards };
            (name, skew_ms, Arc::new(instance))
        };
        let is_agent = matches!(role, Role::Calls(_));
        let fleet = is_agent.then(|| Arc::new(fleet(shared, name.clone(), skew_ms)));
        Self { role, busy: None, is_starting: false, is_old: false, name, skew_ms, generation, instance, fleet }
    }

    /// Its replacement.
    #[must_use]
    pub fn successor(&self, shared: &Shared, number: usize) -> Self {
        Self::new(shared, self.role, number, self.generation + 1)
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The error of its clock, in milliseconds.
    #[must_use]
    pub const fn skew_ms(&self) -> i64 {
        self.skew_ms
    }

    /// The ports of one of its invocations.
    #[must_use]
    pub fn ports(&self, shared: &Shared, invocation: u32) -> Ports {
        let phase = Arc::new(AtomicU8::new(BETWEEN));
        let who = Who { name: self.name.clone(), invocation, skew_ms: self.skew_ms, phase };
        Ports { shared: shared.clone(), setup: shared.lock().setup.clone(), who }
    }

    /// The handling of a batch.
    #[must_use]
    pub fn handles(&self, ports: Ports, given: &[Given]) -> Work {
        let instance = self.instance.clone();
        match (self.role, &self.fleet) {
            (Role::Submits, _) => {
                let batch = given.iter().map(Given::delivery).collect();
                Box::pin(async move { Done::Batch(submission::handle(&ports, &instance, batch).await) })
            }
            (Role::Buries, _) => {
                let batch = given.iter().map(Given::dead_letter).collect();
                Box::pin(async move { Done::Batch(supervisor::dead_letters(&ports, &instance, batch).await) })
            }
            (Role::Calls(_), Some(fleet)) => {
                let batch = given.iter().map(Given::delivery).collect();
                let (fleet, given) = (fleet.clone(), given.to_vec());
                Box::pin(async move {
                    ports.begin_attempts(&given);
                    Done::Batch(fleet.handle(&ports, batch).await)
                })
            }
            (Role::Schedules | Role::Calls(_) | Role::Supervises(_) | Role::ApiConfig, _) => {
                let batch = given.iter().map(Given::delivery).collect();
                Box::pin(async move { Done::Batch(scheduler::handle(&ports, &instance, batch).await) })
            }
        }
    }

    /// A run of the supervisor: due orders and bulk jobs.
    #[must_use]
    pub fn supervises(&self, ports: Ports, tick_ms: u64, has_jobs: bool) -> Work {
        let instance = self.instance.clone();
        let settings = Settings { tick_ms, ..Settings::default() };
        Box::pin(async move {
            // The next run retries what this one could not reach.
            let _ = supervisor::handle(&ports, &instance, &settings).await;
            if has_jobs {
                let _ = supervisor::bulk(&ports, &instance, &settings, &Redaction::default()).await;
            }
            Done::Ran
        })
    }
}

impl Ports {
    /// Shows the auditor the attempts that an agent's instance starts, and their budgets.
    fn begin_attempts(&self, given: &[Given]) {
        let mut state = self.shared.lock();
        let clock_ms = state.clock(self.who.skew_ms).epoch_ms();
        let mut budgets_ms: BTreeMap<Try, (u64, u64)> = BTreeMap::new();
        for given in given {
            let Ok(request) = decode::<Request>(given.body.as_bytes()) else { continue };
            let Request { order_id, step, direction, attempt, budget_ms, complete_by, look, .. } = request;
            let sent_ms = complete_by.minus_ms(budget_ms).epoch_ms();
            let Some(of) = state.attempt_of(order_id, &step, direction, attempt) else { continue };
            if look.is_some() {
                state.remotes.looked.insert((self.who.name.clone(), of));
                continue;
            }
            let (longest_ms, shortest_ms) = budgets_ms.entry(of).or_insert((budget_ms, budget_ms));
            (*longest_ms, *shortest_ms) = (budget_ms.max(*longest_ms), budget_ms.min(*shortest_ms));
            let (to, until_ms) = (self.who.name.clone(), clock_ms.saturating_add_unsigned(*longest_ms));
            let budget_ms = *shortest_ms;
            let (message, overlaps, is_copied) = (given.receipt.message_id.clone(), given.overlaps, given.is_copied);
            let fresh_until_ms = (given.receives == 1).then_some(sent_ms.min(clock_ms) + WANTED_MS);
            let handed = Seen::Handed { of, to, until_ms, budget_ms, message, overlaps, is_copied, fresh_until_ms };
            state.see(&self.who.name, &handed);
        }
    }
}

impl State {
    /// The clock error of a new instance, in milliseconds.
    fn draw_skew(&mut self) -> i64 {
        let most_ms = self.setup.skew_ms;
        if !self.is_calm && self.setup.clocks_jump() && self.rng.chance(300) {
            self.counts.add(Fault::ClockJumped);
            return self.draw_jump();
        }
        if self.is_calm || most_ms == 0 {
            return 0;
        }
        self.counts.add(if most_ms > 10_000 { Fault::SkewedByMinutes } else { Fault::SkewedBySeconds });
        let off_ms = i64::try_from(self.rng.between(0, 2 * most_ms)).unwrap_or(0);
        off_ms - i64::try_from(most_ms).unwrap_or(0)
    }
}
