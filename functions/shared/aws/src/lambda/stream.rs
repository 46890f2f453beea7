//! A batch of the stream of the table of tasks as the platform passes it (rule 26).

use std::borrow::Cow;

use domain::audit::Entry;
use domain::tally::{Batch, Change};
use domain::task::Task;
use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::payload::{BadPayload, read};
use crate::dynamo::{Image, Unreadable};
use crate::telemetry;

/// The name of the event in errors.
const STREAM_EVENT: &str = "a batch of a DynamoDB stream with a tumbling window";

/// The event. Only the event of a tumbling window names its shard.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamEvent<'a> {
    #[serde(rename = "Records", default, borrow)]
    records: Vec<&'a RawValue>,
    #[serde(borrow)]
    shard_id: Cow<'a, str>,
    #[serde(rename = "eventSourceARN", borrow)]
    stream: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    dynamodb: Body<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body<'a> {
    /// In seconds.
    approximate_creation_date_time: f64,
    #[serde(borrow)]
    sequence_number: Cow<'a, str>,
    #[serde(default, borrow)]
    new_image: Option<Image<'a>>,
    #[serde(default, borrow)]
    old_image: Option<Image<'a>>,
}

/// The batch in an event. A change that cannot be read is left out, so that it holds up no other.
///
/// # Errors
/// [`BadPayload`] if the event does not name its shard.
pub(super) fn changes(payload: &RawValue) -> Result<Batch, BadPayload> {
    let event: StreamEvent<'_> = read(payload, STREAM_EVENT)?;
    let change = |record: &RawValue| {
        let read = serde_json::from_str::<Record<'_>>(record.get()).map_err(|error| error.to_string());
        let change = read.and_then(|record| change(record.dynamodb).map_err(|error| error.to_string()));
        change.inspect_err(|problem| tracing::error!("a change is not counted: {problem}")).ok()
    };
    Ok(Batch {
        stream: event.stream.into(),
        shard: event.shard_id.into(),
        changes: event.records.into_iter().filter_map(change).collect(),
    })
}

/// Writes the changes to the log, as entries of the audit stream (rule 43). Returns whether all of them are written.
pub(super) fn audited(batch: &Batch) -> bool {
    let mut entries = batch.changes.iter().filter_map(|Change { at, before, after, .. }| match (before, after) {
        (before, Some(after)) => Some(Entry::transition(*at, before.as_ref(), after)),
        (Some(before), None) => Some(Entry::deleted(*at, before)),
        (None, None) => None,
    });
    entries.all(|entry| telemetry::audit(&entry))
}

fn change(body: Body<'_>) -> Result<Change, Unreadable> {
    let task = |image: Option<Image<'_>>| image.map(Image::task).transpose();
    #[expect(clippy::cast_possible_truncation, reason = "a time of today has no more milliseconds than fit")]
    let at = Timestamp::from_epoch_ms((body.approximate_creation_date_time * 1_000.0) as i64);
    let (before, after): (Option<Task>, _) = (task(body.old_image)?, task(body.new_image)?);
    Ok(Change { sequence: (&*body.sequence_number).into(), at, before, after })
}
