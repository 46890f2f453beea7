//! Tests of the one way in which an order goes on: write, then send.

use std::iter::repeat;
use std::sync::{Arc, Mutex};

use domain::advance::{AdvanceError, advance, begin, follow_up};
use domain::batch::HasCause;
use domain::definition::Catalogue;
use domain::instance::Instance;
use domain::limits::{CONFLICT_WAIT_MS_MAX, CONFLICTS_AT_ONCE_MAX, CONFLICTS_MAX, SHARDS};
use domain::machine::{Event, Verdict};
use domain::message::SchedulerMessage;
use domain::order::Order;
use domain::ports::{Commit, Environment, Inserted, PortError};
use domain::task::{NoticeKind, ProcessState, Task};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::{Fault, Faulty};
use memory::{Memory, sample};

use crate::{START, ports};

const WORKFLOW: &str = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\n";
const REQUEST: &str = "queues.to_agent any";
const WAKE: Event<'static> = Event::Wake { hops: 0, redelivered: false };

fn instance() -> Instance {
    let workflows = Workflows::parse(&[WORKFLOW], "w", &["any"]).unwrap();
    Instance { name: "scheduler-1".into(), catalogue: Catalogue::new(workflows), shards: SHARDS }
}

fn order() -> Order {
    Order { reply_channel: Some("shop".into()), ..sample::order("test", "advance", "{}", START) }
}

/// A stored order without a claim.
fn ports_with_an_order() -> Faulty {
    let ports = ports();
    ports.store_order(order(), Task::new(&order(), instance().catalogue.compiled().current(), SHARDS, 1));
    ports
}

fn apply(ports: &Faulty, event: Event<'_>) -> Result<Option<Verdict>, AdvanceError> {
    advance(ports, &instance(), order().order_id, event).now_or_never().unwrap()
}

/// The write comes first, then what follows from it, and then the write without the notice that was sent.
fn assert_written_then_sent(ports: &Faulty, write: &str) {
    let effects = ports.effects();
    assert_eq!(effects[0], write);
    let mut sent = effects[1..3].to_vec();
    sent.sort();
    assert_eq!(sent, ["events.notify shop", REQUEST]);
    assert_eq!(effects[3..], ["store.commit 3"]);
    assert_eq!(&*ports.notified()[0].1.kind, "OrderReceived");
    assert_eq!(
        ports.requested().iter().map(|request| (&*request.step, request.attempt)).collect::<Vec<_>>(),
        [("a", 1)]
    );
}

#[test]
fn f72_what_may_pass_by_itself_is_told_from_what_does_not() {
    let passing = [PortError::unavailable("store.task", "away").into(), AdvanceError::Contended(order().order_id)];
    assert!(passing.iter().all(HasCause::may_pass));
    let lasting = [PortError::refused("store.task", "no table").into(), AdvanceError::OrderMissing(order().order_id)];
    assert!(!lasting.iter().any(HasCause::may_pass));
}

#[test]
fn a_change_is_committed_then_what_follows_is_sent_and_then_sent_notices_are_struck() {
    let ports = ports_with_an_order();
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    assert_written_then_sent(&ports, "store.commit 2");
    assert!(ports.stored(order().order_id).unsent.is_empty());
}

#[test]
fn without_a_sent_notice_none_is_removed() {
    let ports = ports_with_an_order();
    apply(&ports, WAKE).unwrap();
    apply(&ports, Event::Wake { hops: 0, redelivered: true }).unwrap();
    let before = ports.effects().len();
    assert_eq!(apply(&ports, Event::Wake { hops: 0, redelivered: true }).unwrap(), Some(Verdict::Nothing));
    assert_eq!(ports.effects()[before..], [REQUEST]);
}

#[test]
fn a_mapping_that_cannot_be_filled_is_a_reply_to_the_scheduler_and_nothing_for_the_agent() {
    let text = format!("{WORKFLOW}path = \"{{/Order/Ref}}\"\n");
    let catalogue = Catalogue::new(Workflows::parse(&[&text], "w", &["any"]).unwrap());
    let instance = Instance { catalogue, ..instance() };
    let ports = ports_with_an_order();
    advance(&ports, &instance, order().order_id, WAKE).now_or_never().unwrap().unwrap();
    assert!(ports.requested().is_empty());
    let sent = ports.scheduled();
    assert!(
        matches!(&sent[..], [SchedulerMessage::Reply(reply)] if (&*reply.step, reply.attempt) == ("a", 1)),
        "{sent:?}"
    );
}

/// Its agent takes a new request for one that is wanted.
#[test]
fn rule_6_a_request_that_its_sender_held_back_for_a_minute_is_as_old_as_what_it_is_based_on() {
    const HELD_BACK_MS: u64 = 60_000;
    let sent = |event, held_back_at| {
        let ports = ports_with_an_order();
        if matches!(event, Event::Wake { redelivered: true, .. }) {
            apply(&ports, WAKE).unwrap();
        }
        let memory = Memory::clone(&ports);
        let first = ports.requested().len();
        ports.at_next(held_back_at, move || memory.advance(HELD_BACK_MS));
        apply(&ports, event).unwrap();
        let request = ports.requested().swap_remove(first);
        request.complete_by.minus_ms(request.budget_ms)
    };
    assert_eq!(sent(WAKE, "store.commit"), START);
    assert_eq!(sent(Event::Wake { hops: 0, redelivered: true }, "store.order"), START, "it is sent again");
}

#[test]
fn a_notice_that_cannot_be_sent_is_kept_and_does_not_hold_up_the_order() {
    let ports = ports_with_an_order();
    ports.is_down("events.");
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    assert_eq!(ports.effects(), ["store.commit 2", REQUEST]);
    let stored = ports.stored(order().order_id);
    assert_eq!(stored.process_state, ProcessState::Processing);
    assert_eq!(stored.unsent.iter().map(|notice| notice.kind).collect::<Vec<_>>(), [NoticeKind::OrderReceived]);
}

#[test]
fn after_a_lost_write_it_decides_again_at_once_and_after_some_losses_with_a_short_wait() {
    let ports = ports_with_an_order();
    ports.draw_from(repeat(41));
    (0..CONFLICTS_AT_ONCE_MAX + 2).for_each(|_| ports.next("store.commit", Fault::Conflicts));
    let (memory, tries) = (Memory::clone(&ports), Arc::new(Mutex::new(Vec::new())));
    let tried = tries.clone();
    ports.at_each("store.commit", move |_| {
        tried.lock().unwrap().push(START.ms_until(memory.now()));
        None
    });
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    let moment = 41 % CONFLICT_WAIT_MS_MAX;
    let mut expected = vec![0; CONFLICTS_AT_ONCE_MAX as usize];
    expected.extend([moment, 2 * moment, 3 * moment]);
    assert_eq!(tries.lock().unwrap()[..expected.len()], expected);
    assert_eq!(ports.effects()[0], "store.commit 2");
}

#[test]
fn what_follows_from_a_write_that_looks_lost_and_was_done_is_sent() {
    let ports = ports_with_an_order();
    // Another writer follows before the client repeats the write.
    let (memory, mut is_overtaken) = (Memory::clone(&ports), false);
    ports.on_answers("store.commit", move |_, commit: &mut Commit| {
        if !std::mem::replace(&mut is_overtaken, true) {
            memory.change_tasks(|task| (task.version, task.nonce) = (task.version + 1, task.nonce + 1));
            *commit = Commit::Conflict;
        }
    });
    apply(&ports, WAKE).unwrap();
    let effects = ports.effects();
    assert_eq!(effects[0], "store.commit 2");
    assert!(effects.contains(&REQUEST.to_owned()), "{effects:?}");
    assert_eq!(ports.stored(order().order_id).steps[0].attempt, 1, "and nothing is claimed a second time");
}

#[test]
fn after_too_many_lost_writes_the_message_stays_on_its_queue() {
    let ports = ports_with_an_order();
    (0..CONFLICTS_MAX).for_each(|_| ports.next("store.commit", Fault::Conflicts));
    assert!(matches!(apply(&ports, WAKE), Err(AdvanceError::Contended(_))));
    assert!(ports.effects().is_empty(), "nothing follows from what was not written");
}

#[test]
fn a_missing_task_and_a_broken_record_are_distinguished() {
    assert!(apply(&ports(), WAKE).unwrap().is_none());
    let orphan = ports_with_an_order();
    orphan.on_answers("store.order", |_, order: &mut Option<Arc<Order>>| *order = None);
    assert!(matches!(apply(&orphan, WAKE), Err(AdvanceError::OrderMissing(_))));
    let other = ports_with_an_order();
    other.change_tasks(|task| task.workflow_version = 2);
    assert!(matches!(apply(&other, WAKE), Err(AdvanceError::UnknownWorkflow { pin, .. }) if pin.version == 2));
}

fn begin_and_follow_up(ports: &Faulty, redelivered: bool) -> Inserted {
    let begun = begin(ports, &instance(), order()).now_or_never().unwrap().unwrap();
    let inserted = begun.inserted;
    follow_up(ports, &instance(), begun, redelivered).now_or_never().unwrap().unwrap();
    inserted
}

#[test]
fn a_new_order_is_stored_with_its_first_claim_and_then_what_follows_is_sent() {
    let ports = ports();
    assert_eq!(begin_and_follow_up(&ports, false), Inserted::New);
    assert_written_then_sent(&ports, "store.insert 2");
}

#[test]
fn an_insert_that_was_overtaken_before_its_answer_came_sends_its_request_and_a_repeat_sends_none() {
    let ports = ports();
    begin(&ports, &instance(), order()).now_or_never().unwrap().unwrap();
    let first = ports.stored(order().order_id);
    for (version, redelivered, is_sent) in
        [(first.version + 1, false, true), (first.version, false, false), (first.version, true, true)]
    {
        let ports = crate::ports();
        ports.store_order(order(), Task { version, nonce: 9, ..Task::clone(&first) });
        assert_eq!(begin_and_follow_up(&ports, redelivered), Inserted::Same);
        assert_eq!(ports.effects().contains(&REQUEST.to_owned()), is_sent, "{version} {redelivered}");
    }
}
