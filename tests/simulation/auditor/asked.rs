//! What a service asks of its callers: one fetch of a token at a time, and a wait before the next call (rule 17).

use std::sync::Arc;

use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::Try;

impl Auditor {
    /// All calls of an instance share one token, so they fetch it once.
    pub(super) fn fetches_alone(by: &Arc<str>, twins: usize) -> Finding {
        must(twins == 0, Invariant::OneToken, || format!("{by} fetches a token while it fetches {twins} others"))
    }

    /// A service asks an instance to wait with the attempt.
    pub(super) fn asked_to_wait(&mut self, of: Try, by: &Arc<str>, until_ms: i64) {
        self.dossier(of.order).asked_ms.insert((of.step, of.attempt, by.clone()), until_ms);
    }

    /// The request comes anew, perhaps as a copy that knows nothing of what was asked.
    pub(super) fn asked_no_more(&mut self, of: Try, by: &Arc<str>) {
        self.dossier(of.order).asked_ms.remove(&(of.step, of.attempt, by.clone()));
    }

    /// A call is not repeated earlier than its service asked for. Of several requests for an attempt, each knows only its
    /// own answers.
    pub(super) fn waits_as_asked(&mut self, of: Try, by: &Arc<str>) -> Finding {
        let now_ms = self.at_ms;
        let dossier = self.dossier(of.order);
        let is_copied = dossier.copied.contains(&(of.step, of.attempt));
        let until_ms = dossier.asked_ms.get(&(of.step, of.attempt, by.clone())).copied().unwrap_or(now_ms);
        must(is_copied || until_ms <= now_ms, Invariant::Asked, || {
            format!("{of} is called {} ms before its service asked for", until_ms - now_ms)
        })
    }
}
