//! Values in columns: reads orders and tasks, and writes any value as JSON.

use std::error::Error;
use std::sync::Arc;

use domain::definition::Pin;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::message::Priority;
use domain::order::{AgainOf, Order};
use domain::ports::PortError;
use domain::task::{Delta, Task};
use domain::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;

use crate::identity::Gone;
use crate::options::WHOLE_BYTES;

/// The lengths of a task's body, which blanks pad: with its other columns, such a row takes a quarter, half or all of a page
/// of 4 KiB. Only a body of another length may have changes beside it.
pub(crate) const BODY_BYTES: [usize; 3] = [930, 1_950, WHOLE_BYTES];

/// The reason why a read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file cannot be read now.
    #[error("the database cannot be read")]
    Database(#[from] rusqlite::Error),
    /// The file is another one.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The content is invalid.
    #[error("{what} is stored in a form that cannot be read: {problem}")]
    Corrupt { what: &'static str, problem: String },
}

impl ReadError {
    /// Converts to the error of a port. Only corrupt content is a permanent error.
    pub(crate) fn of(self, operation: &'static str) -> PortError {
        match self {
            Self::Database(_) | Self::Gone(_) => PortError::unavailable(operation, self),
            Self::Corrupt { .. } => PortError::refused(operation, self),
        }
    }

    pub(crate) fn corrupt(what: &'static str, problem: &impl ToString) -> Self {
        Self::Corrupt { what, problem: problem.to_string() }
    }
}

/// An order and its task. One never exists without the other.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) order: Arc<Order>,
    pub(crate) task: Arc<Task>,
}

/// The order and the task with this id.
pub(crate) fn stored(connection: &Connection, order_id: OrderId) -> Result<Option<Stored>, ReadError> {
    const SQL: &str = "SELECT document, fingerprint, submitted_at, submitter, reply_channel, correlation_id, \
                       priority, workflow, again_of, body FROM tasks JOIN orders USING (seq) WHERE order_id = ?1";
    let mut statement = connection.prepare_cached(SQL)?;
    let found = statement.query_row([order_id.to_string()], |row| Ok(read(connection, row, order_id)));
    found.optional()?.transpose()
}

fn read(connection: &Connection, row: &Row<'_>, order_id: OrderId) -> Result<Stored, ReadError> {
    let document = Json::parse(text(row, 0)?.as_bytes(), DOCUMENT_BYTES_MAX);
    let order = Order {
        order_id,
        document: document.map_err(|error| ReadError::corrupt("an order", &error))?,
        fingerprint: text(row, 1)?.into(),
        submitted_at: Timestamp::from_epoch_ms(row.get(2)?),
        submitter: text(row, 3)?.into(),
        reply_channel: row.get(4)?,
        correlation_id: row.get(5)?,
        priority: row.get::<_, Option<String>>(6)?.map(|name| Priority::named(&name).unwrap_or_default()),
        workflow: workflow(row, 7)?,
        terms: Vec::new(),
        again_of: again_of(row, 8)?,
    };
    Ok(Stored { order: Arc::new(order), task: task(connection, row, 9)? })
}

fn workflow(row: &Row<'_>, column: usize) -> Result<Option<Pin>, ReadError> {
    let stored: Option<String> = row.get(column)?;
    stored.map(|pin| pin.parse().map_err(|error| ReadError::corrupt("an order", &error))).transpose()
}

fn again_of(row: &Row<'_>, column: usize) -> Result<Option<AgainOf>, ReadError> {
    let stored: Option<String> = row.get(column)?;
    let read = |stored: String| serde_json::from_str(&stored).map_err(|error| ReadError::corrupt("an order", &error));
    stored.map(read).transpose()
}

/// The task in a column. Its changes are those of the same moment, since the row is still being read.
pub(crate) fn task(connection: &Connection, row: &Row<'_>, column: usize) -> Result<Arc<Task>, ReadError> {
    let body = text(row, column)?;
    let task = serde_json::from_str(body).map_err(|error| ReadError::corrupt("a task", &error))?;
    changed(connection, body, task).map(Arc::new)
}

/// The task whose stored body this is, with its changes.
fn changed(connection: &Connection, body: &str, task: Task) -> Result<Task, ReadError> {
    const SQL: &str = "SELECT body FROM changes WHERE seq = (SELECT seq FROM tasks WHERE order_id = ?1) AND version > ?2 \
                       ORDER BY version";
    if BODY_BYTES.contains(&body.len()) {
        return Ok(task);
    }
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query((task.order_id.to_string(), task.version))?;
    let (mut deltas, corrupt) =
        (Vec::new(), |error: serde_json::Error| ReadError::corrupt("a change of a task", &error));
    while let Some(row) = rows.next()? {
        deltas.push(serde_json::from_str(text(row, 0)?).map_err(corrupt)?);
    }
    if deltas.is_empty() { Ok(task) } else { Delta::apply(deltas, task).map_err(corrupt) }
}

/// The id in a column.
pub(crate) fn order_id(row: &Row<'_>, column: usize) -> Result<OrderId, ReadError> {
    text(row, column)?.parse().map_err(|error| ReadError::corrupt("an order id", &error))
}

/// The text in a column, without a copy.
pub(crate) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, ReadError> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_err(|error| ReadError::corrupt("a text", &error)),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
            Err(ReadError::corrupt("a text", &"it is no text"))
        }
    }
}

/// The stored form of a value.
pub(crate) fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    // Most tasks fit, so the text is not copied while it grows.
    const BYTES: usize = 4_096;
    let mut bytes = Vec::with_capacity(BYTES);
    serde_json::to_writer(&mut bytes, value).map_err(unstorable)?;
    String::from_utf8(bytes).map_err(unstorable)
}

/// A value has no form in a column.
pub(crate) fn unstorable(error: impl Into<Box<dyn Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
