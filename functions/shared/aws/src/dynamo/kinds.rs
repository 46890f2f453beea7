//! Records that share a partition key by their kind: the jobs of operators, and the definitions. There are few, and a
//! list of one partition sees every write.
//!
//! A job lists the orders that it found and those in flight: about 1,100 entries of at most 150 bytes. Its item
//! therefore stays below 200 KB. A definition is at most 64 KB. DynamoDB would refuse every write of an item beyond
//! 400 KB, and a job would make no progress.

use domain::ports::PortError;

use super::Dynamo;
use super::record::{Item, text};
use crate::sdk_error::port_error;

impl Dynamo {
    /// All items of the partition `kind` of a table with the key `Kind`.
    pub(super) async fn partition(
        &self,
        operation: &'static str,
        table: &str,
        kind: &str,
    ) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let request = self
                .client()
                .query()
                .table_name(table)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(kind))
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
