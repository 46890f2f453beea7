//! A bounded walk through a list of the store.

use domain::limits::PAGE_MAX;
use domain::task::{ProcessState, Task};
use futures_util::future::try_join;
use wire::Count;

use crate::cursor;
use crate::ports::ApiPorts;
use crate::problem::Problem;

/// Tasks read for one list; the page that reaches this number is the last. A store without an index by state reads
/// many tasks to find a few.
const READ_MAX: usize = 1_000;
/// Pages of the store read for one list; a store may return empty pages.
const PAGES_MAX: usize = 20;

/// The progress of a walk through a list, from its beginning.
pub(crate) struct Walked {
    /// Tasks in it so far.
    pub(crate) count: usize,
    /// Whether the list continues after them.
    pub(crate) more: bool,
}

/// Visits the first tasks of a list, until the visitor has enough after a page, or enough was read. No task is kept:
/// each may have outputs of many KiB.
pub(crate) async fn walk(
    ports: &impl ApiPorts,
    state: Option<ProcessState>,
    mut wants_more: impl FnMut(&Task) -> bool,
) -> Result<Walked, Problem> {
    let mut walked = Walked { count: 0, more: true };
    let (mut read, mut after) = (0, None);
    for _ in 0..PAGES_MAX {
        let page = cursor::page(ports, state, after.as_deref(), PAGE_MAX.min(READ_MAX - read)).await?;
        read += page.read.max(page.tasks.len());
        walked.count += page.tasks.len();
        let is_enough = page.tasks.iter().fold(false, |_, task| !wants_more(task));
        walked.more = page.next.is_some();
        after = page.next;
        if is_enough || !walked.more || read >= READ_MAX {
            break;
        }
    }
    Ok(walked)
}

/// The orders in flight, up to the bound of a [`walk`].
pub(crate) async fn under_way(ports: &impl ApiPorts) -> Result<[Count; 3], Problem> {
    let count = async |state| Ok::<_, Problem>(count_of(state, &walk(ports, Some(state), |_| true).await?));
    let (pending, (processing, compensating)) = try_join(
        count(ProcessState::Pending),
        try_join(count(ProcessState::Processing), count(ProcessState::Compensating)),
    )
    .await?;
    Ok([pending, processing, compensating])
}

/// The orders of a list that were walked through.
pub(crate) fn count_of(state: ProcessState, walked: &Walked) -> Count {
    Count { state: state.into(), count: walked.count, at_least: walked.more, since: None, oldest_at: None }
}
