//! Who has an order, and what is let go: invariant 1 and rule 2.

use std::sync::Arc;

use domain::id::OrderId;

use super::seen::OrderState;
use super::{Auditor, Finding, Invariant, must};

impl Auditor {
    /// An order that a customer is told of is somewhere, and it is the customer's: another document that was stored under
    /// its key before it was posted can be known.
    pub(super) fn accepted(&mut self, order: OrderId, fingerprint: &Arc<str>, posted_ms: i64) -> Finding {
        let now_ms = self.at_ms;
        let dossier = self.dossier(order);
        if !std::mem::replace(&mut dossier.accepted, true) {
            dossier.going_since_ms = now_ms;
        }
        let is_other = |(first, since_ms): &(Arc<str>, i64)| first != fingerprint && *since_ms < posted_ms;
        must(!dossier.stored.as_ref().is_some_and(is_other), Invariant::Custody, || {
            "accepted, but another document was stored under its key before, and this one never will be".to_owned()
        })?;
        self.is_in_custody(order)
    }

    pub(super) fn let_go(&mut self, order: OrderId, is_submitted: bool) -> Finding {
        self.dossier(order).kept -= 1;
        self.is_in_custody(order)?;
        let dossier = self.dossier(order);
        let nobody_knows = is_submitted
            && dossier.last.as_ref().is_some_and(|last| last.state == OrderState::Pending)
            && dossier.kept <= 0
            && dossier.wakes == 0;
        must(!nobody_knows, Invariant::SendBeforeAcknowledge, || {
            "its last submission message is let go, and no wake was ever sent".to_owned()
        })
    }

    fn is_in_custody(&mut self, order: OrderId) -> Finding {
        let dossier = self.dossier(order);
        must(!dossier.accepted || dossier.last.is_some() || dossier.kept > 0, Invariant::Custody, || {
            "accepted, but neither on the submission queue nor stored nor a dead letter".to_owned()
        })
    }

    /// A message of the scheduler queue is let go: what was claimed because of it must have been requested, as
    /// long as there is time. A repeat of the message also answers for what an earlier delivery claimed.
    pub(super) fn acknowledged(
        &mut self,
        order: OrderId,
        by: u32,
        (earlier, given_ms): (&[u32], i64),
        is_whole: bool,
        clock_ms: i64,
    ) -> Finding {
        let dossier = self.dossier(order);
        let Some(last) = &dossier.last else { return Ok(()) };
        if !matches!(last.state, OrderState::Processing | OrderState::Compensating) {
            return Ok(());
        }
        for (step, seen) in last.steps.iter().enumerate() {
            let Some(claim) = dossier.claims.get(&(step, seen.attempt)) else { continue };
            // After the deadline a request would be of no use any more.
            let is_open = seen.locked_by.is_some() && !claim.requested && clock_ms < claim.complete_by_ms;
            let is_own = claim.by == by && is_whole;
            // What an earlier one claimed later, this one need not have seen. And where the order stood still when this one
            // was given, nothing was to be repeated: whoever set it going again has to do that.
            let stood_still = dossier.left_error_ms.is_some_and(|left_ms| left_ms >= given_ms);
            let is_inherited = earlier.contains(&claim.by) && claim.at_ms < given_ms && !stood_still;
            must(!(is_open && (is_own || is_inherited)), Invariant::SendBeforeAcknowledge, || {
                format!("a message is let go, but attempt {} of step {step} was never requested", seen.attempt)
            })?;
        }
        Ok(())
    }
}
