//! All partitions of a list, as one sequence.

use domain::ports::PortError;
use domain::task::Watch;
use futures_util::future::try_join_all;

use super::List;
use super::lane::{Lane, Place};
use crate::dynamo::Dynamo;
use crate::dynamo::record::{FAILED_SHARDS, FIRST_MONTH, RECENT_SHARDS, failed_key, recent_key, recent_month};
use crate::dynamo::schema::{FAILED, Index, RECENT, WATCH};

/// Fewest and most entries read of a partition at once.
const READ_AT_ONCE: (usize, usize) = (10, 100);

/// A way through a list.
pub(super) struct Walk<'a> {
    dynamo: &'a Dynamo,
    table: &'a str,
    index: Index,
    lanes: Vec<Lane>,
    /// In a list by months: the one that is walked through.
    month: Option<i64>,
    at_once: usize,
}

impl<'a> Walk<'a> {
    /// From the beginning, or from behind an entry. `limit` is how many entries the caller probably needs.
    pub(super) fn new(dynamo: &'a Dynamo, list: List, after: Option<Place>, limit: usize) -> Self {
        let (table, index) = match list {
            List::Failed => (&dynamo.tables().tasks, FAILED),
            List::Watched => (&dynamo.tables().tasks, WATCH),
            List::Recent => (&dynamo.tables().orders, RECENT),
        };
        // Clocks differ: the first orders of a month may come before it.
        let newest = recent_month(dynamo.now()) + 1;
        // Nor does a forged cursor begin later: there would be a query for each shard of each month from there on.
        let month = (list == List::Recent).then(|| after.map_or(newest, |after| recent_month(after.at).min(newest)));
        let keys: Vec<String> = match list {
            List::Failed => (0..FAILED_SHARDS).map(failed_key).collect(),
            List::Watched => {
                let lanes = [Watch::Error as fn(u8) -> Watch, Watch::Due];
                lanes.iter().flat_map(|lane| (0..dynamo.shards()).map(|shard| lane(shard).to_string())).collect()
            }
            List::Recent => month.map(keys_of_month).unwrap_or_default(),
        };
        let lanes = lanes(&index, keys, after.as_ref());
        let at_once = (limit / lanes.len().max(1) * 2).clamp(READ_AT_ONCE.0, READ_AT_ONCE.1);
        Self { dynamo, table, index, lanes, month, at_once }
    }

    /// The next entries, so many unless there are no more.
    pub(super) async fn take(&mut self, count: usize) -> Result<Vec<Place>, PortError> {
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            let Some(place) = self.head().await? else { break };
            self.lanes[usize::from(place.lane)].take_head();
            places.push(place);
        }
        Ok(places)
    }

    /// Whether there is no entry left.
    pub(super) async fn is_over(&mut self) -> Result<bool, PortError> {
        Ok(self.head().await?.is_none())
    }

    /// The next entry.
    async fn head(&mut self) -> Result<Option<Place>, PortError> {
        loop {
            let fills = self.lanes.iter_mut().filter(|lane| lane.head().is_none());
            try_join_all(fills.map(|lane| lane.fill(self.dynamo, self.table, &self.index, self.at_once))).await?;
            let heads = self.lanes.iter().filter_map(Lane::head);
            // Of those at the same time the first lane's: what `max_by_key` gives is the last of the largest.
            let newest = heads.rev().max_by_key(|place| place.at);
            match (newest, self.month) {
                (None, Some(month)) if month > FIRST_MONTH => {
                    self.month = Some(month - 1);
                    self.lanes = lanes(&self.index, keys_of_month(month - 1), None);
                }
                (newest, _) => return Ok(newest),
            }
        }
    }
}

fn keys_of_month(month: i64) -> Vec<String> {
    (0..RECENT_SHARDS).map(|shard| recent_key(month, shard)).collect()
}

fn lanes(index: &Index, keys: Vec<String>, after: Option<&Place>) -> Vec<Lane> {
    (0..=u8::MAX).zip(keys).map(|(number, key)| Lane::new(index, number, key, after)).collect()
}
