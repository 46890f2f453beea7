//! The outcomes of dead letters. They are kept for a fixed time, in any number.

use domain::ports::{DeadLetterRecord, DeadLetterRecords, PortError};

use super::Dynamo;
use super::due::limit_of;
use super::record::{Item, text, time, ttl};
use super::records::{record_of, told};
use super::schema::SETTLED;
use crate::sdk_error::port_error;

/// The key that all dead letters share.
pub(super) const KIND: &str = "letter";
/// The attribute with the body of an undecodable dead letter.
const BODY: &str = "Body";
/// The retention time of a record, in milliseconds: 90 days.
const KEPT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

impl DeadLetterRecords for Dynamo {
    async fn record(&self, mut settled: DeadLetterRecord) -> Result<(), PortError> {
        const OPERATION: &str = "letters.record";
        // The body has its own attribute: as JSON, a body full of odd characters would take several times its size.
        let body = settled.body.take();
        let record = serde_json::to_string(&settled).map_err(|error| PortError::refused(OPERATION, error))?;
        let mut item = Item::from([
            (SETTLED.hash.name.to_owned(), text(KIND)),
            ("MessageID".to_owned(), text(&*settled.message_id)),
            (SETTLED.range.name.to_owned(), time(settled.settled_at)),
            ("TTL".to_owned(), ttl(settled.settled_at.plus_ms(KEPT_MS))),
            ("Record".to_owned(), text(record)),
        ]);
        if let Some(body) = body {
            item.insert(BODY.to_owned(), text(&*body));
        }
        let request = self.client().put_item().table_name(&self.tables().dead_letters).set_item(Some(item));
        request.send().await.map_err(|error| port_error(OPERATION, &error))?;
        Ok(())
    }

    /// DynamoDB decides the order of dead letters that were settled in the same millisecond.
    async fn newest(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        const OPERATION: &str = "letters.letters";
        let (mut dead_letters, mut start) = (Vec::<DeadLetterRecord>::new(), None);
        while dead_letters.len() < limit {
            let request = self
                .client()
                .query()
                .table_name(&self.tables().dead_letters)
                .index_name(SETTLED.name)
                .key_condition_expression("Kind = :kind")
                .expression_attribute_values(":kind", text(KIND))
                .scan_index_forward(false)
                .limit(limit_of(limit - dead_letters.len()))
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| port_error(OPERATION, &error))?;
            for mut item in page.items.into_iter().flatten() {
                let body = item.remove(BODY).and_then(|body| body.as_s().ok().map(|body| body.as_str().into()));
                match record_of::<DeadLetterRecord>(OPERATION, item) {
                    Ok(record) => dead_letters.push(DeadLetterRecord { body, ..record }),
                    // A dead letter of an unknown form is left out, so that the others are visible.
                    Err(error) => tracing::error!("a settled letter cannot be read: {}", told(&error)),
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(dead_letters)
    }
}
