//! One partition of an index, read from its newest entry on.

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

/// Where an entry stands in a list: newest first, and at the same time priority by priority, in the order that DynamoDB has in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) at: Timestamp,
    pub(super) partition: u8,
    pub(super) order_id: OrderId,
}

/// A partition that is being read.
#[derive(Debug)]
pub(super) struct Partition {
    number: u8,
    hash: String,
    /// Entries that were read and not taken.
    entries: VecDeque<(Timestamp, OrderId)>,
    /// Nothing later than this.
    until: Option<Timestamp>,
    rest: Rest,
}

/// What comes behind the entries that were read.
#[derive(Debug)]
enum Rest {
    /// All of the partition.
    All,
    /// What comes behind this key.
    Behind(Item),
    /// Nothing.
    Nothing,
}

impl Partition {
    /// A partition, from its newest entry or from behind the last one of the page before.
    pub(super) fn new(index: &Index, number: u8, hash: String, after: Option<&Position>) -> Self {
        let (until, rest) = match after {
            None => (None, Rest::All),
            Some(after) if number == after.partition => {
                (Some(after.at), Rest::Behind(entry_key(index, &hash, after.at, after.order_id)))
            }
            // Of the same time the earlier priorities were taken, and the later ones not.
            Some(after) if number < after.partition => (Some(after.at.minus_ms(1)), Rest::All),
            Some(after) => (Some(after.at), Rest::All),
        };
        Self { number, hash, entries: VecDeque::new(), until, rest }
    }

    /// The newest entry that was not taken, of those that were read.
    pub(super) fn head(&self) -> Option<Position> {
        self.entries.front().map(|&(at, order_id)| Position { at, partition: self.number, order_id })
    }

    pub(super) fn take_head(&mut self) {
        self.entries.pop_front();
    }

    /// Reads on if all that was read is taken and there is more.
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
