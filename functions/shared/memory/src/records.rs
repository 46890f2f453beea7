//! The health of the services, memos, jobs, and what became of dead letters.

use std::sync::Arc;

use domain::bulk::Job;
use domain::ports::{
    Commit, DEAD_LETTERS_KEPT, DeadLetterRecord, DeadLetterRecords, Jobs, Memo, Memos, PortError, ServiceHealth,
    Services,
};
use domain::time::Timestamp;

use super::Memory;

/// Ended jobs that are kept.
const ENDED_JOBS_KEPT: usize = 100;

impl Services for Memory {
    async fn health(&self, service: &str) -> Result<Option<ServiceHealth>, PortError> {
        self.work("services.health", |state| state.services.get(service).cloned())
    }

    async fn set_health(&self, version_before: u64, after: ServiceHealth) -> Result<Commit, PortError> {
        self.work("services.set_health", |state| {
            if state.services.get(&after.service).map_or(0, |health| health.version) != version_before {
                return Commit::Conflict;
            }
            state.services.insert(after.service.clone(), after);
            Commit::Committed
        })
    }

    async fn all_health(&self) -> Result<Vec<ServiceHealth>, PortError> {
        self.work("services.all_health", |state| state.services.values().cloned().collect())
    }
}

impl Memos for Memory {
    async fn memo(&self, key: &str, now: Timestamp) -> Result<Option<Memo>, PortError> {
        self.work("memos.memo", |state| state.memos.get(key).filter(|memo| memo.expires_at > now).cloned())
    }

    async fn set_memo(&self, version_before: u64, memo: Memo, now: Timestamp) -> Result<Commit, PortError> {
        self.work("memos.set_memo", |state| {
            state.memos.retain(|_, stored| stored.expires_at > now);
            if state.memos.get(&memo.key).map_or(0, |stored| stored.version) != version_before {
                return Commit::Conflict;
            }
            state.memos.insert(memo.key.clone(), memo);
            Commit::Committed
        })
    }
}

impl Jobs for Memory {
    async fn job(&self, job_id: &str) -> Result<Option<Arc<Job>>, PortError> {
        self.work("jobs.job", |state| state.jobs.iter().find(|job| &*job.id == job_id).cloned())
    }

    async fn set_job(&self, version_before: u64, job: Arc<Job>) -> Result<Commit, PortError> {
        self.work("jobs.set_job", |state| {
            let place = state.jobs.iter().position(|stored| stored.id == job.id);
            if place.map_or(0, |place| state.jobs[place].version) != version_before {
                return Commit::Conflict;
            }
            place.map(|place| state.jobs.remove(place));
            state.jobs.push(job);
            state.jobs.sort_by(|one, other| (other.planned_at, &other.id).cmp(&(one.planned_at, &one.id)));
            let mut ended = 0;
            state.jobs.retain(|job| {
                ended += usize::from(job.state.is_final());
                !job.state.is_final() || ended <= ENDED_JOBS_KEPT
            });
            Commit::Committed
        })
    }

    async fn jobs(&self) -> Result<Vec<Arc<Job>>, PortError> {
        self.work("jobs.jobs", |state| state.jobs.clone())
    }
}

impl DeadLetterRecords for Memory {
    async fn record(&self, settled: DeadLetterRecord) -> Result<(), PortError> {
        self.work("letters.record", |state| {
            state.dead_letter_records.retain(|record| record.message_id != settled.message_id);
            state.dead_letter_records.insert(0, settled);
            // Stable: of those settled at the same time the last written stays first.
            state.dead_letter_records.sort_by_key(|record| std::cmp::Reverse(record.settled_at));
            state.dead_letter_records.truncate(DEAD_LETTERS_KEPT);
        })
    }

    async fn dead_letter_records(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        self.work("letters.letters", |state| state.dead_letter_records.iter().take(limit).cloned().collect())
    }
}
