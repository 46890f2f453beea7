//! The orders of a run, and how each of them has to end.

use fastrand::Rng;
use serde_json::{Value, json};
use standins::{Effects, Service};

/// The longest that a service takes, in milliseconds: long enough for a kill to fall into it.
const SLOW_MS_MAX: u64 = 80;

const STEPS: [(Service, &str); 3] = [
    (Service::Inventory, "reserve-inventory"),
    (Service::Payment, "charge-payment"),
    (Service::Shipping, "ship-order"),
];

/// One order to post.
pub(crate) struct Planned {
    /// Its idempotency key.
    pub(crate) key: String,
    pub(crate) document: String,
    /// Whether the customer waits for it, so that kills fall into answers about finished orders too.
    pub(crate) is_waited_for: bool,
    /// How its task has to end.
    pub(crate) end: &'static str,
    /// Effects of each step and of its undo, in the order of the workflow.
    effects: [(u64, u64); 3],
}

/// `processed` orders that have to end `Processed`, whatever their services do, and `declined` ones that have to be undone
/// whole, mixed among them.
pub(crate) fn plan(processed: usize, declined: usize, rng: &mut Rng) -> Vec<Planned> {
    let every = (processed + declined) / declined;
    (0..processed + declined)
        .map(|n| {
            let is_declined = n % every == 1 && n / every < declined;
            Planned::new(n, is_declined, rng)
        })
        .collect()
}

impl Planned {
    fn new(n: usize, is_declined: bool, rng: &mut Rng) -> Self {
        let mut told = json!({});
        for service in Service::ALL {
            told[service.name()] = json!({ "SlowMs": rng.u64(..SLOW_MS_MAX) });
        }
        if is_declined {
            told["payment"]["Decline"] = json!("card_declined");
        } else {
            match n % 10 {
                3 => told["payment"]["Flaky"] = json!(2),
                6 => told["inventory"]["LoseAnswers"] = json!(1),
                9 => told["shipping"]["LoseAnswers"] = json!(1),
                _ => {}
            }
        }
        let (end, effects) = match is_declined {
            true => ("Compensated", [(1, 1), (0, 0), (0, 0)]),
            false => ("Processed", [(1, 0), (1, 0), (1, 0)]),
        };
        let document = json!({ "Item": format!("mug-{n}"), "StandIn": told }).to_string();
        Self { key: format!("kill-{n}"), document, is_waited_for: n.is_multiple_of(3), end, effects }
    }

    /// What the services say that is not as it should be, if anything.
    pub(crate) fn wrong_effects(&self, order_id: &str, effects: &Effects) -> Option<String> {
        let told = STEPS.map(|(service, step)| {
            let of = |key: &str| effects[&service].of(key).effects;
            (of(&format!("{order_id}/{step}")), of(&format!("{order_id}/{step}/undo")))
        });
        (told != self.effects).then(|| {
            let expected = self.effects;
            format!("effects (forward, undo) of each step are {told:?}, and should be {expected:?}")
        })
    }
}

/// Orders that a service has heard of and the last one has not yet done its part for.
pub(crate) fn under_way(effects: &Effects) -> usize {
    let begun = effects[&Service::Inventory].keys.keys().filter(|key| !key.ends_with("/undo"));
    let is_open = |key: &&String| {
        let order_id = key.split('/').next().unwrap_or_default();
        let shipped = effects[&Service::Shipping].of(&format!("{order_id}/ship-order")).effects > 0;
        let released = effects[&Service::Inventory].of(&format!("{key}/undo")).calls > 0;
        !shipped && !released
    };
    begun.filter(is_open).count()
}

/// Effects in all, those of undos included.
pub(crate) fn effects_in_all(effects: &Effects) -> u64 {
    effects.values().map(|service| service.effects).sum()
}

/// Effects that the orders have to have in all.
pub(crate) fn expected_in_all(planned: &[Planned]) -> u64 {
    planned.iter().flat_map(|order| order.effects).map(|(forward, undo)| forward + undo).sum()
}

/// A member of a JSON text that is a string; empty where there is none.
pub(crate) fn text_of(body: &[u8], name: &str) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value[name].as_str().unwrap_or_default().to_owned()
}

/// Attempts of a task that the supervisor counted as expired. A process that comes back takes up the attempts that were
/// under way, so there are none.
pub(crate) fn expired_attempts(task: &str) -> usize {
    let task: Value = serde_json::from_str(task).unwrap_or_default();
    let steps = task["Steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().filter(|step| step["LastError"]["Code"] == "expired").count()
}
