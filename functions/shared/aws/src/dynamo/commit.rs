//! Replaces a task's version: one conditional `UpdateItem`.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use domain::ports::{Commit, PortError};
use domain::task::Task;

use super::Dynamo;
use super::change::{Change, change};
use super::record::{Item, Reader, Unreadable, text};
use crate::sdk_error::{chain, port_error};

pub(super) const OPERATION: &str = "store.commit";

impl Dynamo {
    /// Writes the difference between `before` and `after`, if the stored version is still that of `before` (rule 1).
    ///
    /// If the condition fails, DynamoDB returns the stored item. If its version and nonce are those of `after`, an
    /// earlier attempt of the same write succeeded, and its answer was lost (rule 3). Another writer may have changed
    /// the task again in the meantime, with its own nonce. Then this returns [`Commit::Conflict`] for a write that
    /// happened. The caller reads again. If it finds its own line in the history, it sends the messages that follow
    /// (rule 3).
    pub(super) async fn replace(&self, before: &Task, after: &Task) -> Result<Commit, PortError> {
        let Change { update, condition, names, values } = change(before, after);
        let request = self
            .client()
            .update_item()
            .table_name(&self.tables().tasks)
            .key("OrderID", text(before.order_id.to_string()))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut pauses = self.pauses();
        loop {
            let Err(error) = request.clone().send().await else {
                return Ok(Commit::Committed);
            };
            match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    let is_own = failed.item().is_some_and(|stored| is_version(stored, after));
                    return Ok(if is_own { Commit::Committed } else { Commit::Conflict });
                }
                // The order is being erased.
                Some(UpdateItemError::TransactionConflictException(_)) => {
                    if !pauses.pause().await {
                        return Err(PortError::unavailable(OPERATION, chain(&error)));
                    }
                }
                _ => return Err(port_error(OPERATION, &error)),
            }
        }
    }
}

/// Whether the stored task has this version and was written by the same change.
pub(super) fn is_version(stored: &Item, task: &Task) -> bool {
    version_of(stored).is_ok_and(|version| version == (task.version, task.nonce))
}

fn version_of(stored: &Item) -> Result<(u64, u64), Unreadable> {
    let names = ["Version", "Nonce"];
    let known = names.into_iter().filter_map(|name| Some((name.to_owned(), stored.get(name)?.clone())));
    let mut reader = Reader::new(known.collect());
    Ok((reader.number("Version")?, reader.nonce("Nonce")?))
}
