//! Jobs of operators: few, all under one key, so that a list sees every write.
//!
//! A job lists the orders that it found and those under way, some 1,100 entries of 150 bytes at most, so its item stays
//! below 200 KB. One beyond DynamoDB's 400 KB would be refused at every write, and stand still where it is.

use std::sync::Arc;

use domain::bulk::Job;
use domain::ports::{Commit, Jobs, PortError};

use super::Dynamo;
use super::record::{Item, Reader, number, text, time};
use super::versioned::{Condition, Replacement, shared, told};
use crate::sdk_error::port_error;

/// The key that all jobs share.
const KIND: &str = "job";
/// Ended jobs that are kept; of more the oldest go.
const ENDED_KEPT: usize = 100;
/// Jobs deleted after one write.
const FORGOTTEN_MAX: usize = 10;

impl Jobs for Dynamo {
    async fn job(&self, job_id: &str) -> Result<Option<Arc<Job>>, PortError> {
        const OPERATION: &str = "jobs.job";
        let found = self.get_versioned(OPERATION, &self.tables().jobs, key(job_id)).await?;
        found.map(|item| shared(OPERATION, item)).transpose()
    }

    async fn set_job(&self, version_before: u64, job: Arc<Job>) -> Result<Commit, PortError> {
        const OPERATION: &str = "jobs.set_job";
        let mut item = key(&job.id);
        item.insert("PlannedAt".to_owned(), time(job.planned_at));
        if job.state.is_final() {
            item.insert("EndedAt".to_owned(), time(job.since));
        }
        let replacement = Replacement {
            operation: OPERATION,
            table: &self.tables().jobs,
            item,
            version: job.version,
            record: &*job,
            condition: Condition { version_before, now: None },
        };
        let commit = self.put_versioned(replacement).await?;
        if commit == Commit::Committed && job.state.is_final() {
            // The job is written, whatever becomes of the others: the next one that ends tries again.
            if let Err(error) = self.forget_ended(OPERATION).await {
                tracing::warn!("ended jobs are not deleted: {}", told(&error));
            }
        }
        Ok(commit)
    }

    async fn jobs(&self) -> Result<Vec<Arc<Job>>, PortError> {
        const OPERATION: &str = "jobs.jobs";
        let items = self.all_jobs(OPERATION, None).await?;
        let jobs = items.into_iter().map(|item| shared::<Job>(OPERATION, item));
        // A job of another form is left alone: nobody can carry it on, and the others must go on.
        let jobs =
            jobs.filter_map(|job| job.inspect_err(|error| tracing::error!("a job cannot be read: {error}")).ok());
        let mut jobs: Vec<_> = jobs.collect();
        jobs.sort_by(|one, other| (other.planned_at, &other.id).cmp(&(one.planned_at, &one.id)));
        Ok(jobs)
    }
}

impl Dynamo {
    /// All items, or what a projection shows of them.
    async fn all_jobs(&self, operation: &'static str, projection: Option<&str>) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().jobs)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(KIND))
                .set_projection_expression(projection.map(str::to_owned))
                .consistent_read(true)
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| port_error(operation, &error))?;
            all.extend(page.items.into_iter().flatten());
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(all);
            }
        }
    }

    /// Deletes the oldest ended jobs beyond those that are kept.
    async fn forget_ended(&self, operation: &'static str) -> Result<(), PortError> {
        let mut ended = Vec::new();
        for item in self.all_jobs(operation, Some("JobID, PlannedAt, EndedAt, Version")).await? {
            let mut reader = Reader::new(item);
            let job = (|| {
                let is_ended = reader.time_if("EndedAt")?.is_some();
                let job = (reader.time("PlannedAt")?, reader.text("JobID")?, reader.number::<u64>("Version")?);
                Ok(is_ended.then_some(job))
            })();
            ended.extend(job.map_err(|error: super::record::Unreadable| PortError::refused(operation, error))?);
        }
        ended.sort_unstable_by(|one, other| other.cmp(one));
        for (_, job_id, version) in ended.into_iter().skip(ENDED_KEPT).take(FORGOTTEN_MAX) {
            let request = self
                .client()
                .delete_item()
                .table_name(&self.tables().jobs)
                .set_key(Some(key(&job_id)))
                .condition_expression("Version = :seen")
                .expression_attribute_values(":seen", number(version));
            request.send().await.map_err(|error| port_error(operation, &error))?;
        }
        Ok(())
    }
}

fn key(job_id: &str) -> Item {
    Item::from([("Kind".to_owned(), text(KIND)), ("JobID".to_owned(), text(job_id))])
}
