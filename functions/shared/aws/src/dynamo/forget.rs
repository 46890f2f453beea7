//! The end of an order's life (rule 44). DynamoDB deletes the task by its time to live. What is left of the order follows
//! once the stream of the tasks says so.

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::ports::PortError;
use domain::tally::Batch;
use domain::task::Task;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::Dynamo;
use super::read::Seeing;
use super::record::{Item, TERMS, text, time};
use crate::sdk_error::port_error;

const OPERATION: &str = "store.forget_expired";
/// Orders that are deleted side by side: a batch may have thousands, and its time is limited.
const AT_ONCE: usize = 16;

impl Dynamo {
    /// Deletes what is left of the orders whose tasks are gone by this batch.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all is deleted; the caller repeats the batch.
    pub async fn forget(&self, batch: &Batch) -> Result<(), PortError> {
        let gone = batch.changes.iter().filter(|change| change.after.is_none());
        let tasks = gone.filter_map(|change| change.before.as_ref()).filter(|task| task.expires_at.is_some());
        let forgets = stream::iter(tasks.map(|task| self.forget_order(task)));
        forgets.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// The same order may have been accepted again since then, and stays. So does one whose message came again and put its
    /// task anew.
    async fn forget_order(&self, task: &Task) -> Result<(), PortError> {
        let Some(submitted) = task.history.first() else { return Ok(()) };
        if self.read(OPERATION, &self.tables().tasks, task.order_id, Seeing::Everything).await?.is_some() {
            return Ok(());
        }
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
                self.keep_terms(task).await
            }
            Err(error) => Err(port_error(OPERATION, &error)),
        }
    }

    /// A new order of the same id was stored meanwhile, perhaps with the same terms.
    async fn keep_terms(&self, task: &Task) -> Result<(), PortError> {
        let stored = self.read(OPERATION, &self.tables().orders, task.order_id, Seeing::Everything).await?;
        self.put_terms(task.order_id, stored.iter().flat_map(terms_of)).await
    }
}

/// The terms of an order that is stored.
pub(super) fn terms_of(order: &Item) -> Vec<AttributeValue> {
    order.get(TERMS).and_then(|terms| terms.as_l().ok()).cloned().unwrap_or_default()
}
