//! The order database and the state store.

use std::sync::Arc;

use domain::id::OrderId;
use domain::index::Term;
use domain::message::is_about;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page, PortError, Store, Watched};
use domain::tally::{Grain, Numbers};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use super::{Memory, State};

impl Store for Memory {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        self.work("store.insert", |state| match state.orders.get(&order.order_id) {
            Some((stored, stored_task)) => Inserted::on_conflict((stored, stored_task), (&order, &task)),
            None => {
                state.take_in((*order).clone(), task);
                Inserted::New
            }
        })
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.work("store.order", |state| state.orders.get(&order_id).map(|(order, _)| order.clone()))
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.work("store.task", |state| state.orders.get(&order_id).map(|(_, task)| task.clone()))
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        let is_erased = before.erased_at.is_none() && after.erased_at.is_some();
        self.work("store.commit", |state| match state.orders.get_mut(&before.order_id) {
            Some((_, task)) if (task.version, task.nonce) == (after.version, after.nonce) => Commit::Committed,
            Some((_, task)) if task.version == before.version => {
                *task = after;
                if is_erased {
                    state.erase(before.order_id);
                }
                Commit::Committed
            }
            Some(_) | None => Commit::Conflict,
        })
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.work("store.due", |_| ())?;
        let state = self.state();
        let watched = state.orders.values().filter(|(_, task)| task.watch == Some(watch));
        let dues = watched.filter_map(|(_, task)| Some(Due { at: task.watch_at?, order_id: task.order_id }));
        let place = |due: &Due| (due.at, due.order_id);
        let mut dues: Vec<Due> =
            dues.filter(|due| due.at <= now && after.is_none_or(|after| place(due) > place(&after))).collect();
        dues.sort_by_key(place);
        dues.truncate(limit);
        Ok(dues)
    }

    async fn watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        self.work("store.watches", |state| {
            let watched = state.orders.values().filter_map(|(_, task)| task.watch.zip(task.watch_at));
            Some(watched.take(max).collect::<Vec<_>>()).filter(|all| all.len() < max)
        })
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        let is_in = |_: &State, task: &Task| state.is_none_or(|state| task.process_state == state);
        let scanned_max = self.state().scanned_max;
        self.page("store.list", after, limit, scanned_max, is_in)
    }

    async fn found(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Option<Page>, ListError> {
        let has = |state: &State, task: &Task| state.terms.contains(&(term.clone(), task.order_id));
        self.page("store.found", after, limit, None, has).map(Some)
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<usize, PortError> {
        self.work("store.forget_expired", |state| {
            let expired = state.orders.values().filter(|(_, task)| task.expires_at.is_some_and(|at| at <= now));
            let expired: Vec<OrderId> = expired.map(|(_, task)| task.order_id).take(limit).collect();
            state.forget(&expired);
            expired.len()
        })
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        let until = self.work("store.settled", |state| state.now.plus_ms(wait_ms))?;
        let look = |state: &mut State| {
            let stored = state.orders.get(&order_id);
            let is_settled = stored.is_some_and(|(_, task)| task.process_state.is_settled());
            let will_never_be = stored.is_none() && !state.submissions.bodies().any(|order| order.order_id == order_id);
            let watched = |(order, task): &(Arc<Order>, Arc<Task>)| Watched {
                task: task.clone(),
                order: state.knows_orders.then(|| order.clone()),
            };
            (is_settled || will_never_be || state.now >= until).then(|| stored.map(watched))
        };
        Ok(self.until(look).await)
    }

    async fn numbers(&self, _: Grain, since: Timestamp) -> Result<Option<Numbers>, PortError> {
        self.work("store.numbers", |state| {
            let mut numbers = state.numbers.clone()?;
            numbers.spans.retain(|span| since <= span.at);
            Some(numbers)
        })
    }
}

impl State {
    /// Adds an order and its task.
    pub(super) fn take_in(&mut self, mut order: Order, task: Arc<Task>) {
        self.arrivals.push(order.order_id);
        let order_id = order.order_id;
        self.terms.extend(order.terms.drain(..).map(|term| (term, order_id)));
        self.orders.insert(order_id, (order.into(), task));
    }

    /// Deletes orders and their tasks.
    pub(super) fn forget(&mut self, order_ids: &[OrderId]) {
        self.arrivals.retain(|order_id| !order_ids.contains(order_id));
        self.terms.retain(|(_, order_id)| !order_ids.contains(order_id));
        self.orders.retain(|order_id, _| !order_ids.contains(order_id));
    }

    /// Removes the personal data of an order from all that is kept (rule 46).
    fn erase(&mut self, order_id: OrderId) {
        let id = order_id.to_string();
        if let Some((order, _)) = self.orders.get_mut(&order_id) {
            *order = Arc::new(order.erased());
        }
        self.terms.retain(|(_, found)| *found != order_id);
        self.published.retain(|event| *event.subject != *id && !event.data.text().contains(&id));
        self.dead_letters.retain(|dead_letter| !is_about(&dead_letter.body, order_id));
        self.records.erase(order_id);
    }
}

impl Memory {
    /// The tasks of the orders that are wanted, newest first. Without an index, it takes in at most `scanned_max` tasks.
    fn page(
        &self,
        operation: &'static str,
        after: Option<&str>,
        limit: usize,
        scanned_max: Option<usize>,
        is_wanted: impl Fn(&State, &Task) -> bool,
    ) -> Result<Page, ListError> {
        self.work(operation, |_| ())?;
        let all = self.state();
        let end = match after {
            Some(cursor) => {
                cursor.strip_prefix("before-").and_then(|place| place.parse().ok()).ok_or(ListError::Cursor)?
            }
            None => all.arrivals.len(),
        };
        let newest_first = all.arrivals.iter().enumerate().take(end).rev();
        let tasks = newest_first.filter_map(|(place, id)| all.orders.get(id).map(|(_, task)| (place, task)));
        let mut read = tasks.filter(|(_, task)| scanned_max.is_some() || is_wanted(&all, task)).peekable();
        let (mut page, mut last) = (Page::default(), 0);
        while page.tasks.len() < limit.min(all.page_max)
            && scanned_max.is_none_or(|max| page.read < max)
            && let Some((place, task)) = read.next()
        {
            page.tasks.extend(is_wanted(&all, task).then(|| task.clone()));
            page.read += 1;
            last = place;
        }
        page.next = read.peek().map(|_| format!("before-{last}"));
        Ok(page)
    }
}
