//! Lists of tasks, newest first, a page at a time.
//!
//! Where the newest begin depends on what a list is of:
//!
//! - those in `Error`: the index `failed`, by the time of the error, so that it costs what it shows;
//! - those under way: the index `watch`, by the time at which somebody has to look;
//! - all, and those that are finished: the index `recent`, by the time of the order, month after month back to the first
//!   one in which there can be an order.
//!
//! An index shows keys only, and may lag: the tasks are read, and those in another state left out. The work of one call is
//! bounded, so a page may be short, or even empty, and still have a `next`.

mod cursor;
mod partition;
mod walk;

use std::collections::HashSet;

use domain::ports::{ListError, Page};
use domain::task::ProcessState;

use self::cursor::{cursor, place_of};
use self::walk::Walk;
use super::Dynamo;
use super::read::KEYS_MAX;

const OPERATION: &str = "store.list";
/// Rounds of tasks read for one page: 1,000 tasks.
const ROUNDS_MAX: usize = 10;

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    /// Tasks in `Error`.
    Failed,
    /// Tasks in a state in which somebody is looking after them.
    Watched,
    /// Tasks in any state, or in one that is final.
    Recent,
}

impl List {
    const fn of(state: Option<ProcessState>) -> Self {
        match state {
            Some(ProcessState::Error) => Self::Failed,
            Some(ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating) => Self::Watched,
            Some(ProcessState::Processed | ProcessState::Compensated) | None => Self::Recent,
        }
    }
}

impl Dynamo {
    pub(super) async fn list_page(
        &self,
        state: Option<ProcessState>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, ListError> {
        let after = after.map(|text| place_of(text, state).ok_or(ListError::Cursor)).transpose()?;
        let mut page = Page::default();
        let mut walk = Walk::new(self, List::of(state), after, limit);
        for _ in 0..ROUNDS_MAX {
            // In a list of one state nobody knows how many of the next ones are in it.
            let wanted = if state.is_some() { KEYS_MAX } else { (limit - page.tasks.len()).min(KEYS_MAX) };
            let places = walk.take(wanted).await?;
            let ids: HashSet<_> = places.iter().map(|position| position.order_id).collect();
            page.read += ids.len();
            let mut tasks = self.read_tasks(OPERATION, ids.into_iter()).await?;
            for position in &places {
                if page.tasks.len() == limit {
                    return Ok(page);
                }
                // An entry that moved in the meantime may be there twice.
                let task = tasks.remove(&position.order_id);
                page.tasks.extend(task.filter(|task| state.is_none_or(|state| task.process_state == state)));
                page.next = Some(cursor(position, state));
            }
            if places.len() < wanted || walk.is_over().await? {
                page.next = None;
                return Ok(page);
            }
            if page.tasks.len() == limit {
                return Ok(page);
            }
        }
        Ok(page)
    }
}
