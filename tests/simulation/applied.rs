//! Workflows and settings that are applied in the middle of a world: versions that are not compiled in, another default,
//! a share of the orders for a version, other settings of an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::definition::{Choice, DEPLOYMENT_FRESH_MS, Definition, Deployment, Share};
use domain::order::Order;
use domain::time::Timestamp;

use super::auditor::seen::{Pinned, Seen};
use super::auditor::versions::Choices;
use super::faults::Fault;
use super::rng::Rng;
use super::setup::Setup;
use super::shapes::{AGENTS, BACK, ORDER};
use super::state::State;

/// Applications in a world, at the most.
const TIMES_MAX: u64 = 4;
/// The operator.
const OPERATOR: &str = "ada";

/// One application.
#[derive(Debug, Clone)]
pub struct Application {
    /// Its time, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// The workflow of orders that name none.
    default: Arc<str>,
    workflows: BTreeMap<Arc<str>, Choice>,
    /// The settings of the agents, in TOML.
    settings: Arc<str>,
}

impl Application {
    /// Draws the applications of a world. Customers post within this time, and calls settle within that, in
    /// milliseconds. Settings only lengthen it: services are no faster than they were.
    pub fn draw(rng: &mut Rng, posts_within_ms: u64, settles_within_ms: u64) -> Vec<Self> {
        let mut times: Vec<u64> = (0..rng.between(1, TIMES_MAX)).map(|_| rng.below(posts_within_ms * 3 / 2)).collect();
        times.sort_unstable();
        let one = |at_ms: u64| Self {
            at_ms: i64::try_from(at_ms).unwrap_or(i64::MAX),
            default: rng.pick(&[ORDER, BACK]).into(),
            workflows: [(ORDER.into(), choice(rng, [1, 3])), (BACK.into(), choice(rng, [11, 12]))].into(),
            settings: match rng.chance(5_000) {
                true => {
                    let longer_ms = settles_within_ms * rng.pick(&[1, 2]);
                    format!("[agents.{}]\nsettles_within = \"{longer_ms}ms\"\n", rng.pick(&AGENTS)).into()
                }
                false => "".into(),
            },
        };
        times.into_iter().map(one).collect()
    }

    /// The versions that new orders begin with from now on. The name of an order that names none is empty.
    fn choices(&self) -> Choices {
        let versions = |choice: &Choice| choice.versions().collect::<BTreeSet<u32>>();
        let named = self.workflows.iter().map(|(name, choice)| (name.clone(), versions(choice)));
        let default = self.workflows.get(&self.default).map(versions).unwrap_or_default();
        named.chain([("".into(), default)]).collect()
    }
}

fn choice(rng: &mut Rng, [one, other]: [u32; 2]) -> Choice {
    let (version, other) = if rng.chance(5_000) { (one, other) } else { (other, one) };
    let percent = rng.pick(&[10, 50, 90]);
    Choice { version, share: rng.chance(4_000).then_some(Share { version: other, percent }) }
}

/// The versions of new orders before the first application: those that are compiled in.
#[must_use]
pub fn compiled() -> Choices {
    [("".into(), [1].into()), (ORDER.into(), [1].into())].into()
}

impl Setup {
    /// The longest time for which an instance uses what was applied before, in milliseconds; `None` if reads may fail.
    #[must_use]
    pub fn stale_ms(&self) -> Option<i64> {
        let may_fail = self.plan.has(Fault::StoreAway) || self.plan.has(Fault::RecordsLost);
        (!may_fail).then(|| i64::try_from(DEPLOYMENT_FRESH_MS + 2 * self.skew_ms).unwrap_or(i64::MAX))
    }
}

impl State {
    /// The version that an invocation of the API chose for an order.
    pub fn pinned(&self, order: &Order, invocation: u32) -> Option<Pinned> {
        let version = order.workflow.as_ref()?.version;
        // An order that is posted again is of the same workflow.
        let named = match &order.again_of {
            Some(of) => self.tables.row(of.order_id).map(|row| row.task.workflow.clone()),
            None => self.remotes.named.get(order.document.text()).cloned(),
        };
        Some(Pinned { version, named, since_ms: self.known_ms.get(&invocation).copied().unwrap_or(0) })
    }

    /// Writes the records of an application, definitions first.
    pub fn apply(&mut self, number: usize) {
        let setup = self.setup.clone();
        let (Some(application), false) = (setup.applied.get(number), self.is_calm) else { return };
        self.counts.add(Fault::Applied);
        let applied_at = Timestamp::from_epoch_ms(super::state::EPOCH_MS + self.now_ms);
        for version in &setup.shape.applied {
            self.records.replace(&Definition {
                key: version.workflow.pin().to_string().into(),
                version: 1,
                text: version.text.clone(),
                hash: Definition::hash_of(&version.text).into(),
                applied_at,
                applied_by: OPERATOR.into(),
                retired_at: None,
            });
        }
        self.records.replace(&Deployment {
            version: number as u64 + 1,
            default: application.default.clone(),
            highest: std::collections::BTreeMap::new(),
            workflows: application.workflows.clone(),
            settings: application.settings.clone(),
            applied_at,
            applied_by: OPERATOR.into(),
        });
        let world = self.world.clone();
        self.see(&world, &Seen::Applied { choices: application.choices() });
    }
}
