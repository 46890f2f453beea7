//! The invariants within the model, and the reachable states that make them meaningful.

use domain::task::ProcessState;
use stateright::Property;

use super::audit::Breach;
use super::bounds::{Bounds, Shape};
use super::drain::ends;
use super::message::{CommandKind, Message};
use super::protocol::Protocol;
use super::state::{OrderState, Seen, Service, State, Worker};
use super::task::{Care, Step, Task};
use super::versions::{COMPILED, OTHER, Stage};

/// All properties within these bounds.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<Protocol>> {
    let mut all = invariants();
    if bounds.drains {
        all.push(Property::always("14, 15: once faults stop, every order ends and every alert is sent", ends));
    }
    all.extend(possible(bounds));
    all
}

fn invariants() -> Vec<Property<Protocol>> {
    vec![
        Property::always(
            "1: an accepted order is on the submission queue or stored",
            |protocol: &Protocol, state: &State| {
                its(protocol, state).all(|order| {
                    order.pinned.is_none() || order.task.is_some() || order.messages.contains(Message::Submission)
                })
            },
        ),
        Property::always("2: an attempt never goes back, and has one claimant", |_, state: &State| {
            state.breach != Some(Breach::Attempt)
        }),
        Property::always("3: an attempt under way is ended only by who has a say in it", |_, state: &State| {
            state.breach != Some(Breach::EndedByOther)
        }),
        Property::always("4: each attempt is counted once at most", |_, state: &State| {
            state.breach != Some(Breach::Counted)
                && tasks(state).all(|task| task.steps.iter().all(|step| step.failures <= step.attempt))
        }),
        Property::always("5: one key and one effect for each step and direction", |_, state: &State| {
            state.breach != Some(Breach::Key) && state.orders.iter().all(has_single_effects)
        }),
        Property::always("6: steps start and are undone in their order", |_, state: &State| {
            state.breach != Some(Breach::Order)
        }),
        Property::always("7: what ended never changes", |_, state: &State| state.breach != Some(Breach::Absorbing)),
        Property::always("8: Compensated means that every undo is confirmed", |_, state: &State| {
            state.orders.iter().all(is_all_undone)
        }),
        Property::always("9: after a confirmed undo there is no forward effect", |_, state: &State| {
            state.breach != Some(Breach::Undone)
        }),
        Property::always("10: Error means that an alert was sent or is on its way", |_, state: &State| {
            state.orders.iter().all(is_alerted)
        }),
        Property::always("17: a service that is at work is not taken for one that says no", |_, state: &State| {
            state.breach != Some(Breach::Misread)
        }),
        Property::always("Processed means that every effect is there", |_, state: &State| {
            state.orders.iter().all(is_whole)
        }),
        Property::always(
            "31: an order is closed by an operator, and no effect comes after that",
            |_, state: &State| state.breach != Some(Breach::Closed),
        ),
        Property::always("50: a line is dropped alone, for a failure of its own", |_, state: &State| {
            state.breach != Some(Breach::Dropped) && tasks(state).all(goes_on_without_its_lines)
        }),
        Property::always("22: an order goes by the version that it is pinned to", |_, state: &State| {
            state.breach != Some(Breach::Version) && state.orders.iter().all(is_pinned)
        }),
        Property::always("no state is impossible", |_, state: &State| state.breach != Some(Breach::Impossible)),
    ]
}

/// An invariant of unreachable states is meaningless.
fn possible(bounds: &Bounds) -> Vec<Property<Protocol>> {
    let mut all = vec![
        Property::sometimes("an order is Processed", |_, state: &State| any(state, ProcessState::Processed)),
        Property::sometimes("an order is in Error", |_, state: &State| any(state, ProcessState::Error)),
    ];
    if bounds.attempts > 1 {
        all.push(Property::sometimes("a step is tried a second time", |_, state: &State| {
            tasks(state).any(|task| task.steps.iter().any(|step| !step.undo && step.attempt == 2))
        }));
    }
    if bounds.schedulers + bounds.supervisors > 1 {
        all.push(Property::sometimes("a conditional write is lost", |_, state: &State| {
            let lost = |worker: &Worker| matches!(worker, Worker::Read(_, Seen::Stale));
            state.schedulers.iter().chain(&state.supervisors).any(lost)
        }));
    }
    if bounds.declines || bounds.commands[1] > 0 {
        all.push(Property::sometimes("an order is Compensated", |_, state: &State| {
            any(state, ProcessState::Compensated)
        }));
    }
    if bounds.shape == Shape::Lines {
        all.push(Property::sometimes("an order is Processed without a line", |_, state: &State| {
            tasks(state).any(|task| task.state == ProcessState::Processed && task.steps.iter().any(|step| step.dropped))
        }));
        all.push(Property::sometimes("an order without a line is Compensated", |_, state: &State| {
            tasks(state)
                .any(|task| task.state == ProcessState::Compensated && task.steps.iter().any(|step| step.dropped))
        }));
    }
    if bounds.callbacks {
        all.push(Property::sometimes("the result of a step is awaited", |_, state: &State| {
            tasks(state).any(|task| task.steps.iter().any(|step| step.awaited))
        }));
        all.push(Property::sometimes("an order is Processed after a service took a step on", |_, state: &State| {
            any(state, ProcessState::Processed)
                && state.orders.iter().any(|order| order.services.iter().any(|one| one.accepted))
        }));
    }
    if bounds.settles > 0 && bounds.in_flight_max > 2 {
        all.push(Property::sometimes("a request is sent again while its service is at work", |_, state: &State| {
            let is_doubled = |order: &OrderState| {
                let is_it = |message: &Message| matches!(message, Message::Request(attempt, _, _) if !attempt.undo);
                order.services.iter().any(|service| service.runs > 0) && order.messages.iter().filter(is_it).count() > 1
            };
            state.orders.iter().any(is_doubled)
        }));
    }
    if bounds.commands[6] > 0 {
        all.push(Property::sometimes("an order is Closed", |_, state: &State| any(state, ProcessState::Closed)));
    }
    if bounds.commands[4] > 0 {
        all.push(Property::sometimes("a step is carried out by hand", |_, state: &State| {
            let is_settled = |message| matches!(message, Message::Command(CommandKind::Settle { .. }));
            state.orders.iter().any(|order| order.messages.iter().any(is_settled))
        }));
    }
    if bounds.orders == 2 {
        all.push(Property::sometimes("one order is Processed, the other Compensated", |_, state: &State| {
            any(state, ProcessState::Processed) && any(state, ProcessState::Compensated)
        }));
    }
    if bounds.applies {
        all.push(Property::sometimes(
            "an order is Processed by a version, after another was applied",
            |_, state: &State| {
                let is_earlier = |task: &Task| task.state == ProcessState::Processed && task.version == COMPILED;
                state.applied == Stage::Deployment && tasks(state).any(is_earlier)
            },
        ));
        all.push(Property::sometimes("an order is Processed by an applied version", |_, state: &State| {
            tasks(state).any(|task| task.state == ProcessState::Processed && task.version != COMPILED)
        }));
    }
    if bounds.applies && bounds.orders == 2 {
        all.push(Property::sometimes("orders of two workflows are Processed", |_, state: &State| {
            let versions =
                || tasks(state).filter(|task| task.state == ProcessState::Processed).map(|task| task.version);
            versions().count() == 2
                && versions().any(|version| version == OTHER)
                && versions().any(|version| version != OTHER)
        }));
    }
    all
}

fn its<'a>(protocol: &Protocol, state: &'a State) -> impl Iterator<Item = &'a OrderState> {
    state.orders[..protocol.bounds.orders].iter()
}

fn tasks(state: &State) -> impl Iterator<Item = &Task> {
    state.orders.iter().filter_map(|order| order.task.as_ref())
}

fn any(state: &State, wanted: ProcessState) -> bool {
    tasks(state).any(|task| task.state == wanted)
}

/// The order is stored with its pin.
fn is_pinned(order: &OrderState) -> bool {
    order.task.is_none_or(|task| order.pinned == Some(task.version))
}

fn has_single_effects(order: &OrderState) -> bool {
    order.services.iter().all(|service| service.forward <= 1 && service.undo <= 1)
}

fn is_in(order: &OrderState, wanted: ProcessState) -> bool {
    order.task.is_some_and(|task| task.state == wanted)
}

/// By the services' effects, not by the task.
fn is_all_undone(order: &OrderState) -> bool {
    let claimed = |task: Task| task.steps.map(|step| step.attempt > 0);
    let Some(claimed) = order.task.map(claimed).filter(|_| is_in(order, ProcessState::Compensated)) else {
        return true;
    };
    claimed
        .iter()
        .zip(&order.services)
        .all(|(&claimed, service)| service.undo > 0 || (!claimed && service.forward == 0))
}

/// A dropped line is taken back.
fn is_whole(order: &OrderState) -> bool {
    let Some(task) = order.task.filter(|task| task.state == ProcessState::Processed) else { return true };
    let is_there = |(step, service): (&Step, &Service)| match step.dropped {
        true => service.undo == 1,
        false => service.forward == 1 && service.undo == 0,
    };
    task.steps.iter().zip(&order.services).all(is_there)
}

/// While an order goes forward, only dropped lines are undone.
fn goes_on_without_its_lines(task: &Task) -> bool {
    let is_forward = matches!(task.state, ProcessState::Pending | ProcessState::Processing | ProcessState::Processed);
    !is_forward || task.steps.iter().all(|step| step.undo == step.dropped)
}

fn is_alerted(order: &OrderState) -> bool {
    let Some(task) = order.task.filter(|task| task.state == ProcessState::Error) else { return true };
    let is_on_its_way = task.owed == Some(task.alerts) && task.care == Care::Supervisor;
    task.alerts > 0 && (order.told == task.alerts || is_on_its_way)
}
