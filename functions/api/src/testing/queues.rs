//! The queues of these tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Inserted, PortError, Queues};

use super::Fake;

impl Queues for Fake {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        self.reach("queues.submit")?;
        assert_eq!(delay_ms, 0, "a client does not wait");
        if let Some(document) = self.rival.lock().unwrap().take() {
            let fingerprint = document.fingerprint().into();
            let first = Order { document, fingerprint, ..order.clone() };
            self.orders.lock().unwrap().insert(order.order_id, Arc::new(first));
        }
        if let Some(stored) = self.orders.lock().unwrap().get(&order.order_id).filter(|_| self.knows_orders()) {
            return Ok(if stored.is_of(&order.fingerprint) { Inserted::Same } else { Inserted::Different });
        }
        self.submitted.lock().unwrap().push(order);
        Ok(Inserted::New)
    }

    fn knows_orders(&self) -> bool {
        self.knows_orders.load(Ordering::Relaxed)
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.reach("queues.to_scheduler")?;
        assert_eq!(delay_ms, 0, "an operator does not wait");
        self.scheduled.lock().unwrap().push((message, priority));
        Ok(())
    }

    async fn to_agent(&self, _: &str, _: Request) -> Result<(), PortError> {
        panic!("the API does not call agents")
    }

    async fn return_to_agent(&self, _: &str, _: &Receipt, _: u64) -> Result<(), PortError> {
        panic!("the API does not call agents")
    }
}
