//! The store of these tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::id::OrderId;
use domain::index::Term;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page, PortError, Queues, Store, Watched};
use domain::tally::{Grain, Numbers};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use super::Fake;

impl Store for Fake {
    async fn insert(&self, _: Arc<Order>, _: Arc<Task>) -> Result<Inserted, PortError> {
        panic!("the API never writes order state")
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.reach("store.order")?;
        self.orders_read.fetch_add(1, Ordering::Relaxed);
        Ok(self.orders.lock().unwrap().get(&order_id).cloned())
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.reach("store.task")?;
        Ok(self.tasks.lock().unwrap().get(&order_id).cloned())
    }

    async fn commit(&self, _: &Task, _: Arc<Task>) -> Result<Commit, PortError> {
        panic!("the API never writes order state")
    }

    async fn due(&self, _: Watch, _: Timestamp, _: Option<Due>, _: usize) -> Result<Vec<Due>, PortError> {
        panic!("the API does not supervise")
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.reach("store.list")?;
        let after: Option<OrderId> = after.map(str::parse).transpose().map_err(|_| ListError::Cursor)?;
        let tasks = self.tasks.lock().unwrap();
        let is_wanted = |task: &Task| state.is_none_or(|state| task.process_state == state);
        let at_once = self.no_index.load(Ordering::Relaxed);
        let behind = tasks.values().filter(|task| after.is_none_or(|after| task.order_id > after));
        let mut rest = behind.filter(|task| at_once > 0 || is_wanted(task));
        let (mut page, mut last) = (Page::default(), None);
        while page.tasks.len() < limit && (at_once == 0 || page.read < at_once) {
            let Some(task) = rest.next() else { break };
            page.read += 1;
            last = Some(task.order_id);
            page.tasks.extend(is_wanted(task).then(|| task.clone()));
        }
        self.tasks_listed.fetch_add(page.read, Ordering::Relaxed);
        page.next = rest.next().and(last).map(|last| last.to_string());
        // This id sorts before all others, so that the next page is the first one again.
        let again = || self.endless.load(Ordering::Relaxed).then(|| "00000000-0000-0000-0000-000000000000".to_owned());
        page.next = page.next.or_else(again);
        Ok(page)
    }

    async fn found(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Option<Page>, ListError> {
        self.reach("store.found")?;
        if self.no_terms.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let after: Option<OrderId> = after.map(str::parse).transpose().map_err(|_| ListError::Cursor)?;
        let orders = self.orders.lock().unwrap();
        let of_term = orders.values().filter(|order| order.terms.contains(term));
        let mut rest = of_term.filter(|order| after.is_none_or(|after| order.order_id > after));
        let found: Vec<_> = rest.by_ref().take(limit).map(|order| order.order_id).collect();
        let tasks = self.tasks.lock().unwrap();
        Ok(Some(Page {
            tasks: found.iter().filter_map(|order_id| tasks.get(order_id).cloned()).collect(),
            next: rest.next().and(found.last()).map(ToString::to_string),
            read: found.len(),
        }))
    }

    async fn numbers(&self, _: Grain, since: Timestamp) -> Result<Option<Numbers>, PortError> {
        self.reach("store.numbers")?;
        let mut numbers = self.numbers.lock().unwrap().clone();
        if let Some(numbers) = &mut numbers {
            numbers.spans.retain(|span| since <= span.at);
        }
        Ok(numbers)
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        self.reach("store.settled")?;
        self.waits.lock().unwrap().push(wait_ms);
        if let Some(state) = *self.settles_as.lock().unwrap() {
            self.submission_runs(state);
            for task in self.tasks.lock().unwrap().values_mut() {
                Arc::make_mut(task).process_state = state;
            }
        }
        let order = self.orders.lock().unwrap().get(&order_id).filter(|_| self.knows_orders()).cloned();
        Ok(self.tasks.lock().unwrap().get(&order_id).map(|task| Watched { task: task.clone(), order }))
    }
}
