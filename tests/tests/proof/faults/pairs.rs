//! Pairs of faults: a table of chosen pairs, and one fault at each call of an order's whole run.

use domain::message::Action;
use domain::task::{Direction, ProcessState, reason};
use memory::VISIBILITY_MS;
use memory::faulty::Fault;
use tests::world::{Act, BACKED_OFF_MS, EXPIRED_MS, End, World};

use super::scenes::{at_every_call, command};

use Direction::{Forward, Undo};

/// A fault for the order in flight.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// The next call of this operation fails.
    At(&'static str, Fault),
    /// Every message on the scheduler queue and on the first agent's queue is duplicated.
    Duplicates,
    /// The first agent's requests are lost.
    RequestsLost,
    /// All messages on the scheduler queue are lost.
    RepliesLost,
    /// This time passes.
    Late(u64),
    /// The service does this at the next call for the first step.
    Service(fn() -> Act),
    /// Two supervisors run at once at any time: leases exclude no supervisor.
    TwoLeaders,
    /// The supervisor is killed at its second write.
    LeaderKilled,
    /// An operator cancels.
    Cancelled,
    /// The service rejects the last step permanently.
    Refused,
    /// Alerts and status messages cannot be sent for some time.
    Mute,
}

use Trouble::{
    At, Cancelled, Duplicates, Late, LeaderKilled, Mute, Refused, RepliesLost, RequestsLost, Service, TwoLeaders,
};

impl Trouble {
    fn strikes(self, world: &World) {
        match self {
            At(operation, fault) => world.ports.next(operation, fault),
            Duplicates => {
                for message in world.lose_scheduler_messages() {
                    world.tell_scheduler(message.clone());
                    world.tell_scheduler(message);
                }
                for request in world.lose_requests("inventory") {
                    world.ask_agent("inventory", request.clone());
                    world.ask_agent("inventory", request);
                }
            }
            RequestsLost => drop(world.lose_requests("inventory")),
            RepliesLost => drop(world.lose_scheduler_messages()),
            Late(ms) => world.memory.advance(ms),
            Service(act) => world.remote.next("reserve", Forward, act()),
            TwoLeaders => {
                world.memory.break_leases();
                let (one, settings) = (world.instance("one"), supervisor::Settings::default());
                let run = supervisor::handle(&world.ports, &one, &settings);
                world.ports.next("store.commit", Fault::Waits);
                world.meanwhile(run, || {
                    world.supervise();
                });
            }
            LeaderKilled => {
                world.ports.next("store.commit", Fault::DiesAfter);
                let (one, settings) = (world.instance("killed"), supervisor::Settings::default());
                let run = supervisor::handle(&world.ports, &one, &settings);
                tests::world::drive(&world.memory, &world.ports, run);
                world.ports.has_struck();
                world.memory.advance(settings.term_ms);
            }
            Cancelled => {
                let order_id = world.tasks()[0].order_id;
                world.tell_scheduler(command(world, order_id, Action::Cancel));
            }
            Refused => world.remote.declines("ship", Forward),
            Mute => world.memory.is_down("events."),
        }
    }
}

/// An order whose first step is claimed; the first fault, one turn of agent and scheduler, the second fault.
fn play(first: Trouble, second: Trouble, end: End) {
    println!("{first:?} and {second:?}");
    let world = World::new();
    let order_id = world.claimed();
    first.strikes(&world);
    world.serve("inventory");
    second.strikes(&world);
    world.schedule();
    world.memory.advance(BACKED_OFF_MS);
    // Faults last as long as they are met; being mute ends some time.
    world.run();
    world.memory.is_up("events.");
    world.ends(order_id, end);
    assert!(world.ports.has_struck(), "a fault was never met");
    for step in &world.task(order_id).steps {
        assert!(step.failure_count <= step.attempt, "{step:#?}");
    }
}

#[test]
fn pairs_of_faults_end_as_each_of_them_would() {
    let killed_before = |operation| At(operation, Fault::DiesBefore);
    let killed_after = |operation| At(operation, Fault::DiesAfter);
    let lost = |operation| At(operation, Fault::AnswerLost);
    let hangs = Service(|| Act::Hangs);
    let too_late = Service(|| Act::Late(EXPIRED_MS));
    let processed = [
        (Duplicates, killed_before("store.commit")),
        (Duplicates, killed_after("store.commit")),
        (Duplicates, killed_before("queues.to_agent")),
        (Duplicates, lost("store.commit")),
        (Duplicates, Late(EXPIRED_MS)),
        (lost("queues.to_scheduler"), Late(EXPIRED_MS)),
        (lost("queues.to_scheduler"), lost("store.commit")),
        (lost("queues.to_scheduler"), killed_after("store.commit")),
        (killed_before("queues.to_scheduler"), Late(VISIBILITY_MS)),
        (killed_after("queues.to_scheduler"), killed_before("queues.to_agent")),
        (killed_after("queues.to_scheduler"), Late(EXPIRED_MS)),
        (RequestsLost, Late(EXPIRED_MS)),
        (too_late, TwoLeaders),
        (too_late, LeaderKilled),
        (too_late, Duplicates),
        (Late(EXPIRED_MS), TwoLeaders),
        (Late(EXPIRED_MS), LeaderKilled),
        (hangs, RepliesLost),
        (hangs, lost("store.commit")),
        (Service(|| Act::LosesAnswer), killed_before("store.commit")),
        (Service(|| Act::Panics), Late(VISIBILITY_MS)),
        (RepliesLost, TwoLeaders),
        (Late(EXPIRED_MS), RepliesLost),
        (Mute, killed_after("store.commit")),
    ];
    for (first, second) in processed {
        play(first, second, End::Processed);
    }
    let compensated = [
        (Refused, killed_before("queues.to_agent")),
        (Refused, lost("store.commit")),
        (Refused, Late(EXPIRED_MS)),
        (Duplicates, Cancelled),
        (too_late, Cancelled),
        (hangs, Cancelled),
        (lost("queues.to_scheduler"), Cancelled),
        (killed_before("queues.to_scheduler"), Cancelled),
        (RequestsLost, Cancelled),
        (Mute, Refused),
    ];
    for (first, second) in compensated {
        play(first, second, End::Compensated);
    }
}

#[test]
fn two_leaders_and_a_late_success_of_an_attempt_that_both_of_them_saw_expire() {
    let world = World::new();
    let order_id = world.claimed();
    assert!(matches!(world.serve("inventory"), tests::world::ONE_DONE));
    let late = world.lose_scheduler_messages();
    world.memory.advance(EXPIRED_MS);
    TwoLeaders.strikes(&world);
    assert_eq!(world.step(order_id, "reserve").failure_count, 1);
    late.into_iter().for_each(|message| world.tell_scheduler(message));
    world.ends(order_id, End::Processed);
    assert_eq!(world.step(order_id, "charge").attempt, 1);
}

/// An order in flight, with one fault at any call of any port.
fn whole_way(call: usize, fault: Fault, prepare: impl Fn(&World), end: End) -> bool {
    let world = World::new();
    prepare(&world);
    let order_id = world.post(1);
    world.ports.after_calls(call, fault);
    world.run();
    let was_met = world.ports.has_struck();
    world.ends(order_id, end);
    was_met
}

const ALL: [Fault; 5] = [Fault::Fails, Fault::AnswerLost, Fault::TriedTwice, Fault::DiesBefore, Fault::DiesAfter];

#[test]
fn an_order_ends_processed_whatever_goes_wrong_at_whichever_call() {
    at_every_call(&ALL, |call, fault| whole_way(call, fault, |_| {}, End::Processed));
}

#[test]
fn an_order_that_is_refused_ends_compensated_whatever_goes_wrong_at_whichever_call() {
    let refused = |world: &World| world.remote.declines("ship", Forward);
    at_every_call(&ALL, |call, fault| whole_way(call, fault, refused, End::Compensated));
}

#[test]
fn an_order_whose_undo_is_refused_ends_in_error_with_an_alert_whatever_goes_wrong_at_whichever_call() {
    let refused = |world: &World| {
        world.remote.declines("ship", Forward);
        world.remote.declines("charge", Undo);
    };
    let end = End::Error(reason::COMPENSATION_FAILED);
    at_every_call(&ALL, |call, fault| whole_way(call, fault, refused, end));
}

#[test]
fn two_faults_at_any_two_calls_not_far_from_each_other_are_survived() {
    for first in (0..60).step_by(5) {
        for apart in 0..6 {
            for faults in [[Fault::DiesBefore, Fault::AnswerLost], [Fault::DiesAfter, Fault::DiesAfter]] {
                let world = World::new();
                let order_id = world.post(1);
                world.ports.after_calls(first, faults[0]);
                world.run();
                world.ports.has_struck();
                world.until_redelivery();
                world.ports.after_calls(apart, faults[1]);
                world.run();
                world.ports.has_struck();
                world.ends(order_id, End::Processed);
                assert_eq!(world.state(order_id), ProcessState::Processed);
            }
        }
    }
}
