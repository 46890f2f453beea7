//! The two indexes: due orders, and orders by state.

use domain::ports::{Due, Page};
use domain::task::{ProcessState, Watch};
use domain::time::Timestamp;
use rusqlite::{Connection, params};

use crate::rows::{self, ReadError};

/// Orders of a shard that are due by `now`, the longest due first, after a given entry.
pub(crate) fn due(
    connection: &Connection,
    shard: u8,
    now: Timestamp,
    after: Option<Due>,
    limit: usize,
) -> Result<Vec<Due>, ReadError> {
    const SQL: &str = "SELECT watch_at, order_id FROM tasks \
                       WHERE watch = ?1 AND watch_at <= ?2 AND (watch_at, order_id) > (?3, ?4) \
                       ORDER BY watch_at, order_id LIMIT ?5";
    let (at, order_id) = after.map_or((i64::MIN, String::new()), |due| (due.at.epoch_ms(), due.order_id.to_string()));
    let watch = Watch::Due(shard).to_string();
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![watch, now.epoch_ms(), at, order_id, sql_limit(limit)])?;
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
    const IN_STATE: &str =
        "SELECT seq, body FROM tasks WHERE process_state = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2";
    const IN_ANY: &str = "SELECT seq, body FROM tasks WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
    // The extra row shows whether another page follows.
    let (before, one_more) = (before.unwrap_or(i64::MAX), sql_limit(limit.saturating_add(1)));
    let mut statement = connection.prepare_cached(if state.is_some() { IN_STATE } else { IN_ANY })?;
    let mut rows = match state {
        Some(state) => statement.query(params![before, one_more, state.name()])?,
        None => statement.query(params![before, one_more])?,
    };
    let (mut page, mut last) = (Page::default(), before);
    while let Some(row) = rows.next()? {
        if page.tasks.len() == limit {
            page.next = Some(cursor(last, state));
            break;
        }
        last = row.get(0)?;
        page.tasks.push(rows::task(row, 1)?);
    }
    page.read = page.tasks.len();
    Ok(page)
}

/// A position in a list, encoded together with the name of the list.
fn cursor(seq: i64, state: Option<ProcessState>) -> String {
    format!("{}.{seq}", state.map_or("Any", ProcessState::name))
}

/// The position that a cursor of this list stands for. `None` if this list did not make the cursor.
pub(crate) fn place(text: &str, state: Option<ProcessState>) -> Option<i64> {
    let (_, seq) = text.split_once('.')?;
    let seq = seq.parse().ok().filter(|seq| *seq > 0)?;
    // Only the spelling that `cursor` produces is valid.
    (cursor(seq, state) == text).then_some(seq)
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_the_list_that_made_it_and_no_other() {
        let state = Some(ProcessState::Error);
        assert_eq!(place(&cursor(7, state), state), Some(7));
        assert_eq!(place(&cursor(7, None), None), Some(7));
        assert_eq!(place(&cursor(7, state), None), None);
        for made_up in
            ["", "7", "Error", "Error.", "Error.07", "Error.+7", "Error.-7", "Error.0", "error.7", "Error.7.7"]
        {
            assert_eq!(place(made_up, state), None, "{made_up}");
        }
    }
}
