//! The supervisor with the real state machine and ports in memory.

mod again;
mod bulk;
mod causes;
mod dead_letters;
mod leaders;
mod schedules;
mod services;
mod sweep;

use domain::advance::advance;
use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::limits::SHARDS;
use domain::machine::Event;
use domain::message::{Action, Command, Failure, Outcome, Priority, Reply, Request, SchedulerMessage};
use domain::ports::{Environment, Queues, Store};
use domain::task::{Step, Task};
use domain::time::Timestamp;
use memory::faulty::Faulty;

use crate::Settings;
use crate::testing::{instance, order, run, take, workflows};

/// After the deadline of an attempt and the grace.
const EXPIRED_MS: u64 = 12_001;
/// After the term of a lease.
const TERM_OVER_MS: u64 = 15_001;

fn settings() -> Settings {
    Settings::default()
}

/// Stores orders `from..to`, pending.
fn submit(ports: &Faulty, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let stored = numbers.map(|n| {
        let order = order(n, ports.now());
        let order_id = order.order_id;
        let task = Task::new(&order, workflows().current(), SHARDS, 1);
        run(ports.insert(order.into(), task.into())).unwrap();
        order_id
    });
    stored.collect()
}

/// Stores orders whose first step is claimed, and forgets its requests.
fn claimed(ports: &Faulty, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let ids = submit(ports, numbers);
    for &order_id in &ids {
        wake(ports, order_id);
    }
    ports.retain_requested(|_| false);
    ids
}

/// Stores orders that are in `Error`, because their first step was rejected, and whose alert was sent.
fn failed(ports: &Faulty, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let ids = submit(ports, numbers);
    for &order_id in &ids {
        wake(ports, order_id);
    }
    work(ports, |_| Some(no()));
    ids
}

fn wake(ports: &Faulty, order_id: OrderId) {
    run(advance(ports, &instance("scheduler"), order_id, Event::Wake { hops: 0, redelivered: false })).unwrap();
}

fn yes() -> Outcome {
    Outcome::Done(Json::parse(b"{\"Id\":7}", 100).unwrap())
}

fn no() -> Outcome {
    Outcome::Failed(Failure { code: "declined".into(), message: "no".into() })
}

/// Lets scheduler and agents process the messages that are due now. An agent without an answer stays silent.
fn work(ports: &Faulty, agent: impl Fn(&Request) -> Option<Outcome>) {
    let scheduler = instance("scheduler");
    loop {
        if let Some(message) = take(&ports.scheduler()) {
            let event = match &message {
                SchedulerMessage::Wake(wake) => Event::Wake { hops: wake.hops, redelivered: false },
                SchedulerMessage::Reply(reply) => Event::Reply { reply, redelivered: false },
                SchedulerMessage::Command(command) => {
                    assert_eq!(command.action, Action::Resubmit);
                    Event::Command { command, redelivered: false }
                }
                SchedulerMessage::Child(_) => unreachable!("no step makes an order"),
            };
            run(advance(ports, &scheduler, message.order_id(), event)).unwrap();
        } else if let Some(order) = take(&ports.submissions()) {
            let order_id = order.order_id;
            let task = Task::new(&order, workflows().current(), SHARDS, 1);
            run(ports.insert(order.into(), task.into())).unwrap();
            wake(ports, order_id);
        } else if let Some(request) = take(&ports.requests("any")) {
            if let Some(outcome) = agent(&request) {
                let reply = SchedulerMessage::Reply(request.reply(outcome));
                run(ports.to_scheduler(reply, Priority::Normal, 0)).unwrap();
            }
        } else {
            return;
        }
    }
}

/// The answer of the current attempt of a step.
fn reply_of(task: &Task, step: &Step, outcome: Outcome) -> Reply {
    Reply {
        order_id: task.order_id,
        step: step.name.clone(),
        direction: step.direction,
        attempt: step.attempt,
        outcome,
        hops: 0,
        may_run_until: None,
        call_ms: None,
    }
}

/// How often an order's history shows a line.
fn lines(task: &Task, what: &str) -> usize {
    task.lines().filter(|line| line.what.contains(what)).count()
}

/// An operator resubmits an order, and the scheduler takes it.
fn resubmit(ports: &Faulty, order_id: OrderId, by: &str, version: Option<u64>) {
    command(ports, order_id, Action::Resubmit, by, version);
}

/// An operator acts on an order, and the scheduler takes the command.
fn command(ports: &Faulty, order_id: OrderId, action: Action, by: &str, version: Option<u64>) {
    let command = Command {
        order_id,
        action,
        by: by.into(),
        reason: "mended".into(),
        command_id: CommandId::generate(Timestamp::default(), [version.unwrap_or_default(), action as u64]),
        version,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    };
    let event = Event::Command { command: &command, redelivered: false };
    run(advance(ports, &instance("scheduler"), order_id, event)).unwrap();
}
