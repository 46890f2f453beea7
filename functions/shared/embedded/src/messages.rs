//! The SQL of the messages on disk: submissions, and what the scheduler is told but by its agents.

use domain::message::{Priority, SchedulerMessage};
use domain::order::Order;
use domain::time::Timestamp;
use rusqlite::{Connection, params};

use crate::rows::json;

/// Writes a submission message. Returns true if its order is not stored yet.
pub(crate) fn accept(connection: &Connection, message_id: i64, order: &Order) -> rusqlite::Result<bool> {
    const INSERT: &str = "INSERT INTO messages (message_id, order_id, body) VALUES (?1, ?2, ?3)";
    const IS_NEW: &str = "SELECT NOT EXISTS (SELECT 1 FROM tasks WHERE order_id = ?1)";
    let order_id = order.order_id.to_string();
    connection.prepare_cached(INSERT)?.execute(params![message_id, order_id, json(order)?])?;
    connection.prepare_cached(IS_NEW)?.query_row([order_id], |row| row.get(0))
}

pub(crate) fn remove(connection: &Connection, message_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM messages WHERE message_id = ?1")?.execute([message_id])?;
    Ok(())
}

pub(crate) fn send(
    connection: &Connection,
    message_id: i64,
    message: &SchedulerMessage,
    priority: Priority,
    not_before: Timestamp,
) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO commands (message_id, priority, not_before, body) VALUES (?1, ?2, ?3, ?4)";
    let values = params![message_id, priority.name(), not_before.epoch_ms(), json(message)?];
    connection.prepare_cached(SQL)?.execute(values)?;
    Ok(())
}

pub(crate) fn remove_sent(connection: &Connection, message_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM commands WHERE message_id = ?1")?.execute([message_id])?;
    Ok(())
}
