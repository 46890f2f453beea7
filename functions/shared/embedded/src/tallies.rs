//! What happened, in numbers (rule 26).
//!
//! Each transaction counts its tasks. The numbers of the present minute and the orders by state are in the row of the
//! transaction's number, a page that every transaction writes. The first transaction of a later minute adds the minute
//! to the tables of minutes, of hours and of all time. Numbers that cannot be read are left out, and hold up no order.

use std::error::Error;

use domain::tally::{Grain, Numbers, Span, States, Tally};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use serde::de::DeserializeOwned;

use crate::generation;
use crate::index::{self, ENDED, UNDER_WAY};
use crate::rows::json;

/// The table of all time. Its time is the first minute.
const TOTAL: &str = "total";
pub(crate) const UPDATE: &str = "UPDATE transactions SET number = number + 1, minute = ?1, tally = ?2, states = ?3";

/// The numbers of the present minute, and the orders by state. The writer owns it, and reads it again after a
/// transaction that failed.
#[derive(Debug)]
pub(crate) struct Present {
    minute: Timestamp,
    tally: Tally,
    states: States,
    is_changed: bool,
}

impl Present {
    /// The numbers on disk.
    pub(crate) fn load(connection: &Connection, now: Timestamp) -> Result<Self> {
        let stored = stored(connection)?;
        let minute = stored.minute.unwrap_or_else(|| Grain::Minute.of(now));
        Ok(Self { minute, tally: stored.tally, states: stored.states, is_changed: false })
    }

    /// Enters the minute of `now`. Spans are dropped by their number, since a clock may be wrong.
    pub(crate) fn enter(&mut self, connection: &Connection, now: Timestamp) -> Result<()> {
        const DROP: &str = "DELETE FROM tallies WHERE span = ?1 AND at <= \
                            (SELECT at FROM tallies WHERE span = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)";
        let minute = Grain::Minute.of(now);
        if self.minute == minute {
            return Ok(());
        }
        if !self.tally.is_empty() {
            for grain in [Grain::Minute, Grain::Hour] {
                add(connection, name(grain), grain.of(self.minute), &self.tally)?;
                connection.prepare_cached(DROP)?.execute(params![name(grain), grain.kept()])?;
            }
            let since = since(connection)?.unwrap_or(self.minute);
            add(connection, TOTAL, since, &self.tally)?;
            (self.tally, self.is_changed) = (Tally::default(), true);
        }
        self.minute = minute;
        Ok(())
    }

    /// Counts a version of a task.
    pub(crate) fn count(&mut self, before: Option<&Task>, after: &Task) {
        self.tally.count(before, after);
        self.states.moved(before.map(|task| task.process_state), after.process_state);
        self.is_changed = true;
    }

    /// An order is gone.
    pub(crate) fn forget(&mut self, task: &Task) {
        self.states.left(task.process_state);
        self.is_changed = true;
    }

    /// The orders that are not settled.
    pub(crate) fn under_way(&self) -> u64 {
        self.states.under_way()
    }

    /// Writes them with the number of the transaction, and returns this number.
    pub(crate) fn write(&mut self, connection: &Connection) -> Result<u64> {
        if !std::mem::take(&mut self.is_changed) {
            return generation::next(connection);
        }
        let values = params![self.minute.epoch_ms(), json(&self.tally)?, json(&self.states)?];
        connection.prepare_cached(UPDATE)?.execute(values)?;
        generation::number(connection)
    }
}

/// The orders on disk that are not settled.
pub(crate) fn under_way(connection: &Connection) -> Result<u64> {
    Ok(stored(connection)?.states.under_way())
}

/// The numbers since a time, in spans of this length.
pub(crate) fn numbers(connection: &Connection, grain: Grain, since: Timestamp) -> Result<Numbers> {
    const SPANS: &str = "SELECT body, at FROM tallies WHERE span = ?1 AND at >= ?2 ORDER BY at";
    // One snapshot: a minute that ends meanwhile must be counted once.
    let snapshot = connection.unchecked_transaction()?;
    let present = stored(&snapshot)?;
    let mut spans = Vec::new();
    let mut statement = snapshot.prepare_cached(SPANS)?;
    let mut rows = statement.query(params![name(grain), grain.of(since).epoch_ms()])?;
    while let Some(row) = rows.next()? {
        spans.push(Span { at: Timestamp::from_epoch_ms(row.get(1)?), tally: read(row, 0)?.unwrap_or_default() });
    }
    let mut total = of(&snapshot, TOTAL, self::since(&snapshot)?.unwrap_or_default())?;
    total.add(&present.tally);
    if let Some(minute) = present.minute.filter(|minute| *minute >= grain.of(since)) {
        let at = grain.of(minute);
        // A clock that was set back may have left later spans.
        match spans.iter_mut().find(|span| span.at == at) {
            Some(span) => span.tally.add(&present.tally),
            None if present.tally.is_empty() => {}
            None => spans.push(Span { at, tally: present.tally }),
        }
        spans.sort_by_key(|span| span.at);
    }
    let since = self::since(&snapshot)?.or(present.minute);
    Ok(Numbers { since, states: Some(present.states), oldest: Some(oldest(&snapshot)?), spans, total })
}

/// When the oldest order of each state that orders leave was accepted.
fn oldest(connection: &Connection) -> Result<Vec<(ProcessState, Timestamp)>> {
    let mut found = Vec::new();
    for state in ProcessState::ALL.into_iter().filter(|state| !state.is_final()) {
        found.extend(index::oldest(connection, state)?.map(|at| (state, at)));
    }
    Ok(found)
}

/// What is in the row of the transaction's number.
struct Stored {
    minute: Option<Timestamp>,
    tally: Tally,
    states: States,
}

fn stored(connection: &Connection) -> Result<Stored> {
    let mut statement = connection.prepare_cached("SELECT minute, tally, states FROM transactions")?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let minute = row.get_ref(0)?.as_i64_or_null().ok().flatten().map(Timestamp::from_epoch_ms);
    let states = match read(row, 2)? {
        Some(states) => states,
        None => counted(connection)?,
    };
    Ok(Stored { minute, tally: read(row, 1)?.unwrap_or_default(), states })
}

/// The orders by state, where their numbers are not stored or cannot be read.
fn counted(connection: &Connection) -> Result<States> {
    let mut states = States::default();
    let of = |condition| format!("SELECT process_state, count(*) FROM tasks WHERE {condition} GROUP BY process_state");
    let mut statement = connection.prepare(&format!("{} UNION ALL {}", of(ENDED), of(UNDER_WAY)))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state: Option<ProcessState> = row.get::<_, String>(0)?.parse().ok();
        let count = row.get(1)?;
        state.into_iter().for_each(|state| states.add(state, count));
    }
    Ok(states)
}

/// Adds to the numbers of a span.
fn add(connection: &Connection, span: &str, at: Timestamp, more: &Tally) -> Result<()> {
    const SQL: &str = "INSERT INTO tallies (span, at, body) VALUES (?1, ?2, ?3) \
                       ON CONFLICT (span, at) DO UPDATE SET body = excluded.body";
    let mut tally = of(connection, span, at)?;
    tally.add(more);
    connection.prepare_cached(SQL)?.execute(params![span, at.epoch_ms(), json(&tally)?])?;
    Ok(())
}

fn of(connection: &Connection, span: &str, at: Timestamp) -> Result<Tally> {
    let mut statement = connection.prepare_cached("SELECT body FROM tallies WHERE span = ?1 AND at = ?2")?;
    let mut rows = statement.query(params![span, at.epoch_ms()])?;
    Ok(rows.next()?.map(|row| read(row, 0)).transpose()?.flatten().unwrap_or_default())
}

/// The minute in which the count began.
fn since(connection: &Connection) -> Result<Option<Timestamp>> {
    let mut statement = connection.prepare_cached("SELECT at FROM tallies WHERE span = ?1")?;
    let at = statement.query_row([TOTAL], |row| Ok(row.get_ref(0)?.as_i64().ok())).optional()?;
    Ok(at.flatten().map(Timestamp::from_epoch_ms))
}

const fn name(grain: Grain) -> &'static str {
    match grain {
        Grain::Minute => "minute",
        Grain::Hour => "hour",
    }
}

/// What is stored, if it can be read. No order waits for a number.
fn read<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    let unreadable = |error: &dyn Error| {
        tracing::warn!("numbers are stored in a form that cannot be read, and left out: {error}");
    };
    let bytes = match row.get_ref(column)?.as_bytes_or_null() {
        Ok(bytes) => bytes,
        Err(error) => {
            unreadable(&error);
            None
        }
    };
    Ok(bytes.and_then(|bytes| serde_json::from_slice(bytes).map_err(|error| unreadable(&error)).ok()))
}
