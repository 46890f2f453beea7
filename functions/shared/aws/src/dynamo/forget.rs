//! The end of an order's life (rule 44). DynamoDB deletes the task by its time to live. What is left of the order follows
//! once the stream of the tasks says so.

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::ports::PortError;
use domain::tally::Batch;
use domain::task::Task;

use super::Dynamo;
use super::record::{Item, TERMS, text, time};
use crate::sdk_error::port_error;

const OPERATION: &str = "store.forget_expired";

impl Dynamo {
    /// Deletes what is left of the orders whose tasks are gone by this batch.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all is deleted; the caller repeats the batch.
    pub async fn forget(&self, batch: &Batch) -> Result<(), PortError> {
        let gone = batch.changes.iter().filter(|change| change.after.is_none());
        for task in gone.filter_map(|change| change.before.as_ref()) {
            self.forget_order(task).await?;
        }
        Ok(())
    }

    /// The same order may have been accepted again since then, and stays.
    async fn forget_order(&self, task: &Task) -> Result<(), PortError> {
        let Some(submitted) = task.history.first() else { return Ok(()) };
        let (table, id) = (&self.tables().orders, text(task.order_id.to_string()));
        let request = self.client().get_item().table_name(table).key("OrderID", id.clone());
        let request = request.projection_expression("SubmittedAt, Terms").consistent_read(true);
        let found = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
        let submitted_at = time(submitted.at);
        let Some(order) = found.item.filter(|order| order.get("SubmittedAt") == Some(&submitted_at)) else {
            return Ok(());
        };
        self.delete_terms(OPERATION, task.order_id, terms_of(&order)).await?;
        let request = self.client().delete_item().table_name(table).key("OrderID", id.clone());
        let request = request.condition_expression("SubmittedAt = :submitted");
        match request.expression_attribute_values(":submitted", submitted_at).send().await {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.as_service_error(), Some(DeleteItemError::ConditionalCheckFailedException(_))) =>
            {
                Ok(())
            }
            Err(error) => Err(port_error(OPERATION, &error)),
        }
    }
}

/// The terms of an order that is stored.
pub(super) fn terms_of(order: &Item) -> Vec<AttributeValue> {
    order.get(TERMS).and_then(|terms| terms.as_l().ok()).cloned().unwrap_or_default()
}
