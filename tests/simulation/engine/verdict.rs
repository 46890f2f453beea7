//! What must hold at each start, from outside.

use std::sync::Arc;

use domain::id::OrderId;
use domain::ports::Store;
use domain::tally::{Grain, Service, States, Tally};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;

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

/// The numbers that were counted are those of the orders that are stored (rule 26).
pub(super) async fn numbers(world: &Arc<World>, ports: &Ports) {
    let (mut states, mut attempts, mut after) = (States::default(), 0, None);
    loop {
        let Ok(page) = ports.store().list(None, after.as_deref(), 100).await else { return };
        for task in &page.tasks {
            states.add(task.process_state, 1);
            attempts += task.steps.iter().map(|step| u64::from(step.attempt)).sum::<u64>();
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let since = Timestamp::from_epoch_ms(0);
    for grain in [Grain::Minute, Grain::Hour] {
        let Ok(Some(counted)) = ports.store().numbers(grain, since).await else { return };
        let mut spans = Tally::default();
        counted.spans.iter().for_each(|span| spans.add(&span.tally));
        let orders = spans.orders();
        let begun = |service: &Service| service.forward.begun + service.undo.begun;
        let counts = [
            ("stored", orders.accepted, ProcessState::ALL.into_iter().map(|state| states.of(state)).sum()),
            ("processed", orders.processed, states.of(ProcessState::Processed)),
            ("compensated", orders.compensated, states.of(ProcessState::Compensated)),
            ("closed", orders.closed, states.of(ProcessState::Closed)),
            ("in Error", orders.failed - orders.mended, states.of(ProcessState::Error)),
            ("begun", spans.services().values().map(begun).sum(), attempts),
        ];
        let wrong = counts.iter().find(|(_, counted, stored)| counted != stored);
        let words = match wrong {
            Some((what, counted, stored)) => format!("{counted} are {what} by the {grain:?}s, and {stored} in truth"),
            None if counted.states != Some(states) => format!("{:?} are counted, and {states:?} are stored", counted.states),
            None if counted.total != spans => format!("{:?} in all, and {spans:?} by the {grain:?}s", counted.total),
            None => continue,
        };
        world.outside.lock().complain("rule 26", None, &words);
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
