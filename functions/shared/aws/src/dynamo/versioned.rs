//! Records that are replaced as a whole, each only by who saw its last version: health of services, memos, jobs.
//!
//! The record is kept as the JSON that the domain gives it. Beside it stand what conditions and indexes need. Each write
//! has a nonce of its own: two callers may want to write the very same, and only one of them may win, but a retry of one
//! of them is told its own success (rule 3).

use std::sync::Arc;

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use domain::ports::{Commit, PortError};
use domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Dynamo;
use super::pauses::nonce;
use super::record::{Item, Reader, bytes, number, text};
use crate::sdk_error::{chain, port_error};

/// The attribute with the record.
const RECORD: &str = "Record";
const NONCE: &str = "Nonce";

/// A record to be written.
pub(super) struct Replacement<'a, R> {
    pub(super) operation: &'static str,
    pub(super) table: &'a str,
    /// Its key, and what else stands beside it.
    pub(super) item: Item,
    pub(super) version: u64,
    pub(super) record: &'a R,
    pub(super) condition: Condition,
}

/// When a record may be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition {
    /// The stored version; 0: there is none.
    pub(super) version_before: u64,
    /// What expired by now counts as not there.
    pub(super) now: Option<Timestamp>,
}

impl Condition {
    /// The expression, and the values that it names.
    fn expression(self) -> (&'static str, Vec<(&'static str, AttributeValue)>) {
        let seen = (":seen", number(self.version_before));
        let now = self.now.map(|now| (":now", number(now.epoch_ms())));
        match (self.version_before, now) {
            (0, None) => ("attribute_not_exists(Version)", Vec::new()),
            (0, Some(now)) => ("attribute_not_exists(Version) OR ExpiresAt <= :now", vec![now]),
            (_, None) => ("Version = :seen", vec![seen]),
            (_, Some(now)) => ("Version = :seen AND ExpiresAt > :now", vec![seen, now]),
        }
    }
}

impl Dynamo {
    /// Writes a record, if its condition holds.
    pub(super) async fn put_versioned<R: Serialize>(
        &self,
        replacement: Replacement<'_, R>,
    ) -> Result<Commit, PortError> {
        let Replacement { operation, table, mut item, version, record, condition } = replacement;
        let record = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        let nonce = bytes(&nonce(operation)?.to_be_bytes());
        item.insert("Version".to_owned(), number(version));
        item.insert(RECORD.to_owned(), text(record));
        item.insert(NONCE.to_owned(), nonce.clone());
        let (expression, values) = condition.expression();
        let mut request = self
            .client()
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(expression)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (name, value) in values {
            request = request.expression_attribute_values(name, value);
        }
        let Err(error) = request.send().await else {
            return Ok(Commit::Committed);
        };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                let is_own = failed.item().is_some_and(|stored| stored.get(NONCE) == Some(&nonce));
                Ok(if is_own { Commit::Committed } else { Commit::Conflict })
            }
            _ => Err(port_error(operation, &error)),
        }
    }

    /// Reads a record with every write that was answered before.
    pub(super) async fn get_versioned(
        &self,
        operation: &'static str,
        table: &str,
        key: Item,
    ) -> Result<Option<Item>, PortError> {
        let request = self.client().get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        Ok(request.send().await.map_err(|error| port_error(operation, &error))?.item)
    }
}

/// The record of an item.
pub(super) fn record_of<R: DeserializeOwned>(operation: &'static str, item: Item) -> Result<R, PortError> {
    let mut reader = Reader::new(item);
    let record = reader.text(RECORD).map_err(|error| PortError::refused(operation, error))?;
    let record = serde_json::from_str(&record).map_err(|error| reader.wrong(RECORD, error.to_string()));
    record.map_err(|error| PortError::refused(operation, error))
}

/// The same behind a pointer.
pub(super) fn shared<R: DeserializeOwned>(operation: &'static str, item: Item) -> Result<Arc<R>, PortError> {
    record_of(operation, item).map(Arc::new)
}

/// What is wrong with a record, for a log: the text of the error itself names only the operation.
pub(super) fn told(error: &PortError) -> String {
    chain(error)
}

/// A time after which DynamoDB may delete an item: epoch seconds, rounded up.
pub(super) fn ttl(at: Timestamp) -> AttributeValue {
    number(at.plus_ms(999).epoch_ms().div_euclid(1_000))
}
