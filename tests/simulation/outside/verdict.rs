//! What must hold in the end, from outside.

use std::sync::Arc;

use api::{ApiConfig, ApiPorts};
use domain::id::OrderId;
use domain::index::Term;
use domain::ports::{HasStore, Store};
use domain::tally::{Grain, Service, States, Tally};
use domain::task::{Direction, ProcessState, StepState, Task};
use domain::time::Timestamp;

use super::{CHANNEL, Outside, Shared, act};

/// An order that is lost, or due for so long, is not waited for: no message is under way, and no supervisor took it.
const FORGOTTEN_MS: u64 = 1_200_000;

/// Whether every order is accepted, and has ended or is forgotten. An operator resumes paused orders.
pub(in crate::simulation) async fn are_over(outside: &Shared, ports: &impl ApiPorts, since_ms: i64) -> bool {
    let (orders, now, waited_ms) = {
        let outside = outside.lock();
        let orders: Option<Vec<OrderId>> = outside.customers.iter().map(|customer| customer.order).collect();
        let Some(orders) = orders else { return false };
        (orders, outside.clock.wall(), (outside.clock.now_ms() - since_ms).unsigned_abs())
    };
    let may_be_forgotten = waited_ms > FORGOTTEN_MS;
    let is_long_ago = |at: Timestamp| at.ms_until(now) > FORGOTTEN_MS;
    let mut are_over = true;
    for order in orders {
        let Ok(task) = ports.store().task(order).await else { return false };
        let Some(task) = task else {
            are_over &= may_be_forgotten;
            continue;
        };
        let has_ended = task.process_state.is_settled() && task.unsent.is_empty();
        are_over &= has_ended || (may_be_forgotten && task.paused.is_none() && task.watch_at.is_some_and(is_long_ago));
        if task.paused.is_some() && !task.process_state.is_settled() {
            act(ports, &ApiConfig::new([CHANNEL]), order, "resume").await;
        }
    }
    are_over
}

/// At the end: every accepted order has ended, and the services' books agree with it.
pub(in crate::simulation) async fn look(outside: &Shared, ports: &impl HasStore, is_quiet: bool) {
    let customers = outside.lock().customers.clone();
    if !is_quiet {
        outside.lock().complain("15", None, "messages are left");
    }
    for customer in customers {
        let Some(order) = customer.order else {
            outside.lock().complain("14", None, &format!("{} was never accepted", customer.key));
            continue;
        };
        let found = (ports.store().order(order).await, ports.store().task(order).await);
        let named = ports.store().found(&Term::correlation(&customer.key), None, 10).await;
        let outside = &mut *outside.lock();
        let (Ok(Some(stored)), Ok(Some(task))) = found else {
            outside.complain("1", Some(order), "it was accepted, and is lost");
            continue;
        };
        if outside.scene.is_some() {
            outside.seen.tasks.push(task.clone());
        }
        if task.erased_at.is_some() {
            continue;
        }
        if stored.document.text().as_bytes() != &*customer.document {
            outside.complain("1", Some(order), "another document is stored");
        }
        if !named.is_ok_and(|page| page.is_some_and(|page| page.tasks.iter().any(|task| task.order_id == order))) {
            outside.complain("rule 28", Some(order), "it is not found by its correlation id");
        }
        outside.see(&task);
        outside.judge(&task);
        books(outside, &task);
        told(outside, &task, stored.reply_channel.is_some());
    }
}

/// The numbers that were counted are those of the orders that are stored (rule 26).
pub(in crate::simulation) async fn numbers(outside: &Shared, ports: &impl HasStore) {
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
            None if counted.states != Some(states) => {
                format!("{:?} are counted, and {states:?} are stored", counted.states)
            }
            None if counted.total != spans => format!("{:?} in all, and {spans:?} by the {grain:?}s", counted.total),
            None => continue,
        };
        outside.lock().complain("rule 26", None, &words);
    }
}

fn books(outside: &mut Outside, task: &Task) {
    if !task.process_state.is_settled() {
        let words = format!("{:?} long after the last fault", task.process_state);
        return outside.complain("14", Some(task.order_id), &words);
    }
    for (index, step) in task.steps.iter().enumerate() {
        let ledger = outside.books.get(&(task.order_id, step.name.clone())).cloned().unwrap_or_default();
        if ledger.attempt > step.attempt {
            let words =
                format!("a service was called for attempt {} of {}, which no claim has", ledger.attempt, step.name);
            outside.complain("2", Some(task.order_id), &words);
        }
        let is_unclaimed = step.attempt == 0;
        // People decide on it.
        if step.approval.is_some() {
            continue;
        }
        let has_no_undo = outside.rule(task, index).is_some_and(|rule| rule.has_no_undo(step.dropped));
        let is_right = match task.process_state {
            ProcessState::Processed if step.dropped && has_no_undo => !ledger.is_closed,
            ProcessState::Processed if step.dropped => ledger.is_closed || !ledger.is_done,
            // A step may be skipped after an attempt without an answer.
            ProcessState::Processed if step.process_state == StepState::Skipped => !ledger.is_done || !is_unclaimed,
            ProcessState::Processed => ledger.is_done && !ledger.is_closed,
            // Where a memo knows that there was no call, there is none for the undo either.
            ProcessState::Compensated if has_no_undo => !ledger.is_closed,
            ProcessState::Compensated => ledger.is_closed || !ledger.is_done,
            ProcessState::Pending
            | ProcessState::Processing
            | ProcessState::Compensating
            | ProcessState::Error
            | ProcessState::Closed => {
                let is_done = step.process_state == StepState::Processed;
                match step.direction {
                    Direction::Forward => !is_done || (ledger.is_done && !ledger.is_closed),
                    Direction::Undo if has_no_undo => !ledger.is_closed,
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
    if task.late_since.is_some() && !outside.told.contains(&(task.order_id.to_string().into(), "OrderLate".into())) {
        outside.complain("15", Some(task.order_id), "nobody was told OrderLate");
    }
    let (kind, is_due) = match task.process_state {
        ProcessState::Processed => ("OrderProcessed", has_channel),
        ProcessState::Compensated => ("OrderCompensated", has_channel),
        ProcessState::Closed => ("OrderClosed", has_channel),
        ProcessState::Error => ("OrderNeedsOperator", true),
        ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => return,
    };
    let order: Arc<str> = task.order_id.to_string().into();
    if is_due && !outside.told.contains(&(order, kind.into())) {
        outside.complain("15", Some(task.order_id), &format!("nobody was told {kind}"));
    }
}
