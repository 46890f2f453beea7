//! The cost of the outage, and its limits.

use domain::task::ProcessState;
use domain::time::Timestamp;
use standins::Effects;
use wire::Task;

use crate::scenario::effects_of;

/// The measured values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measured {
    /// Calls to payment per second before the outage.
    pub(super) normal_per_s: f64,
    /// Calls to payment during the outage.
    pub(super) calls: u64,
    /// The same for the naive client.
    pub(super) calls_naive: u64,
    /// Failures counted in all steps of all orders.
    pub(super) failure_counts: u64,
    /// Attempts beyond the first of each step.
    pub(super) attempts_more: u64,
    /// Orders answered 202.
    pub(super) accepted: u64,
    /// Orders answered otherwise.
    pub(super) refused: u64,
    /// Orders that ended `Processed`.
    pub(super) processed: u64,
    /// Steps without exactly one effect, and effects of unknown orders.
    pub(super) effects_wrong: u64,
    /// From the recovery to the end of the last order, in milliseconds; `None` if no order ended.
    pub(super) last_done_ms: Option<u64>,
    /// The most calls to payment in any second after its recovery.
    pub(super) busiest_second: u64,
}

/// The limit of calls, in percent of the naive client's.
const SHARE_MAX_PERCENT: f64 = 1.0;
/// The limit of the busiest second, as a multiple of the normal rate.
const BUSIEST_MAX: f64 = 2.0;

/// One line of the table at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) value: String,
    /// The limit, and whether it is met; `None` for a plain figure.
    pub(super) bar: Option<(&'static str, bool)>,
}

impl Measured {
    /// With what became of the orders, by the API and the stand-ins.
    pub(super) fn counted(mut self, orders: &[Task<'_>], effects: &Effects, recovered_at: Timestamp) -> Self {
        let mut effects_of_orders = 0;
        let mut last_done_at = None;
        for order in orders {
            self.processed += u64::from(order.process_state == ProcessState::Processed);
            for step in &order.steps {
                self.failure_counts += u64::from(step.failure_count);
                self.attempts_more += u64::from(step.attempt.saturating_sub(1));
                last_done_at = last_done_at.max(step.finished_at);
                let times = effects_of(order, step, effects).0.effects;
                effects_of_orders += times;
                self.effects_wrong += u64::from(times != 1);
            }
        }
        let effects_in_all: u64 = effects.values().map(|service| service.effects).sum();
        self.effects_wrong += effects_in_all.saturating_sub(effects_of_orders);
        self.last_done_ms = last_done_at.map(|at| recovered_at.ms_until(at));
        self
    }

    /// Calls during the outage, in percent of the naive client's; 100 if that made none.
    fn share_percent(&self) -> f64 {
        if self.calls_naive == 0 { 100.0 } else { self.calls as f64 * 100.0 / self.calls_naive as f64 }
    }

    /// The busiest second, as a multiple of the normal rate.
    fn busiest_to_normal(&self) -> f64 {
        if self.normal_per_s > 0.0 { self.busiest_second as f64 / self.normal_per_s } else { f64::INFINITY }
    }

    fn lost(&self) -> u64 {
        self.accepted.saturating_sub(self.processed)
    }

    /// All rows of the table.
    pub(super) fn rows(&self) -> Vec<Row> {
        let (share, busiest) = (self.share_percent(), self.busiest_to_normal());
        let told = |what, value| Row { what, value, bar: None };
        let judged = |what, value, bar, is_met| Row { what, value, bar: Some((bar, is_met)) };
        let last_done = self.last_done_ms.map_or("never".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1_000.0));
        vec![
            told("calls to payment during the outage", thousands(self.calls)),
            told("the same, of a naive client", thousands(self.calls_naive)),
            judged("share", format!("{share:.4} %"), "at most 1 %", share <= SHARE_MAX_PERCENT),
            judged("failure counts spent", thousands(self.failure_counts), "0", self.failure_counts == 0),
            told("attempts deferred or repeated", thousands(self.attempts_more)),
            judged("orders refused by the API", thousands(self.refused), "0", self.refused == 0),
            judged(
                "orders lost",
                format!("{} of {}", thousands(self.lost()), thousands(self.accepted)),
                "0",
                self.lost() == 0 && self.accepted > 0,
            ),
            judged("effects not exactly once", thousands(self.effects_wrong), "0", self.effects_wrong == 0),
            told("from recovery to the last order done", last_done),
            told("normal calls to payment", format!("{:.1} /s", self.normal_per_s)),
            judged(
                "busiest second after recovery",
                format!("{}, {busiest:.2} to 1", thousands(self.busiest_second)),
                "at most 2 to 1",
                busiest <= BUSIEST_MAX,
            ),
        ]
    }

    /// Whether every limit is met.
    pub(super) fn is_good(&self) -> bool {
        self.rows().iter().all(|row| row.bar.is_none_or(|(_, is_met)| is_met))
    }
}

/// A number with thousands separators.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::message::idempotency_key;
    use domain::task::Direction;
    use serde_json::json;
    use standins::{KeyEffects, Service, ServiceEffects};

    use super::*;

    const GOOD: Measured = Measured {
        normal_per_s: 100.0,
        calls: 20,
        calls_naive: 2_000,
        failure_counts: 0,
        attempts_more: 7,
        accepted: 2_500,
        refused: 0,
        processed: 2_500,
        effects_wrong: 0,
        last_done_ms: Some(23_456),
        busiest_second: 200,
    };

    fn missed(measured: &Measured) -> Vec<&'static str> {
        let missed = |row: &Row| row.bar.is_some_and(|(_, is_met)| !is_met);
        let rows = measured.rows().into_iter().filter(missed);
        rows.map(|row| row.what).collect()
    }

    #[test]
    fn what_is_just_at_the_bars_meets_them() {
        assert_eq!((missed(&GOOD), GOOD.is_good()), (vec![], true));
    }

    #[test]
    fn each_bar_can_be_missed_by_itself() {
        for (measured, what) in [
            (Measured { calls: 21, ..GOOD }, "share"),
            (Measured { calls_naive: 0, ..GOOD }, "share"),
            (Measured { failure_counts: 1, ..GOOD }, "failure counts spent"),
            (Measured { refused: 1, ..GOOD }, "orders refused by the API"),
            (Measured { processed: 2_499, ..GOOD }, "orders lost"),
            (Measured { accepted: 0, processed: 0, ..GOOD }, "orders lost"),
            (Measured { effects_wrong: 1, ..GOOD }, "effects not exactly once"),
            (Measured { busiest_second: 201, ..GOOD }, "busiest second after recovery"),
            (Measured { normal_per_s: 0.0, ..GOOD }, "busiest second after recovery"),
        ] {
            assert_eq!((missed(&measured), measured.is_good()), (vec![what], false));
        }
    }

    #[test]
    fn numbers_are_told_as_people_write_them() {
        let rows = Measured { calls_naive: 1_234_567, ..GOOD }.rows();
        let value = |what| rows.iter().find(|row| row.what == what).map(|row| row.value.as_str());
        assert_eq!(value("the same, of a naive client"), Some("1,234,567"));
        assert_eq!(value("share"), Some("0.0016 %"));
        assert_eq!(value("from recovery to the last order done"), Some("23.5 s"));
        assert_eq!(value("busiest second after recovery"), Some("200, 2.00 to 1"));
        assert_eq!([0, 999, 1_000, 100_000].map(thousands), ["0", "999", "1,000", "100,000"]);
    }

    const STEPS: [(&str, &str); 2] = [("reserve-inventory", "inventory"), ("charge-payment", "payment")];

    fn order(name: &str, state: &str, failures: u64) -> Task<'static> {
        let step = |(name, agent): (&str, &str)| {
            json!({"Name": name, "Agent": agent, "ProcessState": "Processed", "Direction": "Forward",
                   "FailureCount": failures, "Attempt": 1 + failures, "FinishedAt": "2026-11-20T17:26:43.007Z"})
        };
        let order_id = OrderId::from_idempotency_key("outage", name);
        let steps = STEPS.map(step);
        let order = json!({"OrderID": order_id, "Version": 9, "ProcessState": state, "Steps": steps,
                           "Workflow": "order", "WorkflowVersion": 1, "Priority": "normal", "Actions": [],
                           "Situation": {"Head": "", "Waits": false}});
        serde_json::from_value(order).unwrap()
    }

    fn effects(orders: &[Task<'_>], times: u64) -> Effects {
        let mut effects = Effects::new();
        for order in orders {
            for (name, agent) in STEPS {
                let at: &mut ServiceEffects = effects.entry(Service::named(agent).unwrap()).or_default();
                let key = idempotency_key(order.order_id, name, Direction::Forward).to_string();
                at.keys.insert(key, KeyEffects { effects: times, calls: times });
                at.effects += times;
            }
        }
        effects
    }

    fn counted(orders: &[Task<'_>], effects: &Effects) -> Measured {
        Measured::default().counted(orders, effects, Timestamp::from_epoch_ms(1_795_195_603_000))
    }

    #[test]
    fn orders_that_went_well_leave_nothing_to_say() {
        let orders = [order("a", "Processed", 0), order("b", "Processed", 0)];
        let expected = Measured { processed: 2, last_done_ms: Some(7), ..Measured::default() };
        assert_eq!(counted(&orders, &effects(&orders, 1)), expected);
    }

    #[test]
    fn failures_losses_and_wrong_effects_are_counted() {
        let orders = [order("a", "Processed", 2), order("b", "Error", 0), order("c", "Processed", 0)];
        let twice = counted(&orders[..2], &effects(&orders[..2], 2));
        assert_eq!((twice.processed, twice.failure_counts, twice.attempts_more), (1, 4, 4));
        assert_eq!(twice.effects_wrong, 4, "twice each");
        let unknown = counted(&orders[..2], &effects(&orders, 1));
        assert_eq!((unknown.processed, unknown.effects_wrong), (1, 2), "effects of an order that nobody knows");
        assert_eq!(counted(&orders[..1], &effects(&[], 1)).effects_wrong, 2, "no effects");
    }
}
