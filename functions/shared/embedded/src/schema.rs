//! The tables of the database file, as a list of steps. The file records its schema version: the number of applied steps.

use rusqlite::Connection;

/// The steps. Each one makes the next version of the schema. A released step never changes.
const STEPS: [&str; 2] = [TABLES, SCHEDULES];

/// The newest schema version.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// The first schema.
///
/// - `tasks`: `seq` counts the orders as they arrive, so that a list of the newest orders needs no sort. `body` is the
///   task as JSON. The columns beside it are those that an index or a condition needs. Orders under way have their
///   own small index: removing an entry moves no rows between pages. Its condition has plain comparisons: for an `IN`,
///   SQLite fills a temporary table with the list whenever it looks at the condition.
/// - `changes`: what changed since `body` was written, of a task that does not fit into a page: `tasks.rs`.
/// - `orders`: an order has the number of its task as its key. Most order ids are random, so a second index of them costs
///   one more page per order. `terms` is what it is found by (rule 28), as JSON: `index.rs`.
/// - `dead_letters`: a number is never used again, since the outcome is stored under it, in `letters`.
/// - `transactions`: the number of the last transaction (`generation.rs`), and the present minute (`tallies.rs`).
/// - `audit` (rule 43): `body` is the entry as text, or its digest once the entry is forgotten: `audit.rs`.
const TABLES: &str = "
CREATE TABLE tasks (
    seq INTEGER NOT NULL PRIMARY KEY,
    order_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    process_state TEXT NOT NULL,
    watch TEXT,
    watch_at INTEGER,
    body TEXT NOT NULL,
    expires_at INTEGER
);
CREATE INDEX tasks_watch ON tasks (watch, watch_at, order_id) WHERE watch IS NOT NULL;
CREATE INDEX tasks_expires_at ON tasks (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tasks_under_way ON tasks (process_state, seq)
    WHERE process_state <> 'Processed' AND process_state <> 'Compensated' AND process_state <> 'Closed';
CREATE INDEX tasks_ended ON tasks (process_state, seq)
    WHERE process_state = 'Processed' OR process_state = 'Compensated' OR process_state = 'Closed';
CREATE TABLE changes (
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (seq, version)
) WITHOUT ROWID;
CREATE TABLE orders (
    seq INTEGER NOT NULL PRIMARY KEY,
    document TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    submitter TEXT NOT NULL,
    reply_channel TEXT,
    correlation_id TEXT,
    priority TEXT,
    workflow TEXT,
    again_of TEXT,
    terms TEXT NOT NULL
);
CREATE TABLE terms (term TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (term, seq)) WITHOUT ROWID;
CREATE TABLE messages (message_id INTEGER NOT NULL PRIMARY KEY, order_id TEXT NOT NULL, body TEXT NOT NULL);
-- What the scheduler is told and would not be told again: operators' commands, and results that services told (rule 36).
CREATE TABLE commands (
    message_id INTEGER NOT NULL PRIMARY KEY,
    priority TEXT NOT NULL,
    not_before INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE dead_letters (
    letter_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    receive_count INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE letters (
    message_id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX letters_expires_at ON letters (expires_at, message_id);
CREATE TABLE events (seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE memos (
    key TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX memos_expires_at ON memos (expires_at);
CREATE TABLE services (service TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE jobs (job_id TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE definitions (key TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE deployments (key TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE alerts (cause TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE transactions (number INTEGER NOT NULL, minute INTEGER, tally TEXT, states TEXT);
INSERT INTO transactions (number) VALUES (0);
CREATE TABLE tallies (
    span TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (span, at)
) WITHOUT ROWID;
CREATE TABLE audit (seq INTEGER NOT NULL PRIMARY KEY, at INTEGER NOT NULL, hash BLOB NOT NULL, body NOT NULL);
";

/// The marks of schedules (rule 48).
const SCHEDULES: &str =
    "CREATE TABLE schedules (name TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL)";

/// Applies the missing steps, all of them or none, and returns the resulting version. A file with a later version stays
/// unchanged.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<i64> {
    apply(connection, &STEPS)
}

fn apply(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<i64> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let missing = usize::try_from(found).ok().and_then(|found| steps.get(found..)).unwrap_or_default();
    if missing.is_empty() {
        return Ok(found);
    }
    let newest = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let transaction = connection.transaction()?;
    for step in missing {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", newest)?;
    transaction.commit()?;
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An older layout, and the steps that a later program has after it.
    const OLDER: &str = "CREATE TABLE things (name TEXT NOT NULL); INSERT INTO things VALUES ('mug')";
    const COUNTED: &str = "ALTER TABLE things ADD COLUMN count INTEGER NOT NULL DEFAULT 1";
    const NAMED: &str = "UPDATE things SET name = 'cup' WHERE count = 1";

    fn things(connection: &Connection) -> String {
        connection.query_row("SELECT name || count FROM things", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_file_of_an_older_schema_gets_the_missing_steps_once_and_keeps_what_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(apply(&mut connection, &[OLDER]).unwrap(), 1);
        for _ in 0..2 {
            assert_eq!(apply(&mut connection, &[OLDER, COUNTED, NAMED]).unwrap(), 3);
            assert_eq!(things(&connection), "cup1");
        }
        assert_eq!(apply(&mut connection, &[OLDER]).unwrap(), 3, "a program before does not touch it");
        assert_eq!(things(&connection), "cup1");
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply(&mut connection, &[OLDER]).unwrap();
        apply(&mut connection, &[OLDER, COUNTED, "UPDATE nothing SET name = ''"]).unwrap_err();
        assert!(connection.prepare("SELECT count FROM things").is_err());
        assert_eq!(apply(&mut connection, &[OLDER, COUNTED]).unwrap(), 2);
        assert_eq!(things(&connection), "mug1");
    }

    #[test]
    fn a_new_file_has_all_steps() {
        assert_eq!(migrate(&mut Connection::open_in_memory().unwrap()).unwrap(), VERSION);
    }
}
