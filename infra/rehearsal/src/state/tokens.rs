//! The tokens that the services' callers need, and the endpoint that issues them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::faults::Fault;
use crate::seen::Seen;
use crate::state::{Shared, State};
use crate::who::Who;

/// What was issued.
#[derive(Debug, Default)]
pub struct Tokens {
    /// By agent, the end of each token, in milliseconds since the start of the world. One that was revoked is over.
    ends_ms: BTreeMap<usize, Vec<i64>>,
    /// By instance, the fetches under way.
    fetches: BTreeMap<Arc<str>, usize>,
}

/// A fetch under way.
pub(crate) struct Fetch {
    shared: Shared,
    by: Arc<str>,
}

impl Fetch {
    /// An instance begins to fetch a token.
    pub(crate) fn begin(shared: &Shared, who: &Who) -> Self {
        let mut state = shared.lock();
        let fetches = state.remotes.tokens.fetches.entry(who.name.clone()).or_default();
        *fetches += 1;
        let twins = *fetches - 1;
        state.see(&who.name, &Seen::FetchesToken { by: who.name.clone(), twins });
        Self { shared: shared.clone(), by: who.name.clone() }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(fetches) = state.remotes.tokens.fetches.get_mut(&self.by) {
            *fetches = fetches.saturating_sub(1);
        }
    }
}

impl State {
    /// A new token for the service of an agent, and its life in milliseconds; `None` if there is none now.
    pub(crate) fn issue(&mut self, agent: usize) -> Option<(String, u64)> {
        let life_ms = self.setup.services[agent].token_life_ms?;
        if self.strikes(Fault::TokenRefused) {
            return None;
        }
        let ends_ms = self.remotes.tokens.ends_ms.entry(agent).or_default();
        ends_ms.push(self.now_ms.saturating_add_unsigned(life_ms));
        Some((format!("{}-{}", self.setup.shape.agents[agent], ends_ms.len()), life_ms))
    }

    /// Whether the service of an agent lets a caller with this header `Authorization` in.
    pub(crate) fn lets_in(&mut self, agent: usize, authorization: Option<&str>) -> bool {
        if self.setup.services[agent].token_life_ms.is_none() {
            return true;
        }
        let is_revoked = self.strikes(Fault::TokenRevoked);
        let now_ms = self.now_ms;
        let Some(ends_ms) = self.remotes.tokens.ends_ms.get_mut(&agent) else { return false };
        if is_revoked {
            ends_ms.iter_mut().for_each(|end_ms| *end_ms = now_ms.min(*end_ms));
        }
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let number = token.and_then(|token| token.strip_prefix(&*self.setup.shape.agents[agent])?.strip_prefix('-'));
        let number = number.and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
        number.and_then(|number| ends_ms.get(number)).is_some_and(|end_ms| now_ms < *end_ms)
    }
}

#[cfg(test)]
mod tests {
    use crate::faults::{Fault, Plan};
    use crate::rng::Rng;
    use crate::testing;

    #[test]
    fn a_service_lets_in_who_has_a_token_of_its_own_until_its_end() {
        let mut setup = testing::setup();
        setup.services.iter_mut().for_each(|service| service.token_life_ms = Some(2_000));
        let mut state = testing::state(setup);
        assert_eq!(state.issue(1), Some(("money-1".to_owned(), 2_000)));
        assert!(state.lets_in(1, Some("Bearer money-1")));
        for other in [None, Some("money-1"), Some("Bearer money-2"), Some("Bearer money-0"), Some("Bearer stock-1")] {
            assert!(!state.lets_in(1, other), "{other:?}");
        }
        assert!(!state.lets_in(0, Some("Bearer money-1")), "of another service");
        state.now_ms = 2_000;
        assert!(!state.lets_in(1, Some("Bearer money-1")), "it is over");
        let mut state = testing::state(testing::setup());
        assert!(state.lets_in(1, None), "no token is needed");
    }

    #[test]
    fn a_fault_of_http_draws_nothing_from_the_stream_of_all_else() {
        let mut setup = testing::setup();
        let mut plans = (0..100).map(|seed| Plan::draw(&mut Rng::new(seed)));
        setup.plan = plans.find(|plan| plan.has(Fault::TokenRevoked)).unwrap();
        let mut state = testing::state(setup);
        let before = state.rng.clone().bits();
        assert!((0..1_000).any(|_| state.strikes(Fault::TokenRevoked)));
        assert_eq!(state.rng.bits(), before);
    }
}
