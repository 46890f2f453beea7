//! What the API tells of the whole: services, leases, counts, workflows, dead letters.

use domain::task::ProcessState;
use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// `GET /health`
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Health {
    pub(crate) status: String,
    pub(crate) version: Option<String>,
}

/// `GET /services`
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Services {
    pub(crate) services: Vec<Service>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Service {
    pub(crate) service: String,
    pub(crate) state: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    #[serde(default)]
    pub(crate) failures_in_a_row: u32,
}

/// `GET /leases`
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Leases {
    pub(crate) leases: Vec<Lease>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Lease {
    pub(crate) name: String,
    pub(crate) owner: Option<String>,
    #[serde(default)]
    pub(crate) epoch: u64,
    pub(crate) expires_at: Option<Timestamp>,
    /// When its owner was last heard of.
    pub(crate) renewed_at: Option<Timestamp>,
    pub(crate) health: Option<String>,
    #[serde(default)]
    pub(crate) held: bool,
}

/// `GET /workflows`
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Workflows {
    pub(crate) workflows: Vec<Workflow>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Workflow {
    pub(crate) name: String,
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) current: bool,
    #[serde(default)]
    pub(crate) steps: Vec<WorkflowStep>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WorkflowStep {
    pub(crate) name: String,
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) after: Vec<String>,
    pub(crate) complete_within_ms: Option<u64>,
    pub(crate) max_failures: Option<u32>,
    pub(crate) on_rejected: Option<String>,
    pub(crate) on_exhausted: Option<String>,
}

/// `GET /overview`
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Overview {
    #[serde(default)]
    pub(crate) counts: Vec<Count>,
    #[serde(default)]
    pub(crate) minutes: Vec<Minute>,
    #[serde(default)]
    pub(crate) failures: Vec<Failure>,
    #[serde(default)]
    pub(crate) services: Vec<Service>,
    pub(crate) dead_letters: Option<DeadLetterCount>,
}

/// Orders in a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Count {
    pub(crate) state: ProcessState,
    pub(crate) count: u64,
    /// Whether there may be more.
    #[serde(default)]
    pub(crate) at_least: bool,
    /// Only orders submitted since then are counted.
    pub(crate) since: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Minute {
    pub(crate) accepted: u64,
    pub(crate) processed: u64,
    pub(crate) compensated: u64,
    pub(crate) error: u64,
}

/// Orders in `Error` for one cause.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) step: Option<String>,
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) at_least: bool,
    pub(crate) oldest_at: Option<Timestamp>,
    pub(crate) last_error: Option<super::task::LastError>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeadLetterCount {
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) at_least: bool,
    pub(crate) newest_at: Option<Timestamp>,
}

/// A page of `GET /dead-letters`, each as it was sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeadLetterList {
    pub(crate) dead_letters: Vec<Box<RawValue>>,
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeadLetter {
    #[serde(rename = "MessageID")]
    pub(crate) message_id: String,
    pub(crate) queue: Option<String>,
    pub(crate) agent: Option<String>,
    #[serde(rename = "OrderID")]
    pub(crate) order_id: Option<String>,
    pub(crate) receive_count: u32,
    pub(crate) settled_at: Timestamp,
    pub(crate) outcome: String,
    pub(crate) message: String,
}

/// A number that may be the beginning of a larger one.
pub(crate) fn at_least(count: u64, at_least: bool) -> String {
    if at_least { format!("{count}+") } else { count.to_string() }
}
