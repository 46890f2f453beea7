//! The reading of an order: its document, and the values of the reserved members.

use std::sync::Arc;

use super::{Order, misspelt};
use crate::id::OrderId;
use crate::json::Json;
use crate::limits::TEXT_CHARS_MAX;
use crate::priority::Priority;
use crate::time::Timestamp;

/// An order as it was posted.
#[derive(Debug, Clone)]
pub struct Given {
    /// Not pinned to a workflow yet.
    pub order: Order,
    /// The workflow that it names.
    pub workflow: Option<Arc<str>>,
}

/// A member that no order may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {fault}")]
pub struct BadMember {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub fault: String,
}

impl Given {
    /// Reads the values of the reserved members. Only an order without a fault is given an id.
    ///
    /// # Errors
    /// [`BadMember`] for the first member that is wrong.
    pub fn read(
        document: Json,
        submitter: Arc<str>,
        submitted_at: Timestamp,
        order_id: impl FnOnce() -> OrderId,
    ) -> Result<Self, BadMember> {
        let bad = |name: &str, fault: String| BadMember { name: name.to_owned(), fault };
        if let Some((name, meant)) = misspelt(&document) {
            let fault = format!("is almost {meant}, which has a meaning here: write {meant}, or give it another name");
            return Err(BadMember { name, fault });
        }
        // Many programs write `null` for a member that they leave out.
        let given = document
            .members(["ReplyChannel", "CorrelationID", "Workflow", "Priority"])
            .map(|value| value.filter(|json| *json != "null"));
        let [reply_channel, correlation_id, workflow, own_priority] = given;
        let text = |name, value: Option<&str>| value.map(text).transpose().map_err(|fault| bad(name, fault));
        let reply_channel = text("ReplyChannel", reply_channel)?;
        let correlation_id = text("CorrelationID", correlation_id)?;
        let workflow = text("Workflow", workflow)?;
        let wrong = || bad("Priority", "must be \"high\" or \"normal\"".to_owned());
        let priority = own_priority.map(|value| priority(value).ok_or_else(wrong)).transpose()?;
        let fingerprint = document.fingerprint().into();
        let order = Order {
            order_id: order_id(),
            document,
            fingerprint,
            submitted_at,
            submitter,
            reply_channel,
            correlation_id,
            priority,
            workflow: None,
            terms: Vec::new(),
            again_of: None,
        };
        Ok(Self { order, workflow })
    }
}

/// A text that is neither blank nor long, from its JSON.
///
/// # Errors
/// What it must be.
pub fn text(json: &str) -> Result<Arc<str>, String> {
    let text: Arc<str> = serde_json::from_str(json).map_err(|_| "must be a string".to_owned())?;
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    match text.chars().nth(TEXT_CHARS_MAX) {
        Some(_) => Err(format!("must have at most {TEXT_CHARS_MAX} characters")),
        None => Ok(text),
    }
}

/// The priority that a document names, from the member's JSON.
fn priority(json: &str) -> Option<Priority> {
    Priority::named(&serde_json::from_str::<String>(json).ok()?)
}
