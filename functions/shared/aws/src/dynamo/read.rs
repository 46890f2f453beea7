//! Reading orders and tasks.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::KeysAndAttributes;
use domain::id::OrderId;
use domain::order::Order;
use domain::ports::PortError;
use domain::task::Task;

use super::Dynamo;
use super::record::{self, Item, text};
use crate::sdk_error::port_error;

/// The maximum number of keys in one `BatchGetItem`.
pub(super) const KEYS_MAX: usize = 100;

/// Whether a read sees every earlier answered write. A consistent read costs twice as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seeing {
    /// The read is consistent.
    Everything,
    /// The read may miss the latest writes.
    MostlyEverything,
}

impl Dynamo {
    pub(super) async fn read_task(
        &self,
        operation: &'static str,
        order_id: OrderId,
        seeing: Seeing,
    ) -> Result<Option<Arc<Task>>, PortError> {
        let item = self.read(operation, &self.tables().tasks, order_id, seeing).await?;
        let task = item.map(record::task).transpose().map_err(|error| PortError::refused(operation, error))?;
        Ok(task.map(Arc::new))
    }

    /// An order changes only when it is erased, and a read may show it as it was for a moment after that. Else the
    /// consistency of the read matters only for a missing order.
    pub(super) async fn read_order(
        &self,
        operation: &'static str,
        order_id: OrderId,
    ) -> Result<Option<Arc<Order>>, PortError> {
        let orders = &self.tables().orders;
        let item = match self.read(operation, orders, order_id, Seeing::MostlyEverything).await? {
            Some(item) => Some(item),
            None => self.read(operation, orders, order_id, Seeing::Everything).await?,
        };
        let order = item.map(record::order).transpose().map_err(|error| PortError::refused(operation, error))?;
        Ok(order.map(Arc::new))
    }

    pub(super) async fn read(
        &self,
        operation: &'static str,
        table: &str,
        order_id: OrderId,
        seeing: Seeing,
    ) -> Result<Option<Item>, PortError> {
        let request = self
            .client()
            .get_item()
            .table_name(table)
            .key("OrderID", text(order_id.to_string()))
            .consistent_read(seeing == Seeing::Everything);
        let found = request.send().await.map_err(|error| port_error(operation, &error))?;
        Ok(found.item)
    }

    /// The tasks of these orders. `order_ids` has at most [`KEYS_MAX`] ids and no duplicates. The answer may lag. It
    /// leaves out a task of an unknown form, so that the others are visible. A read of that task alone reports its
    /// error.
    pub(super) async fn read_tasks(
        &self,
        operation: &'static str,
        order_ids: impl Iterator<Item = OrderId>,
    ) -> Result<HashMap<OrderId, Arc<Task>>, PortError> {
        let mut keys: Vec<Item> =
            order_ids.map(|id| HashMap::from([("OrderID".to_owned(), text(id.to_string()))])).collect();
        let mut tasks = HashMap::with_capacity(keys.len());
        let mut pauses = self.pauses();
        while !keys.is_empty() {
            let asked = KeysAndAttributes::builder().set_keys(Some(keys)).build();
            let asked = asked.map_err(|error| PortError::refused(operation, error))?;
            let request = self.client().batch_get_item().request_items(&self.tables().tasks, asked);
            let found = request.send().await.map_err(|error| port_error(operation, &error))?;
            for item in found.responses.into_iter().flatten().flat_map(|(_, items)| items) {
                let order_id = item.get("OrderID").and_then(|id| id.as_s().ok()).cloned();
                match record::task(item) {
                    Ok(task) => drop(tasks.insert(task.order_id, Arc::new(task))),
                    Err(error) => tracing::error!(order_id, "a task cannot be read: {error}"),
                }
            }
            // The rest that exceeded one answer, or the table's current capacity.
            keys = found.unprocessed_keys.into_iter().flatten().flat_map(|(_, left)| left.keys).collect();
            if !keys.is_empty() && !pauses.pause().await {
                return Err(PortError::unavailable(operation, "the table answers too slowly"));
            }
        }
        Ok(tasks)
    }
}
