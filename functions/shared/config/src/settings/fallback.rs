//! The agents to ask instead of one whose service is failing (rule 21).

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::located::{Reader, Table, known_names};

/// Of the agent `name`, which may have a memo. `known` are all agents.
pub(super) fn fallback(
    reader: &mut Reader<'_>,
    table: &Table<'_>,
    name: &str,
    known: &BTreeSet<&str>,
    has_memo: bool,
) -> Vec<Arc<str>> {
    let mut agents: Vec<Arc<str>> = Vec::new();
    let path = format!("{}.fallback", table.path);
    let items = table.elements("fallback");
    if !has_memo && !items.is_empty() {
        let fault = "needs the memo of this agent: add memo = true. Only a memo can tell that no call was made";
        reader.blame(table.at("fallback"), format!("{path} {fault}"));
    }
    for item in items {
        let Some(agent) = item.exact_text() else { continue };
        let fault = if agent == name {
            "names the agent itself".to_owned()
        } else if !known.contains(agent) {
            let known: Vec<&str> = known.iter().copied().collect();
            format!("names {agent:?}, which is not an agent{}", known_names(agent, "Agents", &known))
        } else if agents.iter().any(|earlier| **earlier == *agent) {
            format!("names {agent} twice")
        } else {
            agents.push(agent.into());
            continue;
        };
        reader.blame(item.at, format!("{path} {fault}"));
    }
    agents
}
