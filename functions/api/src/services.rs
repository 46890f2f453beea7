//! `GET /services`: the health of each remote service, without the values that only the agents need. An operator accepts
//! the rejections of one with `POST /services/{name}/accept-rejections`.
//!
//! Health is no order's state, so the API writes it itself, like a job: on the version that it read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use domain::limits::{CONFLICTS_MAX, NAME_CHARS_MAX};
use domain::ports::{Acceptance, Breaker, Commit, Environment, Records, Seen, ServiceHealth};
use domain::situation;
use domain::task::{ProcessState, Step, StepState, Task};
use domain::time::Timestamp;
use http::{HeaderMap, Response, StatusCode};
use wire::{OrdersWaiting, ServiceList};

use crate::config::ApiConfig;
use crate::operator::Author;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;
use crate::walk::walk;

/// The states of orders that may wait for a service.
const UNDER_WAY: [ProcessState; 2] = [ProcessState::Processing, ProcessState::Compensating];
const NOT_WRITTEN: &str = "it is not known whether this was done; it is safe to send it again";

/// Every configured service, and every other one that ever failed, by name.
pub(crate) async fn services(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let records = ports.records().list(usize::MAX).await.map_err(Problem::unread)?;
    let configured = config.services(ports).await.map_err(Problem::unread)?;
    let waiting = waiting(ports, &records).await?;
    Ok(reply::json(StatusCode::OK, &ServiceList { services: views(&records, &configured, waiting.as_ref()) }))
}

/// `POST /services/{name}/accept-rejections`: the rejections of a service that waits because of them count from now on
/// (rule 18). Twice is once.
pub(crate) async fn accept_rejections(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    name: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let Author { by, reason } = Author::read(caller, headers, body)?;
    // The agents write the record, too, so a lost condition is common.
    for _ in 0..CONFLICTS_MAX {
        let Some(before) = stored(ports, config, name).await? else { return Err(Problem::NotRejecting) };
        let at = ports.environment().now();
        let acceptance = Acceptance { by: by.clone(), reason: reason.clone(), at };
        let Some(after) = before.accepting_rejections(acceptance) else {
            let is_accepted = before.rejections.accepted.is_some();
            return if is_accepted {
                Ok(reply::json(StatusCode::OK, &shown(&before)))
            } else {
                Err(Problem::NotRejecting)
            };
        };
        let written = ports.records().put(Seen::version(before.version, at), &after).await;
        if written.map_err(|error| Problem::Unavailable { advice: NOT_WRITTEN, error })? == Commit::Committed {
            tracing::info!(caller, service = name, by = &*by, why = &*reason, "operator accepts rejections");
            return Ok(reply::json(StatusCode::OK, &shown(&after)));
        }
    }
    Err(Problem::Busy)
}

/// The record of a service. `None` if it never failed.
async fn stored(ports: &impl ApiPorts, config: &ApiConfig, name: &str) -> Result<Option<ServiceHealth>, Problem> {
    if name.len() > NAME_CHARS_MAX {
        return Err(Problem::NoService);
    }
    match ports.records().get(name).await.map_err(Problem::unread)? {
        None if !config.services(ports).await.map_err(Problem::unread)?.contains(name) => Err(Problem::NoService),
        record => Ok(record),
    }
}

/// The orders that wait for each service.
pub(crate) struct Waiting {
    orders: BTreeMap<Arc<str>, usize>,
    at_least: bool,
}

/// Counts the orders that wait for a service, in a bounded walk. `None` while requests of all services go through.
pub(crate) async fn waiting(ports: &impl ApiPorts, records: &[ServiceHealth]) -> Result<Option<Waiting>, Problem> {
    if records.iter().all(|health| health.state == Breaker::Closed) {
        return Ok(None);
    }
    let mut waiting = Waiting { orders: BTreeMap::new(), at_least: false };
    for state in UNDER_WAY {
        let walked = walk(ports, Some(state), |task| {
            let agents: BTreeSet<_> = waited_for(task).collect();
            agents.into_iter().for_each(|agent| *waiting.orders.entry(agent.clone()).or_default() += 1);
            true
        });
        waiting.at_least |= walked.await?.more;
    }
    Ok(Some(waiting))
}

/// Whether an order waits for a service.
pub(crate) fn waits_for(task: &Task, service: &str) -> bool {
    UNDER_WAY.contains(&task.process_state) && waited_for(task).any(|agent| **agent == *service)
}

fn waited_for(task: &Task) -> impl Iterator<Item = &Arc<str>> {
    task.steps.iter().filter(|step| is_waiting(step)).map(|step| &step.agent)
}

/// Whether a step has an attempt in flight, or waits until its next one.
fn is_waiting(step: &Step) -> bool {
    match step.process_state {
        // A service that took the call on has it.
        StepState::Processing => !step.is_awaited(),
        StepState::Pending => step.not_before.is_some() || step.waits_longer(),
        StepState::Processed | StepState::Error | StepState::Skipped => false,
    }
}

/// The services of these records and the configured ones, by name.
pub(crate) fn views<'a>(
    records: &'a [ServiceHealth],
    configured: &'a BTreeSet<Arc<str>>,
    waiting: Option<&Waiting>,
) -> Vec<wire::Service<'a>> {
    let mut services: BTreeMap<&str, wire::Service<'_>> =
        configured.iter().map(|name| (&**name, never_failed(name))).collect();
    services.extend(records.iter().map(|health| {
        let is_held_back = health.state != Breaker::Closed;
        let count = waiting.filter(|_| is_held_back).map(|Waiting { orders, at_least }| OrdersWaiting {
            count: orders.get(&health.service).copied().unwrap_or_default(),
            at_least: *at_least,
        });
        (&*health.service, wire::Service { orders_waiting: count, ..shown(health) })
    }));
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
        outage_since: None,
        orders_waiting: None,
        reason: None,
        problem: None,
        rejections_accepted: None,
        text: None,
        to_do: None,
    }
}

fn shown(health: &ServiceHealth) -> wire::Service<'_> {
    // Each attribute is named, so that a new one is not shown, or hidden, by accident.
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
        outage,
        unsent: _,
        rejections,
        pace: _,
        evidence: _,
    } = health;
    let words = situation::outage(health);
    wire::Service {
        service: text(service),
        state: (*state).into(),
        // A rate keeps a record before the first change of state.
        since: (*since != Timestamp::default()).then_some(*since),
        until: match state {
            Breaker::Closed => None,
            Breaker::Open | Breaker::HalfOpen => Some(*until),
        },
        failures_in_a_row: Some(*failures_in_a_row),
        outage_since: outage.as_ref().map(|outage| outage.since),
        orders_waiting: None,
        reason: outage.as_ref().map(|outage| outage.reason.into()),
        problem: outage.as_ref().map(|outage| text(&outage.problem)),
        rejections_accepted: rejections.accepted.clone(),
        text: words.as_ref().map(|(text, _)| Cow::Owned(text.clone())),
        to_do: words.map(|(_, to_do)| Cow::Owned(to_do)),
    }
}

#[cfg(test)]
mod tests {
    use domain::ports::{Outage, OutageReason};
    use serde_json::json;

    use super::*;
    use crate::testing::{Fake, task_in};

    #[test]
    fn a_service_that_is_held_back_tells_since_when_and_how_many_orders_wait_for_it() {
        let fake = Fake::default();
        let order = |name: &str, step: usize, state: StepState, not_before: Option<i64>| {
            let mut task = task_in(name, ProcessState::Processing);
            task.steps[step].process_state = state;
            task.steps[step].not_before = not_before.map(Timestamp::from_epoch_ms);
            fake.stores(task);
        };
        order("in flight", 1, StepState::Processing, None);
        order("deferred", 1, StepState::Pending, Some(1));
        order("not begun", 1, StepState::Pending, None);
        order("done", 1, StepState::Processed, Some(1));
        order("elsewhere", 0, StepState::Processing, None);
        fake.stores(task_in("held", ProcessState::Error));
        let payment = || fake.get("/services").body["Services"][0].clone();
        assert_eq!(payment()["OrdersWaiting"], json!({"Count": 2, "AtLeast": false}));
        let since = Timestamp::from_epoch_ms(1_795_195_600_000);
        let outage = Outage { reason: OutageReason::Failing, problem: "HTTP 503".into(), since };
        fake.stores_record(&ServiceHealth { outage: Some(outage), ..fake.payment() });
        assert_eq!((&payment()["OutageSince"], &payment()["Problem"]), (&json!(since), &json!("HTTP 503")));
        fake.service_is(Breaker::Closed);
        assert_eq!(payment().get("OrdersWaiting"), None);
        assert_eq!(fake.tasks_listed(), 3 * 5, "nobody counts where requests go through");
    }

    #[test]
    fn services_are_listed_by_name_also_those_that_never_failed() {
        let fake = Fake::default();
        let payment = json!({
            "Service": "payment", "State": "Open", "FailuresInARow": 5,
            "Since": "2026-11-20T17:26:43.007Z", "Until": "2026-11-20T17:26:44.007Z",
            "OrdersWaiting": {"Count": 0, "AtLeast": false},
            "Text": "payment is failing; the next probe is at 2026-11-20T17:26:44.007Z.",
            "ToDo": "Restore payment. Its orders then go on by themselves.",
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

    #[test]
    fn a_service_with_a_rate_has_a_record_and_no_time_before_its_state_changes() {
        let fake = Fake::default();
        let blank = Timestamp::default();
        fake.stores_record(&ServiceHealth { state: Breaker::Closed, since: blank, until: blank, ..fake.payment() });
        let service = &fake.get("/services").body["Services"][0];
        assert_eq!((&service["State"], service.get("Since")), (&json!("Closed"), None));
    }

    const OPERATOR: &str = r#"{"By":"ada","Reason":"sold out"}"#;

    fn accept(fake: &Fake, service: &str) -> crate::testing::Answer {
        fake.post(&format!("/services/{service}/accept-rejections"), &[], OPERATOR)
    }

    #[test]
    fn a_service_that_waits_is_shown_with_the_reason_and_what_to_do() {
        let fake = Fake::default();
        fake.service_waits(OutageReason::Misconfigured);
        let service = &fake.get("/services").body["Services"][0];
        assert_eq!((&service["Reason"], &service["Problem"]), (&json!("misconfigured"), &json!("HTTP 401")));
        assert!(service["Text"].as_str().unwrap().contains("is misconfigured"), "{service}");
        assert!(service["ToDo"].as_str().unwrap().starts_with("Mend "), "{service}");
    }

    #[test]
    fn rejections_are_accepted_once_however_often_they_are() {
        let fake = Fake::default();
        fake.service_waits(OutageReason::Rejections);
        for _ in 0..2 {
            let answer = accept(&fake, "payment");
            let accepted = json!({"By": "ada [shop]", "Reason": "sold out", "At": fake.ports.now().to_string()});
            assert_eq!((answer.status, &answer.body["State"]), (200, &json!("Closed")));
            assert_eq!((&answer.body["RejectionsAccepted"], answer.body.get("Reason")), (&accepted, None));
        }
        let stored = fake.stored_service();
        assert_eq!((stored.version, stored.era), (4, 3));
        fake.queued_nothing();
    }

    #[test]
    fn rejections_are_accepted_although_the_agents_write_the_record_too() {
        let newer = |health: ServiceHealth| ServiceHealth { version: health.version + 1, ..health };
        let fake = Fake::default();
        fake.service_waits(OutageReason::Rejections);
        fake.others_write(3, newer);
        assert_eq!(accept(&fake, "payment").status, 200);
        assert_eq!(fake.stored_service().version, 7);
        let fake = Fake::default();
        fake.service_waits(OutageReason::Rejections);
        fake.others_write(u32::MAX, newer);
        accept(&fake, "payment").is_problem(503, "unavailable");
    }

    #[test]
    fn only_the_rejections_of_a_service_that_waits_because_of_them_are_accepted() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().with_services(["shipping"]));
        for reason in [OutageReason::Failing, OutageReason::Misconfigured] {
            fake.service_waits(reason);
            accept(&fake, "payment").is_problem(409, "service-state-conflict");
        }
        accept(&fake, "shipping").is_problem(409, "service-state-conflict");
        for name in ["nobody", &"x".repeat(NAME_CHARS_MAX + 1)] {
            accept(&fake, name).is_problem(404, "service-not-found");
        }
        let body = r#"{"By":"ada"}"#;
        fake.post("/services/payment/accept-rejections", &[], body).names(400, "invalid-field", "Reason");
        for port in ["services.health", "services.set_health"] {
            fake.service_waits(OutageReason::Rejections);
            fake.down(port);
            accept(&fake, "payment").is_problem(503, "unavailable");
            fake.up(port);
        }
    }
}
