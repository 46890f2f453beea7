//! Queues for tests.

use super::{QueuePair, QueueUrls};

/// The queues of the shipped agents, at an address without a server.
pub(crate) fn queue_urls() -> QueueUrls {
    let queue_pair = |name: &str| QueuePair {
        normal: format!("http://127.0.0.1:1/1/{name}").into(),
        high: format!("http://127.0.0.1:1/1/{name}-high").into(),
    };
    let agents = ["inventory", "payment", "shipping"];
    QueueUrls {
        submission: queue_pair("submission"),
        scheduler: queue_pair("scheduler"),
        agents: agents.into_iter().map(|agent| (agent.into(), queue_pair(agent))).collect(),
    }
}
