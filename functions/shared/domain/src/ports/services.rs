//! The health of the remote services.

use std::fmt;
use std::sync::Arc;

use super::{Listed, Record, RecordKind, Shown};
use crate::backoff::Backoff;
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
    #[serde(default)]
    pub era: u64,
    /// Whether requests go through.
    pub state: Breaker,
    /// Reported failures since the last success.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::BackoffPolicy;

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
            release: Some(Release { interval: 2, taken: 40, crowded: 1 }),
        }
    }

    #[test]
    fn health_is_stored_under_pascal_case_names_and_read_back() {
        let text = serde_json::to_string(&health()).unwrap();
        assert_eq!(serde_json::from_str::<ServiceHealth>(&text).unwrap(), health());
        for name in ["Service", "Version", "Era", "State", "FailuresInARow", "Until", "Backoff", "Since", "Release"] {
            assert!(text.contains(&format!("\"{name}\":")), "{name} in {text}");
        }
        assert!(text.contains("\"Release\":{\"Interval\":2,\"Taken\":40,\"Crowded\":1}"), "{text}");
    }

    #[test]
    fn a_record_from_before_eras_and_releases_is_read() {
        let plain = ServiceHealth { era: 0, release: None, ..health() };
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("Release"), "{text}");
        let before = text.replace("\"Era\":0,", "");
        assert_ne!(before, text);
        assert_eq!(serde_json::from_str::<ServiceHealth>(&before).unwrap(), plain);
    }
}
