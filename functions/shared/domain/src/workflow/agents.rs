//! The part of the agents' settings that the scheduler needs. The agents read the whole, and find every fault in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::parse::duration_ms;
use crate::limits::SETTLES_WITHIN_MS_MAX;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    agents: BTreeMap<Arc<str>, Agent>,
}

#[derive(Deserialize)]
struct Agent {
    settles_within: Option<String>,
}

/// The time for which calls of each agent may still have their effect, in milliseconds, for the agents whose settings
/// name one. See [`Workflows::settling_within`](super::Workflows::settling_within).
///
/// # Errors
/// The first fault, in one line.
pub fn settles_within_ms(settings: &str) -> Result<BTreeMap<Arc<str>, u64>, String> {
    let file: File = toml::from_str(settings).map_err(|error| format!("is no TOML: {}", error.message()))?;
    let given = file.agents.into_iter().filter_map(|(name, agent)| Some((name, agent.settles_within?)));
    let times = given.map(|(name, text)| match duration_ms(&text) {
        Ok(ms) if (1..=SETTLES_WITHIN_MS_MAX).contains(&ms) => Ok((name, ms)),
        Ok(_) | Err(_) => Err(format!("has agents.{name}.settles_within, which must be a time from \"1ms\" to \"1h\"")),
    });
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_settings_and_nothing_else_is_read() {
        let settings = "[agents.a]\nurl = \"https://a\"\nsettles_within = \"2m\"\n[agents.b]\nmemo = true";
        assert_eq!(settles_within_ms(settings), Ok(BTreeMap::from([("a".into(), 120_000)])));
        assert_eq!(settles_within_ms(""), Ok(BTreeMap::new()));
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
