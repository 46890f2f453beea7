//! The health of the remote services: decided in memory, on disk before anybody is told, so that an open breaker is
//! still open after a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::ports::{Commit, PortError, ServiceHealth, Services};
use rusqlite::Connection;

use crate::core::{State, lock};
use crate::engine::Engine;
use crate::log::Write;

impl Services for Engine {
    async fn health(&self, service: &str) -> Result<Option<ServiceHealth>, PortError> {
        Ok(lock(&self.core().state).services.get(service).cloned())
    }

    async fn set_health(&self, version_before: u64, after: ServiceHealth) -> Result<Commit, PortError> {
        let durable = {
            let State { services, log, .. } = &mut *lock(&self.core().state);
            if services.get(&after.service).map_or(0, |health| health.version) != version_before {
                return Ok(Commit::Conflict);
            }
            services.insert(after.service.clone(), after.clone());
            log.append_awaited(Write::Service(after))
        };
        durable.reached("services.set_health").await?;
        Ok(Commit::Committed)
    }

    async fn all_health(&self) -> Result<Vec<ServiceHealth>, PortError> {
        Ok(lock(&self.core().state).services.values().cloned().collect())
    }
}

/// What the disk knows. A record of another form counts as none: health is learned again.
pub(crate) fn load(connection: &Connection) -> rusqlite::Result<BTreeMap<Arc<str>, ServiceHealth>> {
    let mut statement = connection.prepare("SELECT body FROM services")?;
    let bodies = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut services = BTreeMap::new();
    for body in bodies {
        match serde_json::from_str::<ServiceHealth>(&body?) {
            Ok(health) => {
                services.insert(health.service.clone(), health);
            }
            Err(error) => tracing::warn!("the health of a service cannot be read: {error}"),
        }
    }
    Ok(services)
}
