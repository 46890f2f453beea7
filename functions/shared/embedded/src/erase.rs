//! The personal data of an order that is erased (rule 46): all that the database has of it, beside its task.
//!
//! The writer's connection overwrites what it deletes (`secure_delete`). Afterwards the writer empties the log, which has
//! earlier versions of the pages.

use std::sync::Arc;

use domain::audit::{ERASED_ENTRIES, Hash};
use domain::id::OrderId;
use domain::message::{CloudEvent, is_about};
use domain::order::Order;
use domain::ports::Memo;
use domain::task::Quoted;
use domain::time::Timestamp;
use rusqlite::{Connection, Result, params};

use crate::index;
use crate::rows::{ReadError, json};

/// Where the audit stream tells of an order, or may quote it. Found before the write, since only a look through all
/// entries finds them.
#[derive(Debug)]
pub(crate) struct Traces {
    quoted: Quoted,
    entries: Vec<i64>,
    /// The last entry that was looked at.
    up_to: i64,
}

/// What an erase removed.
#[derive(Debug)]
pub(crate) struct Erased {
    /// The numbers of the dead letters.
    pub(crate) dead_letters: Vec<i64>,
    /// The numbers of the audit entries that became digests.
    pub(crate) entries: Vec<i64>,
}

impl Traces {
    /// Looks through the entries on disk.
    pub(crate) fn find(
        connection: &Connection,
        order_id: OrderId,
        quoted: Quoted,
    ) -> std::result::Result<Self, ReadError> {
        let mut found = Self { quoted, entries: Vec::new(), up_to: 0 };
        found.look_on(connection, order_id)?;
        Ok(found)
    }

    /// Looks through the later entries.
    fn look_on(&mut self, connection: &Connection, order_id: OrderId) -> Result<()> {
        const SQL: &str = "SELECT seq, at, iif((instr(body, ?1) OR instr(body, '\"Record\":')) \
                           AND typeof(body) = 'text', body, NULL) FROM audit WHERE seq > ?2 ORDER BY seq";
        let mut statement = connection.prepare_cached(SQL)?;
        let mut rows = statement.query(params![order_id.to_string(), self.up_to])?;
        while let Some(row) = rows.next()? {
            self.up_to = row.get(0)?;
            let at = Timestamp::from_epoch_ms(row.get(1)?);
            let body = row.get_ref(2)?.as_str_or_null()?;
            if body.is_some_and(|body| self.is_told_in(body, at, order_id)) {
                self.entries.push(self.up_to);
            }
        }
        Ok(())
    }

    fn is_told_in(&self, body: &str, at: Timestamp, order_id: OrderId) -> bool {
        let is_of_a_job = |job_id: &Arc<str>| body.contains(&format!(r#""Record":"job","Key":"{job_id}""#));
        let is_of_an_outage = || body.contains(r#""Record":"service""#) && body.contains(r#"\"Problem\""#);
        (is_about(body, order_id) && !is_erase(body))
            || self.quoted.jobs().iter().any(is_of_a_job)
            || (is_of_an_outage() && self.quoted.covers(at, Some(at)))
    }

    /// Puts its digest in the place of each entry.
    fn forget(&self, connection: &Connection) -> Result<()> {
        const BODY: &str = "SELECT body FROM audit WHERE seq = ?1 AND typeof(body) = 'text'";
        const FORGET: &str = "UPDATE audit SET body = ?2 WHERE seq = ?1";
        for seq in &self.entries {
            let bodies: Vec<String> = texts(connection, BODY, seq)?;
            for body in bodies {
                connection.prepare_cached(FORGET)?.execute(params![seq, Hash::of(&body).bytes()])?;
            }
        }
        Ok(())
    }

    /// Erases the order of this id, which has become `order`.
    pub(crate) fn erase(&self, connection: &Connection, order: &Order) -> Result<Erased> {
        let order_id = order.order_id;
        erase_order(connection, order)?;
        erase_memos(connection, order_id)?;
        let id = order_id.to_string();
        connection.prepare_cached("DELETE FROM messages WHERE order_id = ?1")?.execute([&id])?;
        connection.prepare_cached("DELETE FROM letters WHERE instr(body, ?1)")?.execute([&id])?;
        self.delete_events(connection, &id)?;
        delete_about(connection, order_id, "commands", "message_id")?;
        let dead_letters = delete_about(connection, order_id, "dead_letters", "letter_id")?;
        let mut traces = Self { quoted: self.quoted.clone(), entries: self.entries.clone(), up_to: self.up_to };
        traces.look_on(connection, order_id)?;
        traces.forget(connection)?;
        Ok(Erased { dead_letters, entries: traces.entries })
    }

    /// Deletes the events about the order, and those about an outage in its time.
    fn delete_events(&self, connection: &Connection, order_id: &str) -> Result<()> {
        const SQL: &str = "SELECT seq, instr(body, ?1), body FROM events \
                           WHERE instr(body, ?1) OR instr(body, '\"type\":\"Service') OR instr(body, 'service/')";
        let mut statement = connection.prepare_cached(SQL)?;
        let mut rows = statement.query([order_id])?;
        while let Some(row) = rows.next()? {
            let (seq, place, body): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if place > 0 || serde_json::from_str(&body).is_ok_and(|event| self.may_be_quoted_by(&event)) {
                connection.prepare_cached("DELETE FROM events WHERE seq = ?1")?.execute([seq])?;
            }
        }
        Ok(())
    }

    fn may_be_quoted_by(&self, event: &CloudEvent) -> bool {
        let is_of_an_outage = event.kind.starts_with("Service") || event.subject.starts_with("service/");
        is_of_an_outage && self.quoted.covers(event.time, Some(event.time))
    }
}

/// The command that erases stays as it is: who, and why. So does the entry of an erase, also of an earlier order of this id:
/// without its list the digests in place of texts were alterations.
fn is_erase(body: &str) -> bool {
    body.contains(r#""Command":"Erase""#) || body.contains(ERASED_ENTRIES)
}

fn texts(connection: &Connection, sql: &str, seq: &i64) -> Result<Vec<String>> {
    connection.prepare_cached(sql)?.query_map([seq], |row| row.get(0))?.collect()
}

fn erase_order(connection: &Connection, order: &Order) -> Result<()> {
    const FOUND_BY: &str = "SELECT seq, terms FROM tasks JOIN orders USING (seq) WHERE order_id = ?1";
    const ERASE: &str = "UPDATE orders SET document = ?2, fingerprint = ?3, correlation_id = NULL, again_of = ?4, \
                         terms = '[]' WHERE seq = ?1";
    let id = order.order_id.to_string();
    let found_by = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (seq, terms): (i64, String) = connection.prepare_cached(FOUND_BY)?.query_row([id], found_by)?;
    index::forget(connection, seq, &terms)?;
    let again_of = order.again_of.as_ref().map(json).transpose()?;
    let values = params![seq, order.document.text(), order.fingerprint, again_of];
    connection.prepare_cached(ERASE)?.execute(values)?;
    Ok(())
}

/// What the services answered goes, and that they were called stays: a repeat must make no call.
fn erase_memos(connection: &Connection, order_id: OrderId) -> Result<()> {
    const SQL: &str = "SELECT key, body FROM memos WHERE key >= ?1 AND key < ?1 || '~'";
    const ERASE: &str = "UPDATE memos SET body = ?2 WHERE key = ?1";
    const DELETE: &str = "DELETE FROM memos WHERE key = ?1";
    let memos = connection
        .prepare_cached(SQL)?
        .query_map([Memo::keys_of(order_id)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, String)>>>()?;
    for (key, body) in memos {
        match serde_json::from_str::<Memo>(&body) {
            Ok(memo) => connection.prepare_cached(ERASE)?.execute(params![key, json(&memo.erased())?])?,
            Err(_) => connection.prepare_cached(DELETE)?.execute([key])?,
        };
    }
    Ok(())
}

/// Deletes the messages about an order, and returns their numbers.
fn delete_about(connection: &Connection, order_id: OrderId, table: &str, number: &str) -> Result<Vec<i64>> {
    let sql = format!("SELECT {number}, body FROM {table} WHERE instr(body, ?1)");
    let rows = connection
        .prepare_cached(&sql)?
        .query_map([order_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, String)>>>()?;
    let numbers: Vec<i64> =
        rows.into_iter().filter(|(_, body)| is_about(body, order_id)).map(|(number, _)| number).collect();
    for row in &numbers {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE {number} = ?1"))?.execute([row])?;
    }
    Ok(numbers)
}
