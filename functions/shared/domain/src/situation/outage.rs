//! The words for a service that fails.

use super::lacks_kept;
use crate::ports::{Breaker, Outage, OutageReason, ServiceHealth};

/// The effect of a failing service on the orders that wait for it, and the operator's remedy. `None` while requests go
/// through.
#[must_use]
pub fn outage(health: &ServiceHealth) -> Option<(String, String)> {
    let ServiceHealth { service, state, until, outage, evidence, .. } = health;
    let probe = match state {
        Breaker::Closed => return None,
        Breaker::Open => format!("the next probe is at {until}"),
        Breaker::HalfOpen => "a probe is in flight".to_owned(),
    };
    let text = match outage {
        Some(outage) => outage_text(service, outage),
        None => format!("{service} is failing"),
    };
    let to_do = match outage {
        Some(outage) => outage_to_do(service, outage),
        None => restore(service),
    };
    let is_of_one = evidence.orders.len() == 1 && to_do == restore(service);
    let only = if is_of_one { " Only one order failed there so far: what it sends may be the cause." } else { "" };
    Some((format!("{text}; {probe}."), format!("{to_do}{only}")))
}

/// An outage in words, without a full stop.
#[must_use]
pub fn outage_text(service: &str, outage: &Outage) -> String {
    let Outage { reason, problem, since } = outage;
    let happens = match reason {
        OutageReason::Failing => "is failing",
        OutageReason::Misconfigured => "is misconfigured and refuses every call",
        OutageReason::Rejections => "rejects most steps",
    };
    format!("{service} {happens} since {since}: {problem}")
}

/// The operator's remedy for an outage.
#[must_use]
pub fn outage_to_do(service: &str, outage: &Outage) -> String {
    let then = "Its orders wait, and then go on by themselves.";
    match outage.reason {
        OutageReason::Failing if lacks_kept(&outage.problem) => format!(
            "The workflow's `keep` and the answer of {service} disagree. Correct `keep` in a new version of the workflow \
             and apply it. Then cancel these orders and post them again."
        ),
        OutageReason::Failing => restore(service),
        OutageReason::Misconfigured => {
            format!("Mend the address, the credentials or the rights with which {service} is called. {then}")
        }
        OutageReason::Rejections => format!(
            "Look at the orders that were rejected last. Are the rejections wrong? Mend {service}. {then} \
             Are they right? Say so: stepwarden services accept-rejections {service} --reason TEXT"
        ),
    }
}

fn restore(service: &str) -> String {
    format!("Restore {service}. Its orders then go on by themselves.")
}
