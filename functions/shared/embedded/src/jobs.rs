//! Jobs: few, so they are all in memory. Conditions are decided on the latest queued writes, and shown is only what is
//! durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::bulk::Job;
use domain::ports::{Commit, Jobs, PortError};
use rusqlite::{Connection, params};

use crate::core::{State, lock};
use crate::engine::Engine;
use crate::log::Write;
use crate::writer::json;

/// Ended jobs that are kept; of more the oldest go.
const ENDED_KEPT: usize = 100;

type ById = BTreeMap<Arc<str>, Arc<Job>>;

/// All jobs that are kept.
#[derive(Debug)]
pub(crate) struct KnownJobs {
    /// As of the latest queued write.
    queued: ById,
    /// As they are on disk.
    durable: ById,
}

impl Jobs for Engine {
    async fn job(&self, job_id: &str) -> Result<Option<Arc<Job>>, PortError> {
        Ok(lock(&self.core().state).jobs.durable.get(job_id).cloned())
    }

    async fn set_job(&self, version_before: u64, job: Arc<Job>) -> Result<Commit, PortError> {
        let durable = {
            let State { jobs, log, .. } = &mut *lock(&self.core().state);
            if jobs.queued.get(&job.id).map_or(0, |stored| stored.version) != version_before {
                return Ok(Commit::Conflict);
            }
            let forgotten = set(&mut jobs.queued, job.clone());
            log.append_awaited(Write::Job { job, forgotten })
        };
        durable.reached("jobs.set_job").await?;
        Ok(Commit::Committed)
    }

    async fn jobs(&self) -> Result<Vec<Arc<Job>>, PortError> {
        let mut all: Vec<_> = lock(&self.core().state).jobs.durable.values().cloned().collect();
        sort(&mut all);
        Ok(all)
    }
}

impl KnownJobs {
    /// What the disk knows. A job of another form is left alone: nobody can carry it on.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT body FROM jobs")?;
        let bodies = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut durable = ById::new();
        for body in bodies {
            match serde_json::from_str::<Job>(&body?) {
                Ok(job) => drop(durable.insert(job.id.clone(), Arc::new(job))),
                Err(error) => tracing::error!("a job cannot be read: {error}"),
            }
        }
        Ok(Self { queued: durable.clone(), durable })
    }

    /// This write is durable.
    pub(crate) fn written(&mut self, job: Arc<Job>, forgotten: &[Arc<str>]) {
        self.durable.insert(job.id.clone(), job);
        forgotten.iter().for_each(|job_id| drop(self.durable.remove(job_id)));
    }

    /// What is queued is lost.
    pub(crate) fn forget(&mut self) {
        self.queued.clone_from(&self.durable);
    }
}

/// Puts a job in, and takes out ended ones beyond those that are kept. Gives the ids of those.
fn set(jobs: &mut ById, job: Arc<Job>) -> Vec<Arc<str>> {
    jobs.insert(job.id.clone(), job);
    let mut ended: Vec<_> = jobs.values().filter(|job| job.state.is_final()).cloned().collect();
    sort(&mut ended);
    let forgotten: Vec<_> = ended.into_iter().skip(ENDED_KEPT).map(|job| job.id.clone()).collect();
    forgotten.iter().for_each(|job_id| drop(jobs.remove(job_id)));
    forgotten
}

/// Newest first.
fn sort(jobs: &mut [Arc<Job>]) {
    jobs.sort_by(|one, other| (other.planned_at, &other.id).cmp(&(one.planned_at, &one.id)));
}

/// Writes a job, and deletes those that make room for it.
pub(crate) fn write(connection: &Connection, job: &Job, forgotten: &[Arc<str>]) -> rusqlite::Result<()> {
    const WRITE: &str = "INSERT OR REPLACE INTO jobs (job_id, version, body) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(WRITE)?.execute(params![job.id, job.version, json(job)?])?;
    for job_id in forgotten {
        connection.prepare_cached("DELETE FROM jobs WHERE job_id = ?1")?.execute([job_id])?;
    }
    Ok(())
}
