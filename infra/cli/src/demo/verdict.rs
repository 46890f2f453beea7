//! The check of an order: its state and its effects at the services.

use standins::{Effects, Service};
use wire::Task;

use super::sample::Sample;
use crate::scenario::effects_of;

/// The faults of an order.
pub(super) fn faults(sample: &Sample, order: &Task<'_>, effects: &Effects) -> Vec<String> {
    let mut faults = Vec::new();
    let (ends, ended) = (sample.ends(), &order.process_state);
    if *ended != ends {
        let why = order.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", reason.message));
        faults.push(format!("ended {ended} instead of {ends}{why}"));
    }
    for step in &order.steps {
        let Some(service) = Service::named(&step.agent) else {
            faults.push(format!("{} is an unknown service", step.agent));
            continue;
        };
        let (forward, undo) = sample.expects(service);
        let (did, undid) = effects_of(order, step, effects);
        if (did.effects, undid.effects) != (forward, undo) {
            faults.push(format!(
                "{service} did it {} times and undid it {} times instead of {forward} and {undo}",
                did.effects, undid.effects
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::message::idempotency_key;
    use domain::task::Direction;
    use standins::{KeyEffects, ServiceEffects};

    use super::*;
    use crate::demo::sample::SAMPLES;

    const AGENTS: [(&str, &str); 3] =
        [("reserve-inventory", "inventory"), ("charge-payment", "payment"), ("ship-order", "shipping")];

    fn ended(state: &str) -> Task<'static> {
        let steps: Vec<_> = AGENTS
            .iter()
            .map(|(name, agent)| {
                serde_json::json!({
                    "Name": name, "Agent": agent, "ProcessState": "Processed", "Attempt": 1, "Direction": "Forward",
                    "FailureCount": 0
                })
            })
            .collect();
        let order_id = OrderId::from_idempotency_key("demo", "verdict");
        let last = serde_json::json!({
            "OrderID": order_id, "Version": 5, "ProcessState": state, "Steps": steps,
            "Workflow": "order", "WorkflowVersion": 1, "Priority": "normal", "Actions": [],
            "Situation": {"Head": "", "Waits": false}
        });
        serde_json::from_value(last).unwrap()
    }

    fn effects(order: &Task<'_>, counts: [(u64, u64); 3]) -> Effects {
        let mut all = Effects::new();
        for (((name, _), service), (forward, undo)) in AGENTS.iter().zip(Service::ALL).zip(counts) {
            let mut at_service = ServiceEffects::default();
            for (direction, effects) in [(Direction::Forward, forward), (Direction::Undo, undo)] {
                let key = idempotency_key(order.order_id, name, direction).to_string();
                at_service.keys.insert(key, KeyEffects { effects, calls: effects });
            }
            all.insert(service, at_service);
        }
        all
    }

    #[test]
    fn an_order_that_ended_as_it_should_has_no_faults() {
        let order = ended("Processed");
        assert_eq!(faults(&SAMPLES[0], &order, &effects(&order, [(1, 0); 3])), [""; 0]);
        let declined = SAMPLES.iter().find(|sample| sample.title == "declined payment").unwrap();
        let order = ended("Compensated");
        assert_eq!(faults(declined, &order, &effects(&order, [(1, 1), (0, 0), (0, 0)])), [""; 0]);
    }

    #[test]
    fn a_wrong_end_a_double_charge_and_a_lost_parcel_are_each_told() {
        let order = ended("Error");
        let told = faults(&SAMPLES[0], &order, &effects(&order, [(1, 0), (2, 0), (0, 0)]));
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("ended Error instead of Processed"));
        assert!(told[1].contains("payment did it 2 times"));
        assert!(told[2].contains("shipping did it 0 times"));
    }

    #[test]
    fn what_was_not_taken_back_is_told() {
        let declined = SAMPLES.iter().find(|sample| sample.title == "declined payment").unwrap();
        let order = ended("Compensated");
        let told = faults(declined, &order, &effects(&order, [(1, 0), (0, 0), (0, 0)]));
        assert_eq!(told, ["inventory did it 1 times and undid it 0 times instead of 1 and 1"]);
    }
}
