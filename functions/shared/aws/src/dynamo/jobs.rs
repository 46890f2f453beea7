//! All jobs of operators. There are few, and they share one key, so that a list sees every write.
//!
//! A job lists the orders that it found and those in flight: about 1,100 entries of at most 150 bytes. Its item
//! therefore stays below 200 KB. DynamoDB would refuse every write of an item beyond 400 KB, and the job would make no
//! progress.

use domain::ports::{OVER_KEPT, PortError, RecordKind};

use super::Dynamo;
use super::record::{Item, Reader, Unreadable, number, text};
use super::records::{JOB, key_of};
use crate::sdk_error::port_error;

/// The maximum number of jobs deleted after one write.
const FORGOTTEN_MAX: usize = 10;

impl Dynamo {
    /// All items, or the projected attributes of each.
    pub(super) async fn all_jobs(
        &self,
        operation: &'static str,
        projection: Option<&str>,
    ) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().jobs)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(JOB))
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

    /// Deletes the oldest ended jobs beyond the number to keep.
    pub(super) async fn forget_ended_jobs(&self, operation: &'static str) -> Result<(), PortError> {
        let mut ended = Vec::new();
        for item in self.all_jobs(operation, Some("JobID, PlannedAt, EndedAt, Version")).await? {
            let mut reader = Reader::new(item);
            let job = (|| {
                let is_ended = reader.time_if("EndedAt")?.is_some();
                let job = (reader.time("PlannedAt")?, reader.text("JobID")?, reader.number::<u64>("Version")?);
                Ok(is_ended.then_some(job))
            })();
            ended.extend(job.map_err(|error: Unreadable| PortError::refused(operation, error))?);
        }
        ended.sort_unstable_by(|one, other| other.cmp(one));
        for (_, job_id, version) in ended.into_iter().skip(OVER_KEPT).take(FORGOTTEN_MAX) {
            let request = self
                .client()
                .delete_item()
                .table_name(&self.tables().jobs)
                .set_key(Some(key_of(RecordKind::Job, &job_id)))
                .condition_expression("Version = :seen")
                .expression_attribute_values(":seen", number(version));
            request.send().await.map_err(|error| port_error(operation, &error))?;
        }
        Ok(())
    }
}
