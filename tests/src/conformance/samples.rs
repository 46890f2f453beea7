//! Sample orders, tasks and messages.

use std::sync::Arc;

use domain::backoff::{Backoff, BackoffPolicy};
use domain::bulk::{DryRun, Job, Spec};
use domain::id::CommandId;
use domain::json::Json;
use domain::limits::{SETTLES_WITHIN_MS_DEFAULT, SHARDS};
use domain::message::{
    Action, CloudEvent, Command, Delivery, Outcome, Priority, Receipt, Request, SchedulerMessage, Settled, Settlement,
    Wake, idempotency_key,
};
use domain::order::Order;
use domain::ports::{
    Breaker, Commit, DeadLetterOutcome, DeadLetterRecord, Evidence, Inserted, Memo, MemoState, Outage, OutageReason,
    Pace, Rejections, ServiceHealth, Source, Store,
};
use domain::task::{Direction, ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;

/// The submission time of the samples.
pub const NOON: Timestamp = Timestamp::from_epoch_ms(1_795_176_000_000);

/// The `n`-th order.
#[must_use]
pub fn order(n: u32) -> Order {
    order_with(n, &format!(r#"{{ "Item": "book-{n}", "Total": 12.50 }}"#))
}

/// The `n`-th order with this document.
///
/// # Panics
/// If the document is invalid.
#[must_use]
pub fn order_with(n: u32, document: &str) -> Order {
    let sample = memory::sample::order("samples", &n.to_string(), document, NOON.plus_ms(u64::from(n)));
    Order { correlation_id: Some(format!("sample-{n}").into()), ..sample }
}

/// The first task of an order.
///
/// # Panics
/// If the shipped workflow is invalid.
#[must_use]
pub fn task(order: &Order) -> Task {
    let workflows = Workflows::shipped().expect("the shipped workflow");
    Task::new(order, workflows.current(), SHARDS, 1_000)
}

/// The next version of a task, changed.
#[must_use]
pub fn next(before: &Task, change: impl FnOnce(&mut Task)) -> Arc<Task> {
    let mut after = before.clone();
    (after.version, after.nonce) = (before.version + 1, before.nonce + 1);
    change(&mut after);
    Arc::new(after)
}

/// The next version of a task, in another state.
#[must_use]
pub fn next_in(before: &Task, state: ProcessState) -> Arc<Task> {
    next(before, |task| {
        task.process_state = state;
        if state.is_final() {
            (task.watch, task.watch_at) = (None, None);
        }
    })
}

/// Inserts the `n`-th order and returns its task.
///
/// # Panics
/// If the order exists already, or the store fails.
pub async fn stored(store: &impl Store, n: u32) -> Arc<Task> {
    let order = order(n);
    let task = task(&order);
    assert_eq!(store.insert(order.into(), task.clone().into()).await.expect("insert"), Inserted::New);
    Arc::new(task)
}

/// Commits the next version of a task and returns it.
///
/// # Panics
/// On a conflict, or if the store fails.
pub async fn committed(store: &impl Store, before: &Task, after: Arc<Task>) -> Arc<Task> {
    assert_eq!(store.commit(before, after.clone()).await.expect("commit"), Commit::Committed);
    after
}

/// A wake for the `n`-th order.
#[must_use]
pub fn wake(n: u32) -> SchedulerMessage {
    SchedulerMessage::Wake(Wake { order_id: order(n).order_id, hops: 0 })
}

/// A request for the first step of the `n`-th order.
#[must_use]
pub fn request(n: u32) -> Request {
    let Order { order_id, document, .. } = order(n);
    Request {
        order_id,
        step: "reserve-inventory".into(),
        agent: "inventory".into(),
        direction: Direction::Forward,
        attempt: 1,
        idempotency_key: idempotency_key(order_id, "reserve-inventory", Direction::Forward),
        complete_by: NOON.plus_ms(30_000),
        budget_ms: 30_000,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops: 1,
        priority: Priority::Normal,
        order: document,
        outputs: std::collections::BTreeMap::new(),
        method: domain::workflow::Method::Post,
        body: None,
        encode: domain::workflow::Encoding::Json,
        path: None,
        headers: Default::default(),
        keep: None,
        poll: None,
        look: None,
    }
}

/// The health of a service that is down.
#[must_use]
pub fn health(service: &str, version: u64) -> ServiceHealth {
    ServiceHealth {
        service: service.into(),
        version,
        era: 1,
        state: Breaker::Open,
        failures_in_a_row: 5,
        until: NOON.plus_ms(1_000),
        backoff: Backoff::new(BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true }).next(3),
        since: NOON,
        release: None,
        outage: Some(Outage { reason: OutageReason::Misconfigured, problem: "HTTP 401".into(), since: NOON }),
        unsent: None,
        rejections: Rejections::default(),
        pace: Some(Pace { next_us: 1_795_195_603_007_050, line_us: 0 }),
        evidence: Evidence { calls: 9, orders: vec![order(1).order_id], ..Evidence::default() },
    }
}

/// An operator's command about the `n`-th order.
#[must_use]
pub fn command(n: u32) -> SchedulerMessage {
    SchedulerMessage::Command(Command {
        order_id: order(n).order_id,
        action: Action::Resubmit,
        by: "night shift".into(),
        reason: "mended".into(),
        command_id: CommandId::of_job("0193494e5c8f-00ab54a98ceb1f0a".into()),
        version: Some(7),
        bulk: Some("0193494e5c8f-00ab54a98ceb1f0a".into()),
        settle: Some(Settlement { step: "s1".into(), outcome: Settled::Done, output: Some(Json::of(&())) }),
        take: Some(true),
        step: Some("s1".into()),
    })
}

/// A memo of a successful call. It expires one minute after noon.
#[must_use]
pub fn memo(key: &str, version: u64) -> Memo {
    let state = MemoState::Completed(Outcome::Done(Json::of(&version)));
    Memo { key: key.into(), version, state, declined: 0, attempt: 0, expires_at: NOON.plus_ms(60_000) }
}

/// A job that was planned at this offset after noon.
///
/// # Panics
/// If the sample is invalid.
#[must_use]
pub fn job(id: &str, planned_after_ms: u64) -> Job {
    let spec: Spec = serde_json::from_str(r#"{"By":"night shift","Reason":"mended"}"#).expect("a job's specification");
    let dry_run = DryRun { matching: 3, complete: true };
    Job::plan(id.into(), spec, dry_run, NOON.plus_ms(planned_after_ms)).expect("a job")
}

/// The outcome of the `n`-th dead letter, at this offset after noon.
#[must_use]
pub fn dead_letter(n: u32, settled_after_ms: u64) -> DeadLetterRecord {
    DeadLetterRecord {
        message_id: format!("letter-{n}").into(),
        queue: None,
        order_id: Some(order(n).order_id),
        receive_count: 10,
        at: NOON,
        settled_at: NOON.plus_ms(settled_after_ms),
        outcome: DeadLetterOutcome::Held,
        message: "the order waits for an operator".into(),
        body: None,
    }
}

/// The `n`-th event.
#[must_use]
pub fn event(n: u32) -> CloudEvent {
    CloudEvent {
        specversion: "1.0".into(),
        id: format!("event-{n}").into(),
        source: "stepwarden".into(),
        kind: "OrderNeedsOperator".into(),
        subject: order(n).order_id.to_string().into(),
        time: NOON,
        datacontenttype: "application/json".into(),
        data: Json::of(&n),
    }
}

/// The receipts of a batch.
#[must_use]
pub fn receipts<M>(deliveries: &[Delivery<M>]) -> Vec<Receipt> {
    deliveries.iter().map(|delivery| delivery.receipt.clone()).collect()
}

/// Whether the source has no visible message now.
#[must_use]
pub fn is_empty<M>(source: &impl Source<M>) -> bool {
    source.receive(10).now_or_never().is_none()
}
