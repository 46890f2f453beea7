//! The outcomes of dead letters.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::batch::Failures;
use domain::id::{CommandId, OrderId};
use domain::message::{
    Action, CloudEvent, Command, Delivery, Look, Outcome, Receipt, Request, SchedulerMessage, Trouble, Wake, decode,
};
use domain::ports::{
    DEAD_LETTER_BYTES_MAX, DeadLetter, DeadLetterOutcome, DeadLetterRecord, Environment, Queues, Records, SourceQueue,
};
use domain::task::{Poll, ProcessState, StepState, reason};
use domain::time::Timestamp;
use memory::faulty::Faulty;

use super::{EXPIRED_MS, claimed, reply_of, settings, submit, wake, work, yes};
use crate::testing::{instance, order, ports, run, run_for, take};
use crate::{dead_letters, handle};

fn delivery(dead_letter: DeadLetter) -> Delivery<DeadLetter> {
    let receipt = Receipt { message_id: dead_letter.message_id.clone(), handle: "h".into() };
    Delivery { receipt, receive_count: 1, parent: None, body: Ok(dead_letter) }
}

fn dead_letter(ports: &Faulty, queue: SourceQueue, body: &str) -> DeadLetter {
    DeadLetter { queue, message_id: "m1".into(), body: body.into(), receive_count: 5, at: ports.now() }
}

fn settle(ports: &Faulty, dead_letter: DeadLetter) -> DeadLetterRecord {
    let message_id = dead_letter.message_id.clone();
    let failures = run(dead_letters(ports, &instance("s"), vec![delivery(dead_letter)]));
    assert_eq!(failures, Failures::default());
    records(ports).into_iter().find(|record| record.message_id == message_id).unwrap()
}

/// Another message.
fn other(message_id: &str, dead_letter: DeadLetter) -> DeadLetter {
    DeadLetter { message_id: message_id.into(), ..dead_letter }
}

/// The records, the newest first.
pub(super) fn records(ports: &Faulty) -> Vec<DeadLetterRecord> {
    run(Records::list(ports, usize::MAX)).unwrap()
}

fn scheduler_dead_letter(ports: &Faulty, message: &SchedulerMessage) -> DeadLetter {
    dead_letter(ports, SourceQueue::Scheduler, &serde_json::to_string(message).unwrap())
}

/// An order whose first step is requested, and that request.
fn requested(ports: &Faulty) -> Request {
    let id = submit(ports, 0..1)[0];
    wake(ports, id);
    take(&ports.requests("any")).unwrap()
}

fn request_dead_letter(ports: &Faulty, request: &Request) -> DeadLetter {
    dead_letter(ports, SourceQueue::Agent("any".into()), &serde_json::to_string(request).unwrap())
}

#[test]
fn f08_a_submission_that_ends_as_a_dead_letter_is_stored_in_error_with_an_alert() {
    let ports = ports();
    let order = order(1, ports.now());
    let id = order.order_id;
    let record = settle(&ports, dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&order).unwrap()));
    assert_eq!((record.outcome, record.order_id, record.receive_count), (DeadLetterOutcome::Stored, Some(id), 5));
    let task = ports.stored(id);
    assert_eq!(task.process_state, ProcessState::Error);
    assert_eq!(&*task.reason.as_ref().unwrap().code, reason::DEAD_LETTER);
    assert!(task.steps.iter().all(|step| step.attempt == 0), "nothing was begun");
    assert_eq!(*ports.stored_order(id).document.text(), *order.document.text());
    assert_eq!((ports.published().len(), task.unsent.len()), (1, 0));
    // An operator's resubmit starts the order.
    resubmit(&ports, id);
    work(&ports, |_| Some(yes()));
    assert_eq!(ports.stored(id).process_state, ProcessState::Processed);
}

fn resubmit(ports: &Faulty, id: domain::id::OrderId) {
    super::resubmit(ports, id, "ann", Some(ports.stored(id).version));
}

#[test]
fn f08_killed_at_any_await_a_lost_submission_is_stored_once_and_its_alert_is_sent() {
    for polls in 0.. {
        let ports = ports();
        let order = order(1, ports.now());
        let dead = dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&order).unwrap());
        let ended = run_for(dead_letters(&ports, &instance("s"), vec![delivery(dead.clone())]), polls).is_some();
        let record = settle(&ports, dead);
        assert_eq!(record.outcome, DeadLetterOutcome::Stored, "killed after {polls} polls");
        ports.advance(31_000);
        run(handle(&ports, &instance("s"), &settings())).unwrap();
        let task = ports.stored(order.order_id);
        assert_eq!((task.process_state, task.unsent.len()), (ProcessState::Error, 0), "killed after {polls} polls");
        assert!(!ports.published().is_empty());
        assert_eq!(records(&ports).len(), 1);
        if ended {
            assert!(polls > 8);
            return;
        }
    }
}

#[test]
fn a_dead_letter_stays_where_it_is_until_its_record_is_written() {
    let ports = ports();
    let order = order(1, ports.now());
    let dead = dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&order).unwrap());
    ports.is_down("letters.");
    let Failures(failed) = run(dead_letters(&ports, &instance("s"), vec![delivery(dead.clone())]));
    assert_eq!(failed.len(), 1);
    ports.is_up("letters.");
    assert_eq!(settle(&ports, dead).outcome, DeadLetterOutcome::Stored, "it was this letter that stored the order");
}

#[test]
fn a_submission_dead_letter_of_a_stored_order_is_dropped() {
    let ports = ports();
    let id = submit(&ports, 1..2)[0];
    let before = ports.stored(id);
    let mut again = order(1, ports.now());
    let record = settle(&ports, dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&again).unwrap()));
    assert_eq!((record.outcome, ports.stored(id)), (DeadLetterOutcome::Stale, before.clone()));
    again.fingerprint = "other".into();
    let dead = dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&again).unwrap());
    let record = settle(&ports, other("m2", dead));
    assert_eq!((record.outcome, ports.stored(id)), (DeadLetterOutcome::Stale, before));
}

#[test]
fn a_live_request_dead_letter_holds_the_order_and_a_resubmit_settles_message_and_state_together() {
    let ports = ports();
    let request = requested(&ports);
    let id = request.order_id;
    let record = settle(&ports, request_dead_letter(&ports, &request));
    assert_eq!((record.outcome, record.order_id), (DeadLetterOutcome::Held, Some(id)));
    let task = ports.stored(id);
    assert_eq!((task.process_state, task.steps[0].process_state), (ProcessState::Error, StepState::Error));
    assert_eq!(ports.published().len(), 1);
    resubmit(&ports, id);
    let again = take(&ports.requests("any")).unwrap();
    assert_eq!((again.attempt, &again.idempotency_key), (2, &request.idempotency_key), "a new attempt, the same key");
    // Its removal failed, and it is delivered again: the order does not need it any more, and what it did stays written.
    assert_eq!(settle(&ports, request_dead_letter(&ports, &request)), record);
    let by_hand = settle(&ports, other("m2", request_dead_letter(&ports, &request)));
    assert_eq!(by_hand.outcome, DeadLetterOutcome::Stale, "it was put back on its queue by hand");
    run(ports.to_agent("any", again)).unwrap();
    work(&ports, |_| Some(yes()));
    assert_eq!(ports.stored(id).process_state, ProcessState::Processed);
}

#[test]
fn a_live_reply_dead_letter_holds_the_order_once_however_often_it_is_delivered() {
    let ports = ports();
    let request = requested(&ports);
    let task = ports.stored(request.order_id);
    let reply = SchedulerMessage::Reply(reply_of(&task, &task.steps[0], yes()));
    assert_eq!(settle(&ports, scheduler_dead_letter(&ports, &reply)).outcome, DeadLetterOutcome::Held);
    let held = ports.stored(request.order_id);
    assert_eq!(settle(&ports, scheduler_dead_letter(&ports, &reply)).outcome, DeadLetterOutcome::Held);
    assert_eq!(ports.stored(request.order_id), held);
    assert_eq!((held.steps[0].failure_count, records(&ports).len()), (1, 1));
}

#[test]
fn rule_32_what_was_wrong_with_an_attempt_that_goes_on_holds_no_order_when_it_is_a_dead_letter() {
    let ports = ports();
    let request = requested(&ports);
    let before = ports.stored(request.order_id);
    let trouble = Outcome::Retrying(Trouble { problem: "HTTP 503".into() });
    let message = SchedulerMessage::Reply(request.reply(trouble));
    let record = settle(&ports, scheduler_dead_letter(&ports, &message));
    assert_eq!((record.outcome, record.order_id), (DeadLetterOutcome::Stale, Some(request.order_id)));
    assert_eq!(ports.stored(request.order_id), before);
}

#[test]
fn f50_after_the_supervisor_has_recovered_the_order_its_dead_request_means_nothing() {
    let ports = ports();
    let request = requested(&ports);
    ports.advance(EXPIRED_MS);
    run(handle(&ports, &instance("s"), &settings())).unwrap();
    let before = ports.stored(request.order_id);
    assert_eq!(before.steps[0].failure_count, 1);
    assert_eq!(settle(&ports, request_dead_letter(&ports, &request)).outcome, DeadLetterOutcome::Stale);
    assert_eq!(ports.stored(request.order_id), before);
    ports.advance(60_000);
    work(&ports, |_| Some(yes()));
    assert_eq!(ports.stored(request.order_id).process_state, ProcessState::Processed);
}

#[test]
fn f53_week_old_dead_letters_of_all_kinds_are_only_written_down() {
    let ports = ports();
    let id = claimed(&ports, 0..1)[0];
    let request = {
        let workflow = super::workflows();
        let (task, order) = (ports.stored(id), ports.stored_order(id));
        domain::machine::request(&task, workflow.current(), 0, &order, ports.now(), 0).unwrap().unwrap().1
    };
    let task = ports.stored(id);
    let reply = SchedulerMessage::Reply(reply_of(&task, &task.steps[0], yes()));
    run(ports.to_agent("any", request.clone())).unwrap();
    work(&ports, |_| Some(yes()));
    ports.advance(7 * 24 * 3_600_000);
    let before = ports.stored(id);
    assert_eq!(before.process_state, ProcessState::Processed);
    let wake = SchedulerMessage::Wake(Wake { order_id: id, hops: 0 });
    let order = ports.stored_order(id);
    for dead in [
        request_dead_letter(&ports, &request),
        other("m2", scheduler_dead_letter(&ports, &reply)),
        other("m3", scheduler_dead_letter(&ports, &wake)),
        other("m4", dead_letter(&ports, SourceQueue::Submission, &serde_json::to_string(&*order).unwrap())),
    ] {
        assert_eq!(settle(&ports, dead).outcome, DeadLetterOutcome::Stale);
    }
    assert_eq!((ports.stored(id), ports.published().len()), (before, 0));
}

#[test]
fn a_wake_that_its_order_still_needs_holds_it_and_one_of_no_order_is_written_down() {
    let ports = ports();
    let id = submit(&ports, 0..1)[0];
    let wake = SchedulerMessage::Wake(Wake { order_id: id, hops: 0 });
    assert_eq!(settle(&ports, scheduler_dead_letter(&ports, &wake)).outcome, DeadLetterOutcome::Held);
    assert_eq!((ports.stored(id).process_state, ports.published().len()), (ProcessState::Error, 1));
    let nobody = SchedulerMessage::Wake(Wake { order_id: order(99, ports.now()).order_id, hops: 0 });
    assert_eq!(settle(&ports, other("m2", scheduler_dead_letter(&ports, &nobody))).outcome, DeadLetterOutcome::NoOrder);
}

#[test]
fn a_command_that_was_lost_is_written_down_as_a_lost_command() {
    let ports = ports();
    let id = submit(&ports, 0..1)[0];
    let (action, by, reason) = (Action::Cancel, "ann".into(), "customer called".into());
    let command = SchedulerMessage::Command(Command {
        order_id: id,
        action,
        by,
        reason,
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    });
    let record = settle(&ports, scheduler_dead_letter(&ports, &command));
    assert_eq!((record.outcome, &*record.message), (DeadLetterOutcome::LostCommand, "Cancel by ann: customer called"));
    assert_eq!(ports.stored(id).process_state, ProcessState::Pending);
}

#[test]
fn rule_36_after_a_look_that_ends_as_a_dead_letter_another_one_follows() {
    let ports = ports();
    let request = requested(&ports);
    let until = ports.now().plus_ms(5_000);
    ports.change_tasks(|task| {
        let step = &mut task.steps[0];
        (step.waits_until, step.poll) = (Some(until), Some(Poll { path: "t/7".into(), at: None }));
    });
    let look = Look { path: "t/7".into(), answers: Vec::new() };
    let record = settle(&ports, request_dead_letter(&ports, &Request { look: Some(look), ..request.clone() }));
    assert_eq!((record.outcome, record.order_id), (DeadLetterOutcome::Stale, Some(request.order_id)));
    let task = ports.stored(request.order_id);
    assert_eq!((task.process_state, task.steps[0].failure_count), (ProcessState::Processing, 0));
    assert_eq!(task.steps[0].poll.as_ref().unwrap().at, Some(ports.now()));
    assert!(task.steps[0].waits_until > Some(until));
}

/// A dead letter with an operator's command that was accepted and not carried out.
fn lost_command(ports: &Faulty) -> (OrderId, DeadLetter) {
    let id = submit(ports, 0..1)[0];
    let (action, by, reason) = (Action::Cancel, "ann".into(), "customer called".into());
    let command = SchedulerMessage::Command(Command {
        order_id: id,
        action,
        by,
        reason,
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    });
    (id, scheduler_dead_letter(ports, &command))
}

#[test]
fn a_lost_command_is_alerted_with_its_remedy() {
    let ports = ports();
    let (id, dead) = lost_command(&ports);
    settle(&ports, dead);
    let event = ports.published()[0].clone();
    assert_eq!((&*event.kind, &*event.subject), ("OrderNeedsOperator", id.to_string().as_str()));
    assert_eq!(&*event.id, "dead-letter/m1/OrderNeedsOperator");
    let expected = serde_json::json!({
        "OrderID": id,
        "Reason": {"Code": "command-lost", "Message": "Cancel by ann: customer called"},
        "Actions": ["cancel"],
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(event.data.text()).unwrap(), expected);
}

#[test]
fn an_unreadable_dead_letter_is_alerted_with_or_without_a_frame() {
    let ports = ports();
    let text = "x".repeat(5_000);
    let dead =
        dead_letter(&ports, SourceQueue::Agent("any".into()), &serde_json::json!({"Step": 7, text: 1}).to_string());
    let frameless = Delivery {
        receipt: Receipt { message_id: "m2".into(), handle: "h".into() },
        receive_count: 9,
        parent: None,
        body: Err(decode::<DeadLetter>(b"?").unwrap_err()),
    };
    assert_eq!(run(dead_letters(&ports, &instance("s"), vec![delivery(dead), frameless])), Failures::default());
    for (message_id, queue) in [("m1", serde_json::json!({"Agent": "any"})), ("m2", serde_json::Value::Null)] {
        let published = ports.published();
        let event = published.iter().find(|event| &*event.subject == message_id).unwrap();
        let id = format!("dead-letter/{message_id}/DeadLetterUnreadable");
        assert_eq!((&*event.kind, &*event.id), ("DeadLetterUnreadable", id.as_str()));
        let data: serde_json::Value = serde_json::from_str(event.data.text()).unwrap();
        assert_eq!((data["MessageID"].as_str(), &data["Queue"]), (Some(message_id), &queue));
        assert!((1..=1_000).contains(&data["Message"].as_str().unwrap().chars().count()), "{data}");
    }
}

#[test]
fn a_dead_letter_whose_alert_cannot_be_published_stays_and_its_alert_keeps_its_id() {
    let ports = ports();
    let (_, command) = lost_command(&ports);
    let unreadable = DeadLetter { message_id: "m0".into(), ..dead_letter(&ports, SourceQueue::Submission, "?") };
    let frameless = || Delivery {
        receipt: Receipt { message_id: "m2".into(), handle: "h".into() },
        receive_count: 9,
        parent: None,
        body: Err(decode::<DeadLetter>(b"?").unwrap_err()),
    };
    let batch = || vec![delivery(command.clone()), delivery(unreadable.clone()), frameless()];
    let handle_all = || run(dead_letters(&ports, &instance("s"), batch())).0.len();
    ports.is_down("events.publish");
    assert_eq!((handle_all(), records(&ports).len()), (3, 0), "no record before its alert is published");
    ports.is_up("events.publish");
    ports.is_down("letters.");
    assert_eq!((handle_all(), ports.published().len()), (3, 3));
    ports.is_up("letters.");
    assert_eq!((handle_all(), records(&ports).len()), (0, 3));
    assert_eq!(ports.published().len(), 6);
    let ids = |events: &[CloudEvent]| events.iter().map(|event| event.id.clone()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&ports.published()).len(), 3, "each repeat has the id of the first");
}

#[test]
fn f57_an_unreadable_dead_letter_is_kept_with_its_body_and_its_neighbours_are_settled() {
    let ports = ports();
    let id = submit(&ports, 0..1)[0];
    let long: Arc<str> = "ü".repeat(DEAD_LETTER_BYTES_MAX).into();
    let wake = SchedulerMessage::Wake(Wake { order_id: id, hops: 0 });
    let unreadable = DeadLetter { message_id: "m0".into(), ..dead_letter(&ports, SourceQueue::Submission, &long) };
    let frameless = Delivery {
        receipt: Receipt { message_id: "m2".into(), handle: "h".into() },
        receive_count: 9,
        parent: None,
        body: Err(decode::<DeadLetter>(b"?").unwrap_err()),
    };
    let batch = vec![delivery(unreadable), delivery(scheduler_dead_letter(&ports, &wake)), frameless];
    assert_eq!(run(dead_letters(&ports, &instance("s"), batch)), Failures::default());
    let stored = records(&ports);
    let find = |id: &str| stored.iter().find(|record| &*record.message_id == id).unwrap();
    assert_eq!((find("m0").outcome, find("m1").outcome), (DeadLetterOutcome::Unreadable, DeadLetterOutcome::Held));
    assert_eq!(find("m0").body.as_ref().unwrap().len(), DEAD_LETTER_BYTES_MAX);
    assert_eq!((find("m2").outcome, find("m2").receive_count), (DeadLetterOutcome::Unreadable, 9));
    assert!(!find("m2").message.is_empty());
    // What takes more room as JSON text is cut earlier.
    let odd = "\0\"\n".repeat(DEAD_LETTER_BYTES_MAX / 3);
    let dead = DeadLetter { message_id: "m3".into(), ..dead_letter(&ports, SourceQueue::Submission, &odd) };
    assert_eq!(run(dead_letters(&ports, &instance("s"), vec![delivery(dead)])), Failures::default());
    let stored = records(&ports);
    let body = stored.iter().find(|record| &*record.message_id == "m3").unwrap().body.clone().unwrap();
    assert!(odd.starts_with(&*body) && odd != *body);
    assert_eq!(serde_json::to_string(&body).unwrap().len(), DEAD_LETTER_BYTES_MAX + 2);
}
