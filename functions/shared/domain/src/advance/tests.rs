use futures_util::FutureExt;

use super::*;
use crate::definition::Catalogue;
use crate::limits::SHARDS;
use crate::task::{NoticeKind, ProcessState};
use crate::testing::FakePorts;
use crate::workflow::Workflows;

const WORKFLOW: &str = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\n";
const WAKE: Event<'static> = Event::Wake { hops: 0, redelivered: false };

fn instance() -> Instance {
    let workflows = Workflows::parse(&[WORKFLOW], "w", &["any"]).unwrap();
    Instance { name: "scheduler-1".into(), catalogue: Catalogue::new(workflows), shards: SHARDS }
}

fn order() -> Order {
    Order {
        order_id: OrderId::from_idempotency_key("test", "advance"),
        document: crate::json::Json::document(b"{}").unwrap(),
        fingerprint: "f".into(),
        submitted_at: crate::time::Timestamp::from_epoch_ms(1_000_000_000_000),
        submitter: "test".into(),
        reply_channel: Some("shop".into()),
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    }
}

/// A stored order without a claim.
fn fake_ports() -> FakePorts {
    let task = Task::new(&order(), instance().catalogue.compiled().current(), SHARDS, 1);
    FakePorts::new(Some(order()), Some(task))
}

fn apply(ports: &FakePorts, event: Event<'_>) -> Result<Option<Verdict>, AdvanceError> {
    advance(ports, &instance(), order().order_id, event).now_or_never().unwrap()
}

/// The write comes first, then what follows from it, and then the write without the notice that was sent.
fn assert_written_then_sent(ports: &FakePorts, write: &str) {
    let log = ports.logged();
    assert_eq!(log[0], write);
    let mut sent = log[1..3].to_vec();
    sent.sort();
    assert_eq!(sent, ["notify shop of OrderReceived", "request a #1 to any"]);
    assert_eq!(log[3..], ["commit 3"]);
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
    let ports = fake_ports();
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    assert_written_then_sent(&ports, "commit 2");
    assert!(ports.stored().unsent.is_empty());
}

#[test]
fn without_a_sent_notice_none_is_removed() {
    let ports = fake_ports();
    apply(&ports, WAKE).unwrap();
    apply(&ports, Event::Wake { hops: 0, redelivered: true }).unwrap();
    let before = ports.logged().len();
    assert_eq!(apply(&ports, Event::Wake { hops: 0, redelivered: true }).unwrap(), Some(Verdict::Nothing));
    assert_eq!(ports.logged()[before..], ["request a #1 to any"]);
}

#[test]
fn a_mapping_that_cannot_be_filled_is_a_reply_to_the_scheduler_and_nothing_for_the_agent() {
    let text = format!("{WORKFLOW}path = \"{{/Order/Ref}}\"\n");
    let catalogue = Catalogue::new(Workflows::parse(&[&text], "w", &["any"]).unwrap());
    let instance = Instance { catalogue, ..instance() };
    let ports = fake_ports();
    advance(&ports, &instance, order().order_id, WAKE).now_or_never().unwrap().unwrap();
    let log = ports.logged();
    assert!(!log.iter().any(|line| line.starts_with("request")), "{log:?}");
    assert!(log.contains(&"reply of a #1".to_owned()), "{log:?}");
}

#[test]
fn a_notice_that_cannot_be_sent_is_kept_and_does_not_hold_up_the_order() {
    let ports = FakePorts { is_mute: true, ..fake_ports() };
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    assert_eq!(ports.logged(), ["commit 2", "request a #1 to any"]);
    let stored = ports.stored();
    assert_eq!(stored.process_state, ProcessState::Processing);
    assert_eq!(stored.unsent.iter().map(|notice| notice.kind).collect::<Vec<_>>(), [NoticeKind::OrderReceived]);
}

#[test]
fn after_a_lost_write_it_decides_again_at_once_and_after_some_losses_with_a_short_wait() {
    let ports = FakePorts { conflicts: (CONFLICTS_AT_ONCE_MAX + 2).into(), random: 41, ..fake_ports() };
    assert_eq!(apply(&ports, WAKE).unwrap(), Some(Verdict::Taken));
    let moment = format!("sleep {} ms", 41 % CONFLICT_WAIT_MS_MAX);
    let conflict = "conflict".to_owned();
    let mut expected = vec![conflict.clone(); CONFLICTS_AT_ONCE_MAX as usize];
    expected.extend([moment.clone(), conflict.clone(), moment.clone(), conflict, moment, "commit 2".to_owned()]);
    assert_eq!(ports.logged()[..expected.len()], expected);
}

#[test]
fn what_follows_from_a_write_that_looks_lost_and_was_done_is_sent() {
    let ports = FakePorts { is_overtaken: true.into(), ..fake_ports() };
    apply(&ports, WAKE).unwrap();
    let log = ports.logged();
    assert_eq!(log[0], "commit 2, overtaken");
    assert!(log.contains(&"request a #1 to any".to_owned()), "{log:?}");
    assert_eq!(ports.stored().steps[0].attempt, 1, "and nothing is claimed a second time");
}

#[test]
fn after_too_many_lost_writes_the_message_stays_on_its_queue() {
    let ports = FakePorts { conflicts: CONFLICTS_MAX.into(), ..fake_ports() };
    assert!(matches!(apply(&ports, WAKE), Err(AdvanceError::Contended(_))));
    assert!(
        !ports.logged().iter().any(|line| line.starts_with("request")),
        "nothing follows from what was not written"
    );
}

#[test]
fn a_missing_task_and_a_broken_record_are_distinguished() {
    assert!(apply(&FakePorts::new(None, None), WAKE).unwrap().is_none());
    let orphan = FakePorts { order: None, ..fake_ports() };
    assert!(matches!(apply(&orphan, WAKE), Err(AdvanceError::OrderMissing(_))));
    let other = fake_ports();
    let pinned = Task { workflow_version: 2, ..(*other.stored()).clone() };
    *other.task.lock().unwrap() = Some(pinned.into());
    assert!(matches!(apply(&other, WAKE), Err(AdvanceError::UnknownWorkflow { pin, .. }) if pin.version == 2));
}

fn begin_and_follow_up(ports: &FakePorts, redelivered: bool) -> Inserted {
    let begun = begin(ports, &instance(), order()).now_or_never().unwrap().unwrap();
    let inserted = begun.inserted;
    follow_up(ports, &instance(), begun, redelivered).now_or_never().unwrap().unwrap();
    inserted
}

#[test]
fn a_new_order_is_stored_with_its_first_claim_and_then_what_follows_is_sent() {
    let ports = FakePorts::new(None, None);
    assert_eq!(begin_and_follow_up(&ports, false), Inserted::New);
    assert_written_then_sent(&ports, "insert 2");
}

#[test]
fn an_insert_that_was_overtaken_before_its_answer_came_sends_its_request_and_a_repeat_sends_none() {
    let ports = FakePorts::new(None, None);
    begin(&ports, &instance(), order()).now_or_never().unwrap().unwrap();
    let first = ports.stored();
    let request = "request a #1 to any".to_owned();
    for (version, redelivered, is_sent) in
        [(first.version + 1, false, true), (first.version, false, false), (first.version, true, true)]
    {
        let ports = FakePorts::new(Some(order()), Some(Task { version, nonce: 9, ..(*first).clone() }));
        assert_eq!(begin_and_follow_up(&ports, redelivered), Inserted::Same);
        assert_eq!(ports.logged().contains(&request), is_sent, "{version} {redelivered}");
    }
}
