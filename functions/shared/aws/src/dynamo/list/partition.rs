//! One partition of an index, read from its newest entry.

use std::collections::VecDeque;

use domain::id::OrderId;
use domain::ports::PortError;
use domain::time::Timestamp;

use super::OPERATION;
use crate::dynamo::Dynamo;
use crate::dynamo::due::{entry, entry_key, limit_of};
use crate::dynamo::record::{Item, text, time};
use crate::dynamo::schema::Index;
use crate::sdk_error::port_error;

/// The position of an entry in a list. Newer entries come first. Of entries with the same time, those of the lower
/// partition come first. Inside a partition, DynamoDB's order holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) at: Timestamp,
    pub(super) partition: u8,
    pub(super) order_id: OrderId,
}

/// The state of reading one partition.
#[derive(Debug)]
pub(super) struct Partition {
    number: u8,
    hash: String,
    /// Entries that are read but not taken.
    entries: VecDeque<(Timestamp, OrderId)>,
    /// The latest time of an entry.
    until: Option<Timestamp>,
    rest: Rest,
}

/// The part of the partition after the entries that are read.
#[derive(Debug)]
enum Rest {
    /// The whole partition.
    All,
    /// The part after this key.
    Behind(Item),
    /// Nothing.
    Nothing,
}

impl Partition {
    /// A partition, from its newest entry or from after the last entry of the previous page.
    pub(super) fn new(index: &Index, number: u8, hash: String, after: Option<&Position>) -> Self {
        let (until, rest) = match after {
            None => (None, Rest::All),
            Some(after) if number == after.partition => {
                (Some(after.at), Rest::Behind(entry_key(index, &hash, after.at, after.order_id)))
            }
            // At the time of `after`, the entries of earlier partitions are taken, and those of later ones are not.
            Some(after) if number < after.partition => (Some(after.at.minus_ms(1)), Rest::All),
            Some(after) => (Some(after.at), Rest::All),
        };
        Self { number, hash, entries: VecDeque::new(), until, rest }
    }

    /// The newest entry that is read but not taken.
    pub(super) fn head(&self) -> Option<Position> {
        self.entries.front().map(|&(at, order_id)| Position { at, partition: self.number, order_id })
    }

    pub(super) fn take_head(&mut self) {
        self.entries.pop_front();
    }

    /// Reads more if all entries that are read are taken and the partition has more.
    pub(super) async fn fill(
        &mut self,
        dynamo: &Dynamo,
        table: &str,
        index: &Index,
        limit: usize,
    ) -> Result<(), PortError> {
        while self.entries.is_empty() {
            let start = match std::mem::replace(&mut self.rest, Rest::Nothing) {
                Rest::All => None,
                Rest::Behind(key) => Some(key),
                Rest::Nothing => return Ok(()),
            };
            let condition = if self.until.is_some() { "#hash = :hash AND #range <= :until" } else { "#hash = :hash" };
            let mut request = dynamo
                .client()
                .query()
                .table_name(table)
                .index_name(index.name)
                .key_condition_expression(condition)
                .expression_attribute_names("#hash", index.hash.name)
                .expression_attribute_values(":hash", text(&self.hash))
                .scan_index_forward(false)
                .limit(limit_of(limit))
                .set_exclusive_start_key(start);
            if let Some(until) = self.until {
                request = request
                    .expression_attribute_names("#range", index.range.name)
                    .expression_attribute_values(":until", time(until));
            }
            let page = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
            for item in page.items.into_iter().flatten() {
                let entry = entry(index, item).map_err(|error| PortError::refused(OPERATION, error))?;
                self.entries.push_back(entry);
            }
            self.rest = page.last_evaluated_key.map_or(Rest::Nothing, Rest::Behind);
        }
        Ok(())
    }
}
