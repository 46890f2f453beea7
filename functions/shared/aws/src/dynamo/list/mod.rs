//! Lists of tasks, newest first, one page at a time.
//!
//! The kind of a list defines its index and its sort time:
//!
//! - tasks in `Error`: the index `failed`, by the time of the error. Its cost depends only on the entries that it
//!   shows;
//! - tasks in flight: the index `watch`, by the time of their next check;
//! - all tasks, and finished tasks: the index `recent`, by the time of the order. The walk goes back month by month to
//!   the first month that can have an order.
//!
//! An index holds only keys, and may lag. The list therefore reads the tasks, and leaves out those in another state.
//! The work of one call is bounded: a page may be short, or even empty, and still have a `next`.

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
/// The maximum number of reads of tasks for one page: 1,000 tasks.
const ROUNDS_MAX: usize = 10;

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    /// Tasks in `Error`.
    Failed,
    /// Tasks in a state that the supervisor or an operator watches.
    Watched,
    /// Tasks in any state, or in one final state.
    Recent,
}

impl List {
    const fn of(state: Option<ProcessState>) -> Self {
        match state {
            Some(ProcessState::Error) => Self::Failed,
            Some(ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating) => Self::Watched,
            Some(ProcessState::Processed | ProcessState::Compensated | ProcessState::Closed) | None => Self::Recent,
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
            // In a list of one state, the number of matching entries is unknown.
            let wanted = if state.is_some() { KEYS_MAX } else { (limit - page.tasks.len()).min(KEYS_MAX) };
            let places = walk.take(wanted).await?;
            let ids: HashSet<_> = places.iter().map(|position| position.order_id).collect();
            page.read += ids.len();
            let mut tasks = self.read_tasks(OPERATION, ids.into_iter()).await?;
            for position in &places {
                if page.tasks.len() == limit {
                    return Ok(page);
                }
                // An entry that moved in the meantime may occur twice.
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
