//! The stream of the tasks: its shards, and the event sources that give each shard to a supervisor.

use std::sync::Arc;

use serde_json::{Value, json};

use super::World;
use super::functions::{Instance, Role};
use super::region::REPEATED;
use crate::simulation::outside::sleep;
use rehearsal::state::EPOCH_MS;

/// Shards that are open at the same time.
pub(super) const OPEN: usize = 2;
/// The number of changes after which another shard follows.
const CHANGES: usize = 25;

/// The changes of the tasks, by open shard and its followers.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Its ARN, which ends with the time at which the table was made.
    arn: String,
    changes: [Vec<Value>; OPEN],
    /// Up to where each is counted, as its event source knows it.
    places: [usize; OPEN],
    /// The sequence number of the last change.
    pub(super) last: Option<String>,
}

impl Stream {
    pub(super) fn of(arn: String) -> Self {
        Self { arn, ..Self::default() }
    }

    /// Takes changes that happen now.
    pub(super) fn take(&mut self, changes: Vec<Value>, now_ms: i64) {
        for mut change in changes {
            self.last = change["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
            change["dynamodb"]["ApproximateCreationDateTime"] = ((EPOCH_MS + now_ms) / 1_000).into();
            let order = change["dynamodb"]["Keys"]["OrderID"]["S"].as_str().unwrap_or_default();
            let open = order.bytes().map(usize::from).sum::<usize>() % OPEN;
            self.changes[open].push(change);
        }
    }

    /// Whether everything is counted.
    pub(super) fn is_quiet(&self) -> bool {
        self.changes.iter().map(Vec::len).eq(self.places)
    }

    /// A batch of at most `most` changes, and the place of its end. It begins `back` changes before the first one that is
    /// not counted.
    fn batch(&self, open: usize, back: usize, most: usize) -> Option<(Value, usize)> {
        let changes = &self.changes[open];
        let from = self.places[open].saturating_sub(back);
        let shard = from / CHANGES;
        let to = changes.len().min(from + most).min((shard + 1) * CHANGES);
        let event = json!({
            "Records": changes.get(from..to).filter(|changes| !changes.is_empty())?, "state": {},
            "shardId": format!("shardId-{open}-{shard}"), "eventSourceARN": self.arn, "isFinalInvokeForWindow": false,
        });
        Some((event, to))
    }
}

/// Invokes a supervisor with the changes of one open shard, batch by batch. A batch comes again until it is counted. An
/// event source may forget how far it was.
pub(super) async fn source(world: Arc<World>, open: usize) {
    let mut instance = Instance::start(&world, Role::Supervisor, true);
    loop {
        let (pause_ms, most, back) = {
            let mut outside = world.outside.lock();
            let back = if outside.strikes(REPEATED, world.plan.deletions) { outside.rng.between(1, 40) } else { 0 };
            (outside.rng.between(100, 30_000), outside.rng.between(1, 30), back)
        };
        sleep(pause_ms).await;
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let Some((event, to)) = world.region().stream.batch(open, size(back), size(most)) else { continue };
        let Ok(event) = serde_json::value::to_raw_value(&event) else { continue };
        if let Some(Ok(answer)) = instance.or_killed(async |instance| instance.invoke(&event).await).await {
            // The platform takes an answer without a state for a failure.
            if answer["state"].is_object() {
                world.region().stream.places[open] = to;
            }
        }
    }
}
