//! All jobs of operators. There are few, and they share one key, so that a list sees every write.
//!
//! A job lists the orders that it found and those in flight: about 1,100 entries of at most 150 bytes. Its item
//! therefore stays below 200 KB. DynamoDB would refuse every write of an item beyond 400 KB, and the job would make no
//! progress.

use domain::ports::PortError;

use super::Dynamo;
use super::record::{Item, text};
use super::records::JOB;
use crate::sdk_error::port_error;

impl Dynamo {
    /// All items.
    pub(super) async fn all_jobs(&self, operation: &'static str) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().jobs)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(JOB))
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
}
