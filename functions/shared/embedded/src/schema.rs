//! The tables of the database file, as a list of migrations. The file records the number of applied migrations.

use domain::index::Term;
use rusqlite::{Connection, ffi};

use crate::index;

/// The migrations. Each one makes the next version of the schema. A released migration never changes.
const STEPS: [&str; 11] =
    [FIRST, SURROUNDINGS, AGAIN, DEFINITIONS, TRANSACTIONS, TALLIES, TERMS, ALERTS, AUDIT, LAYOUT, COMPARISONS];

/// The newest schema version. The file stores its own version.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// `seq` counts the orders as they arrive, so that a list of the newest orders needs no sort. `body` is the whole task
/// as JSON. The columns beside it are those that an index or a condition needs. An index is written only when its
/// columns change. For a healthy order, that is at its start and at its end.
const FIRST: &str = "
CREATE TABLE orders (
    order_id TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    submitter TEXT NOT NULL,
    reply_channel TEXT,
    correlation_id TEXT
);
CREATE TABLE tasks (
    seq INTEGER NOT NULL PRIMARY KEY,
    order_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    process_state TEXT NOT NULL,
    watch TEXT,
    watch_at INTEGER,
    body TEXT NOT NULL
);
CREATE INDEX tasks_watch ON tasks (watch, watch_at, order_id) WHERE watch IS NOT NULL;
CREATE INDEX tasks_process_state ON tasks (process_state, seq);
CREATE TABLE messages (
    message_id INTEGER NOT NULL PRIMARY KEY,
    order_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE dead_letters (
    letter_id INTEGER NOT NULL PRIMARY KEY,
    queue TEXT NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    receive_count INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE events (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE services (
    service TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
";

/// Priorities, commands, memos, jobs, and the outcomes of dead letters. The number of a dead letter is never used
/// again, since its outcome is stored under this number.
const SURROUNDINGS: &str = "
ALTER TABLE orders ADD COLUMN priority TEXT;
CREATE TABLE commands (
    message_id INTEGER NOT NULL PRIMARY KEY,
    lane TEXT NOT NULL,
    not_before INTEGER NOT NULL,
    body TEXT NOT NULL
);
ALTER TABLE dead_letters RENAME TO dead_letters_before;
CREATE TABLE dead_letters (
    letter_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    receive_count INTEGER NOT NULL,
    at INTEGER NOT NULL
);
INSERT INTO dead_letters SELECT letter_id, queue, 0, body, reason, receive_count, at FROM dead_letters_before;
DROP TABLE dead_letters_before;
CREATE TABLE letters (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL UNIQUE,
    settled_at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX letters_settled_at ON letters (settled_at, seq);
CREATE TABLE memos (
    key TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX memos_expires_at ON memos (expires_at);
CREATE TABLE jobs (
    job_id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
";

/// Orders that are posted again.
const AGAIN: &str = "
ALTER TABLE orders ADD COLUMN again_of TEXT;
";

/// Workflows that are applied while the system runs.
const DEFINITIONS: &str = "
ALTER TABLE orders ADD COLUMN workflow TEXT;
CREATE TABLE definitions (
    key TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE deployments (
    key TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
";

/// The number of the last transaction: `generation.rs`.
const TRANSACTIONS: &str = "
CREATE TABLE transactions (
    number INTEGER NOT NULL
);
INSERT INTO transactions VALUES (0);
";

/// What happened, in numbers: `tallies.rs`. The present minute is in the row of the transaction's number, which is
/// written anyway.
const TALLIES: &str = "
CREATE TABLE tallies (
    span TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (span, at)
) WITHOUT ROWID;
ALTER TABLE transactions ADD COLUMN minute INTEGER;
ALTER TABLE transactions ADD COLUMN tally TEXT;
ALTER TABLE transactions ADD COLUMN states TEXT;
";

/// What orders are found by (rule 28): `index.rs`. `seq` is that of the task.
const TERMS: &str = "
CREATE TABLE terms (
    term TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (term, seq)
) WITHOUT ROWID;
";
/// Alerts by cause (rule 29).
const ALERTS: &str = "
CREATE TABLE alerts (
    cause TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
";
/// The audit stream (rule 43): `audit.rs`. `body` is the entry as text, or its digest once the entry is forgotten. And
/// what the end of an order's life needs (rule 44): its time, and the terms that it is found by, as JSON. `NULL`: an
/// earlier version stored the order.
const AUDIT: &str = "
ALTER TABLE orders ADD COLUMN terms TEXT;
ALTER TABLE tasks ADD COLUMN expires_at INTEGER;
CREATE INDEX tasks_expires_at ON tasks (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE audit (
    seq INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body NOT NULL
);
";

/// An order has the number of its task as its key. Most order ids are random, so a second index of them costs one more
/// page per order. Orders under way have their own small index: removing an entry moves no rows between pages.
const LAYOUT: &str = "
ALTER TABLE orders RENAME TO orders_before;
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
    terms TEXT
);
INSERT INTO orders
    SELECT seq, document, fingerprint, submitted_at, submitter, reply_channel, correlation_id,
           priority, workflow, again_of, terms
    FROM tasks JOIN orders_before USING (order_id) ORDER BY seq;
DROP TABLE orders_before;
DROP INDEX tasks_process_state;
CREATE INDEX tasks_under_way ON tasks (process_state, seq)
    WHERE process_state NOT IN ('Processed', 'Compensated', 'Closed');
CREATE INDEX tasks_ended ON tasks (process_state, seq)
    WHERE process_state IN ('Processed', 'Compensated', 'Closed');
";

/// The same two indexes with plain comparisons: for an `IN`, SQLite fills a temporary table with the list whenever it
/// looks at the condition.
const COMPARISONS: &str = "
DROP INDEX tasks_under_way;
DROP INDEX tasks_ended;
CREATE INDEX tasks_under_way ON tasks (process_state, seq)
    WHERE process_state <> 'Processed' AND process_state <> 'Compensated' AND process_state <> 'Closed';
CREATE INDEX tasks_ended ON tasks (process_state, seq)
    WHERE process_state = 'Processed' OR process_state = 'Compensated' OR process_state = 'Closed';
";

/// The version of the schema with the table `terms`.
const WITH_TERMS: i64 = 7;

/// The version of the schema in which an order has the number of its task.
const WITH_NUMBERS: i64 = 10;

/// The bytes of disk that the missing migrations need: the orders are copied and two indexes made, SQLite overwrites what
/// it deletes, and the log is then moved into the file.
pub(crate) fn room(connection: &Connection) -> rusqlite::Result<u64> {
    // A longer row takes pages of its own.
    const SQL: &str = "SELECT 3 * coalesce(sum(iif(bytes > 2000, (bytes + 4095) / 4096 * 4200, bytes)), 0) \
                       FROM (SELECT octet_length(document) + 512 AS bytes FROM orders)";
    const INDEXES: &str = "SELECT 100 * count(*) FROM tasks";
    let sql = match version(connection)? {
        1..WITH_NUMBERS => SQL,
        WITH_NUMBERS => INDEXES,
        _ => return Ok(0),
    };
    connection.query_row(sql, [], |row| row.get(0))
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Applies the missing migrations, all of them or none, and returns the resulting version. A file with a later version
/// stays unchanged.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<i64> {
    let found = version(connection)?;
    if found >= VERSION {
        return Ok(found);
    }
    let orders =
        |connection: &Connection| connection.query_row("SELECT count(*) FROM orders", [], |row| row.get::<_, i64>(0));
    let before = if found > 0 { orders(connection)? } else { 0 };
    let transaction = connection.transaction()?;
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    let lost = before - orders(&transaction)?;
    if lost != 0 {
        let words = format!("{lost} of its orders have no task. Go on with the program of before, and report this");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(words)));
    }
    if found < WITH_TERMS {
        index_correlation_ids(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(VERSION)
}

/// Orders of before are found by their correlation id, too.
fn index_correlation_ids(connection: &Connection) -> rusqlite::Result<()> {
    const SQL: &str = "SELECT seq, correlation_id FROM orders WHERE correlation_id IS NOT NULL";
    let mut orders = connection.prepare(SQL)?;
    let mut rows = orders.query([])?;
    while let Some(row) = rows.next()? {
        index::keep(connection, row.get(0)?, &[Term::correlation(&row.get::<_, String>(1)?)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_earlier_version_is_taken_on_with_what_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(FIRST).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let values = "INSERT INTO orders VALUES ('o', '{}', 'f', 1, 's', 'shop', 'c-1'); \
                      INSERT INTO tasks VALUES (5, 'o', 1, 'Pending', NULL, NULL, '{}'); \
                      INSERT INTO dead_letters VALUES (7, 'scheduler', '{}', 'received-too-often', 10, 5);";
        connection.execute_batch(values).unwrap();
        assert_eq!(room(&connection).unwrap(), 3 * (2 + 512));
        connection.execute_batch("INSERT INTO orders VALUES ('p', '{}', 'f', 1, 's', 'shop', 'c-1')").unwrap();
        let refused = migrate(&mut connection).unwrap_err().to_string();
        assert!(refused.starts_with("1 of its orders have no task"), "{refused}");
        connection.execute_batch("DELETE FROM orders WHERE order_id = 'p'").unwrap();
        assert_eq!(migrate(&mut connection).unwrap(), VERSION);
        assert_eq!(room(&connection).unwrap(), 0);
        assert_eq!(migrate(&mut connection).unwrap(), VERSION, "once is enough");
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(
            text(
                "SELECT order_id || coalesce(priority, ' has none') || reply_channel FROM orders JOIN tasks USING (seq)"
            ),
            "o has noneshop"
        );
        let term = Term::correlation("c-1");
        assert_eq!(text("SELECT term || '|' || seq FROM terms"), format!("{}|5", term.text()));
        assert_eq!(text("SELECT letter_id || queue || receive_count || at FROM dead_letters"), "7scheduler105");
        // The numbers continue after it, also after the dead letter is deleted.
        connection.execute_batch("DELETE FROM dead_letters").unwrap();
        assert_eq!(text("SELECT CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'dead_letters'"), "7");
    }
}
