//! The order database and the state store.

use std::sync::Arc;

use domain::id::OrderId;
use domain::index::Term;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page, PortError, Store, Watched};
use domain::tally::{Grain, Numbers};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use super::Dynamo;
use super::read::Seeing;
use super::record::text;

impl Store for Dynamo {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        self.put_terms(order.order_id, order.terms.iter().map(|term| text(term.text()))).await?;
        self.put_both(&order, &task).await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.read_order("store.order", order_id).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.read_task("store.task", order_id, Seeing::Everything).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        if before.erased_at.is_none() && after.erased_at.is_some() {
            return self.erase(before, &after).await;
        }
        self.replace(before, &after).await
    }

    async fn erase_others(&self, task: &Task) -> Result<(), PortError> {
        Dynamo::erase_others(self, task).await
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.query_due(watch, now, after, limit).await
    }

    async fn watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        self.scan_watches(max).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.list_page(state, after, limit).await
    }

    async fn found(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Option<Page>, ListError> {
        self.found_page(term, after, limit).await.map(Some)
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        let task = self.poll_settled(order_id, wait_ms).await?;
        Ok(task.map(|task| Watched { task, order: None }))
    }

    async fn numbers(&self, grain: Grain, since: Timestamp) -> Result<Option<Numbers>, PortError> {
        self.read_numbers(grain, since).await.map(Some)
    }
}
