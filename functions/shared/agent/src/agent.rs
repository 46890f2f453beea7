//! An agent: its service, its policy, and what its instance knows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::limits::NAME_CHARS_MAX;

use crate::bounds::{PolicyError, within};
use crate::callbacks::Callbacks;
use crate::concurrency::Concurrency;
use crate::health::SharedHealth;
use crate::parked::Parked;
use crate::policy::Policy;

/// One agent: its name in workflows and for its queue, its policy, and how its service is made. Each message gets its
/// own service, so making one must be cheap. An instance makes one agent and keeps it, since the agent remembers the
/// service's health; a clone shares that memory.
#[derive(Clone)]
pub struct Agent<F> {
    pub(crate) name: Arc<str>,
    pub(crate) policy: Policy,
    pub(crate) make_service: F,
    /// The service's health, as this instance knows it.
    pub(crate) health: Arc<SharedHealth>,
    /// The calls that this instance may make at once.
    pub(crate) concurrency: Option<Arc<Concurrency>>,
    /// The addresses for results that come later.
    pub(crate) callbacks: Option<Callbacks>,
    /// The requests that this instance returned to their queue.
    pub(crate) parked: Arc<Parked>,
    /// Whether its host stops, so that no call may start (rule 25).
    pub(crate) stopping: Arc<AtomicBool>,
}

impl<F> Agent<F> {
    /// # Errors
    /// [`PolicyError`] if the name is empty or longer than [`NAME_CHARS_MAX`], or a value of the policy is out of its
    /// range.
    pub fn new(name: impl Into<Arc<str>>, policy: Policy, make_service: F) -> Result<Self, PolicyError> {
        let name = name.into();
        within("length of the agent's name", name.len() as u64, 1, NAME_CHARS_MAX as u64)?;
        policy.check()?;
        let health = Arc::new(SharedHealth::new(name.clone(), policy.health.clone()));
        let concurrency = policy.concurrency.map(Concurrency::new);
        Ok(Self {
            name,
            policy,
            make_service,
            health,
            concurrency,
            callbacks: None,
            parked: Arc::default(),
            stopping: Arc::default(),
        })
    }

    /// The same agent. Its calls have an address for a result that comes later, where the step allows it.
    #[must_use]
    pub fn called_back(self, callbacks: Option<Callbacks>) -> Self {
        Self { callbacks, ..self }
    }

    /// The same agent. It starts no call once this is set: its requests go back to their queue.
    #[must_use]
    pub fn stopped_by(self, stopping: Arc<AtomicBool>) -> Self {
        Self { stopping, ..self }
    }

    /// Its name in workflows and for its queue.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its policy for its service.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl<F> fmt::Debug for Agent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_logs_an_agent_has_its_name_and_how_patient_it_is() {
        let agent = Agent::new("payment", Policy::default(), || ()).unwrap();
        let text = format!("{agent:?}");
        assert!(text.starts_with("Agent { name: \"payment\", policy: Policy {"), "{text}");
    }
}
