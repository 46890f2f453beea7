//! The record of an order.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::json::Json;
use domain::message::Priority;
use domain::order::{AgainOf, Order};
use domain::time::Timestamp;

use super::document::{document, put_document};
use super::{Item, Reader, Unreadable, put, put_if, text, time};
use crate::dynamo::schema::RECENT;

/// The shards of a month in the index `recent`. One key takes 1,000 writes per second.
pub(in crate::dynamo) const RECENT_SHARDS: u8 = 4;
/// The month of the oldest possible order: January 2026, in months since year 0. An earlier clock counts as this month.
pub(in crate::dynamo) const FIRST_MONTH: i64 = 2026 * 12;

/// The attribute with the texts that an order is found by.
pub(in crate::dynamo) const TERMS: &str = "Terms";

/// The item of an order. The document is copied once, because the request must own it.
pub(in crate::dynamo) fn order_item(order: &Order) -> Item {
    let mut item = Item::with_capacity(12);
    put(&mut item, "OrderID", text(order.order_id.to_string()));
    put_document(&mut item, order.document.text());
    put(&mut item, "Fingerprint", text(&*order.fingerprint));
    put(&mut item, "SubmittedAt", time(order.submitted_at));
    put(&mut item, "Submitter", text(&*order.submitter));
    put_if(&mut item, "ReplyChannel", order.reply_channel.as_deref().map(text));
    put_if(&mut item, "CorrelationID", order.correlation_id.as_deref().map(text));
    put_if(&mut item, "Priority", order.priority.map(|priority| text(priority.name())));
    put_if(&mut item, "Workflow", order.workflow.as_ref().map(|pin| text(pin.to_string())));
    put_if(&mut item, "AgainOf", order.again_of.as_ref().map(again_of_value));
    let terms = order.terms.iter().map(|term| text(term.text())).collect();
    put(&mut item, TERMS, AttributeValue::L(terms));
    let shard = order.order_id.shard(RECENT_SHARDS);
    put(&mut item, RECENT.hash.name, text(recent_key(recent_month(order.submitted_at), shard)));
    item
}

/// The order in an item.
pub(in crate::dynamo) fn order(item: Item) -> Result<Order, Unreadable> {
    let mut reader = Reader::new(item);
    let document = document(&mut reader)?;
    Ok(Order {
        order_id: reader.word("OrderID", |id| id.parse().ok())?,
        document: serde_json::from_str::<Json>(&document)
            .map_err(|error| reader.wrong("Document", error.to_string()))?,
        fingerprint: reader.text("Fingerprint")?.into(),
        submitted_at: reader.time("SubmittedAt")?,
        submitter: reader.text("Submitter")?.into(),
        reply_channel: reader.text_if("ReplyChannel")?.map(Into::into),
        correlation_id: reader.text_if("CorrelationID")?.map(Into::into),
        priority: reader.word_if("Priority", Priority::named)?,
        workflow: reader.word_if("Workflow", |pin| pin.parse().ok())?,
        terms: Vec::new(),
        again_of: reader.map_if("AgainOf")?.map(again_of).transpose()?,
    })
}

fn again_of_value(again_of: &AgainOf) -> AttributeValue {
    let mut item = Item::with_capacity(4);
    put(&mut item, "OrderID", text(again_of.order_id.to_string()));
    put(&mut item, "By", text(&*again_of.by));
    put(&mut item, "Reason", text(&*again_of.reason));
    put_if(&mut item, "Bulk", again_of.bulk.as_deref().map(text));
    AttributeValue::M(item)
}

fn again_of(mut reader: Reader) -> Result<AgainOf, Unreadable> {
    Ok(AgainOf {
        order_id: reader.word("OrderID", |id| id.parse().ok())?,
        by: reader.text("By")?.into(),
        reason: reader.text("Reason")?.into(),
        bulk: reader.text_if("Bulk")?.map(Into::into),
    })
}

/// The month of a time in the index `recent`, in months since year 0. It is never before the first month.
pub(in crate::dynamo) fn recent_month(at: Timestamp) -> i64 {
    // The text of a time begins with its calendar date.
    let text = at.to_string();
    let month = text.get(..7).and_then(|month| month.split_once('-')).and_then(|(year, month)| {
        let (year, month): (i64, i64) = (year.parse().ok()?, month.parse().ok()?);
        Some(year * 12 + month - 1)
    });
    month.unwrap_or(FIRST_MONTH).max(FIRST_MONTH)
}

/// The key of a shard of a month, like `2026-11#3`.
pub(in crate::dynamo) fn recent_key(month: i64, shard: u8) -> String {
    format!("{:04}-{:02}#{shard}", month.div_euclid(12), month.rem_euclid(12) + 1)
}
