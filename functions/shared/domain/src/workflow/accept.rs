//! Whether a workflow takes an order, and what it gives the order.

use super::{NotATime, Workflow};
use crate::order::Order;
use crate::redaction::Redaction;

/// Why no order of the workflow may have this document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// It has members that no order of the workflow may carry (rule 19).
    #[error("the document has members that the workflow refuses: {}", .0.join(", "))]
    Refused(Vec<String>),
    /// It has a wrong time (rules 35 and 37).
    #[error("{place} {0}", place = .0.place)]
    Time(NotATime),
}

impl Workflow {
    /// Pins an order to this workflow, in whose priority it is if it names none, and gives it the terms that it is found by
    /// (rule 28). What is redacted has none.
    ///
    /// # Errors
    /// [`NotAccepted`] if the workflow takes no such document. The order is then as it was.
    pub fn accept(&self, order: &mut Order, redaction: &Redaction) -> Result<(), NotAccepted> {
        let refused: Vec<String> = self.refuse.met_by(&order.document).into_iter().map(str::to_owned).collect();
        if !refused.is_empty() {
            return Err(NotAccepted::Refused(refused));
        }
        let times = self.not_before(&order.document, order.submitted_at).map(drop);
        times.and_then(|()| self.complete_by(order).map(drop)).map_err(NotAccepted::Time)?;
        order.workflow = Some(self.pin());
        order.terms = self.index.terms(order.correlation_id.as_deref(), &order.document, redaction);
        if order.priority.is_none() && !self.priority.is_normal() {
            order.priority = Some(self.priority);
        }
        Ok(())
    }
}
