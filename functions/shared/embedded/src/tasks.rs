//! The SQL of orders and tasks.
//!
//! A task that fits into a page is written whole, in its place. Of a larger one, such as that of an order with many lines,
//! only what changed is added to `changes`, until the changes are as long as the task: then it is written whole again, and
//! at its end. So the bytes that are written grow with what happens, and not with the size of the task.

use std::collections::HashMap;

use domain::id::OrderId;
use domain::index::Term;
use domain::message::Priority;
use domain::order::Order;
use domain::task::{Delta, Task};
use domain::time::Timestamp;
use rusqlite::{Connection, params};

use crate::index;
use crate::rows::{BODY_BYTES, json, unstorable};

const INSERT: &str = "INSERT INTO tasks (version, body, process_state, watch, watch_at, expires_at, order_id) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (order_id) DO NOTHING";
const UPDATE: &str = "UPDATE tasks SET version = ?1, body = ?2, process_state = ?3, watch = ?4, watch_at = ?5, \
                      expires_at = ?6 WHERE order_id = ?7 AND version < ?1";
// SQLite touches an index if the statement names its column, even if the value stays the same.
const UPDATE_BODY: &str = "UPDATE tasks SET version = ?1, body = ?2 WHERE order_id = ?3 AND version < ?1";
const ADD_CHANGE: &str = "INSERT INTO changes (seq, version, body) \
                          SELECT seq, ?2, ?3 FROM tasks WHERE order_id = ?1 AND version < ?2";
const FORGET_CHANGES: &str = "DELETE FROM changes WHERE seq = (SELECT seq FROM tasks WHERE order_id = ?1)";

/// The large tasks that this process wrote whole.
#[derive(Debug)]
pub(crate) struct Large {
    /// The size up to which a task is not large, in bytes.
    whole_bytes: usize,
    /// The bytes that each of them has in the file, and of its changes since.
    written: HashMap<OrderId, [usize; 2]>,
}

/// The last version of a task in a batch.
pub(crate) struct Last<'a> {
    pub(crate) task: &'a Task,
    /// The version on disk. `None` for a new task, and for one that is written whole.
    pub(crate) before: Option<&'a Task>,
    /// The order of a new task.
    pub(crate) order: Option<&'a Order>,
    /// Whether a column of an index may have changed.
    pub(crate) indexed: bool,
}

impl Last<'_> {
    /// Writes it in place of the version on disk, or what changed, or inserts it with its order.
    pub(crate) fn write(&self, connection: &Connection, large: &mut Large) -> rusqlite::Result<()> {
        let Self { task, before, order, indexed } = self;
        if let Some(order) = order {
            return one(usize::from(insert(connection, order, task, large)?));
        }
        if let (Some(before), Some([whole, changes])) = (before, large.written.get_mut(&task.order_id))
            && !task.process_state.is_final()
        {
            let delta = json(&Delta::between(before, task).map_err(unstorable)?)?;
            if *changes + delta.len() <= *whole {
                *changes += delta.len();
                return add(connection, task, &delta, *indexed);
            }
        }
        let body = body(task, large.whole_bytes)?;
        let id = task.order_id.to_string();
        if large.keep(task, body.len()) || before.is_none() {
            connection.prepare_cached(FORGET_CHANGES)?.execute([&id])?;
        }
        one(match *indexed {
            true => write_columns(connection, UPDATE, task, &body)?,
            false => connection.prepare_cached(UPDATE_BODY)?.execute(params![task.version, body, id])?,
        })
    }
}

impl Large {
    pub(crate) fn new(whole_bytes: usize) -> Self {
        Self { whole_bytes, written: HashMap::new() }
    }

    /// Nothing is known any more of what is on disk.
    pub(crate) fn forget(&mut self) {
        self.written.clear();
    }

    /// A task is written whole, in this number of bytes. Returns whether it may have changes.
    fn keep(&mut self, task: &Task, bytes: usize) -> bool {
        if bytes <= self.whole_bytes || task.process_state.is_final() {
            return self.written.remove(&task.order_id).is_some() || bytes > self.whole_bytes;
        }
        self.written.insert(task.order_id, [bytes, 0]);
        true
    }
}

/// Adds a change to those of a task on disk.
fn add(connection: &Connection, task: &Task, delta: &str, indexed: bool) -> rusqlite::Result<()> {
    const COLUMNS: &str =
        "UPDATE tasks SET process_state = ?1, watch = ?2, watch_at = ?3, expires_at = ?4 WHERE order_id = ?5";
    let id = task.order_id.to_string();
    if indexed {
        let (watch, watch_at) = (task.watch.map(|watch| watch.to_string()), task.watch_at.map(Timestamp::epoch_ms));
        let values = params![task.process_state.name(), watch, watch_at, task.expires_at.map(Timestamp::epoch_ms), id];
        connection.prepare_cached(COLUMNS)?.execute(values)?;
    }
    one(connection.prepare_cached(ADD_CHANGE)?.execute(params![id, task.version, delta])?)
}

/// Inserts an order and its task. Returns false if they are stored already.
pub(crate) fn insert(connection: &Connection, order: &Order, task: &Task, large: &mut Large) -> rusqlite::Result<bool> {
    const ORDER: &str = "INSERT INTO orders \
                         (seq, document, fingerprint, submitted_at, submitter, reply_channel, correlation_id, \
                         priority, workflow, again_of, terms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let body = body(task, large.whole_bytes)?;
    if write_columns(connection, INSERT, task, &body)? == 0 {
        return Ok(false);
    }
    large.keep(task, body.len());
    let seq = connection.last_insert_rowid();
    connection.prepare_cached(ORDER)?.execute(params![
        seq,
        order.document.text(),
        order.fingerprint,
        order.submitted_at.epoch_ms(),
        order.submitter,
        order.reply_channel,
        order.correlation_id,
        order.priority.map(Priority::name),
        order.workflow.as_ref().map(ToString::to_string),
        order.again_of.as_ref().map(json).transpose()?,
        json(&order.terms.iter().map(Term::text).collect::<Vec<_>>())?,
    ])?;
    index::keep(connection, seq, &order.terms)?;
    Ok(true)
}

/// Deletes an order, its task and its terms. Fails if the stored version differs.
pub(crate) fn forget(connection: &Connection, task: &Task) -> rusqlite::Result<()> {
    const TASK: &str = "DELETE FROM tasks WHERE order_id = ?1 AND version = ?2 RETURNING seq";
    const ORDER: &str = "DELETE FROM orders WHERE seq = ?1 RETURNING terms";
    let id = task.order_id.to_string();
    connection.prepare_cached(FORGET_CHANGES)?.execute([&id])?;
    let seq: i64 = connection.prepare_cached(TASK)?.query_row(params![id, task.version], |row| row.get(0))?;
    let terms: String = connection.prepare_cached(ORDER)?.query_row([seq], |row| row.get(0))?;
    index::forget(connection, seq, &terms)
}

/// Writes all columns of a task. Returns the number of rows that were changed.
fn write_columns(connection: &Connection, sql: &str, task: &Task, body: &str) -> rusqlite::Result<usize> {
    let watch = task.watch.map(|watch| watch.to_string());
    let watch_at = task.watch_at.map(Timestamp::epoch_ms);
    let expires_at = task.expires_at.map(Timestamp::epoch_ms);
    let (order_id, state) = (task.order_id.to_string(), task.process_state.name());
    let values = params![task.version, body, state, watch, watch_at, expires_at, order_id];
    connection.prepare_cached(sql)?.execute(values)
}

/// The stored form of a task: its JSON, padded with blanks to one of a few lengths unless it is large. Padding usually keeps
/// the length of a later version, so SQLite moves no rows.
fn body(task: &Task, whole_bytes: usize) -> rusqlite::Result<String> {
    let mut body = json(task)?;
    let expected = body.len() + task.growth_bytes();
    match BODY_BYTES.iter().find(|bytes| expected <= **bytes && **bytes <= whole_bytes) {
        Some(bytes) => body.push_str(&" ".repeat(bytes - body.len())),
        None if BODY_BYTES.contains(&body.len()) => body.push(' '),
        None => {}
    }
    Ok(body)
}

/// The condition was decided in memory. If the disk disagrees, another program wrote to the file. The whole transaction
/// must fail, and the memory must be read again.
fn one(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}

#[cfg(test)]
mod tests {
    use domain::json::Json;
    use domain::task::StepState;

    use super::*;
    use crate::options::WHOLE_BYTES;
    use crate::tests::{order, task};
    use crate::{generation, schema, tallies};

    #[test]
    fn the_writes_of_an_order_fill_no_temporary_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        for write in [INSERT, UPDATE, UPDATE_BODY, ADD_CHANGE, tallies::UPDATE, generation::UPDATE] {
            let mut plan = connection.prepare(&format!("EXPLAIN {write}")).unwrap();
            let (mut rows, mut steps) = (plan.raw_query(), Vec::<String>::new());
            while let Some(row) = rows.next().unwrap() {
                steps.push(row.get(1).unwrap());
            }
            let writes = ["Insert", "IdxInsert", "Delete"];
            assert!(steps.iter().any(|step| writes.contains(&&**step)), "{write}: {steps:?}");
            assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{write}: {steps:?}");
        }
    }

    #[test]
    fn the_versions_of_a_task_have_one_length_and_none_is_cut() {
        let (mut task, mut lengths) = (task(&order(0), 16), Vec::new());
        let done = Json::parse(&[b"\"".to_vec(), vec![b'a'; 200], b"\"".to_vec()].concat(), 1_000).unwrap();
        for step in 0..task.steps.len() {
            lengths.push(body(&task, WHOLE_BYTES).unwrap().len());
            (task.steps[step].process_state, task.steps[step].output) = (StepState::Processed, Some(done.clone()));
        }
        lengths.push(body(&task, WHOLE_BYTES).unwrap().len());
        assert!(lengths.iter().all(|length| *length == lengths[0]) && lengths.len() > 3, "{lengths:?}");
        assert_eq!(serde_json::from_str::<Task>(&body(&task, WHOLE_BYTES).unwrap()).unwrap(), task);
        let long = Json::parse(&[b"\"".to_vec(), vec![b'a'; 5_000], b"\"".to_vec()].concat(), 10_000).unwrap();
        task.steps[0].output = Some(long);
        assert_eq!(
            body(&task, WHOLE_BYTES).unwrap(),
            serde_json::to_string(&task).unwrap(),
            "it takes pages of its own"
        );
    }
}
