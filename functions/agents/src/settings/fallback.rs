//! The agents to ask instead of one whose service is failing (rule 21).

use std::sync::Arc;

use domain::limits::FALLBACKS_MAX;
use toml::de::DeValue;

use super::AGENTS;
use domain::located::{Reader, Table};

/// Of the agent `name`, which may have a memo.
pub(super) fn fallback(reader: &mut Reader<'_>, table: &mut Table<'_>, name: &str, has_memo: bool) -> Vec<Arc<str>> {
    let mut agents: Vec<Arc<str>> = Vec::new();
    let Some(entry) = table.take("fallback") else { return agents };
    let DeValue::Array(items) = &entry.value else {
        reader.blame_value(&entry, "must be a list of agents, such as [\"shipping\"]");
        return agents;
    };
    for item in items {
        let agent = item.get_ref().as_str().unwrap_or_default();
        let fault = if agent == name {
            "names the agent itself".to_owned()
        } else if !AGENTS.contains(&agent) {
            format!("names {agent:?}, which is no agent: there are {}", AGENTS.join(", "))
        } else if agents.iter().any(|known| **known == *agent) {
            format!("names {agent} twice")
        } else {
            agents.push(agent.into());
            continue;
        };
        reader.blame(item.span().start, format!("{} {fault}", entry.path));
    }
    if items.len() > FALLBACKS_MAX {
        reader.blame_value(&entry, format_args!("names {} agents: give at most {FALLBACKS_MAX}", items.len()));
    }
    if !has_memo && !items.is_empty() {
        reader.blame_value(
            &entry,
            "needs the memo of this agent: add memo = true. Only a memo can tell that no call was made",
        );
    }
    agents
}
