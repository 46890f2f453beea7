//! The order as it was accepted: an item of the order database, changed again only when it is erased.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::OrderId;
use crate::index::Term;
use crate::json::Json;
use crate::pin::Pin;
use crate::priority::Priority;
use crate::time::Timestamp;

/// The submitters that stand for an unknown caller: on AWS without authentication, and on one machine.
pub const UNAUTHENTICATED: [&str; 2] = ["anonymous", "local"];

/// The application's order, with the values that identify it and address its answers. Also the message on the
/// submission queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Order {
    /// Key of the order and of its task.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The document, unchanged.
    pub document: Json,
    /// SHA-256 of the document's canonical form, in hexadecimal.
    pub fingerprint: Arc<str>,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// The submitter, as the API knows it.
    pub submitter: Arc<str>,
    /// Registered name of the channel that status messages go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_channel: Option<Arc<str>>,
    /// The application's own name for the order, repeated in status messages.
    #[serde(rename = "CorrelationID", default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// The priority of its messages, if the application named one; otherwise the workflow's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The workflow that it begins with. `None`: it is not accepted by one yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Pin>,
    /// What it is found by (rule 28), for the index of a store. An order that is read from a store has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<Term>,
    /// The compensated order that an operator posted again as this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_of: Option<AgainOf>,
}

/// Stands for what was erased (rule 46): a name, or the fingerprint of a document.
pub const ERASED: &str = "erased";

impl Order {
    /// Whether its personal data are gone.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        matches!(&*self.fingerprint, ERASED)
    }

    /// Whether it is an order with a document of this fingerprint. One that was erased can be compared with none: each
    /// post under its key counts as a repeat.
    #[must_use]
    pub fn is_of(&self, fingerprint: &str) -> bool {
        self.is_erased() || *self.fingerprint == *fingerprint
    }

    /// The new order that posts this one again: with its document, submitter, reply channel, correlation and priority. It is
    /// not accepted by a workflow yet (`Workflow::accept`). Its id follows from this order's, so an order is posted again at
    /// most once.
    #[must_use]
    pub fn again(&self, origin: AgainOf, now: Timestamp) -> Self {
        Self {
            order_id: self.order_id.again(),
            submitted_at: now,
            workflow: None,
            terms: Vec::new(),
            again_of: Some(origin),
            ..self.clone()
        }
    }

    /// The same without personal data.
    #[must_use]
    pub fn erased(&self) -> Self {
        let again_of = self.again_of.clone();
        Self {
            document: Json::of(&BTreeMap::<&str, ()>::new()),
            fingerprint: ERASED.into(),
            correlation_id: None,
            terms: Vec::new(),
            again_of: again_of.map(|again| AgainOf { by: ERASED.into(), reason: ERASED.into(), ..again }),
            ..self.clone()
        }
    }
}

/// The origin of an order that was posted again: the order, the operator, and the operator's reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AgainOf {
    /// The compensated order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The operator.
    pub by: Arc<str>,
    /// The operator's reason.
    pub reason: Arc<str>,
    /// The bulk job that posted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Arc<str>>,
}

impl AgainOf {
    /// The words, as they stand in the first line of the new order's history.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { order_id, by, reason, bulk: _ } = self;
        format!("again of {order_id}, by {by}: {reason}")
    }
}
