//! The supervisor's reads of the index `watch`.
//!
//! A supervisor first looks at the whole index with one request. Only if the index is too large for that does it query
//! each shard.

use domain::id::OrderId;
use domain::ports::{Due, PortError};
use domain::task::Watch;
use domain::time::Timestamp;

use super::Dynamo;
use super::record::{Item, Reader, Unreadable, text, time, watch_of};
use super::schema::{Index, WATCH};
use crate::sdk_error::port_error;

const OPERATION: &str = "store.due";

impl Dynamo {
    /// The keys and times of all entries, if there are fewer than `max`.
    pub(super) async fn scan_watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        const OPERATION: &str = "store.watches";
        let request = self.client().scan().table_name(&self.tables().tasks).index_name(WATCH.name).limit(limit_of(max));
        let found = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
        if found.last_evaluated_key.is_some() || found.count >= limit_of(max) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for item in found.items.into_iter().flatten() {
            let mut reader = Reader::new(item);
            // No query of this version finds a key of an unknown form either.
            let Ok(key) = reader.word(WATCH.hash.name, watch_of) else { continue };
            all.push((key, reader.time(WATCH.range.name).map_err(|error| PortError::refused(OPERATION, error))?));
        }
        Ok(Some(all))
    }

    /// The orders with this key of the index that are due by `now`, the longest due first. DynamoDB orders those that are due at the
    /// same time, and the next page continues in that order.
    pub(super) async fn query_due(
        &self,
        watch: Watch,
        now: Timestamp,
        after: Option<Due>,
        limit: usize,
    ) -> Result<Vec<Due>, PortError> {
        let watch = watch.to_string();
        let mut start = after.map(|due| entry_key(&WATCH, &watch, due.at, due.order_id));
        let mut found = Vec::new();
        while found.len() < limit {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().tasks)
                .index_name(WATCH.name)
                .key_condition_expression("#hash = :hash AND #range <= :now")
                .expression_attribute_names("#hash", WATCH.hash.name)
                .expression_attribute_names("#range", WATCH.range.name)
                .expression_attribute_values(":hash", text(&watch))
                .expression_attribute_values(":now", time(now))
                .limit(limit_of(limit - found.len()))
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
            for item in page.items.into_iter().flatten() {
                let (at, order_id) = entry(&WATCH, item).map_err(|error| PortError::refused(OPERATION, error))?;
                found.push(Due { at, order_id });
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

/// The time and the order id of an index entry of orders or tasks.
pub(super) fn entry(index: &Index, item: Item) -> Result<(Timestamp, OrderId), Unreadable> {
    let mut reader = Reader::new(item);
    Ok((reader.time(index.range.name)?, reader.word("OrderID", |id| id.parse().ok())?))
}

/// The key of an entry, for reading on after it. The entry need not exist any more.
pub(super) fn entry_key(index: &Index, hash: &str, at: Timestamp, order_id: OrderId) -> Item {
    Item::from([
        (index.hash.name.to_owned(), text(hash)),
        (index.range.name.to_owned(), time(at)),
        ("OrderID".to_owned(), text(order_id.to_string())),
    ])
}

/// A limit in DynamoDB's type. DynamoDB itself reads at most 1 MB at once.
pub(super) fn limit_of(limit: usize) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}
