//! Writes an order, and then its task: two conditional puts.
//!
//! No task is there without its order. An order is without its task for a moment, or until its message comes again: the
//! message is deleted once both are stored. A transaction would cost twice the write units.
//!
//! An order is also without its task after it expired (rule 44). The two are told apart by their age.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use domain::order::{ERASED, Order};
use domain::ports::{Inserted, PortError};
use domain::task::Task;
use domain::time::Timestamp;

use super::Dynamo;
use super::commit::is_version;
use super::forget::terms_of;
use super::read::Seeing;
use super::record::{Item, MESSAGE_LIVES_MS, TERMS, order_item, task_item, text};
use crate::sdk_error::{chain, port_error};

const OPERATION: &str = "store.insert";
/// What a stored order is compared by.
const COMPARED: [&str; 3] = ["SubmittedAt", "Fingerprint", "Workflow"];
/// An order without its task is unfinished as long as its message may come again: for 14 days. Its task does not expire
/// before 15 days. This is the middle between the two, so clocks may differ by 12 hours.
const MAY_EXPIRE_MS: u64 = MESSAGE_LIVES_MS - 12 * 60 * 60 * 1_000;

impl Dynamo {
    /// Writes both, or finds an order of this id. A repeat finishes what an earlier delivery of the same submission began
    /// (F03 to F05).
    pub(super) async fn put_both(&self, order: &Order, task: &Task) -> Result<Inserted, PortError> {
        let item = order_item(order);
        let mut expired = None;
        while let Some(stored) = self.put_order(&item, expired.as_ref()).await? {
            let stored = self.shown(order, stored).await?;
            if COMPARED.iter().all(|name| stored.get(*name) == item.get(*name)) {
                break;
            }
            match self.submitted_if_expired(order, &stored).await? {
                Some(submitted) if expired.as_ref() != Some(&submitted) => expired = Some(submitted),
                Some(_) | None => return self.compare(order, &stored).await,
            }
        }
        let stored = self.put(&self.tables().tasks, task_item(task), None).await?;
        // The same task is that of an earlier attempt, whose answer was lost.
        Ok(if stored.is_none_or(|stored| is_version(&stored, task)) { Inserted::New } else { Inserted::Same })
    }

    /// Puts an order that is new, or takes the place of an expired one that was submitted then. Returns the stored order if
    /// it did not.
    async fn put_order(&self, item: &Item, expired: Option<&AttributeValue>) -> Result<Option<Item>, PortError> {
        self.put(&self.tables().orders, item.clone(), expired).await
    }

    /// Puts an item that does not exist yet, or replaces the one that was submitted then. Returns the stored one if it did
    /// not, which may be empty.
    async fn put(&self, table: &str, item: Item, replaced: Option<&AttributeValue>) -> Result<Option<Item>, PortError> {
        let condition = match replaced {
            None => "attribute_not_exists(OrderID)",
            Some(_) => "attribute_not_exists(OrderID) OR SubmittedAt = :submitted",
        };
        let request = self
            .client()
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_values(replaced.map(|at| [(":submitted".to_owned(), at.clone())].into()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut pauses = self.pauses();
        loop {
            let Err(error) = request.clone().send().await else { return Ok(None) };
            match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    return Ok(Some(failed.item.clone().unwrap_or_default()));
                }
                // The order is being erased.
                Some(PutItemError::TransactionConflictException(_)) if pauses.pause().await => {}
                Some(PutItemError::TransactionConflictException(_)) => {
                    return Err(PortError::unavailable(OPERATION, chain(&error)));
                }
                _ => return Err(port_error(OPERATION, &error)),
            }
        }
    }

    /// The stored order, as far as it is compared.
    async fn shown(&self, order: &Order, stored: Item) -> Result<Item, PortError> {
        if stored.contains_key("Fingerprint") {
            return Ok(stored);
        }
        let request = self
            .client()
            .get_item()
            .table_name(&self.tables().orders)
            .key("OrderID", text(order.order_id.to_string()))
            .projection_expression(format!("{}, {TERMS}", COMPARED.join(", ")))
            .consistent_read(true);
        let found = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
        // It was deleted just now.
        found.item.ok_or_else(|| PortError::unavailable(OPERATION, format!("{}: the order is gone", order.order_id)))
    }

    /// When the stored order was submitted, if it expired before this one was: its task is gone, and it is about to be
    /// deleted (rule 44).
    async fn submitted_if_expired(&self, order: &Order, stored: &Item) -> Result<Option<AttributeValue>, PortError> {
        let Some(submitted) = stored.get("SubmittedAt") else { return Ok(None) };
        let submitted_at = submitted.as_n().ok().and_then(|ms| ms.parse().ok()).map(Timestamp::from_epoch_ms);
        if submitted_at.is_none_or(|at| at.ms_until(order.submitted_at) < MAY_EXPIRE_MS) {
            return Ok(None);
        }
        let task = self.read(OPERATION, &self.tables().tasks, order.order_id, Seeing::Everything).await?;
        Ok(task.is_none().then(|| submitted.clone()))
    }

    /// Compares the stored order with this one, which is another submission.
    async fn compare(&self, order: &Order, stored: &Item) -> Result<Inserted, PortError> {
        let fingerprint = stored.get("Fingerprint").and_then(|text| text.as_s().ok());
        // This order's terms were written into the index before.
        let terms = order.terms.iter().map(|term| text(term.text()));
        if fingerprint.is_some_and(|fingerprint| fingerprint == ERASED) {
            self.delete_terms(OPERATION, order.order_id, terms).await?;
            return Ok(Inserted::Same);
        }
        let of_stored = terms_of(stored);
        let others = terms.filter(|term| !of_stored.contains(term));
        self.delete_terms(OPERATION, order.order_id, others).await?;
        let is_same = fingerprint.is_some_and(|fingerprint| **fingerprint == *order.fingerprint);
        Ok(if is_same { Inserted::Same } else { Inserted::Different })
    }
}
