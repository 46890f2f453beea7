//! The SQL of the messages on disk: submissions and operators' commands.

use domain::message::{Command, Priority, SchedulerMessage};
use domain::order::{Order, is_repeat};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::priorities;
use crate::rows::json;

/// Writes a submission message, unless its order is stored. Returns whether the stored order has the same document.
pub(crate) fn accept(connection: &Connection, message_id: i64, order: &Order) -> rusqlite::Result<Option<bool>> {
    const STORED: &str = "SELECT fingerprint FROM orders WHERE order_id = ?1";
    const INSERT: &str = "INSERT INTO messages (message_id, order_id, body) VALUES (?1, ?2, ?3)";
    let order_id = order.order_id.to_string();
    let is_same = |row: &Row<'_>| Ok(is_repeat(&row.get::<_, String>(0)?, &order.fingerprint));
    let stored = connection.prepare_cached(STORED)?.query_row([&order_id], is_same).optional()?;
    if stored.is_none() {
        connection.prepare_cached(INSERT)?.execute(params![message_id, order_id, json(order)?])?;
    }
    Ok(stored)
}

pub(crate) fn remove(connection: &Connection, message_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM messages WHERE message_id = ?1")?.execute([message_id])?;
    Ok(())
}

pub(crate) fn command(
    connection: &Connection,
    message_id: i64,
    command: &Command,
    priority: Priority,
    not_before: Timestamp,
) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO commands (message_id, lane, not_before, body) VALUES (?1, ?2, ?3, ?4)";
    let body = json(&SchedulerMessage::Command(command.clone()))?;
    let values = params![message_id, priorities::name(priority), not_before.epoch_ms(), body];
    connection.prepare_cached(SQL)?.execute(values)?;
    Ok(())
}

pub(crate) fn remove_command(connection: &Connection, message_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM commands WHERE message_id = ?1")?.execute([message_id])?;
    Ok(())
}
