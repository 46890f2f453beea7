//! The record of a task.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::OrderId;
use domain::message::Priority;
use domain::order::Parent;
use domain::task::{ProcessState, Task, Transition, Watch, stored};
use domain::time::Timestamp;

use super::reason::{notice, notice_value, pause, pause_value, reason, reason_value, taken, taken_value};
use super::step::{step, step_value};
use super::{Item, Reader, Unreadable, bytes, number, put, put_if, text, time, ttl};
use crate::dynamo::schema::{FAILED, WATCH};

/// Shards of the index `failed`.
pub(in crate::dynamo) const FAILED_SHARDS: u8 = 4;

/// The longest life of a message, in its queue and then in a dead-letter queue, and a day more.
pub(in crate::dynamo) const MESSAGE_LIVES_MS: u64 = 15 * 24 * 60 * 60 * 1_000;

/// The item of a task.
pub(in crate::dynamo) fn task_item(task: &Task) -> Item {
    let mut item = Item::with_capacity(16);
    put(&mut item, "OrderID", text(task.order_id.to_string()));
    put(&mut item, "Version", number(task.version));
    put(&mut item, "Nonce", bytes(&task.nonce.to_be_bytes()));
    put(&mut item, "Workflow", text(&*task.workflow));
    put(&mut item, "WorkflowVersion", number(task.workflow_version));
    put(&mut item, "ProcessState", text(task.process_state.name()));
    put_if(&mut item, "Reason", task.reason.as_ref().map(reason_value));
    put(&mut item, "Steps", AttributeValue::L(task.steps.iter().map(step_value).collect()));
    put_if(&mut item, WATCH.hash.name, task.watch.map(|watch| text(watch.to_string())));
    put_if(&mut item, WATCH.range.name, task.watch_at.map(time));
    put_if(&mut item, "Parent", task.parent.as_ref().map(parent_value));
    put_if(&mut item, "CompleteBy", task.complete_by.map(time));
    put_if(&mut item, "LateSince", task.late_since.map(time));
    put_if(&mut item, "ExpiresAt", task.expires_at.map(time));
    put_if(&mut item, "TTL", task.expires_at.map(|at| ttl(deleted_at(task, at))));
    put_if(&mut item, "ErasedAt", task.erased_at.map(time));
    let priority = (task.priority != Priority::Normal).then(|| text(task.priority.name()));
    put_if(&mut item, "Priority", priority);
    put_if(&mut item, "Paused", task.paused.as_ref().map(pause_value));
    put_if(&mut item, "Resumed", (task.resumed > 0).then(|| number(task.resumed)));
    put_if(&mut item, "Taken", task.taken.as_ref().map(taken_value));
    put_if(&mut item, "TakenVersion", (task.taken_version > 0).then(|| number(task.taken_version)));
    put_if(&mut item, "Notify", task.notify.then_some(AttributeValue::Bool(true)));
    let unsent = (!task.unsent.is_empty()).then(|| AttributeValue::L(task.unsent.iter().map(notice_value).collect()));
    put_if(&mut item, "Unsent", unsent);
    let jobs = (!task.jobs.is_empty()).then(|| AttributeValue::L(task.jobs.iter().map(|job| text(&**job)).collect()));
    put_if(&mut item, "Jobs", jobs);
    put(&mut item, "History", text(history_text(&task.history)));
    if task.process_state == ProcessState::Error {
        put(&mut item, FAILED.hash.name, text(failed_key(task.order_id.shard(FAILED_SHARDS))));
        put(&mut item, FAILED.range.name, time(failed_at(task)));
    }
    item
}

/// A message of an order may be delivered again as long as a queue keeps it. It must find the order, so that it is not taken
/// for a new one.
fn deleted_at(task: &Task, expires_at: Timestamp) -> Timestamp {
    let submitted_at = task.history.first().map(|line| line.at);
    submitted_at.map_or(expires_at, |at| expires_at.max(at.plus_ms(MESSAGE_LIVES_MS)))
}

/// The task in an item.
pub(in crate::dynamo) fn task(item: Item) -> Result<Task, Unreadable> {
    let mut reader = Reader::new(item);
    let steps = reader.elements("Steps")?;
    let steps = steps.into_iter().map(|(place, value)| step(Reader::inside(value, place)?));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    let unsent = reader.elements("Unsent")?;
    let unsent = unsent.into_iter().map(|(place, value)| notice(Reader::inside(value, place)?));
    Ok(Task {
        order_id: reader.word("OrderID", |id| id.parse::<OrderId>().ok())?,
        version: reader.number("Version")?,
        nonce: reader.nonce("Nonce")?,
        workflow: reader.text("Workflow")?.into(),
        workflow_version: reader.number("WorkflowVersion")?,
        process_state: reader.word("ProcessState", |name| name.parse::<ProcessState>().ok())?,
        reason: reader.map_if("Reason")?.map(reason).transpose()?,
        watch: reader.word_if(WATCH.hash.name, watch_of)?,
        watch_at: reader.time_if(WATCH.range.name)?,
        parent: reader.map_if("Parent")?.map(parent).transpose()?,
        complete_by: reader.time_if("CompleteBy")?,
        late_since: reader.time_if("LateSince")?,
        expires_at: reader.time_if("ExpiresAt")?,
        erased_at: reader.time_if("ErasedAt")?,
        priority: reader.word_if("Priority", Priority::named)?.unwrap_or(Priority::Normal),
        paused: reader.map_if("Paused")?.map(pause).transpose()?,
        resumed: reader.number_if("Resumed")?.unwrap_or(0),
        taken: reader.map_if("Taken")?.map(taken).transpose()?,
        taken_version: reader.number_if("TakenVersion")?.unwrap_or(0),
        notify: reader.flag("Notify")?,
        unsent: unsent.collect::<Result<Vec<_>, _>>()?,
        jobs: reader.texts("Jobs")?,
        history: history(&reader.text("History")?)?,
        steps,
    })
}

fn parent_value(parent: &Parent) -> AttributeValue {
    let mut item = Item::with_capacity(3);
    put(&mut item, "OrderID", text(parent.order_id.to_string()));
    put(&mut item, "Step", text(&*parent.step));
    put(&mut item, "Depth", number(parent.depth));
    AttributeValue::M(item)
}

fn parent(mut reader: Reader) -> Result<Parent, Unreadable> {
    Ok(Parent {
        order_id: reader.word("OrderID", |id| id.parse().ok())?,
        step: reader.text("Step")?.into(),
        depth: reader.number("Depth")?,
    })
}

/// The history is one text, in the form of every store.
fn history_text(history: &[Transition]) -> String {
    let mut json = Vec::with_capacity(256);
    // Memory takes all that is written, and the values have a form in JSON.
    let written = stored::serialize(history, &mut serde_json::Serializer::new(&mut json));
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(json).unwrap_or_default()
}

fn history(text: &str) -> Result<Vec<Transition>, Unreadable> {
    let read = stored::deserialize(&mut serde_json::Deserializer::from_str(text));
    read.map_err(|error| Unreadable::new("History", error.to_string()))
}

/// The key of a shard of the index `failed`.
pub(in crate::dynamo) fn failed_key(shard: u8) -> String {
    format!("error#{shard:02}")
}

/// The time since which a task is in `Error`, as far as its history still shows it. The same line in two histories
/// gives the same time, so that other changes do not touch the index.
fn failed_at(task: &Task) -> Timestamp {
    let first = || task.history.first().map(|line| line.at);
    task.failed_at().or_else(first).or(task.watch_at).unwrap_or_default()
}

/// The key of an entry of the index `watch`.
pub(in crate::dynamo) fn watch_of(key: &str) -> Option<Watch> {
    let (priority, shard) = key.split_once('#')?;
    let shard = shard.parse().ok()?;
    match priority {
        "due" => Some(Watch::Due(shard)),
        "wait" => Some(Watch::Wait(shard)),
        "error" => Some(Watch::Error(shard)),
        _ => None,
    }
}
