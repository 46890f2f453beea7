//! What is known of the remote services.

use std::fmt;
use std::sync::Arc;

use super::{Listed, Record, RecordKind, Shown};
use crate::backoff::Backoff;
use crate::time::Timestamp;

/// What is known of a remote service.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceHealth {
    /// Name of its agent.
    pub service: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// +1 at every change of `state` and at every probe. The end of a call counts only in the era in which the call was
    /// let through, so that one from before an outage says nothing about the time after it.
    #[serde(default)]
    pub era: u64,
    /// Whether requests go through.
    pub state: Breaker,
    /// Failures since the last success, as far as they were reported.
    pub failures_in_a_row: u32,
    /// While open: until when. While half-open: until when the probe may take.
    pub until: Timestamp,
    /// Where the back-off stands.
    pub backoff: Backoff,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// While closed after an outage: how far the release of those who waited is. Nothing once it is over.
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
    /// They do.
    Closed,
    /// They are parked until a time.
    Open,
    /// One of them probes; the others are parked.
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

/// How far the release of parked requests is after a recovery. Time is cut into intervals from the recovery on, and each
/// has so many permits, which the instances take from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Release {
    /// The interval that `taken` is about, from 0.
    pub interval: u32,
    /// Permits taken in it.
    pub taken: u32,
    /// The last interval whose permits were all taken, so that somebody may have had to wait on.
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
