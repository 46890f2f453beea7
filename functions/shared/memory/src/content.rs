//! What a test puts into the ports and looks at.

use std::sync::Arc;

use domain::id::OrderId;
use domain::message::{Request, SchedulerMessage};
use domain::order::Order;
use domain::tally::Numbers;
use domain::task::Task;

use super::Memory;
use super::queue::MemoryQueue;

impl Memory {
    /// All orders with their tasks, by id.
    #[must_use]
    pub fn orders(&self) -> Vec<(Arc<Order>, Arc<Task>)> {
        self.state().orders.values().cloned().collect()
    }

    /// The tasks of all orders, by id.
    #[must_use]
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        self.state().orders.values().map(|(_, task)| task.clone()).collect()
    }

    /// The stored task.
    ///
    /// # Panics
    /// If there is no such order.
    #[must_use]
    pub fn stored(&self, order_id: OrderId) -> Arc<Task> {
        self.state().orders[&order_id].1.clone()
    }

    /// The stored order.
    ///
    /// # Panics
    /// If there is no such order.
    #[must_use]
    pub fn stored_order(&self, order_id: OrderId) -> Arc<Order> {
        self.state().orders[&order_id].0.clone()
    }

    /// Stores an order and its task, whatever is stored under its id.
    pub fn store_order(&self, order: Order, task: Task) {
        self.change(|state| {
            if state.orders.contains_key(&order.order_id) {
                state.forget(&[order.order_id]);
            }
            state.take_in(order, task.into());
        });
    }

    /// Changes every task.
    pub fn change_tasks(&self, change: impl Fn(&mut Task)) {
        self.change(|state| state.orders.values_mut().for_each(|(_, task)| change(Arc::make_mut(task))));
    }

    /// Deletes orders and their tasks.
    pub fn forget_orders(&self, order_ids: &[OrderId]) {
        self.change(|state| state.forget(order_ids));
    }

    /// From now on, a page has at most this number of tasks.
    pub fn has_short_pages(&self, tasks_max: usize) {
        self.change(|state| state.page_max = tasks_max);
    }

    /// From now on, the store has no index by state: a page takes in at most this number of tasks, of any state.
    pub fn has_no_index_of_states(&self, tasks_max: usize) {
        self.change(|state| state.scanned_max = Some(tasks_max));
    }

    /// From now on, the store has this tally.
    pub fn counts(&self, numbers: Numbers) {
        self.change(|state| state.numbers = Some(numbers));
    }

    /// The orders on the submission queue, received ones included, oldest first.
    #[must_use]
    pub fn submitted(&self) -> Vec<Order> {
        self.state().submissions.bodies().cloned().collect()
    }

    /// The messages on the scheduler queue, received ones included, oldest first.
    #[must_use]
    pub fn scheduled(&self) -> Vec<SchedulerMessage> {
        self.state().scheduler.bodies().cloned().collect()
    }

    /// The requests on the queues of all agents, received ones included.
    #[must_use]
    pub fn requested(&self) -> Vec<Request> {
        self.state().requests.values().flat_map(MemoryQueue::bodies).cloned().collect()
    }

    /// Deletes the messages on the scheduler queue that are not kept. They are lost, not dead letters.
    pub fn retain_scheduled(&self, is_kept: impl Fn(&SchedulerMessage) -> bool) {
        self.change(|state| state.scheduler.retain(is_kept));
    }

    /// The same on the submission queue.
    pub fn retain_submitted(&self, is_kept: impl Fn(&Order) -> bool) {
        self.change(|state| state.submissions.retain(is_kept));
    }

    /// The same on the queues of all agents.
    pub fn retain_requested(&self, is_kept: impl Fn(&Request) -> bool) {
        self.change(|state| state.requests.values_mut().for_each(|queue| queue.retain(&is_kept)));
    }
}
