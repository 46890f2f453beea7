//! The keys of the stand-ins in a DynamoDB table, one item for a key and its undo.
//!
//! Each call reads the item and replaces it, on the condition that no other call replaced it meanwhile. So a key has
//! one effect, even with calls to many instances at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::call::Call;
use crate::entry::{Decision, Entry, Side, forward_key};

/// How long a key is stored, in seconds. It exceeds the maximum time of a step.
const REMEMBERED_S: u64 = 8 * 24 * 60 * 60;
/// The number of lost writes after which a call is given up.
const CONFLICTS_MAX: u32 = 20;

/// The table.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    name: Arc<str>,
}

/// A call could not be stored, so it was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The item cannot be read.
    #[error("the table cannot be read: {0}")]
    Read(String),
    /// The item cannot be written.
    #[error("the table cannot be written: {0}")]
    Write(String),
    /// Too many other calls write the same item.
    #[error("{CONFLICTS_MAX} writes of this key were lost to others")]
    Crowded,
}

impl Table {
    /// The table with this name. Its key is `Key`.
    #[must_use]
    pub const fn new(client: Client, name: Arc<str>) -> Self {
        Self { client, name }
    }

    /// Decides one call at `now_ms` since 1970.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn call(&self, call: &Call<'_>, now_ms: u64) -> Result<Decision, TableError> {
        let item_key = AttributeValue::S(format!("{}/{}", call.service, forward_key(call.key)));
        for _ in 0..CONFLICTS_MAX {
            let read =
                self.client.get_item().table_name(&*self.name).key("Key", item_key.clone()).consistent_read(true);
            let read = read.send().await.map_err(|error| TableError::Read(DisplayErrorContext(&error).to_string()))?;
            let item = read.item.unwrap_or_default();
            let (mut entry, version) = (entry_of(&item), number(&item, "Version"));
            let decision = entry.call(call.operation, &call.behaviour, now_ms);
            if self.replace(&item_key, &entry, version, now_ms).await? {
                return Ok(decision);
            }
        }
        Err(TableError::Crowded)
    }

    /// Writes an entry if the stored version is still this one (0: no item). Returns false if another call was first.
    async fn replace(
        &self,
        key: &AttributeValue,
        entry: &Entry,
        version: u64,
        now_ms: u64,
    ) -> Result<bool, TableError> {
        let put = self.client.put_item().table_name(&*self.name).item("Key", key.clone());
        let put = numbers(entry).into_iter().fold(put, |put, (name, value)| put.item(name, of_number(value)));
        let put = put
            .item("Closed", AttributeValue::Bool(entry.closed))
            .item("ForwardDueAt", of_numbers(&entry.forward.due_ms))
            .item("UndoDueAt", of_numbers(&entry.undo.due_ms))
            .item("Version", of_number(version + 1))
            .item("TTL", of_number(now_ms / 1_000 + REMEMBERED_S))
            .condition_expression("attribute_not_exists(#Key) OR #Version = :Version")
            .expression_attribute_names("#Key", "Key")
            .expression_attribute_names("#Version", "Version")
            .expression_attribute_values(":Version", of_number(version));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(TableError::Write(DisplayErrorContext(&error).to_string())),
        }
    }
}

fn is_conflict<R>(error: &SdkError<PutItemError, R>) -> bool {
    error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception)
}

fn numbers(entry: &Entry) -> [(&'static str, u64); 6] {
    [
        ("ForwardCalls", entry.forward.calls),
        ("ForwardEffects", entry.forward.effects),
        ("FirstForwardAt", entry.forward.first_call_ms),
        ("UndoCalls", entry.undo.calls),
        ("UndoEffects", entry.undo.effects),
        ("FirstUndoAt", entry.undo.first_call_ms),
    ]
}

fn entry_of(item: &HashMap<String, AttributeValue>) -> Entry {
    let side = |calls, effects, first_call_ms, due_ms| Side {
        calls: number(item, calls),
        effects: number(item, effects),
        first_call_ms: number(item, first_call_ms),
        due_ms: item
            .get(due_ms)
            .and_then(|due_ms| due_ms.as_l().ok())
            .into_iter()
            .flatten()
            .filter_map(as_number)
            .collect(),
    };
    Entry {
        forward: side("ForwardCalls", "ForwardEffects", "FirstForwardAt", "ForwardDueAt"),
        undo: side("UndoCalls", "UndoEffects", "FirstUndoAt", "UndoDueAt"),
        closed: item.get("Closed").and_then(|closed| closed.as_bool().ok()).copied().unwrap_or_default(),
    }
}

fn number(item: &HashMap<String, AttributeValue>, name: &str) -> u64 {
    item.get(name).and_then(as_number).unwrap_or_default()
}

fn as_number(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}

fn of_number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn of_numbers(numbers: &[u64]) -> AttributeValue {
    AttributeValue::L(numbers.iter().copied().map(of_number).collect())
}
