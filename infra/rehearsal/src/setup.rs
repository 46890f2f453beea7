//! The constants of one world: its size, its limits and its plan.

use std::sync::Arc;

use agent::Policy;
use bytes::Bytes;
use domain::definition::{Catalogue, DEPLOYMENT_FRESH_MS};
use domain::workflow::{DropMax, Workflows};

use crate::described::Described;
use crate::faults::{Fault, Plan};
use crate::manner::Manner;
use crate::shape::Shape;

/// The longest time from the start of a call to that of its request, for a token, in milliseconds (rule 6).
pub const FETCH_MS_MAX: u64 = 1_000;

/// One application: a request of an operator.
#[derive(Debug, Clone)]
pub struct Application {
    /// Its time, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// The path of the request.
    pub path: String,
    /// Its body.
    pub body: Bytes,
}

/// What is known of a service, and what is not.
#[derive(Debug, Clone)]
pub struct Habits {
    /// The setting of its agent: a call has its effect within this time after its start, in milliseconds.
    pub settles_within_ms: u64,
    /// Its undo looks only for an effect that is there, and leaves no mark for one that comes later.
    pub is_careless: bool,
    /// How it puts its answers.
    pub manner: Manner,
    /// If its callers need a token: how long one lasts, in milliseconds. `https://tokens.example/NAME` issues them.
    pub token_life_ms: Option<u64>,
    /// What its user says of it, in place of the faults of the plan.
    pub described: Option<Arc<Described>>,
}

impl Habits {
    /// Those of a careful service by the contract whose calls settle within this time, in milliseconds.
    #[must_use]
    pub const fn careful(settles_within_ms: u64) -> Self {
        Self { settles_within_ms, is_careless: false, manner: Manner::Contract, token_life_ms: None, described: None }
    }
}

/// A time in which a service is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The index of its agent.
    pub agent: usize,
    /// Its start, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// Its length, in milliseconds.
    pub lasts_ms: u64,
}

/// What happens to the first call of a step, once in a world: most faults of a folder show when a service is slow, or goes
/// away, at one certain call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mishap {
    /// The index of the step among those of the shape. Of one with lines it is the first line that is called.
    pub step: usize,
    /// Whether it is the first call of its undo. Somebody cancels the order once the step has begun.
    pub is_of_undo: bool,
    /// What happens to the call.
    pub call: CallEnds,
    /// The service is away from then on for so long, in milliseconds.
    pub lasts_ms: u64,
    /// Whether somebody cancels the order then.
    pub is_cancelled: bool,
}

/// How the call of a [`Mishap`] ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnds {
    /// It finds a service that is away.
    Refused,
    /// The service carries it out, and its answer is lost.
    Unheard,
    /// The same, as late as it may be.
    Late,
}

/// Lines of a step that fail on purpose, in each order of a world (rule 50).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailingLines {
    /// The index of the step among those of the shape.
    pub step: usize,
    /// Which of its lines.
    pub which: Which,
    /// How.
    pub ends: LineEnds,
    /// For how long from its first call a line has no answer, in milliseconds.
    pub lasts_ms: u64,
}

/// Some of the lines of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// This one, counted on from the first one where there are fewer.
    One(usize),
    /// One more than may be dropped.
    Beyond(DropMax),
    /// All but the last one.
    AllButOne,
    /// All of them.
    All,
}

/// How a line fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// The service says no.
    Rejected,
    /// It says nothing.
    Unanswered,
}

impl Which {
    /// Whether it fails the line at this place, in an order of this number of lines.
    #[must_use]
    pub fn is(self, place: usize, all: usize) -> bool {
        match self {
            Self::One(one) => place == one % all.max(1),
            Self::Beyond(most) => place == 0 || most.allows(place, all),
            Self::AllButOne => place + 1 < all,
            Self::All => true,
        }
    }
}

/// The setup of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The faults.
    pub plan: Plan,
    /// The workflow.
    pub shape: Arc<Shape>,
    /// Orders that customers post.
    pub orders: usize,
    /// Their documents, one after the other. Without any, each has its number.
    pub documents: Vec<Arc<str>>,
    /// The end of the faults, in milliseconds since the start of the world.
    pub calm_at_ms: i64,
    /// The time span of the posts, in milliseconds.
    pub posts_within_ms: u64,
    /// Shards of the index.
    pub shards: u8,
    /// Instances of the schedulers, and of each agent.
    pub instances: usize,
    /// Supervisors.
    pub supervisors: usize,
    /// The time between two ticks, in milliseconds.
    pub tick_ms: u64,
    /// The largest clock error, in milliseconds.
    pub skew_ms: u64,
    /// The longest usual one-way time of a port call, in milliseconds.
    pub latency_ms: u64,
    /// Whether a few port calls take seconds.
    pub ports_are_slow: bool,
    /// The longest usual one-way time to a service, in milliseconds.
    pub service_ms: u64,
    /// The visibility time-out, in milliseconds.
    pub visibility_ms: u64,
    /// Deliveries of a message of the submission or scheduler queue before it is a dead letter.
    pub receives_max: u32,
    /// Largest batch.
    pub batch_max: usize,
    /// The settings of the agents, in TOML: the URL of each is `https://NAME.example/v1`, and its operations are `do` and
    /// `undo`.
    pub settings: Arc<str>,
    /// The policy of each agent, in place of that of its settings.
    pub policies: Vec<Policy>,
    /// The habits of each service.
    pub services: Vec<Habits>,
    /// When services that are described are away.
    pub outages: Vec<Outage>,
    /// What happens to one call of a service that is described.
    pub mishap: Option<Mishap>,
    /// The lines that fail on purpose.
    pub failing_lines: Option<FailingLines>,
    /// The deployment of the second workflow version, if any.
    pub deployed_at_ms: Option<i64>,
    /// The workflows that customers may name; `None`: they name none.
    pub named: Vec<Option<&'static str>>,
    /// What operators apply during the run. Then the API chooses the workflow of each order, and nothing is deployed.
    pub applied: Vec<Application>,
}

impl Setup {
    /// Whether clocks jump.
    #[must_use]
    pub const fn clocks_jump(&self) -> bool {
        self.plan.has(Fault::ClockJumped)
    }

    /// Whether the services are those that a user describes.
    #[must_use]
    pub fn is_described(&self) -> bool {
        self.services.iter().any(|service| service.described.is_some())
    }

    /// The longest setting of `settles_within` at the start of the world, in milliseconds.
    #[must_use]
    pub fn settles_within_ms(&self) -> u64 {
        self.services.iter().map(|service| service.settles_within_ms).max().unwrap_or(0)
    }

    /// Whether an agent has memos.
    #[must_use]
    pub fn has_memo(&self, agent: usize) -> bool {
        self.policies[agent].memo.is_some()
    }

    /// The true time within which a call of a service has its effect, in milliseconds. The setting includes the
    /// difference of the clocks, and the fetch of a token.
    #[must_use]
    pub fn settled_ms(&self, agent: usize) -> u64 {
        let service = &self.services[agent];
        let fetch_ms = service.token_life_ms.map_or(0, |_| FETCH_MS_MAX);
        service.settles_within_ms - 2 * self.skew_ms - 1 - fetch_ms
    }

    /// A new instance's catalogue of these workflows, with the setting of each agent.
    #[must_use]
    pub fn catalogue(&self, workflows: &Workflows) -> Catalogue {
        let agents = &self.shape.agents;
        let settles = agents.iter().enumerate().filter_map(|(place, agent)| {
            let may_be_called =
                |other: &usize| *other == place || self.policies[place].fallback.contains(&agents[*other]);
            let called = (0..agents.len()).filter(may_be_called);
            Some((agent.clone(), called.map(|other| self.services[other].settles_within_ms).max()?))
        });
        Catalogue::with(workflows.clone(), None, settles.collect())
    }

    /// The longest time for which an instance uses what was applied before, in milliseconds; `None` if reads may fail.
    #[must_use]
    pub fn stale_ms(&self) -> Option<i64> {
        let may_fail = self.plan.has(Fault::StoreAway) || self.plan.has(Fault::RecordsLost);
        (!may_fail).then(|| i64::try_from(DEPLOYMENT_FRESH_MS + 2 * self.skew_ms).unwrap_or(i64::MAX))
    }
}
