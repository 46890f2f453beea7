//! Queues for tests.

use std::collections::BTreeMap;

use super::{QueuePair, QueueUrls};

/// Queues at an address without a server. The agent payment has its own.
pub(crate) fn queue_urls() -> QueueUrls {
    let queue_pair = |name: &str| QueuePair {
        normal: format!("http://127.0.0.1:1/1/{name}").into(),
        high: format!("http://127.0.0.1:1/1/{name}-high").into(),
    };
    QueueUrls {
        submission: queue_pair("submission"),
        scheduler: queue_pair("scheduler"),
        shared: queue_pair("agents"),
        agents: BTreeMap::from([("payment".into(), queue_pair("payment"))]),
        dead_letters: Some("http://127.0.0.1:1/1/dead".into()),
    }
}
