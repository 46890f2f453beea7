//! Writes order and task together: one transaction of two conditional puts.

use std::io::{self, Write};

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use domain::order::{ERASED, Order};
use domain::ports::{Inserted, PortError};
use domain::task::Task;
use sha2::{Digest, Sha256};

use super::Dynamo;
use super::forget::terms_of;
use super::record::{Item, TERMS, order_item, task_item, text};
use crate::sdk_error::{chain, port_error};

const OPERATION: &str = "store.insert";
/// The length of the request's token, in characters. DynamoDB allows 36.
const TOKEN_CHARS: usize = 32;

/// The meaning of a cancelled transaction.
enum Cancelled<'a> {
    /// An order of this id exists. The item is present if DynamoDB returned it.
    Stored(Option<&'a Item>),
    /// An order of this id exists whose task is gone: it expired, and is about to be deleted (rule 44).
    Expired(&'a Item),
    /// Another write is in the way, or the rate is too high.
    Later,
    /// The transaction can never succeed.
    Never,
}

impl Dynamo {
    /// Writes both, or finds an order of this id.
    ///
    /// A repeated attempt after a lost answer is recognised in two ways. For ten minutes DynamoDB recognises its token
    /// and answers with success. After that the stored order shows it (F04).
    pub(super) async fn put_both(&self, order: &Order, task: &Task) -> Result<Inserted, PortError> {
        let mut pauses = self.pauses();
        let mut expired: Option<AttributeValue> = None;
        loop {
            let submitted = expired.as_ref().and_then(|submitted| submitted.as_n().ok());
            let token = token([&self.tables().orders, &self.tables().tasks], order, task, submitted)?;
            let request = self.client().transact_write_items().client_request_token(&token);
            let request = request
                .transact_items(self.put_order(order, expired.as_ref())?)
                .transact_items(self.put_new(&self.tables().tasks, task_item(task))?);
            let Err(error) = request.send().await else {
                return Ok(Inserted::New);
            };
            let cancelled = match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    meaning(cancelled.cancellation_reasons())
                }
                // The same attempt is in flight.
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => Cancelled::Later,
                // Another version of this program makes the same attempt, and writes it in another form.
                Some(TransactWriteItemsError::IdempotentParameterMismatchException(_)) => Cancelled::Stored(None),
                _ => return Err(port_error(OPERATION, &error)),
            };
            match cancelled {
                Cancelled::Stored(item) => return self.compare(order, item).await,
                Cancelled::Expired(item) => expired = item.get("SubmittedAt").cloned(),
                Cancelled::Later if pauses.pause().await => {}
                Cancelled::Later => return Err(PortError::unavailable(OPERATION, chain(&error))),
                Cancelled::Never => return Err(PortError::refused(OPERATION, chain(&error))),
            }
        }
    }

    /// The put of an order that is new, or takes the place of an expired one that was submitted then.
    fn put_order(&self, order: &Order, expired: Option<&AttributeValue>) -> Result<TransactWriteItem, PortError> {
        let (table, item) = (&self.tables().orders, order_item(order));
        let Some(submitted) = expired else { return self.put_new(table, item) };
        let put = Put::builder()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(OrderID) OR SubmittedAt = :submitted")
            .expression_attribute_values(":submitted", submitted.clone())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build();
        let put = put.map_err(|error| PortError::refused(OPERATION, error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// The put of an item that must not exist yet.
    fn put_new(&self, table: &str, item: Item) -> Result<TransactWriteItem, PortError> {
        let put = Put::builder()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(OrderID)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build();
        let put = put.map_err(|error| PortError::refused(OPERATION, error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Compares the stored order with this one.
    async fn compare(&self, order: &Order, stored: Option<&Item>) -> Result<Inserted, PortError> {
        let read;
        let stored = match stored.filter(|item| item.contains_key("Fingerprint")) {
            Some(shown) => Some(shown),
            None => {
                read = self.compared(order).await?;
                read.as_ref()
            }
        };
        let terms = order.terms.iter().map(|term| text(term.text()));
        // This order's terms were written into the index before.
        match stored.and_then(|item| Some((item, item.get("Fingerprint")?.as_s().ok()?))) {
            Some((_, fingerprint)) if fingerprint == ERASED => {
                self.delete_terms(OPERATION, order.order_id, terms).await?;
                Ok(Inserted::Same)
            }
            Some((item, fingerprint)) => {
                // An earlier version stored no terms with the order: any may be its own.
                if item.contains_key(TERMS) {
                    let of_stored = terms_of(item);
                    let others = terms.filter(|term| !of_stored.contains(term));
                    self.delete_terms(OPERATION, order.order_id, others).await?;
                }
                Ok(if **fingerprint == *order.fingerprint { Inserted::Same } else { Inserted::Different })
            }
            // Either the order was deleted just now, or a task exists without its order.
            None => Err(PortError::unavailable(OPERATION, format!("{}: a task without its order", order.order_id))),
        }
    }

    /// What the stored order is compared by.
    async fn compared(&self, order: &Order) -> Result<Option<Item>, PortError> {
        let request = self
            .client()
            .get_item()
            .table_name(&self.tables().orders)
            .key("OrderID", text(order.order_id.to_string()))
            .projection_expression("Fingerprint, Terms")
            .consistent_read(true);
        let found = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
        Ok(found.item)
    }
}

/// The meaning of the two reasons, one for each put. An existing order overrides every other reason.
fn meaning(reasons: &[CancellationReason]) -> Cancelled<'_> {
    const FAILED: &str = "ConditionalCheckFailed";
    const FINE: &str = "None";
    const LATER: [&str; 5] = [
        "TransactionConflict",
        "ProvisionedThroughputExceeded",
        "ThrottlingError",
        "RequestLimitExceeded",
        "InternalServerError",
    ];
    let code = |reason: &CancellationReason| reason.code().unwrap_or_default().to_owned();
    let codes: Vec<_> = reasons.iter().map(code).collect();
    if codes.first().is_some_and(|code| code == FAILED) {
        return match (reasons[0].item(), codes.get(1)) {
            (Some(item), Some(code)) if code == FINE => Cancelled::Expired(item),
            (item, _) => Cancelled::Stored(item),
        };
    }
    if codes.iter().any(|code| LATER.contains(&&**code)) {
        return Cancelled::Later;
    }
    if codes.iter().any(|code| code == FAILED) { Cancelled::Stored(None) } else { Cancelled::Never }
}

/// The token of this write: the same for each attempt of it, and different for every other write. DynamoDB compares
/// tokens in the whole account, so the token covers the tables' names.
fn token(tables: [&str; 2], order: &Order, task: &Task, expired: Option<&String>) -> Result<String, PortError> {
    let mut hash = Hash(Sha256::new());
    serde_json::to_writer(&mut hash, &(tables, order, task)).map_err(|error| PortError::refused(OPERATION, error))?;
    hash.0.update(expired.map_or("", String::as_str));
    let mut token = String::with_capacity(TOKEN_CHARS);
    for byte in &hash.0.finalize()[..TOKEN_CHARS / 2] {
        token.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        token.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    Ok(token)
}

/// Hashes the bytes written to it, so that a large document is not copied.
struct Hash(Sha256);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::json::Json;
    use domain::time::Timestamp;
    use domain::workflow::Workflows;

    use super::*;

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect()
    }

    fn is(codes: &[&str]) -> &'static str {
        match meaning(&reasons(codes)) {
            Cancelled::Stored(_) => "stored",
            Cancelled::Expired(_) => "expired",
            Cancelled::Later => "later",
            Cancelled::Never => "never",
        }
    }

    #[test]
    fn the_same_write_has_one_token_and_any_other_another() {
        let document = Json::document(b"{\"Total\":1}").unwrap();
        let order = Order {
            order_id: OrderId::from_idempotency_key("shop", "1"),
            fingerprint: document.fingerprint().into(),
            document,
            submitted_at: Timestamp::from_epoch_ms(1_795_176_000_000),
            submitter: "shop".into(),
            reply_channel: None,
            correlation_id: None,
            priority: None,
            workflow: None,
            terms: Vec::new(),
            again_of: None,
        };
        let task = Task::new(&order, Workflows::shipped().unwrap().current(), 16, 7);
        let of = |tables, order: &Order, task: &Task| token(tables, order, task, None).unwrap();
        let first = of(["o", "t"], &order, &task);
        assert_eq!((first.len(), of(["o", "t"], &order, &task)), (TOKEN_CHARS, first.clone()));
        // The cases: another deployment of the account, another wording of the document, and another delivery.
        let reworded = Order { document: Json::document(b"{ \"Total\":1}").unwrap(), ..order.clone() };
        let others = [
            of(["o2", "t"], &order, &task),
            of(["o", "t"], &reworded, &task),
            of(["o", "t"], &order, &Task { nonce: 8, ..task.clone() }),
            token(["o", "t"], &order, &task, Some(&"7".to_owned())).unwrap(),
        ];
        assert!(!others.contains(&first), "{others:?}");
    }

    #[test]
    fn an_order_that_is_there_decides() {
        assert_eq!(is(&["ConditionalCheckFailed", "ConditionalCheckFailed"]), "stored");
        assert_eq!(is(&["ConditionalCheckFailed", "TransactionConflict"]), "stored");
        assert_eq!(is(&["None", "ConditionalCheckFailed"]), "stored");
    }

    #[test]
    fn others_in_the_way_mean_another_try() {
        for code in ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"] {
            assert_eq!(is(&[code, "None"]), "later");
            assert_eq!(is(&["None", code]), "later");
            assert_eq!(is(&[code, "ConditionalCheckFailed"]), "later");
        }
    }

    #[test]
    fn what_is_not_allowed_is_not_tried_again() {
        assert_eq!(is(&["ValidationError", "None"]), "never");
        assert_eq!(is(&["None", "ItemCollectionSizeLimitExceeded"]), "never");
        assert_eq!(is(&[]), "never");
    }
}
