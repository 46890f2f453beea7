//! Versioned records: the health of services, memos of agents, jobs of operators, definitions of workflows, leases of
//! supervisors, outcomes of dead letters.
//!
//! All of them follow one rule: a record is replaced as a whole, and only by a writer that saw its last version. The
//! design says how a kind of record is added.

use std::cmp::Ordering;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Commit, PortError};
use crate::limits::CONFLICTS_MAX;
use crate::time::Timestamp;

/// Versioned records of all kinds.
pub trait Records: Send + Sync {
    /// The record under this key. The answer includes every write that was acknowledged before: an agent that has just
    /// started must find an open breaker open. A record that has expired may be returned or not.
    ///
    /// # Errors
    /// [`PortError`] when the record cannot be read.
    fn get<R: Record>(&self, key: &str) -> impl Future<Output = Result<Option<R>, PortError>> + Send;

    /// Writes a record, if the stored version is still the one that was seen. Of several writers that saw the same version
    /// one wins. Answers only once the record cannot be lost any more.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the write happened; read again.
    fn put<R: Record>(&self, seen: Seen, record: &R) -> impl Future<Output = Result<Commit, PortError>> + Send;

    /// The first `limit` records of a kind in the order of [`Record::compare`]. A record that is over may be missing if
    /// [`Record::OVER_KEPT`] others are over and come before it.
    ///
    /// # Errors
    /// [`PortError`] when the records cannot be read.
    fn list<R: Listed>(&self, limit: usize) -> impl Future<Output = Result<Vec<R>, PortError>> + Send;
}

/// A record that is replaced as a whole, and only by a writer that saw its last version.
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its kind.
    const KIND: RecordKind;
    /// Records that are over ([`Record::is_over`]) and that a store keeps at least; more may be deleted.
    const OVER_KEPT: usize = 100;

    /// Its key, unique within its kind.
    fn key(&self) -> &str;

    /// 1 in the first write, unless a kind says otherwise; +1 at every change.
    fn version(&self) -> u64;

    /// The time from which on it counts as absent, and after which a store may delete it. `None`: it stays.
    fn expires_at(&self) -> Option<Timestamp> {
        None
    }

    /// Whether it is needed no more. A store keeps the first [`Record::OVER_KEPT`] of such records in a list, and may
    /// delete the others.
    fn is_over(&self) -> bool {
        false
    }

    /// The order of lists: by key, unless a kind says otherwise. Of a listed kind that is over from the start and expires,
    /// the one that expires last comes first.
    fn compare(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }

    /// Attributes that a table shows beside the record, for people and for maintenance.
    fn shown(&self) -> Vec<(&'static str, Shown)> {
        Vec::new()
    }
}

/// A record of which there are few, so that all of them can be listed.
pub trait Listed: Record {}

/// The value of an attribute beside a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A text.
    Text(String),
    /// A time.
    Time(Timestamp),
}

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// The health of a remote service.
    Service,
    /// The memo of an agent about the calls under one idempotency key.
    Memo,
    /// The job of an operator.
    Job,
    /// A version of a workflow.
    Definition,
    /// What new orders begin with, and the settings of the agents.
    Deployment,
    /// An alert about a cause.
    Alert,
    /// The lease of a supervisor.
    Lease,
    /// The outcome of a dead letter.
    DeadLetter,
    /// The mark of a schedule.
    Schedule,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Service,
        Self::Memo,
        Self::Job,
        Self::Definition,
        Self::Deployment,
        Self::Alert,
        Self::Lease,
        Self::DeadLetter,
        Self::Schedule,
    ];

    /// The name of [`Records::get`] for this kind in errors and logs.
    #[must_use]
    pub const fn get(self) -> &'static str {
        match self {
            Self::Service => "services.health",
            Self::Memo => "memos.memo",
            Self::Job => "jobs.job",
            Self::Definition => "definitions.definition",
            Self::Deployment => "definitions.deployment",
            Self::Alert => "alerts.alert",
            Self::Lease => "leases.lease",
            Self::DeadLetter => "letters.letter",
            Self::Schedule => "schedules.schedule",
        }
    }

    /// The name of [`Records::put`] for this kind in errors and logs.
    #[must_use]
    pub const fn put(self) -> &'static str {
        match self {
            Self::Service => "services.set_health",
            Self::Memo => "memos.set_memo",
            Self::Job => "jobs.set_job",
            Self::Definition => "definitions.set_definition",
            Self::Deployment => "definitions.set_deployment",
            Self::Alert => "alerts.set_alert",
            Self::Lease => "leases.set_lease",
            Self::DeadLetter => "letters.set_letter",
            Self::Schedule => "schedules.set_schedule",
        }
    }

    /// The name of [`Records::list`] for this kind in errors and logs.
    #[must_use]
    pub const fn list(self) -> &'static str {
        match self {
            Self::Service => "services.all_health",
            Self::Memo => "memos.memos",
            Self::Job => "jobs.jobs",
            Self::Definition => "definitions.definitions",
            Self::Deployment => "definitions.deployments",
            Self::Alert => "alerts.alerts",
            Self::Lease => "leases.leases",
            Self::DeadLetter => "letters.letters",
            Self::Schedule => "schedules.schedules",
        }
    }
}

/// What a writer saw of a record before it changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The version of the record; 0 if there was none.
    pub version: u64,
    /// The time of the look, which decides whether a stored record has expired.
    pub at: Timestamp,
}

impl Seen {
    /// The writer saw this version.
    #[must_use]
    pub const fn version(version: u64, at: Timestamp) -> Self {
        Self { version, at }
    }

    /// The writer saw no record.
    #[must_use]
    pub const fn nothing(at: Timestamp) -> Self {
        Self { version: 0, at }
    }
}

/// Reads a record, and writes what `next` makes of it; a record that has expired at `now` is none. Returns what was
/// written. `None`: `next` wants no write, or another writer was first.
///
/// # Errors
/// As [`Records::get`] and [`Records::put`].
pub async fn change<R: Record>(
    records: &impl Records,
    key: &str,
    now: Timestamp,
    next: impl FnOnce(Option<&R>) -> Option<R> + Send,
) -> Result<Option<R>, PortError> {
    let stored = records.get::<R>(key).await?.filter(|stored| stored.expires_at().is_none_or(|at| at > now));
    let Some(after) = next(stored.as_ref()) else { return Ok(None) };
    let seen = Seen::version(stored.as_ref().map_or(0, R::version), now);
    Ok((records.put(seen, &after).await? == Commit::Committed).then_some(after))
}

/// Writes what `next` makes of a record as it was read, or of a later version of it. It is done once `next` wants no write,
/// or the record is gone.
///
/// # Errors
/// As [`Records::get`] and [`Records::put`], and if the record changes again and again.
pub async fn replace<R: Record>(
    records: &impl Records,
    mut record: R,
    now: Timestamp,
    next: impl Fn(&R) -> Option<R> + Send,
) -> Result<(), PortError> {
    for _ in 0..CONFLICTS_MAX {
        let Some(after) = next(&record) else { return Ok(()) };
        if records.put(Seen::version(record.version(), now), &after).await? == Commit::Committed {
            return Ok(());
        }
        let Some(later) = records.get(record.key()).await? else { return Ok(()) };
        record = later;
    }
    Err(PortError::unavailable(R::KIND.put(), "the record changes again and again"))
}

/// The records as a list of this kind shows them: sorted, and at most `limit`.
#[must_use]
pub fn sorted<R: Record>(mut records: Vec<R>, limit: usize) -> Vec<R> {
    records.sort_by(R::compare);
    records.truncate(limit);
    records
}

/// The records that may go: those that are over beyond the first [`Record::OVER_KEPT`].
#[must_use]
pub fn surplus<R: Record>(mut records: Vec<R>) -> Vec<R> {
    records.retain(R::is_over);
    records.sort_by(R::compare);
    records.drain(..R::OVER_KEPT.min(records.len()));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_all_kinds_lacks_none() {
        // A new kind needs an arm here, and a place in the list.
        let next = |kind: &RecordKind| match kind {
            RecordKind::Service => Some(RecordKind::Memo),
            RecordKind::Memo => Some(RecordKind::Job),
            RecordKind::Job => Some(RecordKind::Definition),
            RecordKind::Definition => Some(RecordKind::Deployment),
            RecordKind::Deployment => Some(RecordKind::Alert),
            RecordKind::Alert => Some(RecordKind::Lease),
            RecordKind::Lease => Some(RecordKind::DeadLetter),
            RecordKind::DeadLetter => Some(RecordKind::Schedule),
            RecordKind::Schedule => None,
        };
        let all = std::iter::successors(Some(RecordKind::Service), next);
        assert_eq!(all.collect::<Vec<_>>(), RecordKind::ALL);
    }
}
