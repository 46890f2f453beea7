//! The constants of one world: its size, its limits and its plan.

use agent::{HealthPolicy, MemoPolicy, Policy, Rate};
use domain::backoff::BackoffPolicy;
use domain::definition::Catalogue;
use domain::workflow::Workflows;

use super::applied::Application;
use super::faults::{Fault, Plan};
use super::rng::Rng;
use super::shapes::{AGENTS, Shape};

/// What is known of a service, and what is not.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// The setting of its agent: a call has its effect within this time after its start, in milliseconds.
    pub settles_within_ms: u64,
    /// Its undo looks only for an effect that is there, and leaves no mark for one that comes later.
    pub is_careless: bool,
}

/// The setup of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The faults.
    pub plan: Plan,
    /// The workflow.
    pub shape: &'static Shape,
    /// Orders that customers post.
    pub orders: usize,
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
    /// The longest usual one-way time to a service, in milliseconds.
    pub service_ms: u64,
    /// The visibility time-out, in milliseconds.
    pub visibility_ms: u64,
    /// Deliveries of a message of the submission or scheduler queue before it is a dead letter.
    pub receives_max: u32,
    /// Largest batch.
    pub batch_max: usize,
    /// The settings of each agent.
    pub policies: Vec<Policy>,
    /// The habits of each service.
    pub services: [Habits; AGENTS.len()],
    /// The deployment of the second workflow version, if any.
    pub deployed_at_ms: Option<i64>,
    /// What operators apply during the run. Then the API chooses the workflow of each order, and nothing is deployed.
    pub applied: Vec<Application>,
}

impl Setup {
    /// Draws a world.
    pub fn draw(rng: &mut Rng, orders: usize) -> Self {
        // A stream of its own: a new fault changes nothing else.
        let plan = Plan::draw(&mut Rng::new(rng.bits()));
        let shape = Shape::draw(rng);
        let calm_at_ms = match rng.below(10) {
            0..=5 => rng.between(20_000, 180_000),
            6..=8 => rng.between(180_000, 1_200_000),
            _ => rng.between(1_200_000, 6 * 3_600_000),
        };
        let skew_ms = if plan.has(Fault::SkewedByMinutes) {
            rng.between(60_000, 6 * 60_000)
        } else if plan.has(Fault::SkewedBySeconds) {
            rng.between(500, 10_000)
        } else {
            0
        };
        let calm_at_ms = i64::try_from(calm_at_ms).unwrap_or(i64::MAX);
        let deployed_at_ms = plan.has(Fault::Deployed).then(|| calm_at_ms * i64::from(rng.pick(&[1, 2, 4])) / 8);
        let mut policies = AGENTS.map(|_| policy(rng)).to_vec();
        // By a value that is drawn anyway, so that the other seeds stay as they were.
        if let Some(limited) = policies.get_mut(usize::try_from(calm_at_ms % 8).unwrap_or_default()) {
            limited.health.rate = Some(Rate { calls: 5, per_ms: 1_000 });
            limited.concurrency = Some(1);
        }
        name_fallbacks(&mut policies, &mut Rng::new(calm_at_ms.unsigned_abs()));
        let posts_within_ms = rng.pick(&[1_000, 20_000, 60_000]);
        let mut setup = Self {
            shape,
            orders,
            calm_at_ms,
            posts_within_ms,
            shards: rng.pick(&[1, 1, 2, 3]),
            instances: rng.pick(&[1, 2, 3]),
            supervisors: rng.pick(&[1, 2]),
            tick_ms: rng.pick(&[1_000, 2_000, 5_000, 20_000]),
            skew_ms,
            latency_ms: rng.pick(&[2, 10, 60]),
            service_ms: rng.pick(&[5, 50, 300]),
            visibility_ms: rng.pick(&[8_000, 30_000, 60_000]),
            receives_max: rng.pick(&[3, 5, 10]),
            batch_max: rng.pick(&[1, 3, 10]),
            policies,
            services: AGENTS.map(|_| habits(rng, &plan, skew_ms)),
            deployed_at_ms,
            applied: Vec::new(),
            plan,
        };
        if setup.plan.has(Fault::Applied) {
            setup.deployed_at_ms = None;
            let mut rng = Rng::new(calm_at_ms.unsigned_abs().rotate_left(8));
            setup.applied = Application::draw(&mut rng, setup.shape, setup.posts_within_ms, setup.settles_within_ms());
        }
        setup
    }

    /// Whether clocks jump.
    #[must_use]
    pub const fn clocks_jump(&self) -> bool {
        self.plan.has(Fault::ClockJumped)
    }

    /// The longest setting of `settles_within` at the start of the world, in milliseconds.
    #[must_use]
    pub fn settles_within_ms(&self) -> u64 {
        self.services.iter().map(|service| service.settles_within_ms).max().unwrap_or(0)
    }

    /// The settings of an agent, by its index.
    #[must_use]
    pub fn has_memo(&self, agent: usize) -> bool {
        self.policies[agent].memo.is_some()
    }

    /// The true time within which a call of a service has its effect, in milliseconds. The setting includes the
    /// difference of the clocks.
    #[must_use]
    pub fn settled_ms(&self, agent: usize) -> u64 {
        self.services[agent].settles_within_ms - 2 * self.skew_ms - 1
    }

    /// A new instance's catalogue of these workflows, with the setting of each agent.
    #[must_use]
    pub fn catalogue(&self, workflows: &Workflows) -> Catalogue {
        let settles = AGENTS.iter().enumerate().filter_map(|(place, agent)| {
            let may_be_called = |other: &usize| {
                *other == place || self.policies[place].fallback.iter().any(|name| **name == *AGENTS[*other])
            };
            let called = (0..AGENTS.len()).filter(may_be_called);
            Some(((*agent).into(), called.map(|other| self.services[other].settles_within_ms).max()?))
        });
        Catalogue::with(workflows.clone(), None, settles.collect())
    }
}

/// Most agents with a memo name others that may be asked instead.
fn name_fallbacks(policies: &mut [Policy], rng: &mut Rng) {
    for (place, policy) in policies.iter_mut().enumerate() {
        if policy.memo.is_some() && rng.chance(8_000) {
            let first = rng.place(AGENTS.len());
            let others = (0..AGENTS.len()).map(|nth| (first + nth) % AGENTS.len()).filter(|other| *other != place);
            let count = rng.pick(&[1, 1, 2]);
            policy.fallback = others.take(count).map(|other| AGENTS[other].into()).collect();
        }
    }
}

fn habits(rng: &mut Rng, plan: &Plan, skew_ms: u64) -> Habits {
    Habits {
        settles_within_ms: rng.pick(&[2_000, 10_000, 30_000, 120_000, 600_000]) + 2 * skew_ms,
        is_careless: rng.chance(plan.rate(Fault::ServiceCareless)),
    }
}

fn policy(rng: &mut Rng) -> Policy {
    Policy {
        margin_ms: rng.pick(&[0, 20, 50]),
        call_timeout_ms: rng.pick(&[400, 1_500, 10_000]),
        retries_max: rng.pick(&[1, 5, 100]),
        backoff: BackoffPolicy {
            slot_time_ms: rng.pick(&[10, 100]),
            ceiling: u32::try_from(rng.between(2, 8)).unwrap_or(2),
            stay_at_ceiling: rng.chance(5_000),
        },
        wait_in_invocation_ms_max: rng.pick(&[0, 200, 1_000]),
        queued_percent_max: rng.pick(&[50, 100]),
        health: HealthPolicy {
            failures_to_open: u32::try_from(rng.between(1, 6)).unwrap_or(1),
            backoff: BackoffPolicy { slot_time_ms: 500, ceiling: 4, stay_at_ceiling: true },
            release_first: rng.pick(&[1, 20]),
            release_max: 100,
            // A service that goes on rejecting needs an operator who accepts it, and there is none here.
            rejections: None,
            rate: None,
        },
        concurrency: None,
        memo: rng.chance(3_500).then(MemoPolicy::default),
        fallback: Vec::new(),
    }
}
