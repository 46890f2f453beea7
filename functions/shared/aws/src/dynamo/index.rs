//! What orders are found by (rule 28): one item for each term of an order.
//!
//! The items are written before their order, so that each stored order is in the index. An item may be there without its
//! order: the index only says which orders to look at.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::OrderId;
use domain::index::Term;
use domain::ports::{ListError, Page, PortError};
use futures_util::future::try_join_all;

use super::Dynamo;
use super::due::limit_of;
use super::read::KEYS_MAX;
use super::record::{Item, text};
use crate::sdk_error::port_error;

const KEEP: &str = "store.insert";
const FIND: &str = "store.found";

impl Dynamo {
    /// Puts an order into the index. Twice is once.
    pub(super) async fn put_terms(
        &self,
        order_id: OrderId,
        terms: impl IntoIterator<Item = AttributeValue>,
    ) -> Result<(), PortError> {
        let puts = terms.into_iter().map(async |term| {
            let put = self.client().put_item().table_name(&self.tables().index);
            let put = put.item("Term", term).item("OrderID", text(order_id.to_string())).send().await;
            put.map(drop).map_err(|error| port_error(KEEP, &error))
        });
        try_join_all(puts).await.map(drop)
    }

    /// Takes an order out of the index. Twice is once.
    pub(super) async fn delete_terms(
        &self,
        operation: &'static str,
        order_id: OrderId,
        terms: impl IntoIterator<Item = AttributeValue>,
    ) -> Result<(), PortError> {
        let deletes = terms.into_iter().map(async |term| {
            let delete = self.client().delete_item().table_name(&self.tables().index).key("Term", term);
            let deleted = delete.key("OrderID", text(order_id.to_string())).send().await;
            deleted.map(drop).map_err(|error| port_error(operation, &error))
        });
        try_join_all(deletes).await.map(drop)
    }

    /// The orders of a term, the newest first: ids begin with the time at which they were made, unless they follow from
    /// an idempotency key.
    pub(super) async fn found_page(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        let after = after.map(|id| id.parse().map_err(|_| ListError::Cursor)).transpose()?;
        let request = self
            .client()
            .query()
            .table_name(&self.tables().index)
            .key_condition_expression("Term = :term")
            .expression_attribute_values(":term", text(term.text()))
            .scan_index_forward(false)
            .limit(limit_of(limit.min(KEYS_MAX)))
            .set_exclusive_start_key(after.map(|order_id| key(term, order_id)));
        let found = request.send().await.map_err(|error| port_error(FIND, &error))?;
        let id = |item: &Item| item.get("OrderID")?.as_s().ok()?.parse::<OrderId>().ok();
        let ids: Vec<_> = found.items.iter().flatten().filter_map(id).collect();
        let mut tasks = self.read_tasks(FIND, ids.iter().copied()).await?;
        Ok(Page {
            read: ids.len(),
            tasks: ids.iter().filter_map(|order_id| tasks.remove(order_id)).collect(),
            next: found.last_evaluated_key.as_ref().and_then(id).map(|order_id| order_id.to_string()),
        })
    }
}

fn key(term: &Term, order_id: OrderId) -> Item {
    HashMap::from([("Term".to_owned(), text(term.text())), ("OrderID".to_owned(), text(order_id.to_string()))])
}
