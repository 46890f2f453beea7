//! What must hold at each start and at the end, from outside.

use std::sync::Arc;

use api::ApiConfig;
use domain::id::OrderId;
use domain::ports::Store;
use domain::task::{Direction, ProcessState, StepState, Task};

use super::World;
use super::outside::{CHANNEL, Outside};
use super::process::{Ports, act, look as task_of};

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
        match task_of(ports, order).await {
            Ok(Some(task)) => world.outside.lock().see(&task),
            Ok(None) => world.outside.lock().complain("1", Some(order), "it was seen, and is gone"),
            // The disk fails.
            Err(_) => {}
        }
    }
    for (order, step, attempt) in called {
        let Ok(task) = task_of(ports, order).await else { continue };
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

/// Whether every order is accepted and has ended, and no message is left. An operator resumes paused orders.
pub(super) async fn is_over(world: &Arc<World>, ports: &Ports) -> bool {
    let orders: Vec<Option<OrderId>> = world.outside.lock().customers.iter().map(|customer| customer.order).collect();
    let mut is_over = ports.is_quiet();
    for order in orders {
        let Some(order) = order else { return false };
        let Ok(Some(task)) = task_of(ports, order).await else { return false };
        is_over &= task.process_state.is_settled() && task.unsent.is_empty();
        if task.paused.is_some() && !task.process_state.is_settled() {
            act(ports, &ApiConfig::new([CHANNEL]), order, "resume").await;
        }
    }
    is_over
}

/// At the end: every accepted order has ended, and the services' books agree with it.
pub(super) async fn look(world: &Arc<World>, ports: &Ports) {
    let customers = world.outside.lock().customers.clone();
    if !ports.is_quiet() {
        world.outside.lock().complain("15", None, "messages are left");
    }
    for customer in customers {
        let Some(order) = customer.order else {
            world.outside.lock().complain("14", None, &format!("{} was never accepted", customer.key));
            continue;
        };
        let found = (ports.store().order(order).await, task_of(ports, order).await);
        let outside = &mut *world.outside.lock();
        let (Ok(Some(stored)), Ok(Some(task))) = found else {
            outside.complain("1", Some(order), "it was accepted, and is lost");
            continue;
        };
        if stored.document.text().as_bytes() != &*customer.document {
            outside.complain("1", Some(order), "another document is stored");
        }
        outside.see(&task);
        books(outside, &task);
        told(outside, &task, stored.reply_channel.is_some());
    }
}

fn books(outside: &mut Outside, task: &Task) {
    if !task.process_state.is_settled() {
        let words = format!("{:?} long after the last fault", task.process_state);
        return outside.complain("14", Some(task.order_id), &words);
    }
    for step in &task.steps {
        let ledger = outside.books.get(&(task.order_id, step.name.clone())).cloned().unwrap_or_default();
        let is_right = match task.process_state {
            ProcessState::Processed => ledger.is_done && !ledger.is_closed,
            // Where a memo knows that there was no call, there is none for the undo either.
            ProcessState::Compensated => ledger.is_closed || !ledger.is_done,
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating | ProcessState::Error => {
                let is_done = step.process_state == StepState::Processed;
                match step.direction {
                    Direction::Forward => !is_done || (ledger.is_done && !ledger.is_closed),
                    Direction::Undo => !is_done || ledger.is_closed || !ledger.is_done,
                }
            }
        };
        if !is_right {
            let words = format!("{:?}, and {} is {ledger:?}", task.process_state, step.name);
            outside.complain("16", Some(task.order_id), &words);
        }
    }
}

fn told(outside: &mut Outside, task: &Task, has_channel: bool) {
    let (kind, is_due) = match task.process_state {
        ProcessState::Processed => ("OrderProcessed", has_channel),
        ProcessState::Compensated => ("OrderCompensated", has_channel),
        ProcessState::Error => ("OrderNeedsOperator", true),
        ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => return,
    };
    let order: Arc<str> = task.order_id.to_string().into();
    if is_due && !outside.told.contains(&(order, kind.into())) {
        outside.complain("15", Some(task.order_id), &format!("nobody was told {kind}"));
    }
}

/// After the last life.
pub(super) fn end(outside: &mut Outside) {
    if outside.customers.iter().any(|customer| customer.order.is_none()) && outside.violations.is_empty() {
        outside.complain("14", None, "an order was never accepted");
    }
}
