//! Workflows and settings that operators apply in the middle of a world, through the API that ships: versions that are not
//! compiled in, another default, a share of the orders for a version, other settings of an agent. The API may fail or be
//! killed between any two writes.

use bytes::Bytes;
use domain::definition::{Choice, DEPLOYMENT_FRESH_MS, Deployment};
use domain::order::Order;
use http::{Request, Response};
use serde_json::{Value, json};

use super::auditor::seen::{Pinned, Seen};
use super::auditor::versions::Choices;
use super::faults::Fault;
use super::operators::Ask;
use super::rng::Rng;
use super::setup::Setup;
use super::shapes::{AGENTS, BACK, ORDER, Shape};
use super::state::{Event, State};
use super::world::World;

/// Applications in a world, at the most.
const TIMES_MAX: u64 = 4;

/// One application: a request of an operator.
#[derive(Debug, Clone)]
pub struct Application {
    /// Its time, in milliseconds since the start of the world.
    pub at_ms: i64,
    path: String,
    body: Bytes,
}

impl Application {
    /// Draws the applications of a world. Customers post within this time, and calls settle within that, in
    /// milliseconds. The first one applies the versions; a later one chooses among them, or applies other settings.
    pub fn draw(rng: &mut Rng, shape: &Shape, posts_within_ms: u64, settles_within_ms: u64) -> Vec<Self> {
        let mut times: Vec<u64> = (0..rng.between(1, TIMES_MAX)).map(|_| rng.below(posts_within_ms * 3 / 2)).collect();
        times.sort_unstable();
        let one = |(number, at_ms): (usize, u64)| {
            let (path, body) = match number == 0 || rng.chance(3_000) {
                true => folder(rng, shape, settles_within_ms),
                false => choice(rng),
            };
            Self { at_ms: i64::try_from(at_ms).unwrap_or(i64::MAX), path, body: body.to_string().into() }
        };
        times.into_iter().enumerate().map(one).collect()
    }
}

/// A folder with all versions. No call settles later than it did at the start of the world, so no agent has a shorter
/// `settles_within`.
fn folder(rng: &mut Rng, shape: &Shape, settles_within_ms: u64) -> (String, Value) {
    let slow = rng.chance(5_000).then(|| rng.pick(&AGENTS));
    let longer_ms = settles_within_ms * rng.pick(&[1, 2]);
    let mut settings = format!("default = \"{}\"\n", rng.pick(&[ORDER, BACK]));
    for agent in AGENTS {
        let settles_ms = if slow == Some(agent) { longer_ms } else { settles_within_ms };
        let url = "http://localhost:1";
        settings.push_str(&format!("[agents.{agent}]\nurl = \"{url}\"\nsettles_within = \"{settles_ms}ms\"\n"));
    }
    let mut files = vec![json!({"Name": "stepwarden.toml", "Text": settings})];
    for version in &shape.applied {
        let name = format!("workflows/{}.toml", version.workflow.version);
        files.push(json!({"Name": name, "Text": &*version.text}));
    }
    ("/configuration".to_owned(), with_share(rng, json!({"By": "ada", "Reason": "it is better", "Files": files})))
}

/// Another version, the default or not.
fn choice(rng: &mut Rng) -> (String, Value) {
    let (name, version) = rng.pick(&[(ORDER, 1), (ORDER, 3), (BACK, 11), (BACK, 12)]);
    let body = json!({"By": "ada", "Reason": "it is worse", "Version": version, "Default": rng.chance(5_000)});
    (format!("/workflows/{name}/choose"), with_share(rng, body))
}

fn with_share(rng: &mut Rng, mut body: Value) -> Value {
    if rng.chance(4_000) {
        body["SharePercent"] = rng.pick(&[10, 50, 90]).into();
    }
    body
}

/// The versions that new orders begin with. The name of an order that names none is empty.
fn choices(deployment: &Deployment) -> Choices {
    let mut choices = compiled();
    let versions = |choice: &Choice| choice.versions().collect();
    choices.extend(deployment.workflows.iter().map(|(name, choice)| (name.clone(), versions(choice))));
    let default = choices.get(&deployment.default).cloned().unwrap_or_default();
    choices.insert("".into(), default);
    choices
}

/// The versions of new orders before the first application: those that are compiled in.
#[must_use]
pub fn compiled() -> Choices {
    compiled_in(1)
}

/// The same of a program with this version.
#[must_use]
pub fn compiled_in(version: u32) -> Choices {
    [("".into(), [version].into()), (ORDER.into(), [version].into())].into()
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
            Some(of) => self.tables.task(of.order_id).map(|task| task.workflow.clone()),
            None => self.remotes.named.get(order.document.text()).cloned(),
        };
        Some(Pinned { version, named, since_ms: self.known_ms.get(&invocation).copied().unwrap_or(0) })
    }

    /// A deployment is written: the last record of an application.
    pub(super) fn see_deployment(&mut self, record: &Value) {
        let Ok(deployment) = serde_json::from_value::<Deployment>(record.clone()) else { return };
        self.counts.add(Fault::Applied);
        let world = self.world.clone();
        self.see(&world, &Seen::Applied { choices: choices(&deployment) });
    }
}

impl World {
    /// An operator applies.
    pub(super) fn apply(&mut self, number: usize) {
        let setup = {
            let state = self.shared.lock();
            if state.is_calm {
                return;
            }
            state.setup.clone()
        };
        let Some(Application { path, body, .. }) = setup.applied.get(number) else { return };
        self.ask(Ask::Apply(number), Request::post(path).body(body.clone()).unwrap_or_default());
    }

    /// The operator gets an answer, or tries again.
    pub(super) fn application_answered(&self, number: usize, response: Option<&Response<Bytes>>) {
        let mut state = self.shared.lock();
        if response.is_none_or(|response| response.status().is_server_error()) {
            let ms = state.rng.between(200, 15_000);
            state.after(ms, Event::Apply(number));
        }
    }
}
