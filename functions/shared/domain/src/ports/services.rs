//! The health of the remote services.

use std::fmt;
use std::sync::Arc;

use super::{Listed, Record, RecordKind, Shown};
use crate::backoff::{Backoff, BackoffPolicy};
use crate::id::OrderId;
use crate::order::ERASED;
use crate::task::Quoted;
use crate::time::Timestamp;

/// The health of a remote service.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceHealth {
    /// The name of its agent.
    pub service: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// +1 at every change of `state` and at every probe. The end of a call counts only in the era in which the call
    /// was let through. So a call from before an outage does not count after it.
    pub era: u64,
    /// Whether requests go through.
    pub state: Breaker,
    /// Reported failures since the last success. Where there are many calls: how many more there were than successes.
    pub failures_in_a_row: u32,
    /// While open: its end. While half-open: the time by which the probe must end.
    pub until: Timestamp,
    /// The state of the back-off.
    pub backoff: Backoff,
    /// The time at which it entered this state.
    pub since: Timestamp,
    /// While closed after an outage: the progress of the release of parked requests. `None` once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// Why requests wait. `None` while they go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The last outage of a kind that is alerted, until its alert is sent. It outlives the outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent: Option<Outage>,
    /// What the brake on mass rejection knows (rule 18). It outlives outages and releases.
    #[serde(default, skip_serializing_if = "Rejections::is_empty")]
    pub rejections: Rejections,
    /// Of a service with a rate: when its next calls may start (rule 20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Whose failures they are, and among how many calls.
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
}

impl ServiceHealth {
    /// Whether it waits because of its rejections. A rejection does not count then.
    #[must_use]
    pub fn is_braked(&self) -> bool {
        self.outage.as_ref().is_some_and(|outage| outage.reason == OutageReason::Rejections)
    }

    /// The same service, closed at `now` after an outage. The version is unchanged.
    #[must_use]
    pub fn closed(&self, backoff: BackoffPolicy, now: Timestamp) -> Self {
        Self {
            state: Breaker::Closed,
            era: self.era + 1,
            failures_in_a_row: 0,
            until: now,
            backoff: Backoff::new(backoff),
            since: now,
            release: Some(Release::default()),
            outage: None,
            evidence: Evidence { own: self.evidence.own.clone(), ..Evidence::default() },
            ..self.clone()
        }
    }

    /// The next record, without the texts of outages that may quote this order (rule 46). `None` if there are none.
    #[must_use]
    pub fn erased(&self, quoted: &Quoted) -> Option<Self> {
        let mut next = Self { version: self.version + 1, ..self.clone() };
        let outages = next.outage.iter_mut().chain(&mut next.unsent);
        let texts = outages.filter(|outage| quoted.covers(outage.since, None) && *outage.problem != *ERASED);
        let found = texts.map(|outage| outage.problem = ERASED.into()).count();
        (found > 0).then_some(next)
    }

    /// The next record, after an operator said that the rejections are right: they count until most answers are no
    /// rejections any more. `None` if it does not wait because of them.
    #[must_use]
    pub fn accepting_rejections(&self, acceptance: Acceptance) -> Option<Self> {
        let at = acceptance.at;
        let rejections = Rejections { accepted: Some(acceptance), ..self.rejections.clone() };
        self.is_braked().then(|| Self { version: self.version + 1, rejections, ..self.closed(self.backoff.policy, at) })
    }
}

impl Record for ServiceHealth {
    const KIND: RecordKind = RecordKind::Service;

    fn key(&self) -> &str {
        &self.service
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn shown(&self) -> Vec<(&'static str, Shown)> {
        vec![("State", Shown::Text(format!("{:?}", self.state))), ("Until", Shown::Time(self.until))]
    }
}

impl Listed for ServiceHealth {}

/// Whether requests to a service go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum Breaker {
    /// They go through.
    Closed,
    /// They are parked until `until`.
    Open,
    /// One request probes; the others are parked.
    HalfOpen,
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "Closed",
            Self::Open => "Open",
            Self::HalfOpen => "HalfOpen",
        })
    }
}

/// The progress of the release of parked requests after a recovery. The time since the recovery is cut into intervals.
/// Each has a limited number of permits, which the instances take here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Release {
    /// The interval of `taken`, from 0.
    pub interval: u32,
    /// Permits taken in it.
    pub taken: u32,
    /// The last interval whose permits were all taken, so that a request may have had to wait on.
    pub crowded: u32,
    /// The permits of this interval. 0: not known yet.
    pub rate: u32,
    /// Calls with such a permit that failed, as far as they are reported.
    pub failed: u32,
}

/// What is known about the failures of a service, besides their number. The times and numbers are of the instances that
/// reported them.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Evidence {
    /// The calls that ended in about a second before each report since the last success.
    pub calls: u32,
    /// The different orders whose calls failed since the last success: enough of them to tell that it is the service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<OrderId>,
    /// The two orders that the service asked for no call for the longest time, and until when. The first asked for longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<OrderAt>,
    /// While it is open: the calls a second with which a release begins.
    pub carried: u32,
    /// The orders whose calls failed before an answer to another one, oldest first, with the time of that answer. After an
    /// outage the time is 1970: it does not tell whose failures they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OrderAt>,
}

impl Evidence {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An order and a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrderAt {
    /// The order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The time.
    pub at: Timestamp,
}

/// The times that calls have taken, for a service with a rate. In microseconds since 1970, since a rate seldom divides
/// a second into whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Pace {
    /// The first time for a call that no call has taken.
    pub next_us: u64,
    /// The end of the line: the requests that wait on their queue come back one by one until then.
    pub line_us: u64,
}

/// Why the requests of a service wait, from the opening of its breaker to the closing.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Outage {
    /// The kind. One that an operator has to see stays until the breaker closes.
    pub reason: OutageReason,
    /// The last problem, without data of an order and without secrets.
    pub problem: Arc<str>,
    /// The time of the opening.
    pub since: Timestamp,
}

/// The kinds of outages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OutageReason {
    /// The service fails or does not answer.
    Failing,
    /// The service refuses every call because of its own configuration or the agent's.
    Misconfigured,
    /// The service rejects most of the steps.
    Rejections,
}

impl OutageReason {
    /// The type of its alert. `None`: it ends without an operator.
    #[must_use]
    pub const fn alert(self) -> Option<&'static str> {
        match self {
            Self::Failing => None,
            Self::Misconfigured => Some("ServiceMisconfigured"),
            Self::Rejections => Some("ServiceRejecting"),
        }
    }
}

/// What the brake on mass rejection knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Rejections {
    /// The latest answers to forward calls, oldest first. An instance adds its own when it has a rejection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answers>,
    /// The operator's word that the rejections are right, until most answers are no rejections any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
}

impl Rejections {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The answers of some seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answers {
    /// The begin of these seconds.
    pub from: Timestamp,
    /// Steps that were done.
    pub yes: u32,
    /// Steps that were rejected.
    pub no: u32,
}

/// An operator's word that the rejections of a service are right.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Acceptance {
    /// The operator, and in brackets the authenticated caller.
    pub by: Arc<str>,
    /// The operator's reason.
    pub reason: Arc<str>,
    /// When it was given.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> ServiceHealth {
        ServiceHealth {
            service: "payment".into(),
            version: 7,
            era: 3,
            state: Breaker::HalfOpen,
            failures_in_a_row: 5,
            until: Timestamp::from_epoch_ms(1_795_195_603_007),
            backoff: Backoff::new(BackoffPolicy { slot_time_ms: 500, ceiling: 5, stay_at_ceiling: true }),
            since: Timestamp::from_epoch_ms(1_795_195_600_000),
            release: Some(Release { interval: 2, taken: 40, crowded: 1, rate: 80, failed: 3 }),
            outage: Some(outage(OutageReason::Rejections)),
            unsent: Some(outage(OutageReason::Misconfigured)),
            rejections: Rejections {
                answers: vec![Answers { from: Timestamp::from_epoch_ms(1_795_195_600_000), yes: 4, no: 17 }],
                accepted: Some(acceptance()),
            },
            pace: Some(Pace { next_us: 1_795_195_600_000_050, line_us: 1_795_195_600_000_100 }),
            evidence: Evidence {
                calls: 30,
                orders: vec![OrderId::from_idempotency_key("shop", "1")],
                asked: vec![OrderAt {
                    order_id: OrderId::from_idempotency_key("shop", "1"),
                    at: Timestamp::from_epoch_ms(1_795_195_660_000),
                }],
                carried: 9,
                own: vec![OrderAt {
                    order_id: OrderId::from_idempotency_key("shop", "2"),
                    at: Timestamp::from_epoch_ms(1_795_195_600_000),
                }],
            },
        }
    }

    fn outage(reason: OutageReason) -> Outage {
        Outage { reason, problem: "HTTP 401".into(), since: Timestamp::from_epoch_ms(1_795_195_600_000) }
    }

    fn acceptance() -> Acceptance {
        let at = Timestamp::from_epoch_ms(1_795_195_603_000);
        Acceptance { by: "ada".into(), reason: "it is sold out".into(), at }
    }

    #[test]
    fn health_is_stored_under_pascal_case_names_and_read_back() {
        let text = serde_json::to_string(&health()).unwrap();
        assert_eq!(serde_json::from_str::<ServiceHealth>(&text).unwrap(), health());
        for name in [
            "Service",
            "Version",
            "Era",
            "State",
            "FailuresInARow",
            "Until",
            "Backoff",
            "Since",
            "Release",
            "Outage",
            "Unsent",
            "Rejections",
            "Pace",
            "Evidence",
        ] {
            assert!(text.contains(&format!("\"{name}\":")), "{name} in {text}");
        }
        assert!(
            text.contains("\"Release\":{\"Interval\":2,\"Taken\":40,\"Crowded\":1,\"Rate\":80,\"Failed\":3}"),
            "{text}"
        );
        assert!(text.contains("\"Pace\":{\"NextUs\":1795195600000050,\"LineUs\":1795195600000100}"), "{text}");
        assert!(text.contains("\"Reason\":\"rejections\"") && text.contains("\"Yes\":4,\"No\":17}"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_not_stored() {
        let rejections = Rejections::default();
        let (outage, unsent, pace, evidence) = (None, None, None, Evidence::default());
        let plain = ServiceHealth { era: 0, release: None, outage, unsent, rejections, pace, evidence, ..health() };
        let text = serde_json::to_string(&plain).unwrap();
        for name in ["Release", "Outage", "Unsent", "Rejections", "Pace", "Evidence"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
        assert_eq!(serde_json::from_str::<ServiceHealth>(&text).unwrap(), plain);
    }

    #[test]
    fn rejections_are_accepted_only_of_a_service_that_waits_because_of_them() {
        let accepted = health().accepting_rejections(acceptance()).unwrap();
        assert_eq!((accepted.version, accepted.era, accepted.state), (8, 4, Breaker::Closed));
        assert_eq!((accepted.outage.clone(), accepted.release), (None, Some(Release::default())));
        assert_eq!(accepted.rejections, health().rejections);
        assert_eq!(accepted.unsent, health().unsent, "its alert is still sent");
        assert_eq!(accepted.accepting_rejections(acceptance()), None);
        for reason in [OutageReason::Failing, OutageReason::Misconfigured] {
            let other = ServiceHealth { outage: Some(outage(reason)), ..health() };
            assert_eq!(other.accepting_rejections(acceptance()), None, "{reason:?}");
        }
    }
}
