//! The task: one item for an order, with one record for each step.

mod delta;
mod erase;
mod history;
mod step;
mod wait;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{CommandId, OrderId};
use crate::limits::{HISTORY_MAX, JOBS_MAX};
use crate::message::Action;
use crate::order::{Order, Parent};
use crate::pin::Pin;
use crate::priority::Priority;
use crate::time::Timestamp;
use crate::workflow::Workflow;

pub use delta::Delta;
pub use erase::Quoted;
pub use history::{Attempt, Line, Transition, What, stored};
pub use step::{Approvers, Poll, Step, StepError, StepState};
pub use watch::Watch;

pub use crate::state::{Direction, NotAState, ProcessState};
pub use crate::text::shortened;

/// Why a task is in `Error`, or was compensated or closed: a stable code, and words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Reason {
    /// Stable, for programs. More codes may be added.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::NAME_CHARS_MAX), extend("examples" = reason::ALL)))]
    pub code: Arc<str>,
    /// A message for people.
    pub message: Arc<str>,
    /// The step that caused it; absent if no step did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::StepName>"))]
    pub step: Option<Arc<str>>,
    /// The task's version in which the reason arose.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub since_version: u64,
    /// The reason of the compensation during which an undo failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Reason>>,
}

/// The stable codes of [`Reason`].
pub mod reason {
    /// An agent rejected a step for good.
    pub const REJECTED: &str = "rejected";
    /// A step had too many failures, or its horizon was over.
    pub const EXHAUSTED: &str = "exhausted";
    /// The order was not finished at its deadline.
    pub const LATE: &str = "late";
    /// An operator cancelled the order.
    pub const CANCELLED: &str = "cancelled";
    /// An operator closed the order.
    pub const CLOSED: &str = "closed";
    /// An undo was rejected or exhausted its failures.
    pub const COMPENSATION_FAILED: &str = "compensation-failed";
    /// A chain of messages was longer than the workflow can need.
    pub const HOP_LIMIT: &str = "hop-limit";
    /// A message that the order needs was delivered too often without success.
    pub const DEAD_LETTER: &str = "dead-letter";
    /// All of them.
    pub const ALL: [&str; 8] =
        [REJECTED, EXHAUSTED, LATE, CANCELLED, CLOSED, COMPENSATION_FAILED, HOP_LIMIT, DEAD_LETTER];
}

/// A message that a task sends to the outside (rules 10 and 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NoticeKind {
    /// To the reply channel: the order is stored.
    OrderReceived,
    /// To the reply channel: every step is done.
    OrderProcessed,
    /// To the reply channel: the order waits for an operator.
    OrderFailed,
    /// To the reply channel: the order is compensated.
    OrderCompensated,
    /// To the reply channel: an operator closed the order.
    OrderClosed,
    /// To the reply channel: a step waits for people, or for a result that comes later.
    OrderWaiting,
    /// To the reply channel: the order was not finished at its deadline.
    OrderLateStatus,
    /// To the event bus: the alert.
    OrderNeedsOperator,
    /// To the event bus: the order's reply channel does not take its messages.
    ReplyChannelFailing,
    /// To the event bus: the order was not finished at its deadline.
    OrderLate,
    /// To the event bus: a step waits for people to decide (rule 40).
    OrderNeedsApproval,
    /// To the order whose step made this one: it has ended (rule 49).
    ParentTold,
}

impl NoticeKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::OrderReceived,
        Self::OrderProcessed,
        Self::OrderFailed,
        Self::OrderCompensated,
        Self::OrderClosed,
        Self::OrderWaiting,
        Self::OrderLateStatus,
        Self::OrderNeedsOperator,
        Self::ReplyChannelFailing,
        Self::OrderLate,
        Self::OrderNeedsApproval,
        Self::ParentTold,
    ];

    /// Whether it is an event that leaves the system. A parent is told by a reply.
    #[must_use]
    pub const fn is_event(self) -> bool {
        !matches!(self, Self::ParentTold)
    }

    /// The word in records. Each kind has its own, also where two events have one type.
    #[must_use]
    pub const fn stored(self) -> &'static str {
        if matches!(self, Self::OrderLateStatus) { "OrderLateStatus" } else { self.name() }
    }

    /// Whether it goes to the order's reply channel. The others go to the event bus, but for what a parent is told.
    #[must_use]
    pub const fn is_status(self) -> bool {
        match self {
            Self::OrderReceived
            | Self::OrderProcessed
            | Self::OrderFailed
            | Self::OrderCompensated
            | Self::OrderClosed
            | Self::OrderWaiting
            | Self::OrderLateStatus => true,
            Self::OrderNeedsOperator
            | Self::ReplyChannelFailing
            | Self::OrderLate
            | Self::OrderNeedsApproval
            | Self::ParentTold => false,
        }
    }

    /// The event's type on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OrderReceived => "OrderReceived",
            Self::OrderProcessed => "OrderProcessed",
            Self::OrderFailed => "OrderFailed",
            Self::OrderCompensated => "OrderCompensated",
            Self::OrderClosed => "OrderClosed",
            Self::OrderNeedsOperator => "OrderNeedsOperator",
            Self::ReplyChannelFailing => "ReplyChannelFailing",
            Self::OrderWaiting => "OrderWaiting",
            Self::OrderLate | Self::OrderLateStatus => "OrderLate",
            Self::OrderNeedsApproval => "OrderNeedsApproval",
            Self::ParentTold => "ParentTold",
        }
    }
}

/// A notice that is committed and not known to have been sent. The supervisor sends it until it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Notice {
    /// The kind of message.
    pub kind: NoticeKind,
    /// The version of the task that it reports.
    pub version: u64,
    /// How often the supervisor sent it again.
    #[serde(default)]
    pub resends: u32,
}

/// A pause of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Pause {
    /// The operator, and in brackets the authenticated caller.
    pub by: Arc<str>,
    /// The reason.
    pub reason: Arc<str>,
    /// The start time.
    pub since: Timestamp,
    /// The version of the task in which the pause began.
    ///
    /// It identifies a command that was meant for an earlier pause.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u64,
}

/// The operator who has taken the order on (rule 30).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Taken {
    /// The operator, and in brackets the authenticated caller.
    pub by: Arc<str>,
    /// Since when.
    pub since: Timestamp,
}

/// The progress of one order through its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Task {
    /// Copied from the order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// +1 at every committed change; every write is conditional on it.
    pub version: u64,
    /// Random, new with every version: a retried write that meets its own nonce has succeeded (rule 3).
    pub nonce: u64,
    /// Name of the workflow, pinned at submission.
    pub workflow: Arc<str>,
    /// Version of the workflow, pinned at submission.
    pub workflow_version: u32,
    /// Its state.
    pub process_state: ProcessState,
    /// Why it is in `Error`, or was compensated or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// In workflow order.
    pub steps: Vec<Step>,
    /// The actor that has to look at it; `None` on a finished task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// The time of the supervisor's next look, never later than the real deadline (rule 14); or since when the task
    /// waits for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "epoch_ms")]
    pub watch_at: Option<Timestamp>,
    /// The step of another order that made this one, and is told its end (rule 49).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Its deadline (rule 37).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_by: Option<Timestamp>,
    /// When it was found late: after its deadline and not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_since: Option<Timestamp>,
    /// When it is deleted (rule 44). `None`: never, or it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When its personal data were erased (rule 46).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
    /// The priority of its messages.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// Present while an operator keeps new steps from starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The version in which the last pause ended; 0 if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed: u64,
    /// The operator who has taken it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// The version in which it was last taken on or let go; 0 if it never was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_version: u64,
    /// Whether the order names a reply channel, so that status messages are due.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// Notices that are committed and not known to have been sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<Notice>,
    /// Bulk jobs that acted on the order and whose lines the history dropped: their reasons may quote it (rule 46).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub jobs: BTreeSet<Arc<str>>,
    /// The last [`HISTORY_MAX`] transitions, with the first one and all notes.
    #[serde(with = "stored")]
    pub history: Vec<Transition>,
}

impl Task {
    /// The task of a new order: every step `Pending` and never claimed. The index `watch` has `shards` shards.
    #[must_use]
    pub fn new(order: &Order, workflow: &Workflow, shards: u8, nonce: u64) -> Self {
        let notify = order.reply_channel.is_some();
        // The API refuses a document with a wrong time. Without it, the step does not wait.
        let not_before = workflow.not_before(&order.document, order.submitted_at).unwrap_or_default();
        let complete_by = workflow.complete_by(order).unwrap_or_default();
        let first_look = order.submitted_at.plus_ms(workflow.first_look_ms());
        let mut task = Self {
            order_id: order.order_id,
            version: 1,
            nonce,
            workflow: workflow.name.clone(),
            workflow_version: workflow.version,
            process_state: ProcessState::Pending,
            reason: None,
            steps: workflow.steps.iter().map(Step::new).collect(),
            watch: Some(Watch::Due(order.order_id.shard(shards))),
            // The watch moves no sooner, so an order with a deadline costs no further write.
            watch_at: Some(complete_by.map_or(first_look, |at| first_look.min(at.max(order.submitted_at)))),
            parent: None,
            complete_by,
            late_since: None,
            expires_at: None,
            erased_at: None,
            priority: order.priority.unwrap_or(workflow.priority),
            paused: None,
            resumed: 0,
            taken: None,
            taken_version: 0,
            notify,
            unsent: Vec::new(),
            jobs: BTreeSet::new(),
            history: Vec::with_capacity(8),
        };
        for ((step, rule), at) in task.steps.iter_mut().zip(&workflow.steps).zip(not_before) {
            step.waits_until = at;
            step.wait_to_come = at.is_some() && rule.waits.before_ms.is_some();
            step.approval = rule.approval.as_ref().map(|approval| approval.approvers(&order.document));
        }
        if notify {
            task.unsent.push(Notice { kind: NoticeKind::OrderReceived, version: task.version, resends: 0 });
        }
        let again_of = order.again_of.as_ref();
        task.record(Transition {
            at: order.submitted_at,
            who: order.submitter.clone(),
            what: What::Submitted,
            why: again_of.map(|again| again.words().into()),
            command_id: None,
            bulk: again_of.and_then(|again| again.bulk.clone()),
        });
        task.skip_inapplicable(order, workflow);
        task
    }

    /// The same as the child of a step of another order (rule 49).
    #[must_use]
    pub fn below(mut self, parent: Option<Parent>) -> Self {
        if let (Some(parent), Some(line)) = (&parent, self.history.first_mut()) {
            line.why = Some(parent.words().into());
        }
        self.parent = parent;
        self
    }

    /// The bytes by which its JSON most often still grows: each open step adds an output, its times, and two lines of the
    /// history.
    #[must_use]
    pub fn growth_bytes(&self) -> usize {
        const BYTES_OF_A_STEP: usize = 320;
        self.steps.iter().filter(|step| !step.process_state.is_over()).count() * BYTES_OF_A_STEP
    }

    /// Whether an operator may post its order again: only once it is compensated, and while it has its document. The order
    /// of a child is made by that of its parent (rule 49).
    #[must_use]
    pub const fn may_be_posted_again(&self) -> bool {
        matches!(self.process_state, ProcessState::Compensated) && self.erased_at.is_none() && self.parent.is_none()
    }

    /// Whether its steps are undone, also while an operator must act on one of them.
    #[must_use]
    pub fn is_undoing(&self) -> bool {
        // Steps of dropped lines alone do not say it: these are undone while the order goes forward.
        let is_turned = |step: &Step| step.direction == Direction::Undo && !step.dropped;
        let has_earlier = || self.reason.as_ref().is_some_and(|reason| reason.earlier.is_some());
        let was_undoing = || self.steps.iter().any(is_turned) || has_earlier();
        match self.process_state {
            ProcessState::Compensating => true,
            ProcessState::Error => was_undoing(),
            ProcessState::Pending
            | ProcessState::Processing
            | ProcessState::Processed
            | ProcessState::Compensated
            | ProcessState::Closed => false,
        }
    }

    /// The workflow and version that it is pinned to.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin { name: self.workflow.clone(), version: self.workflow_version }
    }

    /// When the order was accepted, by the first line of its history.
    #[must_use]
    pub fn submitted_at(&self) -> Option<Timestamp> {
        self.history.first().map(|line| line.at)
    }

    /// When it last changed, by its history.
    #[must_use]
    pub fn updated_at(&self) -> Option<Timestamp> {
        self.history.last().map(|line| line.at)
    }

    /// When it entered `Error`, if its history still shows it.
    #[must_use]
    pub fn failed_at(&self) -> Option<Timestamp> {
        let failed = What::Entered(ProcessState::Error);
        self.history.iter().rev().find(|line| line.what == failed).map(|line| line.at)
    }

    /// When it became `Compensated`: nothing but an erase comes after that.
    #[must_use]
    pub fn compensated_at(&self) -> Option<Timestamp> {
        let compensated = What::Entered(ProcessState::Compensated);
        let line = self.history.iter().rev().find(|line| line.what == compensated);
        line.map(|line| line.at).or_else(|| self.updated_at())
    }

    /// The step of this name and its index.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<(usize, &Step)> {
        self.steps.iter().enumerate().find(|(_, step)| &*step.name == name)
    }

    /// The steps that people are asked to decide on now, each with its index (rule 40). A closed order keeps its steps as
    /// they are, but it has no open question.
    pub fn asked(&self) -> impl Iterator<Item = (usize, &Step)> {
        let is_open = !self.process_state.is_final();
        self.steps.iter().enumerate().filter(move |(_, step)| is_open && step.is_asked())
    }

    /// The lines of the history that the version before did not have. The history drops its oldest lines.
    #[must_use]
    pub fn added_since(&self, before: Option<&Self>) -> &[Transition] {
        let before = before.map_or(&[][..], |before| &before.history);
        // An erase changes texts and names, and a line about an attempt that is put off takes the place of the last ones.
        let is_same = |own: &Transition, line: &Transition| (own.at, &own.what) == (line.at, &line.what);
        let is_known = |known: usize, line| self.history.get(known).is_some_and(|own| is_same(own, line));
        let known = before.iter().fold(0, |known, line| known + usize::from(is_known(known, line)));
        &self.history[known..]
    }

    /// Whether its history shows that this action was carried out by the command with this id.
    #[must_use]
    pub fn has_done(&self, action: Action, command_id: &CommandId) -> bool {
        self.history.iter().any(|line| line.command_id.as_ref() == Some(command_id) && line.what.is_by(action))
    }

    /// The number of its notes.
    #[must_use]
    pub fn notes(&self) -> usize {
        self.history.iter().filter(|line| line.what.is_note()).count()
    }

    /// Adds a line to the history, and drops the oldest beyond [`HISTORY_MAX`] that need not be kept.
    pub(crate) fn record(&mut self, line: Transition) {
        while self.history.len() >= HISTORY_MAX {
            let oldest = self.history.iter().position(|line| !line.what.is_kept()).unwrap_or(0);
            // The id of a job begins with its time.
            self.jobs.extend(self.history.remove(oldest).bulk);
            while self.jobs.len() > JOBS_MAX {
                self.jobs.pop_first();
            }
        }
        self.history.push(line);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(version: &u64) -> bool {
    *version == 0
}

/// Times in keys are stored as numbers.
mod epoch_ms {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::time::Timestamp;

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Timestamp::epoch_ms).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_epoch_ms))
    }
}

#[cfg(test)]
pub(crate) mod tests;
