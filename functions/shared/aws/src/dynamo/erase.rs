//! The personal data of an order that is erased (rule 46): all that the tables have of it, beside its task.
//!
//! The last write says that the order is erased: one transaction of task and order. Whoever is killed before it gets the
//! command again, and finds less to do. Only the scheduler removes the rest, so no other function needs the code for it.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use domain::id::OrderId;
use domain::message::idempotency_key;
use domain::ports::{Commit, Memo, PortError, Record, Records, Seen};
use domain::task::{Direction, Task};
use futures_util::future::{try_join_all, try_join3};

use super::Dynamo;
use super::change::{Change, change, replacement};
use super::commit::{OPERATION, is_version};
use super::forget::terms_of;
use super::read::Seeing;
use super::record::{Item, order, order_item, text};
use super::records::DEAD_LETTER;
use crate::sdk_error::{chain, port_error};

/// Memos that change while they are erased are read again, this often.
const TRIES_MAX: usize = 10;

/// The meaning of a cancelled transaction.
enum Cancelled {
    /// The task, or the order, is not as it was read; or the transaction has happened before.
    Answer(Commit),
    /// Another write is in the way, or the rate is too high.
    Later,
}

impl Dynamo {
    /// Removes what the tables have of an order beside the order and its task.
    pub(super) async fn erase_others(&self, task: &Task) -> Result<(), PortError> {
        let order_id = task.order_id;
        let stored = self.read(OPERATION, &self.tables().orders, order_id, Seeing::Everything).await?;
        let stored = stored.unwrap_or_default();
        try_join3(
            self.delete_terms(OPERATION, order_id, terms_of(&stored)),
            self.erase_memos(task),
            self.delete_dead_letters(order_id),
        )
        .await
        .map(drop)
    }

    /// Replaces `before` by `after`, the version that is erased, and erases the order.
    pub(super) async fn erase(&self, before: &Task, after: &Task) -> Result<Commit, PortError> {
        let stored = self.read(OPERATION, &self.tables().orders, before.order_id, Seeing::Everything).await?;
        // It has expired.
        let Some(stored) = stored else { return Ok(Commit::Conflict) };
        let read = order(stored.clone()).map_err(|error| PortError::refused(OPERATION, error))?;
        let erased = order_item(&read.erased());
        if stored == erased {
            return self.replace(before, after).await;
        }
        let commit = self.replace_both(before, after, &stored, &erased).await?;
        // A submission that was delivered again meanwhile may have met the order as it was, and put its terms anew.
        if commit == Commit::Committed
            && let Err(error) = self.delete_terms(OPERATION, before.order_id, terms_of(&stored)).await
        {
            tracing::warn!(order_id = %before.order_id, "an erased order may have terms left: {error}");
        }
        Ok(commit)
    }

    /// What the services answered goes, and that they were called stays: a repeat must make no call.
    async fn erase_memos(&self, task: &Task) -> Result<(), PortError> {
        let keys = task.steps.iter().flat_map(|step| {
            [Direction::Forward, Direction::Undo].map(|way| idempotency_key(task.order_id, &step.name, way))
        });
        try_join_all(keys.map(async |key| self.erase_memo(&key).await)).await.map(drop)
    }

    async fn erase_memo(&self, key: &str) -> Result<(), PortError> {
        for _ in 0..TRIES_MAX {
            let Some(memo) = self.get::<Memo>(key).await? else { return Ok(()) };
            let erased = memo.clone().erased();
            // One that has expired may stay for days.
            let seen = Seen { version: memo.version, at: memo.expires_at.minus_ms(1) };
            if erased == memo || self.put_record(seen, &erased).await? == Commit::Committed {
                return Ok(());
            }
        }
        Err(PortError::unavailable(Memo::KIND.put(), "a memo changes again and again"))
    }

    async fn delete_dead_letters(&self, order_id: OrderId) -> Result<(), PortError> {
        let mut start = None;
        loop {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().dead_letters)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(DEAD_LETTER))
                .filter_expression("contains(#record, :id)")
                .expression_attribute_names("#record", "Record")
                .expression_attribute_values(":id", text(order_id.to_string()))
                .projection_expression("Kind, MessageID")
                .consistent_read(true)
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
            let deletes = page.items.into_iter().flatten().map(async |key| {
                let delete = self.client().delete_item().table_name(&self.tables().dead_letters).set_key(Some(key));
                delete.send().await.map(drop).map_err(|error| port_error(OPERATION, &error))
            });
            try_join_all(deletes).await?;
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    async fn replace_both(
        &self,
        before: &Task,
        after: &Task,
        stored: &Item,
        erased: &Item,
    ) -> Result<Commit, PortError> {
        let (tasks, orders) = (&self.tables().tasks, &self.tables().orders);
        let writes = [
            update(tasks, before.order_id, change(before, after))?,
            update(orders, before.order_id, replacement(stored, erased, "SubmittedAt"))?,
        ];
        let request = self.client().transact_write_items().set_transact_items(Some(writes.into()));
        let mut pauses = self.pauses();
        loop {
            let Err(error) = request.clone().send().await else {
                return Ok(Commit::Committed);
            };
            match cancelled(&error, after) {
                Some(Cancelled::Answer(commit)) => return Ok(commit),
                Some(Cancelled::Later) if pauses.pause().await => {}
                Some(Cancelled::Later) => return Err(PortError::unavailable(OPERATION, chain(&error))),
                None => return Err(port_error(OPERATION, &error)),
            }
        }
    }
}

fn update(table: &str, order_id: OrderId, change: Change) -> Result<TransactWriteItem, PortError> {
    let Change { update, condition, names, values } = change;
    let update = Update::builder()
        .table_name(table)
        .key("OrderID", text(order_id.to_string()))
        .update_expression(update)
        .condition_expression(condition)
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .map_err(|error| PortError::refused(OPERATION, error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// What it means that the transaction did not succeed. `None`: it is not known whether it happened, or it never can.
fn cancelled<R>(error: &SdkError<TransactWriteItemsError, R>, after: &Task) -> Option<Cancelled> {
    const LATER: [&str; 3] = ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"];
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        let in_flight =
            matches!(error.as_service_error(), Some(TransactWriteItemsError::TransactionInProgressException(_)));
        return in_flight.then_some(Cancelled::Later);
    };
    let reasons = cancelled.cancellation_reasons();
    let has = |codes: &[&str]| reasons.iter().any(|reason| reason.code().is_some_and(|code| codes.contains(&code)));
    if has(&["ConditionalCheckFailed"]) {
        let is_own = reasons.first().and_then(CancellationReason::item).is_some_and(|stored| is_version(stored, after));
        return Some(Cancelled::Answer(if is_own { Commit::Committed } else { Commit::Conflict }));
    }
    has(&LATER).then_some(Cancelled::Later)
}
