//! The order as it was accepted: an item of the order database, changed again only when it is erased.

mod given;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strsim::osa_distance;

use crate::id::OrderId;
use crate::index::Term;
use crate::json::Json;
use crate::pin::Pin;
use crate::priority::Priority;
use crate::time::Timestamp;
use crate::tokens::Tokens;

pub use given::{BadMember, Given, text};

/// What the submitter of a schedule's orders begins with; its name follows. No caller has such a name.
pub const SCHEDULE_SUBMITTER: &str = "schedule/";

/// The submitters that stand for an unknown caller: on AWS without authentication, and on one machine.
pub const UNAUTHENTICATED: [&str; 2] = ["anonymous", "local"];

/// The members of a document that have a meaning here.
pub const RESERVED: [&str; 6] = ["ReplyChannel", "CorrelationID", "Workflow", "Priority", "NotBefore", "CompleteBy"];

/// A member of a document that is one slip, or its case, away from a reserved one, which may be what it was meant to be.
#[must_use]
pub fn misspelt(document: &Json) -> Option<(String, &'static str)> {
    let mut found = None;
    Tokens::of(document.text()).members(|tokens, key| {
        tokens.value();
        // With its quotes. An escape is no slip.
        let name = key.trim_matches('"');
        let is_slip = |reserved: &&str| {
            let is_cased = name != *reserved && name.eq_ignore_ascii_case(reserved);
            is_cased || (name.len().abs_diff(reserved.len()) <= 1 && osa_distance(name, reserved) == 1)
        };
        if let Some(reserved) = RESERVED.into_iter().find(is_slip) {
            found = Some((name.to_owned(), reserved));
        }
    });
    found
}

/// The application's order, with the values that identify it and address its answers. Also the message on the
/// submission queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "Submission"))]
#[serde(rename_all = "PascalCase")]
pub struct Order {
    /// Key of the order and of its task.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The order document, as posted: any JSON object of up to 131072 bytes and 64 levels.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Document"))]
    pub document: Json,
    /// SHA-256 of the document's canonical form (members sorted by name, no white space, numbers as written), in
    /// hexadecimal.
    #[cfg_attr(feature = "contract", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub fingerprint: Arc<str>,
    /// The time of acceptance.
    pub submitted_at: Timestamp,
    /// The authenticated caller, as the API knows it.
    pub submitter: Arc<str>,
    /// The reply channel of status messages. Absent: none are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::NAME_CHARS_MAX)))]
    pub reply_channel: Option<Arc<str>>,
    /// The application's own ID of the order.
    #[serde(rename = "CorrelationID", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
    pub correlation_id: Option<Arc<str>>,
    /// The requested priority queue. Absent: the workflow's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The workflow that the order begins with. Absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Pin>,
    /// What the order is found by: for its correlation id, and for each member that its workflow declares, the first
    /// 128 bits of SHA-256 of the name's length (8 bytes, big-endian), the name and the text. Absent: none, or from an
    /// API of an earlier version (rule 28).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "contract", schemars(length(max = crate::limits::INDEXED_MAX + 1)))]
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

/// The step of another order that made an order (rule 49).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Parent {
    /// The other order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Its step.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    pub step: Arc<str>,
    /// How many orders are above: 1 below an order that was posted.
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = crate::limits::CHILDREN_DEEP_MAX)))]
    pub depth: u8,
}

impl Parent {
    /// The words, as they stand in the first line of the child's history.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { order_id, step, depth: _ } = self;
        format!("for step {step} of order {order_id}")
    }
}

/// The origin of an order that was posted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct AgainOf {
    /// The compensated order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The operator, and in brackets the authenticated caller.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
    pub by: Arc<str>,
    /// The operator's reason.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
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
