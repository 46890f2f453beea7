//! The record of a job, and an operator's actions on it.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BulkAction, SETTLE_TIMEOUT_MS, UNDER_WAY_MAX};
use crate::author;
use crate::id::OrderId;
use crate::json::whole_number;
use crate::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use crate::message::Priority;
use crate::order::ERASED;
use crate::ports::{Listed, Record, RecordKind, Shown};
use crate::task::Task;
use crate::time::Timestamp;

/// The selected orders, among those in the [state](BulkAction::state) that the job's action is for: `Error` or
/// `Compensated`. An absent member selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Selector {
    /// Their state. Only the state of the action can be selected, with or without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
    /// Why they are in `Error`, or were compensated: a code of [`reason`](crate::task::reason).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<Arc<str>>,
    /// The step that failed, and for which a compensated order was compensated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
    /// Only orders that entered their state at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<Timestamp>,
    /// Only orders that entered their state at this time or earlier. A job never selects orders that failed, or were
    /// compensated, after it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_until: Option<Timestamp>,
}

/// An operator's job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Spec {
    /// The operator. Goes into the history of each order.
    pub by: Arc<str>,
    /// The reason. Goes into the history of each order, beside the job's id.
    pub reason: Arc<str>,
    /// What is done with each order.
    #[serde(default, skip_serializing_if = "BulkAction::is_resubmit")]
    pub action: BulkAction,
    /// The selected orders. A settle is of the selected step.
    #[serde(default)]
    pub selector: Selector,
    /// The number of orders that go first, while the others wait for their outcome. An order that another operator has
    /// handled in the meantime proves nothing, so another takes its place.
    #[serde(default = "Spec::default_canary", deserialize_with = "whole_number")]
    pub canary: u32,
    /// The time in which a canary must be settled, in milliseconds; after it, it counts as failed again. The other
    /// orders have the same time, but at least [`SETTLE_TIMEOUT_MS`](super::SETTLE_TIMEOUT_MS).
    #[serde(default = "Spec::default_canary_timeout_ms", deserialize_with = "whole_number")]
    pub canary_timeout_ms: u64,
    /// Orders handled in a second.
    #[serde(default = "Spec::default_rate", deserialize_with = "whole_number")]
    pub rate_per_second: u32,
    /// The largest share of settled orders that may fail again before the job stops, in percent.
    #[serde(default = "Spec::default_stop_at_failed_percent", deserialize_with = "whole_number")]
    pub stop_at_failed_percent: u8,
}

/// Why a [`Spec`] is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// The field's name on the wire.
    pub field: &'static str,
    /// The fault.
    pub problem: String,
}

/// The counts of a dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DryRun {
    /// Orders that match.
    pub matching: u64,
    /// Whether all orders in the state were read; if not, there may be more.
    pub complete: bool,
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Counted; not started yet.
    Planned,
    /// The canaries are in flight.
    Canary,
    /// The others follow.
    Running,
    /// Every selected order is settled. Final.
    Done,
    /// It stopped itself, for this reason. Commands already sent are carried out; no more are sent. Final.
    Stopped(Arc<str>),
    /// An operator stopped it, for this reason. Commands already sent are carried out; no more are sent. Final.
    Cancelled(Arc<str>),
}

/// An order of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// The order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The version of its task, as the job saw it.
    pub version: u64,
    /// Whether it failed during its compensation, so that `Compensated` is its recovery.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoing: bool,
    /// The priority of its command.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// When its command or its new order is first delivered, or when the order was found if nothing is sent yet.
    pub at: Timestamp,
    /// How often its command or its new order was due to be sent again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u8,
}

/// The outcomes of a job's orders so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tally {
    /// Begun.
    pub begun: u64,
    /// Recovered.
    pub recovered: u64,
    /// In `Error` again, compensated instead of carried out, or not settled in time.
    pub failed_again: u64,
    /// Those of `failed_again` that were not settled in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Another operator or job changed them in the meantime.
    pub passed_over: u64,
}

/// A job: the same action on many orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Job {
    /// Its key.
    #[serde(rename = "JobID")]
    pub id: Arc<str>,
    /// +1 at every write; every write is conditional on it.
    pub version: u64,
    /// The operator's job.
    pub spec: Spec,
    /// The counts of the dry run.
    pub dry_run: DryRun,
    /// Its state.
    pub state: JobState,
    /// Its starter, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<Arc<str>>,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// When it entered its state or, during the canaries, when the last of them was begun.
    pub since: Timestamp,
    /// The outcomes of its orders.
    pub tally: Tally,
    /// The cursor of the scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether the scan is complete.
    pub scanned: bool,
    /// Orders that were found and are not begun.
    pub found: Vec<Entry>,
    /// Orders that were begun and are not settled.
    pub under_way: Vec<Entry>,
    /// The earliest time at which the next order may begin.
    pub next_at: Timestamp,
}

impl Record for Job {
    const KIND: RecordKind = RecordKind::Job;

    fn key(&self) -> &str {
        &self.id
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn is_over(&self) -> bool {
        self.state.is_final()
    }

    /// Newest first.
    fn compare(&self, other: &Self) -> Ordering {
        (other.planned_at, &other.id).cmp(&(self.planned_at, &self.id))
    }

    fn shown(&self) -> Vec<(&'static str, Shown)> {
        let ended_at = self.is_over().then_some(("EndedAt", Shown::Time(self.since)));
        [("PlannedAt", Shown::Time(self.planned_at))].into_iter().chain(ended_at).collect()
    }
}

impl Listed for Job {}

/// An operator's action on a job that its state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// Only a planned job can be started.
    #[error("the job was started already")]
    Started,
    /// An ended job does not change.
    #[error("the job is ended")]
    Ended,
}

impl Spec {
    /// Largest rate, in orders a second.
    pub const RATE_MAX: u32 = 1_000;
    /// Most canaries.
    pub const CANARY_MAX: u32 = 100;
    /// Shortest and longest canary time-out, in milliseconds.
    pub const CANARY_TIMEOUT_MS: (u64, u64) = (1_000, 24 * 60 * 60 * 1_000);

    /// The canaries of a job that names no number.
    #[must_use]
    pub const fn default_canary() -> u32 {
        5
    }

    /// Its canary time-out, in milliseconds.
    #[must_use]
    pub const fn default_canary_timeout_ms() -> u64 {
        5 * 60 * 1_000
    }

    /// Its rate, in orders a second.
    #[must_use]
    pub const fn default_rate() -> u32 {
        10
    }

    /// Its share of failed orders, in percent.
    #[must_use]
    pub const fn default_stop_at_failed_percent() -> u8 {
        20
    }

    /// Whether the job can be carried out.
    ///
    /// # Errors
    /// [`SpecError`] with the first wrong field.
    pub fn check(&self) -> Result<(), SpecError> {
        text("By", &self.by, author::CHARS_MAX)?;
        text("Reason", &self.reason, TEXT_CHARS_MAX)?;
        if self.action == BulkAction::Settle && self.selector.step.is_none() {
            return Err(SpecError { field: "Selector.Step", problem: "must name the step that is settled".into() });
        }
        for (field, value) in
            [("Selector.ReasonCode", &self.selector.reason_code), ("Selector.Step", &self.selector.step)]
        {
            value.as_ref().map_or(Ok(()), |value| text(field, value, NAME_CHARS_MAX))?;
        }
        let state = self.action.state().name();
        if self.selector.state.as_ref().is_some_and(|selected| **selected != *state) {
            let problem = format!("must be \"{state}\" for this action, or be left out");
            return Err(SpecError { field: "Selector.State", problem });
        }
        let (timeout_ms_min, timeout_ms_max) = Self::CANARY_TIMEOUT_MS;
        range("Canary", u64::from(self.canary), 0, UNDER_WAY_MAX as u64)?;
        range("CanaryTimeoutMs", self.canary_timeout_ms, timeout_ms_min, timeout_ms_max)?;
        range("RatePerSecond", u64::from(self.rate_per_second), 1, u64::from(Self::RATE_MAX))?;
        range("StopAtFailedPercent", u64::from(self.stop_at_failed_percent), 0, 100)
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

fn text(field: &'static str, value: &str, chars_max: usize) -> Result<(), SpecError> {
    match value.chars().count() {
        0 => Err(SpecError { field, problem: "must not be empty".into() }),
        chars if chars > chars_max => {
            Err(SpecError { field, problem: format!("must have at most {chars_max} characters") })
        }
        _ => Ok(()),
    }
}

fn range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), SpecError> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(SpecError { field, problem: format!("must be from {min} to {max}") }),
    }
}

impl Tally {
    /// The number of orders that are settled by this job.
    #[must_use]
    pub const fn settled(&self) -> u64 {
        self.recovered + self.failed_again
    }
}

impl JobState {
    /// Whether the supervisor has work to do for it.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        match self {
            Self::Canary | Self::Running => true,
            Self::Planned | Self::Done | Self::Stopped(_) | Self::Cancelled(_) => false,
        }
    }

    /// Whether it never changes again.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Done | Self::Stopped(_) | Self::Cancelled(_) => true,
            Self::Planned | Self::Canary | Self::Running => false,
        }
    }
}

impl Job {
    /// A new job, to be written as the first version. It does nothing until it is started.
    ///
    /// # Errors
    /// [`SpecError`] if it could not be carried out.
    pub fn plan(id: Arc<str>, spec: Spec, dry_run: DryRun, now: Timestamp) -> Result<Self, SpecError> {
        spec.check()?;
        let mut job = Self {
            id,
            version: 1,
            spec,
            dry_run,
            state: JobState::Planned,
            started_by: None,
            planned_at: now,
            since: now,
            tally: Tally::default(),
            cursor: None,
            scanned: false,
            found: Vec::new(),
            under_way: Vec::new(),
            next_at: now,
        };
        // An order that fails from now on is not selected. Otherwise an order that fails again would be resubmitted, or
        // posted again, for ever.
        job.spec.selector.failed_until = Some(job.spec.selector.failed_until.map_or(now, |until| until.min(now)));
        Ok(job)
    }

    /// The job after an operator has seen the dry run and starts it.
    ///
    /// # Errors
    /// [`NotNow`] if it was started before, or has ended.
    pub fn start(&self, by: &str, why: &str, now: Timestamp) -> Result<Self, NotNow> {
        match self.state {
            JobState::Planned => {
                let state = if self.spec.canary == 0 { JobState::Running } else { JobState::Canary };
                let started_by = Some(format!("{by}: {why}").into());
                Ok(Self { version: self.version + 1, state, started_by, since: now, ..self.clone() })
            }
            JobState::Canary | JobState::Running => Err(NotNow::Started),
            JobState::Done | JobState::Stopped(_) | JobState::Cancelled(_) => Err(NotNow::Ended),
        }
    }

    /// The job after an operator cancels it.
    ///
    /// # Errors
    /// [`NotNow`] if it has ended.
    pub fn cancel(&self, by: &str, why: &str, now: Timestamp) -> Result<Self, NotNow> {
        if self.state.is_final() {
            return Err(NotNow::Ended);
        }
        let state = JobState::Cancelled(format!("by {by}: {why}").into());
        Ok(Self { version: self.version + 1, state, since: now, ..self.clone() })
    }

    /// The next record, without the reasons that operators gave (rule 46). `None` if it has none. Its operators stay.
    #[must_use]
    pub fn erased(&self) -> Option<Self> {
        let without = |text: &Arc<str>| match text.split_once(": ") {
            Some((by, _)) => format!("{by}: {ERASED}").into(),
            None => text.clone(),
        };
        let mut state = self.state.clone();
        if let JobState::Cancelled(text) = &mut state {
            *text = without(text);
        }
        let started_by = self.started_by.as_ref().map(without);
        let spec = Spec { reason: ERASED.into(), ..self.spec.clone() };
        let is_new = (&spec, &state, &started_by) != (&self.spec, &self.state, &self.started_by);
        is_new.then(|| Self { version: self.version + 1, spec, state, started_by, ..self.clone() })
    }

    /// The time in which an order begun in the job's state must be settled, in milliseconds.
    pub(super) fn timeout_ms(&self) -> u64 {
        match self.state {
            JobState::Canary => self.spec.canary_timeout_ms,
            JobState::Planned | JobState::Running | JobState::Done | JobState::Stopped(_) | JobState::Cancelled(_) => {
                self.spec.canary_timeout_ms.max(SETTLE_TIMEOUT_MS)
            }
        }
    }

    /// Whether the task's history shows that this job handled it, or posted it.
    #[must_use]
    pub fn has_handled(&self, task: &Task) -> bool {
        task.history.iter().any(|line| line.bulk.as_ref() == Some(&self.id))
    }
}
