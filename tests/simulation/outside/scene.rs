//! A world that follows a script: what customers post, services answer and operators do at which time. Chance decides only
//! how long things take.

use std::sync::Arc;

use agent::{Answer, Call, Policy};
use api::{ApiConfig, ApiPorts};
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{CloudEvent, Outcome, Priority, Reply, SchedulerMessage};
use domain::ports::{Queues, Store};
use domain::task::{Direction, Task};
use domain::time::Timestamp;

use super::{CHANNEL, Shared, act, sleep};
use crate::simulation::{draw, shapes};
use rehearsal::rng::Rng;
use rehearsal::setup::{Habits, Setup};

/// The script.
#[derive(Clone)]
pub struct Scene {
    /// Of each order: its workflow.
    pub workflow: &'static str,
    /// When an order comes, in milliseconds since the start, and its document.
    pub posts: Vec<(i64, String)>,
    /// What a service answers to a call at a time, in milliseconds since the start. `None`: it does what it is asked for.
    pub answer: fn(&Call<'_>, i64) -> Option<Answer>,
    /// Whether its receiver refuses a message at a time, in milliseconds since the start.
    pub refuses: fn(&CloudEvent, i64) -> bool,
    /// What is done, to which order, at which time, in milliseconds since the start.
    pub acts: Vec<(i64, usize, Deed)>,
}

/// What is done to an order from outside.
#[derive(Debug, Clone)]
pub enum Deed {
    /// An operator's command.
    Command(&'static str),
    /// The result of this step comes by another way.
    IsTold(&'static str),
}

/// A call.
#[derive(Debug, Clone)]
pub struct Heard {
    /// When it began.
    pub at: Timestamp,
    /// Of which order.
    pub order_id: OrderId,
    /// Of which step.
    pub step: Arc<str>,
    /// In which direction.
    pub direction: Direction,
    /// What it carried.
    pub document: Json,
}

/// What was seen outside.
#[derive(Debug, Default)]
pub struct Seen {
    /// The calls.
    pub heard: Vec<Heard>,
    /// The events at the reply channel and on the bus, and when.
    pub told: Vec<(Timestamp, CloudEvent)>,
    /// The tasks at the end, in the order of their posts.
    pub tasks: Vec<Arc<Task>>,
}

impl Scene {
    /// A world for it. Each agent has the policy that ships.
    #[must_use]
    pub fn setup(&self, instances: usize) -> Setup {
        let policy = Policy { margin_ms: 1_000, ..Policy::default() };
        let habits = Habits::careful(SETTLES_WITHIN_MS_DEFAULT);
        let mut setup = draw::setup(&mut Rng::new(0), self.posts.len()).0;
        setup.shape = Arc::new(shapes::shape_of(self.workflow));
        (setup.calm_at_ms, setup.skew_ms, setup.shards) = (0, 0, 1);
        (setup.instances, setup.supervisors, setup.batch_max, setup.tick_ms) = (instances, 1, 10, 10_000);
        (setup.latency_ms, setup.service_ms) = (2, 5);
        (setup.visibility_ms, setup.receives_max) = (180_000, 1_000);
        setup.policies.fill(policy);
        setup.services.fill(habits);
        setup
    }
}

/// Does what the script says. Returns when nothing is left to do.
pub(in crate::simulation) async fn perform(outside: &Shared, ports: &impl ApiPorts) {
    let mut acts = outside.lock().scene.as_ref().map(|scene| scene.acts.clone()).unwrap_or_default();
    acts.sort_by_key(|(at_ms, _, _)| *at_ms);
    for (at_ms, number, deed) in acts {
        let wait_ms = at_ms - outside.lock().clock.now_ms();
        sleep(wait_ms.max(0).unsigned_abs()).await;
        let Some(order_id) = outside.lock().customers[number].order else { continue };
        match deed {
            Deed::Command(action) => act(ports, &ApiConfig::new([CHANNEL]), order_id, action).await,
            Deed::IsTold(step) => {
                let Ok(Some(task)) = ports.store().task(order_id).await else { continue };
                let Some((_, of)) = task.step(step) else { continue };
                let reply = Reply {
                    order_id,
                    step: step.into(),
                    direction: Direction::Forward,
                    attempt: of.attempt,
                    outcome: Outcome::Done(Json::of(&"paid")),
                    hops: 0,
                    may_run_until: None,
                    call_ms: None,
                };
                outside.lock().books.entry((order_id, step.into())).or_default().is_done = true;
                let message = SchedulerMessage::Reply(reply);
                let _ = ports.queues().to_scheduler(message, Priority::Normal, 0).await;
            }
        }
    }
}
