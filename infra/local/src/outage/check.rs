//! The outcomes of the orders, from the API and the stand-ins.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

use std::time::Duration;

use domain::id::OrderId;
use domain::message::idempotency_key;
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use futures_util::{StreamExt, stream};
use http::StatusCode;
use standins::{Effects, Service};
use tokio::time::Instant;
use wire::Task;

use crate::client::Client;

/// Orders checked concurrently.
const LOOKS_AT_ONCE: usize = 16;
/// The poll period of an unsettled order, in milliseconds.
const LOOK_AGAIN_MS: u64 = 100;

/// The outcomes of the orders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Became {
    /// Orders that ended `Processed`.
    pub(super) processed: u64,
    /// Failures counted in all steps of all orders.
    pub(super) failure_counts: u64,
    /// Repeated attempts of all steps of all orders: deferred or failed.
    pub(super) attempts_more: u64,
    /// When the last step of all ended.
    pub(super) last_done_at: Option<Timestamp>,
    /// Steps without exactly one effect, and effects of unknown orders.
    pub(super) effects_wrong: u64,
}

/// Polls every order until it is settled, at most until `patience_ends`. Reads the effects after that.
pub(super) async fn check(
    client: &Client,
    url: &str,
    orders: &[OrderId],
    patience_ends: Instant,
    effects: impl FnOnce() -> Effects,
) -> Became {
    let looks: Vec<_> = orders.iter().map(|&order_id| look(client, url, order_id, patience_ends)).collect();
    let shown: Vec<_> = stream::iter(looks).buffer_unordered(LOOKS_AT_ONCE).collect().await;
    judge(&shown, &effects())
}

/// The order once it is settled, or as it is at `patience_ends`. `None` if the order does not exist.
async fn look(
    client: &Client,
    url: &str,
    order_id: OrderId,
    patience_ends: Instant,
) -> (OrderId, Option<Task<'static>>) {
    let url = format!("{url}/orders/{order_id}");
    loop {
        let shown: Option<Task<'static>> = match client.get(&url).await {
            Ok(answer) if answer.status == StatusCode::OK => serde_json::from_slice(&answer.body).ok(),
            Ok(_) | Err(_) => None,
        };
        if shown.as_ref().is_some_and(Task::is_settled) || Instant::now() >= patience_ends {
            return (order_id, shown);
        }
        tokio::time::sleep(Duration::from_millis(LOOK_AGAIN_MS)).await;
    }
}

fn judge(orders: &[(OrderId, Option<Task<'static>>)], effects: &Effects) -> Became {
    let mut became = Became::default();
    let mut effects_of_orders = 0;
    for (order_id, shown) in orders {
        let Some(shown) = shown else { continue };
        became.processed += u64::from(shown.process_state == ProcessState::Processed);
        for step in &shown.steps {
            became.failure_counts += u64::from(step.failure_count);
            became.attempts_more += u64::from(step.attempt.saturating_sub(1));
            became.last_done_at = became.last_done_at.max(step.finished_at);
            let key = idempotency_key(*order_id, &step.name, Direction::Forward);
            let at_service = Service::named(&step.agent).and_then(|service| effects.get(&service));
            let times = at_service.map_or(0, |service| service.of(&key).effects);
            effects_of_orders += times;
            became.effects_wrong += u64::from(times != 1);
        }
    }
    let effects_in_all: u64 = effects.values().map(|service| service.effects).sum();
    became.effects_wrong += effects_in_all.saturating_sub(effects_of_orders);
    became
}

#[cfg(test)]
mod tests {
    use super::*;
    use standins::{KeyEffects, ServiceEffects};

    const STEPS: [(&str, &str); 2] = [("reserve-inventory", "inventory"), ("charge-payment", "payment")];

    fn order(name: &str, state: &str, failures: u64) -> (OrderId, Option<Task<'static>>) {
        let steps: Vec<_> = STEPS
            .iter()
            .map(|(name, agent)| {
                serde_json::json!({ "Name": name, "Agent": agent, "ProcessState": "Processed", "Direction": "Forward", "FailureCount": failures, "Attempt": 1 + failures,
                    "FinishedAt": "2026-11-20T17:26:43.007Z" })
            })
            .collect();
        let order_id = OrderId::from_idempotency_key("outage", name);
        let shown = serde_json::json!({ "OrderID": order_id, "Version": 9, "ProcessState": state, "Steps": steps });
        (order_id, Some(serde_json::from_value(shown).unwrap()))
    }

    fn effects(orders: &[(OrderId, Option<Task<'static>>)], times: u64) -> Effects {
        let mut effects = Effects::new();
        for (order_id, _) in orders {
            for (name, agent) in STEPS {
                let at: &mut ServiceEffects = effects.entry(Service::named(agent).unwrap()).or_default();
                let key = idempotency_key(*order_id, name, Direction::Forward).to_string();
                at.keys.insert(key, KeyEffects { effects: times, calls: times });
                at.effects += times;
            }
        }
        effects
    }

    #[test]
    fn orders_that_went_well_leave_nothing_to_say() {
        let orders = [order("a", "Processed", 0), order("b", "Processed", 0)];
        let became = judge(&orders, &effects(&orders, 1));
        let last_done_at = Some(Timestamp::from_epoch_ms(1_795_195_603_007));
        assert_eq!(became, Became { processed: 2, last_done_at, ..Became::default() });
    }

    #[test]
    fn failures_losses_and_wrong_effects_are_counted() {
        let orders =
            [order("a", "Processed", 2), order("b", "Error", 0), (OrderId::from_idempotency_key("outage", "c"), None)];
        let became = judge(&orders[..2], &effects(&orders[..2], 2));
        assert_eq!((became.processed, became.failure_counts, became.attempts_more), (1, 4, 4));
        assert_eq!(became.effects_wrong, 4, "twice each");
        let became = judge(&orders, &effects(&orders, 1));
        assert_eq!((became.processed, became.effects_wrong), (1, 2), "effects of an order that nobody knows");
        assert_eq!(judge(&orders[..1], &effects(&[], 1)).effects_wrong, 2, "no effects");
    }
}
