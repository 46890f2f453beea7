//! The SQL of orders and tasks.

use domain::index::Term;
use domain::message::Priority;
use domain::order::Order;
use domain::task::Task;
use domain::time::Timestamp;
use rusqlite::{Connection, params};

use crate::index;
use crate::rows::json;

const INSERT: &str = "INSERT INTO tasks (version, body, process_state, watch, watch_at, expires_at, order_id) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (order_id) DO NOTHING";
const UPDATE: &str = "UPDATE tasks SET version = ?1, body = ?2, process_state = ?3, watch = ?4, watch_at = ?5, \
                      expires_at = ?6 WHERE order_id = ?7 AND version < ?1";
// SQLite touches an index if the statement names its column, even if the value stays the same.
const UPDATE_BODY: &str = "UPDATE tasks SET version = ?1, body = ?2 WHERE order_id = ?3 AND version < ?1";

/// The last version of a task in a batch.
pub(crate) struct Last<'a> {
    pub(crate) task: &'a Task,
    /// The order of a new task.
    pub(crate) order: Option<&'a Order>,
    /// Whether a column of an index may have changed.
    pub(crate) indexed: bool,
}

impl Last<'_> {
    /// Writes it in place of the version on disk, or inserts it with its order.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Self { task, order, indexed } = self;
        let changed = match order {
            Some(order) => usize::from(insert(connection, order, task)?),
            None if *indexed => write_columns(connection, UPDATE, task)?,
            None => {
                let values = params![task.version, body(task)?, task.order_id.to_string()];
                connection.prepare_cached(UPDATE_BODY)?.execute(values)?
            }
        };
        one(changed)
    }
}

/// Inserts an order and its task. Returns false if they are stored already.
pub(crate) fn insert(connection: &Connection, order: &Order, task: &Task) -> rusqlite::Result<bool> {
    const ORDER: &str = "INSERT INTO orders \
                         (seq, document, fingerprint, submitted_at, submitter, reply_channel, correlation_id, \
                         priority, workflow, again_of, terms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    if write_columns(connection, INSERT, task)? == 0 {
        return Ok(false);
    }
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
    let task = params![task.order_id.to_string(), task.version];
    let seq: i64 = connection.prepare_cached(TASK)?.query_row(task, |row| row.get(0))?;
    let terms: String = connection.prepare_cached(ORDER)?.query_row([seq], |row| row.get(0))?;
    index::forget(connection, seq, &terms)
}

/// Writes all columns of a task. Returns the number of rows that were changed.
fn write_columns(connection: &Connection, sql: &str, task: &Task) -> rusqlite::Result<usize> {
    let watch = task.watch.map(|watch| watch.to_string());
    let watch_at = task.watch_at.map(Timestamp::epoch_ms);
    let expires_at = task.expires_at.map(Timestamp::epoch_ms);
    let (order_id, state) = (task.order_id.to_string(), task.process_state.name());
    let values = params![task.version, body(task)?, state, watch, watch_at, expires_at, order_id];
    connection.prepare_cached(sql)?.execute(values)
}

/// The stored form of a task: its JSON, padded with blanks to one of a few lengths. Padding usually keeps the length of a
/// later version, so SQLite moves no rows.
fn body(task: &Task) -> rusqlite::Result<String> {
    // With its other columns, such a row takes a quarter, half or all of a page of 4 KiB.
    const BODY_BYTES: [usize; 3] = [930, 1_950, 3_970];
    let mut body = json(task)?;
    let expected = body.len() + task.growth_bytes();
    if let Some(bytes) = BODY_BYTES.iter().find(|bytes| expected <= **bytes) {
        body.push_str(&" ".repeat(bytes - body.len()));
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
    use crate::tests::{order, task};
    use crate::{generation, schema, tallies};

    #[test]
    fn the_writes_of_an_order_fill_no_temporary_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        for write in [INSERT, UPDATE, UPDATE_BODY, tallies::UPDATE, generation::UPDATE] {
            let mut plan = connection.prepare(&format!("EXPLAIN {write}")).unwrap();
            let (mut rows, mut steps) = (plan.raw_query(), Vec::<String>::new());
            while let Some(row) = rows.next().unwrap() {
                steps.push(row.get(1).unwrap());
            }
            assert!(steps.iter().any(|step| step == "Insert"), "{write}: {steps:?}");
            assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{write}: {steps:?}");
        }
    }

    #[test]
    fn the_versions_of_a_task_have_one_length_and_none_is_cut() {
        let (mut task, mut lengths) = (task(&order(0), 16), Vec::new());
        let done = Json::parse(&[b"\"".to_vec(), vec![b'a'; 200], b"\"".to_vec()].concat(), 1_000).unwrap();
        for step in 0..task.steps.len() {
            lengths.push(body(&task).unwrap().len());
            (task.steps[step].process_state, task.steps[step].output) = (StepState::Processed, Some(done.clone()));
        }
        lengths.push(body(&task).unwrap().len());
        assert!(lengths.iter().all(|length| *length == lengths[0]) && lengths.len() > 3, "{lengths:?}");
        assert_eq!(serde_json::from_str::<Task>(&body(&task).unwrap()).unwrap(), task);
        let long = Json::parse(&[b"\"".to_vec(), vec![b'a'; 5_000], b"\"".to_vec()].concat(), 10_000).unwrap();
        task.steps[0].output = Some(long);
        assert_eq!(body(&task).unwrap(), serde_json::to_string(&task).unwrap(), "it takes pages of its own");
    }
}
