use futures_util::FutureExt;

use super::*;
use crate::limits::SHARDS;
use crate::task::{NoticeKind, ProcessState};
use crate::testing::Site;
use crate::workflow::Workflows;

const WORKFLOW: &str = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\n";
const WAKE: Event<'static> = Event::Wake { hops: 0, redelivered: false };

fn instance() -> Instance {
    let workflows = Workflows::parse(&[WORKFLOW], "w", &["any"]).unwrap();
    Instance { name: "scheduler-1".into(), workflows, shards: SHARDS }
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
    }
}

/// A stored order without a claim.
fn site() -> Site {
    let task = Task::new(&order(), instance().workflows.current(), SHARDS, 1);
    Site::new(Some(order()), Some(task))
}

fn apply(site: &Site, event: Event<'_>) -> Result<Option<Verdict>, AdvanceError> {
    advance(site, &instance(), order().order_id, event).now_or_never().unwrap()
}

#[test]
fn a_change_is_committed_then_what_follows_is_sent_and_then_sent_notices_are_struck() {
    let site = site();
    assert_eq!(apply(&site, WAKE).unwrap(), Some(Verdict::Taken));
    let log = site.logged();
    assert_eq!(log[0], "commit 2");
    let mut sent = log[1..3].to_vec();
    sent.sort();
    assert_eq!(sent, ["notify shop of OrderReceived", "request a #1 to any"]);
    assert_eq!(log[3..], ["commit 3"]);
    assert!(site.stored().unsent.is_empty());
}

#[test]
fn where_nothing_was_told_nothing_is_struck() {
    let site = site();
    apply(&site, WAKE).unwrap();
    let before = site.logged().len();
    assert_eq!(apply(&site, Event::Wake { hops: 0, redelivered: true }).unwrap(), Some(Verdict::Nothing));
    assert_eq!(site.logged()[before..], ["request a #1 to any"]);
}

#[test]
fn a_notice_that_cannot_be_sent_is_kept_and_does_not_hold_up_the_order() {
    let site = Site { is_mute: true, ..site() };
    assert_eq!(apply(&site, WAKE).unwrap(), Some(Verdict::Taken));
    assert_eq!(site.logged(), ["commit 2", "request a #1 to any"]);
    let stored = site.stored();
    assert_eq!(stored.process_state, ProcessState::Processing);
    assert_eq!(stored.unsent.iter().map(|notice| notice.kind).collect::<Vec<_>>(), [NoticeKind::OrderReceived]);
}

#[test]
fn whoever_loses_a_write_decides_again_at_once_and_after_some_losses_waits_a_moment_each_time() {
    let site = Site { conflicts: (CONFLICTS_AT_ONCE_MAX + 2).into(), random: 41, ..site() };
    assert_eq!(apply(&site, WAKE).unwrap(), Some(Verdict::Taken));
    let moment = format!("sleep {} ms", 41 % CONFLICT_WAIT_MS_MAX);
    let conflict = "conflict".to_owned();
    let mut expected = vec![conflict.clone(); CONFLICTS_AT_ONCE_MAX as usize];
    expected.extend([moment.clone(), conflict.clone(), moment.clone(), conflict, moment, "commit 2".to_owned()]);
    assert_eq!(site.logged()[..expected.len()], expected);
}

#[test]
fn what_follows_from_a_write_that_looks_lost_and_was_done_is_sent() {
    let site = Site { is_overtaken: true.into(), ..site() };
    apply(&site, WAKE).unwrap();
    let log = site.logged();
    assert_eq!(log[0], "commit 2, overtaken");
    assert!(log.contains(&"request a #1 to any".to_owned()), "{log:?}");
    assert_eq!(site.stored().steps[0].attempt, 1, "and nothing is claimed a second time");
}

#[test]
fn whoever_loses_time_and_again_leaves_the_message_on_its_queue() {
    let site = Site { conflicts: CONFLICTS_MAX.into(), ..site() };
    assert!(matches!(apply(&site, WAKE), Err(AdvanceError::Contended(_))));
    assert!(!site.logged().iter().any(|line| line.starts_with("request")), "nothing follows from what was not written");
}

#[test]
fn what_is_not_there_is_told_from_what_is_broken() {
    assert!(apply(&Site::new(None, None), WAKE).unwrap().is_none());
    let orphan = Site { order: None, ..site() };
    assert!(matches!(apply(&orphan, WAKE), Err(AdvanceError::OrderMissing(_))));
    let other = site();
    let pinned = Task { workflow_version: 2, ..(*other.stored()).clone() };
    *other.task.lock().unwrap() = Some(pinned.into());
    assert!(matches!(apply(&other, WAKE), Err(AdvanceError::UnknownWorkflow { version: 2, .. })));
}
