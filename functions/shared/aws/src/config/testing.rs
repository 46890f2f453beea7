//! Queues for tests.

use super::{Lanes, QueueUrls};

/// The queues of the shipped agents, at an address that nobody answers.
pub(crate) fn queue_urls() -> QueueUrls {
    let lanes = |name: &str| Lanes {
        normal: format!("http://127.0.0.1:1/1/{name}").into(),
        high: format!("http://127.0.0.1:1/1/{name}-high").into(),
    };
    let agents = ["inventory", "payment", "shipping"];
    QueueUrls {
        submission: lanes("submission"),
        scheduler: lanes("scheduler"),
        agents: agents.into_iter().map(|agent| (agent.into(), lanes(agent))).collect(),
    }
}
