//! The addresses under which services tell results later (rule 38).

use std::sync::Arc;

use domain::callback::{Awaited, CallbackKey};
use domain::definition::{Catalogue, Deployment};
use domain::message::Request;
use domain::ports::{Environment, PortError};

use crate::ports::AgentPorts;

/// The path of the addresses, before their token.
const CALLBACKS: &str = "/callbacks/";

/// Makes the addresses. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Callbacks {
    api: Arc<str>,
    catalogue: Catalogue,
}

impl Callbacks {
    /// Addresses below the base URL of the API, signed with the keys of this catalogue.
    #[must_use]
    pub fn below(api: &str, catalogue: Catalogue) -> Self {
        Self { api: api.trim_end_matches('/').into(), catalogue }
    }

    /// The address for the result of a call. `None` if no folder was applied by a program that makes keys.
    ///
    /// # Errors
    /// [`PortError`] if the keys cannot be read.
    pub(crate) async fn url(&self, ports: &impl AgentPorts, request: &Request) -> Result<Option<String>, PortError> {
        let deployment = self.catalogue.deployment(ports).await?;
        let now = ports.environment().now();
        let key = deployment.as_ref().and_then(|deployment| CallbackKey::signing(&deployment.callback_keys, now));
        let Some(key) = key else { return Ok(None) };
        let Request { order_id, step, direction, .. } = request;
        let awaited = Awaited { order_id: *order_id, step: step.clone(), direction: *direction, agent: None };
        Ok(Some(format!("{}{CALLBACKS}{}", self.api, key.token(&awaited))))
    }

    /// The path of the address for a result that a webhook tells (rule 41). `None` if there is no key, as for the
    /// address of a call. It may have been made a moment ago.
    ///
    /// # Errors
    /// [`PortError`] if the keys cannot be read.
    pub async fn path(&self, ports: &impl AgentPorts, awaited: &Awaited) -> Result<Option<String>, PortError> {
        let now = ports.environment().now();
        let path = |deployment: Option<Arc<Deployment>>| {
            Some(format!("{CALLBACKS}{}", CallbackKey::signing(&deployment?.callback_keys, now)?.token(awaited)))
        };
        if let Some(path) = path(self.catalogue.deployment(ports).await?) {
            return Ok(Some(path));
        }
        Ok(path(self.catalogue.newest_deployment(ports).await?))
    }

    /// The base URL of the API.
    #[must_use]
    pub fn api(&self) -> &str {
        &self.api
    }
}
