//! Alerts by cause.

use std::sync::Arc;

use domain::alert::{Alert, DEAD_LETTER_MS, GONE_MS, TELLING_MS};
use domain::id::OrderId;
use domain::order::Order;
use domain::ports::{DeadLetterOutcome, DeadLetterRecord, Environment, Records, Seen};
use domain::task::Task;
use futures_util::future::join;
use memory::Memory;
use memory::faulty::Faulty;

use super::dead_letters::records;
use super::failed;
use crate::alerts;
use crate::testing::{ports, run, run_for};

/// The cause of a message that cannot be read.
const UNREADABLE: &str = "dead-letter/Unreadable";
/// The time between two looks.
const LOOK_MS: u64 = 10_000;

fn sinks() -> [Arc<str>; 2] {
    ["team".into(), "duty".into()]
}

/// One look, and the time to the next. Returns the number of messages that sinks took.
fn look(ports: &Faulty) -> u64 {
    let took = run(alerts(ports, &sinks())).unwrap();
    ports.advance(LOOK_MS);
    took
}

/// The channel and the type of each message, in their order; the bus first.
fn told(ports: &Faulty) -> Vec<String> {
    let (published, notified) = (ports.published(), ports.notified());
    let bus = published.iter().filter(|event| event.kind.starts_with("Alert")).map(|event| ("bus", event));
    let channels = notified.iter().map(|(channel, event)| (&**channel, event));
    bus.chain(channels).map(|(sink, event)| format!("{sink} {}", event.kind)).collect()
}

fn stored(ports: &Faulty) -> Vec<Alert> {
    run(ports.list(usize::MAX)).unwrap()
}

#[test]
fn five_hundred_orders_of_one_cause_make_one_alert_and_its_end_is_told() {
    let ports = ports();
    let ids = failed(&ports, 0..500);
    assert_eq!((look(&ports), look(&ports)), (3, 0));
    assert_eq!(told(&ports), ["bus AlertBegan", "team AlertBegan", "duty AlertBegan"]);
    assert_eq!((stored(&ports).len(), stored(&ports)[0].count), (1, 500));
    ports.forget_orders(&ids);
    for _ in 0..GONE_MS / LOOK_MS {
        assert_eq!(look(&ports), 0, "it may come again");
    }
    assert_eq!((look(&ports), look(&ports)), (3, 0));
    assert_eq!(told(&ports)[1..4], ["bus AlertEnded", "team AlertBegan", "duty AlertBegan"].map(String::from));
    assert_eq!(told(&ports)[4..], ["team AlertEnded", "duty AlertEnded"].map(String::from));
}

#[test]
fn rule_29_a_sink_named_like_the_event_bus_is_told_as_well() {
    let ports = ports();
    failed(&ports, 0..1);
    let sinks: [Arc<str>; 1] = ["bus".into()];
    assert_eq!(run(alerts(&ports, &sinks)).unwrap(), 2);
    let of_alerts = ports.published().iter().filter(|event| event.kind.starts_with("Alert")).count();
    assert_eq!((of_alerts, ports.notified().len()), (1, 1));
}

#[test]
fn a_sink_that_fails_is_told_later_and_no_other_waits_or_is_told_again() {
    let ports = ports();
    failed(&ports, 0..1);
    ports.is_down("events.notify team");
    assert_eq!((look(&ports), look(&ports)), (2, 0));
    ports.is_up("events.notify team");
    ports.is_down("events.publish");
    assert_eq!([(); 3].map(|()| look(&ports)), [0, 1, 0], "it waits longer after the second failure");
    assert_eq!(told(&ports), ["bus AlertBegan", "duty AlertBegan", "team AlertBegan"]);
}

#[test]
fn an_order_that_fails_again_within_the_minute_makes_no_second_alert() {
    let ports = ports();
    failed(&ports, 0..1);
    look(&ports);
    let (order, task) = ports.orders().remove(0);
    ports.forget_orders(&[order.order_id]);
    look(&ports);
    ports.store_order(Order::clone(&order), Task::clone(&task));
    look(&ports);
    assert_eq!(told(&ports).len(), 3);
    assert_eq!(stored(&ports)[0].gone_since, None);
}

#[test]
fn two_supervisors_at_once_tell_each_sink_once() {
    let ports = ports();
    failed(&ports, 0..1);
    let sinks = sinks();
    let (one, other) = run(join(alerts(&ports, &sinks), alerts(&ports, &sinks)));
    assert_eq!(one.unwrap() + other.unwrap(), 3);
    assert_eq!(told(&ports).len(), 3);
}

#[test]
fn a_look_that_is_killed_anywhere_loses_no_alert() {
    for polls in 0..200 {
        let ports = ports();
        failed(&ports, 0..1);
        let was_killed = run_for(alerts(&ports, &sinks()), polls).is_none();
        // After the time in which the killed one may still tell.
        ports.advance(TELLING_MS);
        look(&ports);
        for sink in ["bus AlertBegan", "team AlertBegan", "duty AlertBegan"] {
            let times = told(&ports).iter().filter(|told| *told == sink).count();
            assert!((1..=2).contains(&times), "{sink} {times} times after {polls} polls");
        }
        assert_eq!(look(&ports), 0);
        if !was_killed {
            assert!(polls > 10, "it was killed in many places");
            return;
        }
    }
    panic!("it does not end");
}

/// Makes two causes: an order in `Error` and an unreadable message. Returns the order.
fn two_causes(ports: &Faulty) -> OrderId {
    settled(ports, DeadLetterOutcome::Unreadable, 1);
    failed(ports, 0..1)[0]
}

fn settled(ports: &Faulty, outcome: DeadLetterOutcome, times: usize) {
    let (now, stored) = (ports.now(), records(ports).len());
    for n in stored..stored + times {
        let record = DeadLetterRecord {
            message_id: n.to_string().into(),
            queue: None,
            order_id: None,
            receive_count: 5,
            at: now,
            settled_at: now,
            outcome,
            message: "".into(),
            body: None,
        };
        run(ports.put(Seen::nothing(now), &record)).unwrap();
    }
}

#[test]
fn a_sink_that_fails_is_tried_once_in_a_look_and_the_others_are_told_of_all_causes() {
    let ports = ports();
    two_causes(&ports);
    ports.is_down("events.notify team");
    assert_eq!(look(&ports), 4);
    assert_eq!(ports.calls_of("events.notify").iter().filter(|channel| *channel == "team").count(), 1);
    ports.is_up("events.notify team");
    assert_eq!((look(&ports), look(&ports)), (2, 0));
}

#[test]
fn a_source_that_cannot_be_read_holds_up_no_other_and_ends_no_alert() {
    let ports = ports();
    let failed = two_causes(&ports);
    assert_eq!(look(&ports), 6);
    ports.is_down("letters.");
    ports.forget_orders(&[failed]);
    for _ in 0..=GONE_MS / LOOK_MS + 1 {
        run(alerts(&ports, &sinks())).unwrap_err();
        ports.advance(LOOK_MS);
    }
    let is_on = |alert: &Alert| alert.ended_at.is_none();
    let stored = stored(&ports);
    assert_eq!(stored.iter().filter(|alert| is_on(alert)).map(|alert| &*alert.cause).collect::<Vec<_>>(), [UNREADABLE]);
    assert_eq!(told(&ports).iter().filter(|told| told.ends_with("AlertEnded")).count(), 3);
}

#[test]
fn a_dead_letter_is_found_among_a_thousand_that_nobody_needs_and_its_alert_ends_after_the_hour() {
    let ports = ports();
    settled(&ports, DeadLetterOutcome::Unreadable, 1);
    settled(&ports, DeadLetterOutcome::Stale, 900);
    assert_eq!(look(&ports), 3);
    settled(&ports, DeadLetterOutcome::Stale, 100);
    ports.advance(DEAD_LETTER_MS / 2);
    assert_eq!((look(&ports), stored(&ports)[0].gone_since), (0, None), "it may be among those not looked at");
    ports.advance(DEAD_LETTER_MS / 2);
    look(&ports);
    ports.advance(GONE_MS);
    assert_eq!(look(&ports), 3);
}

#[test]
fn a_look_at_slow_orders_ends_in_time_and_says_that_there_may_be_more() {
    let ports = ports();
    failed(&ports, 0..500);
    let memory = Memory::clone(&ports);
    ports.at_each("", move |_| {
        memory.advance(100);
        None
    });
    look(&ports);
    let alert = &stored(&ports)[0];
    assert!(alert.at_least && (100..200).contains(&alert.count), "{alert:?}");
}
