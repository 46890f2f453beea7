//! What tests store, where they do not care what it is.

use domain::id::OrderId;
use domain::json::Json;
use domain::order::Order;
use domain::time::Timestamp;

/// An order of this submitter under this idempotency key, without anything that an order may lack.
///
/// # Panics
/// If the document is no JSON object.
#[must_use]
pub fn order(submitter: &str, key: &str, document: &str, submitted_at: Timestamp) -> Order {
    let document = Json::document(document.as_bytes()).expect("a JSON object");
    Order {
        order_id: OrderId::from_idempotency_key(submitter, key),
        fingerprint: document.fingerprint().into(),
        document,
        submitted_at,
        submitter: submitter.into(),
        reply_channel: None,
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    }
}
