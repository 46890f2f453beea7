//! Records that share a partition key by their kind: the jobs of operators, the definitions, and dead letters. Of all but
//! dead letters there are few, and a list of one partition sees every write.
//!
//! A job lists the orders that it found and those in flight: about 1,100 entries of at most 150 bytes. Its item
//! therefore stays below 200 KB. A definition is at most 64 KB. DynamoDB would refuse every write of an item beyond
//! 400 KB, and a job would make no progress.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::ports::PortError;

use super::Dynamo;
use super::due::limit_of;
use super::record::{Item, text};
use super::schema::SETTLED;
use crate::sdk_error::port_error;

impl Dynamo {
    /// All items of the partition `kind` of a table with the key `Kind`.
    pub(super) async fn partition(
        &self,
        operation: &'static str,
        table: &str,
        kind: &str,
    ) -> Result<Vec<Item>, PortError> {
        self.pages(operation, usize::MAX, self.of_kind(table, kind).consistent_read(true)).await
    }

    /// The items of the partition `kind` that were settled last, at most `limit`. The answer may lag behind the writes.
    pub(super) async fn newest(
        &self,
        operation: &'static str,
        table: &str,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<Item>, PortError> {
        let request = self.of_kind(table, kind).index_name(SETTLED.name).scan_index_forward(false);
        self.pages(operation, limit, request).await
    }

    fn of_kind(&self, table: &str, kind: &str) -> QueryFluentBuilder {
        let request = self.client().query().table_name(table).key_condition_expression("Kind = :kind");
        request.expression_attribute_values(":kind", text(kind))
    }

    /// The first `limit` items that a query finds.
    async fn pages(
        &self,
        operation: &'static str,
        limit: usize,
        request: QueryFluentBuilder,
    ) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        while all.len() < limit {
            let page = request.clone().limit(limit_of(limit - all.len())).set_exclusive_start_key(start);
            let page = page.send().await.map_err(|error| port_error(operation, &error))?;
            all.extend(page.items.into_iter().flatten());
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(all)
    }
}
