//! A bulk job.

use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// `GET /bulk/{id}`, and an entry of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Job {
    #[serde(rename = "JobID")]
    pub(crate) id: String,
    pub(crate) version: u64,
    pub(crate) state: String,
    pub(crate) why: Option<String>,
    pub(crate) by: String,
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) selector: Selector,
    #[serde(default)]
    pub(crate) canary: u32,
    #[serde(default)]
    pub(crate) rate_per_second: u32,
    #[serde(default)]
    pub(crate) stop_at_failed_percent: u8,
    pub(crate) dry_run: DryRun,
    /// Who started it, and why.
    pub(crate) started_by: Option<String>,
    pub(crate) planned_at: Timestamp,
    #[serde(default)]
    pub(crate) tally: Tally,
    #[serde(default)]
    pub(crate) under_way: u64,
    #[serde(default)]
    pub(crate) waiting: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Selector {
    pub(crate) reason_code: Option<String>,
    pub(crate) step: Option<String>,
    pub(crate) failed_since: Option<Timestamp>,
    pub(crate) failed_until: Option<Timestamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DryRun {
    pub(crate) matching: u64,
    pub(crate) complete: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Tally {
    pub(crate) begun: u64,
    pub(crate) recovered: u64,
    pub(crate) failed_again: u64,
    pub(crate) late: u64,
    pub(crate) passed_over: u64,
}

/// `GET /bulk`, each job as it was sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Box<RawValue>>,
}

impl Job {
    /// Whether nothing more comes.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state.as_str(), "Done" | "Stopped" | "Cancelled")
    }

    /// Whether it ended, and every order of it well.
    pub(crate) fn went_well(&self) -> bool {
        self.state == "Done" && self.tally.failed_again == 0
    }
}

impl Selector {
    /// Which orders it means, in words.
    pub(crate) fn words(&self) -> String {
        let mut words = "orders in Error".to_owned();
        if let Some(code) = &self.reason_code {
            words.push_str(&format!(", because of {code}"));
        }
        if let Some(step) = &self.step {
            words.push_str(&format!(", at {step}"));
        }
        if let Some(since) = self.failed_since {
            words.push_str(&format!(", failed since {since}"));
        }
        if let Some(until) = self.failed_until {
            words.push_str(&format!(", failed until {until}"));
        }
        words
    }
}

impl DryRun {
    /// The number, as far as it is known.
    pub(crate) fn words(&self) -> String {
        if self.complete { self.matching.to_string() } else { format!("at least {}", self.matching) }
    }
}
