//! The custody of orders and messages: invariant 1 and rule 2.

use std::sync::Arc;

use domain::id::OrderId;

use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::OrderState;

impl Auditor {
    /// An accepted order is queued or stored, with the customer's document. Another document that was stored under the key
    /// before the post would have been refused.
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

    /// Only a compensated order is posted again. All its new orders have one id, so that one at most is stored.
    pub(super) fn posts_again(&mut self, order: OrderId, of: OrderId) -> Finding {
        let is_compensated = self.dossier(of).last.as_ref().is_some_and(|last| last.state == OrderState::Compensated);
        must(is_compensated, Invariant::Operator, || format!("{of} is posted again, and is not compensated"))?;
        must(order == of.again(), Invariant::Operator, || format!("{of} may be posted again twice"))
    }

    pub(super) fn let_go(&mut self, order: OrderId) -> Finding {
        self.dossier(order).kept -= 1;
        self.is_in_custody(order)
    }

    fn is_in_custody(&mut self, order: OrderId) -> Finding {
        let dossier = self.dossier(order);
        must(!dossier.accepted || dossier.last.is_some() || dossier.kept > 0, Invariant::Custody, || {
            "accepted, but neither on the submission queue nor stored nor a dead letter".to_owned()
        })
    }

    /// A message of submission or scheduler may be deleted only after the requests of its claims are queued, before their
    /// deadline. A redelivery is also responsible for the claims of earlier deliveries.
    pub(super) fn acknowledged(
        &mut self,
        order: OrderId,
        by: u32,
        (earlier, given_ms): (&[u32], i64),
        is_whole: bool,
        clock_ms: i64,
    ) -> Finding {
        // By a clock that jumped, the deadline may have been over when the delivery decided.
        let by_a_wrong_clock = given_ms < self.jumped_until_ms;
        let dossier = self.dossier(order);
        let Some(last) = &dossier.last else { return Ok(()) };
        if !matches!(last.state, OrderState::Processing | OrderState::Compensating) {
            return Ok(());
        }
        for (step, seen) in last.steps.iter().enumerate() {
            let Some(claim) = dossier.claims.get(&(step, seen.attempt)) else { continue };
            // After the deadline a request is useless.
            // Nobody is asked but people.
            if dossier.ways(step).approval {
                continue;
            }
            let is_open = seen.locked_by.is_some() && !claim.requested && clock_ms < claim.complete_by_ms;
            let is_own = claim.by == by && is_whole;
            // This delivery need not have seen a later claim of an earlier one. If the order was stopped at the delivery,
            // there was nothing to repeat: the later restart sends the requests.
            let stood_still = dossier.left_error_ms.is_some_and(|left_ms| left_ms >= given_ms);
            let is_inherited =
                earlier.contains(&claim.by) && claim.at_ms < given_ms && !stood_still && !by_a_wrong_clock;
            must(!(is_open && (is_own || is_inherited)), Invariant::SendBeforeAcknowledge, || {
                format!("a message is let go, but attempt {} of step {step} was never requested", seen.attempt)
            })?;
        }
        Ok(())
    }
}
