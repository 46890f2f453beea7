//! The health of the remote services: one item each, read with every write that was answered before.

use domain::ports::{Commit, PortError, ServiceHealth, Services};

use super::Dynamo;
use super::record::{Item, text, time};
use super::versioned::{Condition, Replacement, record_of};
use crate::sdk_error::port_error;

impl Services for Dynamo {
    async fn health(&self, service: &str) -> Result<Option<ServiceHealth>, PortError> {
        const OPERATION: &str = "services.health";
        let found = self.get_versioned(OPERATION, &self.tables().services, key(service)).await?;
        found.map(|item| record_of(OPERATION, item)).transpose()
    }

    async fn set_health(&self, version_before: u64, after: ServiceHealth) -> Result<Commit, PortError> {
        let mut item = key(&after.service);
        // For those who look into the table.
        item.insert("State".to_owned(), text(format!("{:?}", after.state)));
        item.insert("Until".to_owned(), time(after.until));
        self.put_versioned(Replacement {
            operation: "services.set_health",
            table: &self.tables().services,
            item,
            version: after.version,
            record: &after,
            condition: Condition { version_before, now: None },
        })
        .await
    }

    async fn all_health(&self) -> Result<Vec<ServiceHealth>, PortError> {
        const OPERATION: &str = "services.all_health";
        let (mut all, mut start) = (Vec::<ServiceHealth>::new(), None);
        // The whole table: it has one item for each agent of the workflows.
        loop {
            let request = self.client().scan().table_name(&self.tables().services).consistent_read(true);
            let page = request.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| port_error(OPERATION, &error))?;
            for item in page.items.into_iter().flatten() {
                all.push(record_of(OPERATION, item)?);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        all.sort_by(|one, other| one.service.cmp(&other.service));
        Ok(all)
    }
}

fn key(service: &str) -> Item {
    Item::from([("Service".to_owned(), text(service))])
}
