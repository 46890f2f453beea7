//! `GET /services`: the health of each remote service, without the values that only the agents need.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use domain::ports::{Breaker, Records, ServiceHealth};
use domain::situation;
use http::{Response, StatusCode};
use wire::ServiceList;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// Every configured service, and every other one that ever failed, by name.
pub(crate) async fn services(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let records = ports.records().list(usize::MAX).await.map_err(Problem::unread)?;
    Ok(reply::json(StatusCode::OK, &ServiceList { services: views(&records, config) }))
}

/// The services of these records and the configured ones, by name.
pub(crate) fn views<'a>(records: &'a [ServiceHealth], config: &'a ApiConfig) -> Vec<wire::Service<'a>> {
    let mut services: BTreeMap<&str, wire::Service<'_>> =
        config.services().iter().map(|name| (&**name, never_failed(name))).collect();
    services.extend(records.iter().map(|health| (&*health.service, shown(health))));
    services.into_values().collect()
}

/// A service without a record has only a name and a state.
fn never_failed(service: &str) -> wire::Service<'_> {
    wire::Service {
        service: text(service),
        state: Breaker::Closed.into(),
        since: None,
        until: None,
        failures_in_a_row: None,
        text: None,
        to_do: None,
    }
}

fn shown(health: &ServiceHealth) -> wire::Service<'_> {
    // Each attribute is named, so that a new one is not shown, or hidden, by accident.
    let ServiceHealth { service, version: _, era: _, state, failures_in_a_row, until, backoff: _, since, release: _ } =
        health;
    let outage = situation::outage(health);
    wire::Service {
        service: text(service),
        state: (*state).into(),
        since: Some(*since),
        until: match state {
            Breaker::Closed => None,
            Breaker::Open | Breaker::HalfOpen => Some(*until),
        },
        failures_in_a_row: Some(*failures_in_a_row),
        text: outage.as_ref().map(|(text, _)| Cow::Owned(text.clone())),
        to_do: outage.map(|(_, to_do)| Cow::Owned(to_do)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn services_are_listed_by_name_also_those_that_never_failed() {
        let fake = Fake::default();
        let payment = json!({
            "Service": "payment", "State": "Open", "FailuresInARow": 5,
            "Since": "2026-11-20T17:26:43.007Z", "Until": "2026-11-20T17:26:44.007Z",
            "Text": "payment is failing; the next probe is at 2026-11-20T17:26:44.007Z.",
            "ToDo": "Nothing for the order itself: restore payment. Its orders then go on by themselves.",
        });
        let answer = fake.get("/services");
        assert_eq!((answer.status, &answer.body), (200, &json!({"Services": [&payment]})), "without any names");
        fake.config(ApiConfig::default().with_services(["shipping", "payment", "inventory"]));
        let well = |service| json!({"Service": service, "State": "Closed"});
        let expected = json!({"Services": [well("inventory"), payment, well("shipping")]});
        assert_eq!(fake.get("/services").body, expected);
    }

    #[test]
    fn a_service_that_is_well_again_is_not_said_to_fail_until_then() {
        let fake = Fake::default();
        for (state, is_shown) in [(Breaker::Closed, false), (Breaker::Open, true), (Breaker::HalfOpen, true)] {
            fake.service_is(state);
            let service = &fake.get("/services").body["Services"][0];
            assert_eq!((&service["State"], service.get("Until").is_some()), (&json!(state), is_shown));
            assert!(service["Since"].is_string());
        }
    }
}
