//! The indexes: due orders, orders by state, and what orders are found by (rule 28).

use domain::id::OrderId;
use domain::index::Term;
use domain::ports::{Due, Page};
use domain::task::{ProcessState, Watch};
use domain::time::Timestamp;
use rusqlite::{Connection, Rows, params};

use crate::rows::{self, ReadError};

/// Bytes of tasks in one page. The task that reaches this number is the last: a usual one has up to 4 KB, but one with all
/// outputs 256 KiB more.
const PAGE_BYTES_MAX: usize = 512 * 1024;
/// The conditions of the two indexes by state. SQLite uses one only if the query repeats its condition.
pub(crate) const UNDER_WAY: &str =
    "process_state <> 'Processed' AND process_state <> 'Compensated' AND process_state <> 'Closed'";
pub(crate) const ENDED: &str =
    "(process_state = 'Processed' OR process_state = 'Compensated' OR process_state = 'Closed')";
/// The name of a list of found orders in a cursor.
pub(crate) const FOUND: &str = "Found";

/// Orders with this key of the index that are due by `now`, the longest due first, after a given entry.
pub(crate) fn due(
    connection: &Connection,
    watch: Watch,
    now: Timestamp,
    after: Option<Due>,
    limit: usize,
) -> Result<Vec<Due>, ReadError> {
    const SQL: &str = "SELECT watch_at, order_id FROM tasks \
                       WHERE watch = ?1 AND watch_at <= ?2 AND (watch_at, order_id) > (?3, ?4) \
                       ORDER BY watch_at, order_id LIMIT ?5";
    let (at, order_id) = after.map_or((i64::MIN, String::new()), |due| (due.at.epoch_ms(), due.order_id.to_string()));
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![watch.to_string(), now.epoch_ms(), at, order_id, sql_limit(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Due { at: Timestamp::from_epoch_ms(row.get(0)?), order_id: rows::order_id(row, 1)? });
    }
    Ok(found)
}

/// Tasks of one state or of any state, newest first, before a given position.
pub(crate) fn list(
    connection: &Connection,
    state: Option<ProcessState>,
    before: Option<i64>,
    limit: usize,
) -> Result<Page, ReadError> {
    let (before, one_more) = (before.unwrap_or(i64::MAX), one_more(limit));
    let mut statement = connection.prepare_cached(&list_sql(state))?;
    let rows = match state {
        Some(state) => statement.query(params![before, one_more, state.name()])?,
        None => statement.query(params![before, one_more])?,
    };
    page(connection, rows, limit, name(state))
}

/// The SQL of a list, in the words of its index.
fn list_sql(state: Option<ProcessState>) -> String {
    let condition = match state {
        Some(state) if state.is_final() => format!("{ENDED} AND process_state = ?3 AND"),
        Some(_) => format!("{UNDER_WAY} AND process_state = ?3 AND"),
        None => String::new(),
    };
    format!("SELECT seq, body FROM tasks WHERE {condition} seq < ?1 ORDER BY seq DESC LIMIT ?2")
}

/// When the order was accepted that was stored first of those in this state. `None`: there is none, or it cannot be read.
pub(crate) fn oldest(connection: &Connection, state: ProcessState) -> rusqlite::Result<Option<Timestamp>> {
    let mut statement = connection.prepare_cached(&oldest_sql())?;
    let mut rows = statement.query([state.name()])?;
    Ok(rows.next()?.and_then(|row| rows::task(connection, row, 0).ok()?.submitted_at()))
}

fn oldest_sql() -> String {
    format!("SELECT body FROM tasks WHERE {UNDER_WAY} AND process_state = ?1 ORDER BY seq LIMIT 1")
}

/// Tasks of the orders with a term, newest first, before a given position.
pub(crate) fn found(
    connection: &Connection,
    term: &Term,
    before: Option<i64>,
    limit: usize,
) -> Result<Page, ReadError> {
    const SQL: &str = "SELECT seq, body FROM terms JOIN tasks USING (seq) WHERE term = ?1 AND seq < ?2 \
                       ORDER BY seq DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query(params![term.text(), before.unwrap_or(i64::MAX), one_more(limit)])?;
    page(connection, rows, limit, FOUND)
}

/// Keeps the terms of the order whose task has this number.
pub(crate) fn keep(connection: &Connection, seq: i64, terms: &[Term]) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT OR IGNORE INTO terms (term, seq) VALUES (?1, ?2)";
    for term in terms {
        connection.prepare_cached(SQL)?.execute(params![term.text(), seq])?;
    }
    Ok(())
}

/// Forgets the terms of such an order.
pub(crate) fn forget(connection: &Connection, seq: i64, terms: &str) -> rusqlite::Result<()> {
    const SQL: &str = "DELETE FROM terms WHERE seq = ?1 AND term IN (SELECT value FROM json_each(?2))";
    connection.prepare_cached(SQL)?.execute(params![seq, terms]).map(drop)
}

/// Orders that expired by `now`, the longest expired first.
pub(crate) fn expired(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<OrderId>, ReadError> {
    const SQL: &str = "SELECT order_id FROM tasks WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![now.epoch_ms(), sql_limit(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(rows::order_id(row, 0)?);
    }
    Ok(found)
}

/// The page of these rows. One row more than the limit shows that another page follows.
fn page(connection: &Connection, mut rows: Rows<'_>, limit: usize, list: &str) -> Result<Page, ReadError> {
    let (mut page, mut last, mut bytes) = (Page::default(), i64::MAX, 0);
    while let Some(row) = rows.next()? {
        if page.tasks.len() == limit || bytes >= PAGE_BYTES_MAX {
            page.next = Some(cursor(last, list));
            break;
        }
        last = row.get(0)?;
        bytes += rows::text(row, 1)?.len();
        page.tasks.push(rows::task(connection, row, 1)?);
    }
    page.read = page.tasks.len();
    Ok(page)
}

fn one_more(limit: usize) -> i64 {
    sql_limit(limit.saturating_add(1))
}

/// The name of the list of a state, or of all orders, in a cursor.
pub(crate) fn name(state: Option<ProcessState>) -> &'static str {
    state.map_or("Any", ProcessState::name)
}

/// A position in a list, encoded together with the name of the list.
fn cursor(seq: i64, list: &str) -> String {
    format!("{list}.{seq}")
}

/// The position that a cursor of this list stands for. `None` if this list did not make the cursor.
pub(crate) fn place(text: &str, list: &str) -> Option<i64> {
    let (_, seq) = text.split_once('.')?;
    let seq = seq.parse().ok().filter(|seq| *seq > 0)?;
    // Only the spelling that `cursor` produces is valid.
    (cursor(seq, list) == text).then_some(seq)
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_list_of_each_state_reads_an_index_that_has_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        for state in ProcessState::ALL {
            let index = if state.is_final() { "tasks_ended" } else { "tasks_under_way" };
            let plan = format!("EXPLAIN QUERY PLAN {}", list_sql(Some(state)));
            let plan: String = connection.query_row(&plan, params![9, 1, state.name()], |row| row.get(3)).unwrap();
            assert_eq!(plan, format!("SEARCH tasks USING INDEX {index} (process_state=? AND seq<?)"));
            let insert = "INSERT INTO tasks (order_id, version, process_state, body) VALUES (?1, 1, ?1, '{}')";
            connection.execute(insert, [state.name()]).unwrap();
            let found = params![9, 1, state.name()];
            assert!(connection.prepare(&list_sql(Some(state))).unwrap().exists(found).unwrap(), "{state}");
        }
    }

    #[test]
    fn the_oldest_order_of_a_state_is_the_first_entry_of_its_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN {}", oldest_sql());
        let plan: Vec<String> = connection
            .prepare(&plan)
            .unwrap()
            .query_map(["Error"], |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(plan, ["SEARCH tasks USING INDEX tasks_under_way (process_state=?)"]);
    }

    #[test]
    fn a_cursor_is_good_for_the_list_that_made_it_and_no_other() {
        let (state, all) = (name(Some(ProcessState::Error)), name(None));
        for list in [state, all, FOUND] {
            assert_eq!(place(&cursor(7, list), list), Some(7));
        }
        assert_eq!(place(&cursor(7, state), all), None);
        for made_up in
            ["", "7", "Error", "Error.", "Error.07", "Error.+7", "Error.-7", "Error.0", "error.7", "Error.7.7"]
        {
            assert_eq!(place(made_up, state), None, "{made_up}");
        }
    }
}
