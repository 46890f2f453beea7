//! What must hold at each start, from outside.

use std::sync::Arc;

use domain::id::OrderId;
use domain::ports::Store;
use domain::task::Task;

use super::World;
use super::process::Ports;
use crate::simulation::outside::Outside;

/// After a start: no effect is without its claim, and nothing that was seen is gone.
pub(super) async fn start(world: &Arc<World>, ports: &Ports) {
    let (seen, called) = {
        let outside = world.outside.lock();
        // A first version may be only in the submission, which inserts it again.
        let later = outside.sights.iter().filter(|(_, sight)| sight.version > 1);
        let seen: Vec<OrderId> = later.map(|(order, _)| *order).collect();
        let called = outside.books.iter().map(|((order, step), ledger)| (*order, step.clone(), ledger.attempt));
        let called: Vec<(OrderId, Arc<str>, u32)> = called.collect();
        (seen, called)
    };
    for order in seen {
        match ports.store().task(order).await {
            Ok(Some(task)) => world.outside.lock().see(&task),
            Ok(None) => world.outside.lock().complain("1", Some(order), "it was seen, and is gone"),
            // The disk fails.
            Err(_) => {}
        }
    }
    for (order, step, attempt) in called {
        let Ok(task) = ports.store().task(order).await else { continue };
        let claimed = task.and_then(|task| attempt_of(&task, &step)).unwrap_or(0);
        if claimed < attempt {
            let words = format!("a service was called for attempt {attempt} of {step}, and {claimed} is claimed");
            world.outside.lock().complain("2", Some(order), &words);
        }
    }
}

fn attempt_of(task: &Task, name: &str) -> Option<u32> {
    task.steps.iter().find(|step| *step.name == *name).map(|step| step.attempt)
}

/// After the last life.
pub(super) fn end(outside: &mut Outside) {
    if outside.customers.iter().any(|customer| customer.order.is_none()) && outside.violations.is_empty() {
        outside.complain("14", None, "an order was never accepted");
    }
}
