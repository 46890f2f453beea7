//! The job's record, and what an operator does to it.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{SETTLE_TIMEOUT_MS, UNDER_WAY_MAX};
use crate::id::OrderId;
use crate::json::whole_number;
use crate::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use crate::message::Priority;
use crate::ports::{Listed, Record, RecordKind, Shown};
use crate::task::{ProcessState, Task, What, bulk_mark};
use crate::time::Timestamp;

/// Which orders in `Error` are meant; what is not given does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Selector {
    /// In which state they are. Only `Error` can be meant, with or without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
    /// Why they are in `Error`: one of the codes of [`reason`](crate::task::reason).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<Arc<str>>,
    /// The step that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
    /// Not those that came into `Error` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<Timestamp>,
    /// Not those that came into `Error` later. A job never reaches beyond the time it was planned at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_until: Option<Timestamp>,
}

/// What an operator wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Spec {
    /// Who wants it. Goes into the history of each order.
    pub by: Arc<str>,
    /// Why. Goes into the history of each order, behind the job's id.
    pub reason: Arc<str>,
    /// Which orders.
    #[serde(default)]
    pub selector: Selector,
    /// So many orders go first, and the others wait for how they fare. One that somebody else saw to in the meantime
    /// proves nothing, so another takes its place.
    #[serde(default = "Spec::default_canary", deserialize_with = "whole_number")]
    pub canary: u32,
    /// How long a canary has to be settled, in milliseconds; then it counts as failed again. The others have as long,
    /// but at least [`SETTLE_TIMEOUT_MS`](super::SETTLE_TIMEOUT_MS).
    #[serde(default = "Spec::default_canary_timeout_ms", deserialize_with = "whole_number")]
    pub canary_timeout_ms: u64,
    /// Orders resubmitted in a second.
    #[serde(default = "Spec::default_rate", deserialize_with = "whole_number")]
    pub rate_per_second: u32,
    /// The job stops when a larger share of the settled orders failed again, in percent.
    #[serde(default = "Spec::default_stop_at_failed_percent", deserialize_with = "whole_number")]
    pub stop_at_failed_percent: u8,
}

/// Why a [`Spec`] is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// The field's name on the wire.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// What a dry run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DryRun {
    /// Orders that would be resubmitted.
    pub matching: u64,
    /// Whether all orders in `Error` were looked at; if not there may be more.
    pub complete: bool,
}

/// Where a job is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Counted; waits for its start.
    Planned,
    /// The first few are on their way.
    Canary,
    /// The others follow.
    Running,
    /// Every order that was meant is settled. Final.
    Done,
    /// It stopped itself, and why. What was sent is carried out; nothing more is sent. Final.
    Stopped(Arc<str>),
    /// An operator stopped it, and why. What was sent is carried out; nothing more is sent. Final.
    Cancelled(Arc<str>),
}

/// An order that a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// Which order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The version of its task that was seen in `Error`.
    pub version: u64,
    /// Whether it failed while it was undone, so that being undone is its recovery.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoing: bool,
    /// The priority of its command.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// When its command is delivered for the first time, or was found where that has not been sent.
    pub at: Timestamp,
    /// How often its command fell due to be sent again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u8,
}

/// What became of a job's orders so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tally {
    /// Put on their way.
    pub begun: u64,
    /// Ended well after it.
    pub recovered: u64,
    /// In `Error` again, undone instead of carried out, or not settled in time.
    pub failed_again: u64,
    /// Those of `failed_again` that were not settled in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Somebody else had done something about them in the meantime.
    pub passed_over: u64,
}

/// A job: the resubmission of many orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Job {
    /// Its key.
    #[serde(rename = "JobID")]
    pub id: Arc<str>,
    /// +1 at every write; every write is conditional on it.
    pub version: u64,
    /// What is wanted.
    pub spec: Spec,
    /// What the dry run counted.
    pub dry_run: DryRun,
    /// Where it is on its way.
    pub state: JobState,
    /// Who started it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<Arc<str>>,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// When it came into its state, or, among canaries, when the last of them was put on its way.
    pub since: Timestamp,
    /// What became of its orders.
    pub tally: Tally,
    /// Where the scan of the orders in `Error` goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether the scan is through.
    pub scanned: bool,
    /// Orders that wait for their turn.
    #[serde(default)]
    pub found: Vec<Entry>,
    /// Orders that were put on their way and are not settled.
    #[serde(default)]
    pub under_way: Vec<Entry>,
    /// When the next order may be put on its way at the earliest.
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

/// What an operator wants of a job is not possible in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// Only a planned job can be started.
    #[error("the job was started already")]
    Started,
    /// Ended is ended.
    #[error("the job is ended")]
    Ended,
}

impl Spec {
    /// Orders in a second at most.
    pub const RATE_MAX: u32 = 1_000;
    /// Shortest and longest canary time-out, in milliseconds.
    pub const CANARY_TIMEOUT_MS: (u64, u64) = (1_000, 24 * 60 * 60 * 1_000);

    const fn default_canary() -> u32 {
        5
    }

    const fn default_canary_timeout_ms() -> u64 {
        5 * 60 * 1_000
    }

    const fn default_rate() -> u32 {
        10
    }

    const fn default_stop_at_failed_percent() -> u8 {
        20
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// [`SpecError`] with the first field that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        text("By", &self.by, TEXT_CHARS_MAX)?;
        text("Reason", &self.reason, TEXT_CHARS_MAX)?;
        for (field, value) in
            [("Selector.ReasonCode", &self.selector.reason_code), ("Selector.Step", &self.selector.step)]
        {
            value.as_ref().map_or(Ok(()), |value| text(field, value, NAME_CHARS_MAX))?;
        }
        if self.selector.state.as_ref().is_some_and(|state| **state != *ProcessState::Error.name()) {
            return Err(SpecError { field: "Selector.State", problem: "must be \"Error\", or be left out".into() });
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
    /// Orders that showed whether the cause is mended.
    #[must_use]
    pub const fn settled(&self) -> u64 {
        self.recovered + self.failed_again
    }
}

impl JobState {
    /// The supervisor has something to do for it.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        match self {
            Self::Canary | Self::Running => true,
            Self::Planned | Self::Done | Self::Stopped(_) | Self::Cancelled(_) => false,
        }
    }

    /// Nothing changes it any more.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Done | Self::Stopped(_) | Self::Cancelled(_) => true,
            Self::Planned | Self::Canary | Self::Running => false,
        }
    }
}

impl Job {
    /// A new job, to be written with `version_before` 0. It does nothing until it is started.
    ///
    /// # Errors
    /// [`SpecError`] when it could not be carried out.
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
        // What fails from now on is not meant, or an order that fails again would be resubmitted for ever.
        job.spec.selector.failed_until = Some(job.spec.selector.failed_until.map_or(now, |until| until.min(now)));
        Ok(job)
    }

    /// The job as it is once an operator has seen the dry run and wants it done.
    ///
    /// # Errors
    /// [`NotNow`] when it was started before, or is ended.
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

    /// The job as it is once an operator does not want it any more.
    ///
    /// # Errors
    /// [`NotNow`] when it is ended.
    pub fn cancel(&self, by: &str, why: &str, now: Timestamp) -> Result<Self, NotNow> {
        if self.state.is_final() {
            return Err(NotNow::Ended);
        }
        let state = JobState::Cancelled(format!("by {by}: {why}").into());
        Ok(Self { version: self.version + 1, state, since: now, ..self.clone() })
    }

    /// How long an order that is put on its way in the job's state has to be settled, in milliseconds.
    pub(super) fn timeout_ms(&self) -> u64 {
        match self.state {
            JobState::Canary => self.spec.canary_timeout_ms,
            JobState::Planned | JobState::Running | JobState::Done | JobState::Stopped(_) | JobState::Cancelled(_) => {
                self.spec.canary_timeout_ms.max(SETTLE_TIMEOUT_MS)
            }
        }
    }

    /// The reason that goes into the history of each order.
    #[must_use]
    pub fn reason(&self) -> Arc<str> {
        (bulk_mark(&self.id) + &self.spec.reason).into()
    }

    /// Whether the task's history shows that this job resubmitted it.
    #[must_use]
    pub fn has_resubmitted(&self, task: &Task) -> bool {
        task.history
            .iter()
            .any(|line| matches!(&line.what, What::Resubmitted { bulk: Some(job_id) } if *job_id == self.id))
    }
}
