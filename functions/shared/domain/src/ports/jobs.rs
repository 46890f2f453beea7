//! The jobs that operators gave and that outlive any instance.

use std::future::Future;
use std::sync::Arc;

use super::{Commit, PortError};
use crate::bulk::Job;

/// Jobs by id. Small in number: one for each time that an operator resubmits many orders.
pub trait Jobs: Send + Sync {
    /// The job of this id, as last written.
    ///
    /// # Errors
    /// [`PortError`] when it cannot be read.
    fn job(&self, job_id: &str) -> impl Future<Output = Result<Option<Arc<Job>>, PortError>> + Send;

    /// Writes a job, if the stored version is still `version_before` (0: there is none of this id). Answers only once it
    /// cannot be lost any more.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; read again, decide again.
    fn set_job(&self, version_before: u64, job: Arc<Job>) -> impl Future<Output = Result<Commit, PortError>> + Send;

    /// All that are not ended, and of those that are the newest, at least 100; newest first by `PlannedAt`.
    ///
    /// # Errors
    /// [`PortError`] when they cannot be read.
    fn jobs(&self) -> impl Future<Output = Result<Vec<Arc<Job>>, PortError>> + Send;
}
