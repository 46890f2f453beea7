//! The alerts about services.

use std::sync::Arc;

use domain::backoff::{Backoff, BackoffPolicy};
use domain::ports::{Breaker, Environment, Evidence, Outage, OutageReason, Records, Rejections, Seen, ServiceHealth};
use memory::faulty::Faulty;

use crate::services;
use crate::testing::{ports, run, run_for};

/// The polls of a run that end in each place.
const POLLS: usize = 40;

fn outage(ports: &Faulty, reason: OutageReason) -> Outage {
    Outage { reason, problem: "HTTP 401".into(), since: ports.now() }
}

fn health(ports: &Faulty, service: &str, unsent: Option<Outage>) -> ServiceHealth {
    ServiceHealth {
        service: service.into(),
        version: 1,
        era: 1,
        state: Breaker::Open,
        failures_in_a_row: 5,
        until: ports.now(),
        backoff: Backoff::new(BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true }),
        since: ports.now(),
        release: None,
        outage: unsent.clone(),
        unsent,
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    }
}

fn store(ports: &Faulty, health: &ServiceHealth) {
    run(ports.put(Seen::version(health.version - 1, ports.now()), health)).unwrap();
}

fn stored(ports: &Faulty, service: &str) -> ServiceHealth {
    run(ports.get(service)).unwrap().unwrap()
}

/// Type, subject and id of each alert.
fn alerts(ports: &Faulty) -> Vec<[Arc<str>; 3]> {
    let published = ports.published();
    published.iter().map(|event| [event.kind.clone(), event.subject.clone(), event.id.clone()]).collect()
}

#[test]
fn an_outage_that_needs_an_operator_is_alerted_once_with_what_to_do() {
    let ports = ports();
    for (service, reason) in [("inventory", OutageReason::Misconfigured), ("payment", OutageReason::Rejections)] {
        store(&ports, &health(&ports, service, Some(outage(&ports, reason))));
    }
    store(&ports, &health(&ports, "shipping", None));
    assert_eq!(run(services(&ports)).unwrap(), 2);
    let expected = [("ServiceMisconfigured", "inventory"), ("ServiceRejecting", "payment")]
        .map(|(kind, service)| [kind.into(), service.into(), format!("service/{service}/1000000000000/{kind}").into()]);
    assert_eq!(alerts(&ports), expected);
    let data: serde_json::Value = serde_json::from_str(ports.published()[0].data.text()).unwrap();
    assert_eq!((&data["Reason"], &data["Problem"]), (&"misconfigured".into(), &"HTTP 401".into()));
    assert!(data["Text"].as_str().unwrap().starts_with("inventory is misconfigured"), "{data}");
    assert!(data["ToDo"].as_str().unwrap().starts_with("Mend "), "{data}");
    assert_eq!(run(services(&ports)).unwrap(), 0);
    assert_eq!((alerts(&ports).len(), stored(&ports, "payment").version), (2, 2));
    assert_eq!(stored(&ports, "payment").outage, Some(outage(&ports, OutageReason::Rejections)), "it goes on");
}

#[test]
fn an_alert_is_sent_also_after_the_outage() {
    let ports = ports();
    let over = ServiceHealth {
        state: Breaker::Closed,
        outage: None,
        ..health(&ports, "payment", Some(outage(&ports, OutageReason::Rejections)))
    };
    store(&ports, &over);
    assert_eq!(run(services(&ports)).unwrap(), 1);
}

#[test]
fn an_alert_that_cannot_be_sent_is_sent_later_and_does_not_hold_up_others() {
    let ports = ports();
    store(&ports, &health(&ports, "payment", Some(outage(&ports, OutageReason::Rejections))));
    ports.is_down("events.publish");
    assert!(run(services(&ports)).is_err());
    assert!(stored(&ports, "payment").unsent.is_some());
    ports.is_up("events.publish");
    assert_eq!(run(services(&ports)).unwrap(), 1);
}

#[test]
fn a_run_that_is_killed_anywhere_loses_no_alert_and_repeats_have_the_same_id() {
    for polls in 0..POLLS {
        let ports = ports();
        store(&ports, &health(&ports, "payment", Some(outage(&ports, OutageReason::Misconfigured))));
        let _ = run_for(services(&ports), polls);
        run(services(&ports)).unwrap();
        let mut sent = alerts(&ports);
        assert!((1..=2).contains(&sent.len()), "{polls}: {sent:?}");
        sent.dedup();
        assert_eq!((sent.len(), stored(&ports, "payment").unsent), (1, None), "{polls}");
    }
}

#[test]
fn an_agent_that_writes_the_record_meanwhile_loses_nothing() {
    // The run has published, and is then slower than an agent.
    for polls in 0..POLLS {
        let ports = ports();
        let before = health(&ports, "payment", Some(outage(&ports, OutageReason::Misconfigured)));
        store(&ports, &before);
        let mut running = std::pin::pin!(services(&ports));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let is_over = (0..polls).any(|_| running.as_mut().poll(&mut context).is_ready());
        let seen = stored(&ports, "payment");
        store(&ports, &ServiceHealth { version: seen.version + 1, failures_in_a_row: 9, ..seen });
        if !is_over {
            run(running).unwrap();
        }
        let after = stored(&ports, "payment");
        assert_eq!((alerts(&ports).len(), after.failures_in_a_row, after.unsent), (1, 9, None), "{polls}");
    }
}
