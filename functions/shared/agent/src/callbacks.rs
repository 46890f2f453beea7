//! The addresses under which services tell results later (rule 38).

use std::sync::Arc;

use domain::callback::Awaited;
use domain::definition::Catalogue;
use domain::message::Request;
use domain::ports::PortError;

use crate::agent::AgentPorts;

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
        let Some(key) = deployment.as_ref().and_then(|deployment| deployment.callback_keys.last()) else {
            return Ok(None);
        };
        let Request { order_id, step, direction, .. } = request;
        let awaited = Awaited { order_id: *order_id, step: step.clone(), direction: *direction };
        Ok(Some(format!("{}/callbacks/{}", self.api, key.token(&awaited))))
    }
}
