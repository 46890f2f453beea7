//! The numbers of rule 26: the minutes, the hours, and the total of all time.
//!
//! The stream of the table of tasks has each committed change, and costs no write. The supervisor function is given the
//! changes in batches, and adds them to the parts that they are in. Each part is one item, and each write of it is
//! conditional on the version that was read. An item knows up to where each shard of the stream is in it. So a batch
//! that is delivered again, or that was cut short between two items, counts once.

mod whole;

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use domain::ports::{Commit, PortError};
use domain::tally::{Batch, Count, Grain, Numbers, Part, Span};
use domain::time::Timestamp;
use futures_util::future::try_join;

use super::Dynamo;
use super::record::{Item, Reader, Unreadable, number, text, time, ttl};
use crate::sdk_error::port_error;

const COUNT: &str = "numbers.count";
const READ: &str = "store.numbers";
/// The largest content of an item, in bytes. DynamoDB refuses an item beyond 400 KB.
const BYTES_MAX: usize = 350 * 1_024;
const KEY: [&str; 2] = ["Kind", "SpanAt"];
const VERSION: &str = "Version";
const CONTENT: &str = "Count";

impl Dynamo {
    /// Counts the changes of a batch that are not counted yet.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all are counted; the caller repeats the batch.
    pub async fn count(&self, batch: &Batch) -> Result<(), PortError> {
        for part in batch.parts() {
            self.count_part(part, batch).await?;
        }
        Ok(())
    }

    async fn count_part(&self, part: Part, batch: &Batch) -> Result<(), PortError> {
        let mut pauses = self.pauses();
        loop {
            let (version, stored) = self.stored(part).await?;
            let mut count = match stored {
                Some(count) => count,
                None if part == Part::Total => {
                    // A total that cannot be read any more begins again, without the orders of before.
                    let is_whole = version == 0 && self.is_whole(&batch.stream).await?;
                    Count::begun(&batch.stream, is_whole)
                }
                None => Count::default(),
            };
            if !count.add(part, batch, self.now()) {
                return Ok(());
            }
            match self.put_count(part, version, count).await? {
                Commit::Committed => return Ok(()),
                // Another shard wrote it. After a lost answer the next look finds nothing to add.
                Commit::Conflict if pauses.pause().await => {}
                Commit::Conflict => return Err(PortError::unavailable(COUNT, "others write the same numbers")),
            }
        }
    }

    /// The version of a part, or 0, and its numbers.
    async fn stored(&self, part: Part) -> Result<(u64, Option<Count>), PortError> {
        let request = self.client().get_item().table_name(&self.tables().numbers).set_key(Some(key(part)));
        let found = request.consistent_read(true).send().await.map_err(|error| port_error(COUNT, &error))?;
        let Some(item) = found.item else { return Ok((0, None)) };
        let version = Reader::new(item.clone()).number(VERSION).map_err(|error| PortError::refused(COUNT, error))?;
        Ok((version, count(item)))
    }

    async fn put_count(&self, part: Part, seen: u64, mut count: Count) -> Result<Commit, PortError> {
        let mut content = json(&count)?;
        if content.len() > BYTES_MAX {
            tracing::warn!(?part, bytes = content.len(), "too much for one item: the numbers of steps are left out");
            count.forget_steps();
            content = json(&count)?;
        }
        let mut item = key(part);
        item.insert(VERSION.to_owned(), number(seen + 1));
        item.insert(CONTENT.to_owned(), text(content));
        if let Some(at) = part.expires_at() {
            item.insert("TTL".to_owned(), ttl(at));
        }
        let request = self.client().put_item().table_name(&self.tables().numbers).set_item(Some(item));
        let request = match seen {
            0 => request.condition_expression("attribute_not_exists(Version)"),
            _ => request.condition_expression("Version = :seen").expression_attribute_values(":seen", number(seen)),
        };
        let Err(error) = request.send().await else { return Ok(Commit::Committed) };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(Commit::Conflict),
            _ => Err(port_error(COUNT, &error)),
        }
    }

    /// The numbers since a time, in spans of this length.
    pub(super) async fn read_numbers(&self, grain: Grain, since: Timestamp) -> Result<Numbers, PortError> {
        let (total, spans) = try_join(self.total(), self.spans(grain, grain.of(since))).await?;
        let Count { tally, since, states, .. } = total.unwrap_or_default();
        Ok(Numbers { since, states, oldest: None, spans, total: tally })
    }

    async fn total(&self) -> Result<Option<Count>, PortError> {
        let request = self.client().get_item().table_name(&self.tables().numbers).set_key(Some(key(Part::Total)));
        let found = request.send().await.map_err(|error| port_error(READ, &error))?;
        Ok(found.item.and_then(count))
    }

    async fn spans(&self, grain: Grain, from: Timestamp) -> Result<Vec<Span>, PortError> {
        let (mut spans, mut start) = (Vec::new(), None);
        loop {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().numbers)
                .key_condition_expression("Kind = :kind AND SpanAt >= :from")
                .expression_attribute_values(":kind", text(kind(Some(grain))))
                .expression_attribute_values(":from", time(from))
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| port_error(READ, &error))?;
            spans.extend(page.items.into_iter().flatten().filter_map(span));
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(spans);
            }
        }
    }
}

fn key(part: Part) -> Item {
    let (grain, at) = match part {
        Part::Span(grain, at) => (Some(grain), at),
        Part::Total => (None, Timestamp::default()),
    };
    Item::from([(KEY[0].to_owned(), text(kind(grain))), (KEY[1].to_owned(), time(at))])
}

const fn kind(grain: Option<Grain>) -> &'static str {
    match grain {
        Some(Grain::Minute) => "minute",
        Some(Grain::Hour) => "hour",
        None => "total",
    }
}

fn span(item: Item) -> Option<Span> {
    let at = Reader::new(item.clone()).time(KEY[1]).ok()?;
    Some(Span { at, tally: count(item)?.tally })
}

/// The numbers of an item. Those that cannot be read are left out, and hold up nothing.
fn count(item: Item) -> Option<Count> {
    let mut reader = Reader::new(item);
    let content = reader.text(CONTENT);
    let count = content.and_then(|content| {
        serde_json::from_str(&content).map_err(|error| Unreadable::new(CONTENT, error.to_string()))
    });
    count.inspect_err(|error| tracing::warn!("numbers are left out: {error}")).ok()
}

fn json(count: &Count) -> Result<String, PortError> {
    serde_json::to_string(count).map_err(|error| PortError::refused(COUNT, error))
}
