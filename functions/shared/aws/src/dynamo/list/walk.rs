//! All partitions of a list, as one sequence.

use domain::ports::PortError;
use domain::task::Watch;
use futures_util::future::try_join_all;

use super::List;
use super::partition::{Partition, Position};
use crate::dynamo::Dynamo;
use crate::dynamo::record::{FAILED_SHARDS, FIRST_MONTH, RECENT_SHARDS, failed_key, recent_key, recent_month};
use crate::dynamo::schema::{FAILED, Index, RECENT, WATCH};

/// The minimum and the maximum number of entries in one read of a partition.
const READ_AT_ONCE: (usize, usize) = (10, 100);

/// A walk through a list.
pub(super) struct Walk<'a> {
    dynamo: &'a Dynamo,
    table: &'a str,
    index: Index,
    partitions: Vec<Partition>,
    /// The current month, in a list by months.
    month: Option<i64>,
    at_once: usize,
}

impl<'a> Walk<'a> {
    /// Starts at the beginning, or after an entry. `limit` is the number of entries that the caller probably needs.
    pub(super) fn new(dynamo: &'a Dynamo, list: List, after: Option<Position>, limit: usize) -> Self {
        let (table, index) = match list {
            List::Failed => (&dynamo.tables().tasks, FAILED),
            List::Watched => (&dynamo.tables().tasks, WATCH),
            List::Recent => (&dynamo.tables().orders, RECENT),
        };
        // Clocks differ: the first orders of a month may come before it begins.
        let newest = recent_month(dynamo.now()) + 1;
        // A forged cursor cannot begin later. It would cost a query for each shard of each month from there on.
        let month = (list == List::Recent).then(|| after.map_or(newest, |after| recent_month(after.at).min(newest)));
        let keys: Vec<String> = match list {
            List::Failed => (0..FAILED_SHARDS).map(failed_key).collect(),
            List::Watched => {
                let partitions = [Watch::Error as fn(u8) -> Watch, Watch::Due, Watch::Wait];
                partitions
                    .iter()
                    .flat_map(|partition| (0..dynamo.shards()).map(|shard| partition(shard).to_string()))
                    .collect()
            }
            List::Recent => month.map(keys_of_month).unwrap_or_default(),
        };
        let partitions = partitions(&index, keys, after.as_ref());
        let at_once = (limit / partitions.len().max(1) * 2).clamp(READ_AT_ONCE.0, READ_AT_ONCE.1);
        Self { dynamo, table, index, partitions, month, at_once }
    }

    /// The next `count` entries, or fewer at the end of the list.
    pub(super) async fn take(&mut self, count: usize) -> Result<Vec<Position>, PortError> {
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            let Some(position) = self.head().await? else { break };
            self.partitions[usize::from(position.partition)].take_head();
            places.push(position);
        }
        Ok(places)
    }

    /// Whether the list has no more entries.
    pub(super) async fn is_over(&mut self) -> Result<bool, PortError> {
        Ok(self.head().await?.is_none())
    }

    /// The next entry.
    async fn head(&mut self) -> Result<Option<Position>, PortError> {
        loop {
            let fills = self.partitions.iter_mut().filter(|partition| partition.head().is_none());
            try_join_all(fills.map(|partition| partition.fill(self.dynamo, self.table, &self.index, self.at_once)))
                .await?;
            let heads = self.partitions.iter().filter_map(Partition::head);
            // The first partition wins at the same time. `max_by_key` returns the last of the largest, so the iteration
            // is reversed.
            let newest = heads.rev().max_by_key(|position| position.at);
            match (newest, self.month) {
                (None, Some(month)) if month > FIRST_MONTH => {
                    self.month = Some(month - 1);
                    self.partitions = partitions(&self.index, keys_of_month(month - 1), None);
                }
                (newest, _) => return Ok(newest),
            }
        }
    }
}

fn keys_of_month(month: i64) -> Vec<String> {
    (0..RECENT_SHARDS).map(|shard| recent_key(month, shard)).collect()
}

fn partitions(index: &Index, keys: Vec<String>, after: Option<&Position>) -> Vec<Partition> {
    (0..=u8::MAX).zip(keys).map(|(number, key)| Partition::new(index, number, key, after)).collect()
}
