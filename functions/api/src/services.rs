//! `GET /services`: the health of each remote service, without what only the agents need to know of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::ports::{Breaker, ServiceHealth};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use serde::Serialize;

use crate::config::ApiConfig;
use crate::problem::Problem;
use crate::{ApiPorts, reply};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceList<'a> {
    services: Vec<ServiceView<'a>>,
}

/// A service on the wire. One that never failed has a name and a state only.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ServiceView<'a> {
    service: &'a str,
    state: Breaker,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// Says nothing while the service is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures_in_a_row: Option<u32>,
}

impl<'a> ServiceView<'a> {
    const fn never_failed(service: &'a str) -> Self {
        Self { service, state: Breaker::Closed, since: None, until: None, failures_in_a_row: None }
    }

    fn of(health: &'a ServiceHealth) -> Self {
        // Named one by one, so that a new attribute is not shown, or hidden, by accident.
        let ServiceHealth {
            service,
            version: _,
            era: _,
            state,
            failures_in_a_row,
            until,
            backoff: _,
            since,
            release: _,
        } = health;
        Self {
            service,
            state: *state,
            since: Some(*since),
            until: match state {
                Breaker::Closed => None,
                Breaker::Open | Breaker::HalfOpen => Some(*until),
            },
            failures_in_a_row: Some(*failures_in_a_row),
        }
    }
}

/// Every service that the API was told of, and every other one that ever failed, by name.
pub(crate) async fn services(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let records = ports.all_health().await.map_err(Problem::unread)?;
    Ok(reply::json(StatusCode::OK, &ServiceList { services: views(&records, config) }))
}

/// The services of these records and those that the API was told of, by name.
pub(crate) fn views<'a>(records: &'a [ServiceHealth], config: &'a ApiConfig) -> Vec<ServiceView<'a>> {
    let mut services: BTreeMap<&str, ServiceView<'_>> =
        config.services().iter().map(|name| (&**name, ServiceView::never_failed(name))).collect();
    services.extend(records.iter().map(|health| (&*health.service, ServiceView::of(health))));
    services.into_values().collect()
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
