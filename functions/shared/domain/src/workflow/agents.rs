//! The part of the agents' settings that the scheduler needs. The agents read the whole, and find every fault in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::keys::Kind;
use crate::limits::{SETTLES_WITHIN_MS_DEFAULT, SETTLES_WITHIN_MS_MAX};

/// What `settles_within` of an agent holds.
pub const SETTLES_WITHIN: Kind = Kind::TimeMs(1, SETTLES_WITHIN_MS_MAX);

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    agents: BTreeMap<Arc<str>, Agent>,
}

#[derive(Deserialize)]
struct Agent {
    url: Option<toml::Value>,
    queue: Option<toml::Value>,
    settles_within: Option<String>,
    #[serde(default)]
    fallback: Vec<Arc<str>>,
}

/// The time for which calls for a step of each agent may still have their effect, in milliseconds, for the agents whose
/// settings name one. A fallback of the agent may carry out the step, so it is the longest of them all. See
/// [`Catalogue`](crate::definition::Catalogue).
///
/// # Errors
/// The first fault, in one line.
pub fn settles_within_ms(settings: &str) -> Result<BTreeMap<Arc<str>, u64>, String> {
    let file: File = toml::from_str(settings).map_err(|error| format!("is no TOML: {}", error.message()))?;
    let given = file.agents.iter().filter_map(|(name, agent)| Some((name, agent.settles_within.as_ref()?)));
    let times = given.map(|(name, text)| match SETTLES_WITHIN.time_ms(text) {
        Some(ms) => Ok((name.clone(), ms)),
        None => Err(format!("has agents.{name}.settles_within, which must be {}", SETTLES_WITHIN.expected())),
    });
    let own = times.collect::<Result<BTreeMap<_, _>, _>>()?;
    let of = |name: &Arc<str>| own.get(name).copied().unwrap_or(SETTLES_WITHIN_MS_DEFAULT);
    let longest = |name, agent: &Agent| agent.fallback.iter().map(of).fold(of(name), u64::max);
    let named = file.agents.iter().filter(|(name, agent)| own.contains_key(*name) || !agent.fallback.is_empty());
    Ok(named.map(|(name, agent)| (name.clone(), longest(name, agent))).collect())
}

/// The names of the agents that the settings name, sorted. A text that is not TOML names none.
#[must_use]
pub fn agent_names(settings: &str) -> Vec<Arc<str>> {
    toml::from_str::<File>(settings).map(|file| file.agents.into_keys().collect()).unwrap_or_default()
}

/// The same for the agents without a service of their own.
#[must_use]
pub fn agents_without_service(settings: &str) -> Vec<Arc<str>> {
    let agents = toml::from_str::<File>(settings).map(|file| file.agents).unwrap_or_default();
    let without = agents.into_iter().filter(|(_, agent)| agent.url.is_none() && agent.queue.is_none());
    without.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_settings_and_nothing_else_is_read() {
        let settings = "[agents.a]\nurl = \"https://a\"\nsettles_within = \"2m\"\n[agents.b]\nmemo = true";
        assert_eq!(settles_within_ms(settings), Ok(BTreeMap::from([("a".into(), 120_000)])));
        assert_eq!(settles_within_ms(""), Ok(BTreeMap::new()));
        assert_eq!(agent_names(settings), ["a".into(), "b".into()]);
        assert_eq!(agent_names("[agents"), []);
        assert_eq!(agents_without_service(settings), ["b".into()]);
        assert_eq!(agents_without_service("[agents.a]\nqueue = \"own\""), []);
    }

    #[test]
    fn a_step_settles_with_the_slowest_of_its_agent_and_the_fallback() {
        let settings = "[agents.a]\nsettles_within = \"10s\"\nfallback = [\"b\"]\n[agents.b]\nfallback = [\"c\"]\n\
            [agents.c]\nsettles_within = \"2m\"";
        let times = [("a".into(), SETTLES_WITHIN_MS_DEFAULT), ("b".into(), 120_000), ("c".into(), 120_000)];
        assert_eq!(settles_within_ms(settings), Ok(BTreeMap::from(times)));
    }

    #[test]
    fn a_bad_time_is_named() {
        for time in ["61m", "0s", "soon"] {
            let fault = settles_within_ms(&format!("[agents.a]\nsettles_within = \"{time}\"")).unwrap_err();
            assert_eq!(fault, "has agents.a.settles_within, which must be a time from \"1ms\" to \"1h\"");
        }
        assert!(settles_within_ms("[agents").unwrap_err().starts_with("is no TOML"));
    }
}
