//! The agents to ask instead of one whose service is failing (rule 21).

use std::sync::Arc;

use domain::limits::FALLBACKS_MAX;
use domain::located::{Reader, Table, known_names};

/// Of the agent `name`, which may have a memo. `known` are all agents.
pub(super) fn fallback(
    reader: &mut Reader<'_>,
    table: &mut Table<'_>,
    name: &str,
    known: &[Arc<str>],
    has_memo: bool,
) -> Vec<Arc<str>> {
    let mut agents: Vec<Arc<str>> = Vec::new();
    let Some(entry) = table.take("fallback") else { return agents };
    let (at, path) = (entry.at, entry.path.clone());
    let Some(items) = entry.elements() else {
        reader.blame(at, format!("{path} must be a list of agents, such as [\"shipping\"]"));
        return agents;
    };
    let count = items.len();
    for item in items {
        let agent = item.value.as_str().unwrap_or_default();
        let fault = if agent == name {
            "names the agent itself".to_owned()
        } else if !known.iter().any(|known| **known == *agent) {
            let known: Vec<&str> = known.iter().map(|known| &**known).collect();
            format!("names {agent:?}, which is not an agent{}", known_names(agent, "Agents", &known))
        } else if agents.iter().any(|earlier| **earlier == *agent) {
            format!("names {agent} twice")
        } else {
            agents.push(agent.into());
            continue;
        };
        reader.blame(item.at, format!("{path} {fault}"));
    }
    if count > FALLBACKS_MAX {
        reader.blame(at, format!("{path} names {count} agents: give at most {FALLBACKS_MAX}"));
    }
    if !has_memo && count > 0 {
        let fault = "needs the memo of this agent: add memo = true. Only a memo can tell that no call was made";
        reader.blame(at, format!("{path} {fault}"));
    }
    agents
}
