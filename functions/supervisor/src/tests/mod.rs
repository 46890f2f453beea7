//! The supervisor with the real state machine and ports in memory.

mod again;
mod bulk;
mod causes;
mod dead_letters;
mod leaders;
mod services;
mod sweep;

use domain::advance::advance;
use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::limits::SHARDS;
use domain::machine::Event;
use domain::message::{Action, Command, Failure, Outcome, Reply, Request, SchedulerMessage};
use domain::ports::{Environment, Store};
use domain::task::{Step, Task};
use domain::time::Timestamp;

use crate::Settings;
use crate::testing::{Ports, instance, order, run, workflows};

/// After the deadline of an attempt and the grace.
const EXPIRED_MS: u64 = 12_001;
/// After the term of a lease.
const TERM_OVER_MS: u64 = 15_001;

fn settings() -> Settings {
    Settings::default()
}

/// Stores orders `from..to`, pending.
fn submit(ports: &Ports, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
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
fn claimed(ports: &Ports, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let ids = submit(ports, numbers);
    for &order_id in &ids {
        wake(ports, order_id);
    }
    ports.world().to_agents.clear();
    ids
}

/// Stores orders that are in `Error`, because their first step was rejected, and whose alert was sent.
fn failed(ports: &Ports, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let ids = submit(ports, numbers);
    for &order_id in &ids {
        wake(ports, order_id);
    }
    work(ports, |_| Some(no()));
    ids
}

fn wake(ports: &Ports, order_id: OrderId) {
    run(advance(ports, &instance("scheduler"), order_id, Event::Wake { hops: 0, redelivered: false })).unwrap();
}

fn yes() -> Outcome {
    Outcome::Done(Json::parse(b"{\"Id\":7}", 100).unwrap())
}

fn no() -> Outcome {
    Outcome::Failed(Failure { code: "declined".into(), message: "no".into() })
}

/// Lets scheduler and agents process the messages that are due now. An agent without an answer stays silent.
fn work(ports: &Ports, agent: impl Fn(&Request) -> Option<Outcome>) {
    let scheduler = instance("scheduler");
    loop {
        let message = {
            let mut world = ports.world();
            let now = world.now;
            let place = world.to_scheduler.iter().position(|(at, _)| *at <= now);
            place.and_then(|place| world.to_scheduler.remove(place))
        };
        if let Some((_, message)) = message {
            let event = match &message {
                SchedulerMessage::Wake(wake) => Event::Wake { hops: wake.hops, redelivered: false },
                SchedulerMessage::Reply(reply) => Event::Reply { reply, redelivered: false },
                SchedulerMessage::Command(command) => {
                    assert_eq!(command.action, Action::Resubmit);
                    Event::Command { command, redelivered: false }
                }
            };
            run(advance(ports, &scheduler, message.order_id(), event)).unwrap();
            continue;
        }
        let order = {
            let mut world = ports.world();
            let now = world.now;
            let place = world.submissions.iter().position(|(at, _)| *at <= now);
            place.and_then(|place| world.submissions.remove(place))
        };
        if let Some((_, order)) = order {
            let order_id = order.order_id;
            let task = Task::new(&order, workflows().current(), SHARDS, 1);
            run(ports.insert(order.into(), task.into())).unwrap();
            wake(ports, order_id);
            continue;
        }
        let request = ports.world().to_agents.pop_front();
        let Some(request) = request else {
            return;
        };
        if let Some(outcome) = agent(&request) {
            let now = ports.world().now;
            ports.world().to_scheduler.push_back((now, SchedulerMessage::Reply(request.reply(outcome))));
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
fn resubmit(ports: &Ports, order_id: OrderId, by: &str, version: Option<u64>) {
    command(ports, order_id, Action::Resubmit, by, version);
}

/// An operator acts on an order, and the scheduler takes the command.
fn command(ports: &Ports, order_id: OrderId, action: Action, by: &str, version: Option<u64>) {
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
