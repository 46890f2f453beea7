//! The stored form of orders and tasks, apart from the domain's types. Names are the pattern's own words, and times are
//! epoch milliseconds. A missing value has no attribute, except that `LockedBy` and `CompleteBy` are null.
//!
//! DynamoDB bills a write by the whole item, one unit for each started kilobyte. The task of a healthy order of three
//! steps must stay below the first kilobyte. Each byte of a name counts three times there. [`step`] describes the
//! parts that it leaves out.

mod document;
mod image;
mod order;
mod reader;
mod reason;
#[cfg(test)]
mod size;
mod step;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::time::Timestamp;

pub(crate) use image::Image;
pub(super) use order::{FIRST_MONTH, RECENT_SHARDS, TERMS, order, order_item, recent_key, recent_month};
pub(super) use reader::Reader;
pub(crate) use reader::Unreadable;
#[cfg(test)]
pub(super) use size::item_bytes;
pub(super) use step::step_state;
pub(super) use task::{FAILED_SHARDS, MESSAGE_LIVES_MS, failed_key, task, task_item, watch_of};

/// An item, or a map inside one.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(number: impl ToString + Copy) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn time(at: Timestamp) -> AttributeValue {
    number(at.epoch_ms())
}

/// The time after which DynamoDB may delete an item: epoch seconds, rounded up.
pub(super) fn ttl(at: Timestamp) -> AttributeValue {
    number(at.plus_ms(999).epoch_ms().div_euclid(1_000))
}

pub(super) fn bytes(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

/// Adds an attribute if it has a value.
fn put_if(item: &mut Item, name: &str, value: Option<AttributeValue>) {
    if let Some(value) = value {
        item.insert(name.to_owned(), value);
    }
}

fn put(item: &mut Item, name: &str, value: AttributeValue) {
    item.insert(name.to_owned(), value);
}
