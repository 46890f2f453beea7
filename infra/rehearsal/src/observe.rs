//! Converts the system's records and messages into the auditor's observations.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::Outcome;
use domain::task::{Direction, NoticeKind, ProcessState, Step, StepState, Task, Watch, What};
use serde_json::value::RawValue;

use crate::seen;
use crate::seen::{Element, Ending, Kind, OrderState, Record, StepSeen, Way};

/// The member of an output whose text names the version and the step by whose mapping it was kept.
pub const KEPT_MEMBER: &str = "From";

/// A direction.
#[must_use]
pub const fn way(direction: Direction) -> Way {
    match direction {
        Direction::Forward => Way::Forward,
        Direction::Undo => Way::Undo,
    }
}

/// The hash of a text.
#[must_use]
pub fn hash(json: &Json) -> u64 {
    hash_of(json.text())
}

/// The same of a text.
#[must_use]
pub fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The same of a value that a body carries. That of an array is made of those of its elements.
#[must_use]
pub fn hash_of_value(text: &str) -> u64 {
    let elements = Some(text).filter(|text| text.starts_with('['));
    match elements.and_then(|text| serde_json::from_str::<Vec<&RawValue>>(text).ok()) {
        Some(elements) => hash_of_all(elements.into_iter().map(|element| hash_of(element.get()))),
        None => hash_of(text),
    }
}

/// The hash of an array whose elements have these hashes.
#[must_use]
pub fn hash_of_all(elements: impl Iterator<Item = u64>) -> u64 {
    hash_of(&format!("{:?}", elements.collect::<Vec<_>>()))
}

/// The elements of the array that a document has for the steps with lines.
#[must_use]
pub fn elements(document: &Json) -> Vec<Element> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Line {
        #[serde(rename = "SKU")]
        sku: Arc<str>,
        n: u64,
    }
    let elements = document.member("Lines").and_then(|lines| serde_json::from_str::<Vec<&RawValue>>(lines).ok());
    let element = |text: &RawValue| {
        let Line { sku, n } = serde_json::from_str(text.get()).ok()?;
        Some(Element { name: sku, number: n, hash: hash_of(text.get()) })
    };
    elements.into_iter().flatten().filter_map(element).collect()
}

/// The text in an output that names the version and the step by whose mapping it was kept.
#[must_use]
pub fn kept(output: &Json) -> Option<Arc<str>> {
    serde_json::from_str(output.member(KEPT_MEMBER)?).ok()
}

/// The outcome of an attempt.
#[must_use]
pub fn ending(direction: Direction, outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Done(output) if direction == Direction::Forward && output.text().len() > OUTPUT_BYTES_MAX => {
            Ending::TooLarge
        }
        Outcome::Done(_) => Ending::Done,
        Outcome::Failed(_) => Ending::Failed,
        Outcome::Deferred(_) => Ending::Deferred,
        Outcome::Retrying(_) => Ending::Retrying,
        Outcome::Accepted(_) => Ending::Accepted,
    }
}

/// The kind of a notice.
#[must_use]
pub const fn kind(notice: NoticeKind) -> Kind {
    match notice {
        NoticeKind::OrderReceived => Kind::Received,
        NoticeKind::OrderProcessed => Kind::Processed,
        NoticeKind::OrderFailed => Kind::Failed,
        NoticeKind::OrderCompensated => Kind::Compensated,
        NoticeKind::OrderClosed => Kind::Closed,
        NoticeKind::OrderNeedsOperator => Kind::NeedsOperator,
        NoticeKind::ReplyChannelFailing => Kind::ChannelFailing,
        NoticeKind::OrderLate => Kind::Late,
        NoticeKind::OrderLateStatus => Kind::LateStatus,
        NoticeKind::OrderWaiting => Kind::Waiting,
        NoticeKind::OrderNeedsApproval => Kind::NeedsApproval,
        NoticeKind::ParentTold => Kind::ParentTold,
    }
}

/// The kind of an event to a reply channel or to the bus; `None` if it does not report an order's state.
#[must_use]
pub fn kind_of(event_type: &str, is_status: bool) -> Option<Kind> {
    let mut all = NoticeKind::ALL.into_iter().filter(|notice| notice.is_event() && notice.is_status() == is_status);
    all.find(|notice| notice.name() == event_type).map(kind)
}

/// A record.
#[must_use]
pub fn record(task: &Task) -> Record {
    Record {
        order: task.order_id,
        version: task.version,
        workflow: task.workflow_version,
        state: state(task.process_state),
        reason: task.reason.as_ref().map(|reason| (reason.code.clone(), reason.since_version)),
        entered: task.history.iter().rev().find_map(|line| {
            let What::Entered(entered) = line.what else { return None };
            Some(state(entered))
        }),
        paused: task.paused.is_some(),
        contradicted: task.history.iter().filter(|line| matches!(line.what, What::Contradicted(_))).count(),
        notes: task.history.iter().filter(|line| line.what.is_note()).filter_map(|line| line.why.clone()).collect(),
        taken_version: task.taken_version,
        complete_by_ms: task.complete_by.map(domain::time::Timestamp::epoch_ms),
        late_ms: task.late_since.map(domain::time::Timestamp::epoch_ms),
        watch_ms: task
            .watch_at
            .filter(|_| task.watch.is_some_and(Watch::is_of_supervisor))
            .map(domain::time::Timestamp::epoch_ms),
        unsent: task.unsent.iter().map(|notice| (kind(notice.kind), notice.version)).collect(),
        steps: task.steps.iter().map(step).collect(),
        lines: task.carried_lines(),
    }
}

const fn state(state: ProcessState) -> OrderState {
    match state {
        ProcessState::Pending => OrderState::Pending,
        ProcessState::Processing => OrderState::Processing,
        ProcessState::Processed => OrderState::Processed,
        ProcessState::Error => OrderState::Error,
        ProcessState::Compensating => OrderState::Compensating,
        ProcessState::Compensated => OrderState::Compensated,
        ProcessState::Closed => OrderState::Closed,
    }
}

fn step(step: &Step) -> StepSeen {
    StepSeen {
        name: step.name.clone(),
        state: match step.process_state {
            StepState::Pending => seen::StepState::Pending,
            StepState::Processing => seen::StepState::Processing,
            StepState::Processed => seen::StepState::Processed,
            StepState::Error => seen::StepState::Error,
            StepState::Skipped => seen::StepState::Skipped,
        },
        way: way(step.direction),
        attempt: step.attempt,
        failures: step.failure_count,
        locked_by: step.locked_by.clone(),
        complete_by_ms: step.complete_by.map(domain::time::Timestamp::epoch_ms),
        not_before_ms: step.not_before.map(domain::time::Timestamp::epoch_ms),
        waits_until_ms: step.waits_until.map(domain::time::Timestamp::epoch_ms),
        is_to_look: step.poll.as_ref().is_some_and(|poll| poll.at.is_some()),
        started_ms: step.started_at.map(domain::time::Timestamp::epoch_ms),
        runs_until_ms: step.may_run_until.map(domain::time::Timestamp::epoch_ms),
        doubted_ms: step.doubted_at.map(domain::time::Timestamp::epoch_ms),
        last_error: step.last_error.as_ref().map(|error| (error.code.clone(), error.at.epoch_ms())),
        output: step.output.as_ref().map(hash),
        dropped: step.dropped,
    }
}
