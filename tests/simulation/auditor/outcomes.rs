//! The ends of attempts and decisions: each success, rejection, expiry and approval is real (invariant 3, rule 40).

use super::records::Change;
use super::{Finding, Invariant, must};
use rehearsal::seen::{Ending, StepState, Try, Way};

/// Code of a failure that the supervisor counts.
const EXPIRED: &str = "expired";
/// The code of a person's decision against an order.
const NOT_APPROVED: &str = "not-approved";
/// Code of a failure that a dead letter causes.
const DEAD_LETTER: &str = "dead-letter";

impl Change<'_> {
    /// A person decided so on the step (rule 40).
    pub(super) fn is_decided(&self, approves: bool) -> Finding {
        must(self.dossier.decided.contains(&(self.index, approves)), Invariant::Approved, || {
            format!("nobody decided so on step {}: {}", self.index, self.after)
        })
    }

    pub(super) fn success_is_real(&self, of: Try) -> Finding {
        let (b, _) = self.steps();
        let is_settled = b.state == StepState::Error && self.dossier.settled.contains(&(of.step, of.way));
        must(is_settled || self.dossier.has_success(of), Invariant::Movers, || {
            format!("step {} is processed, and no attempt up to {} said so", of.step, of.attempt)
        })?;
        let effects = self.dossier.effects(of.step);
        let is_so = match of.way {
            Way::Forward => effects.confirmed && effects.forward >= 1,
            Way::Undo => self.dossier.is_taken_back(of.step) && self.dossier.is_even(of.step),
        };
        must(is_so, Invariant::Movers, || format!("{of} is processed, and its service knows nothing of it"))
    }

    /// A step with an expired attempt is given up exactly when the workflow says so.
    pub(super) fn is_at_threshold(&self) -> Finding {
        let (b, a) = self.steps();
        let over_ms = b.started_ms.map(|started_ms| started_ms.saturating_add(self.flow.horizons_ms[self.index]));
        let longer_ms = self.flow.longer_ms(self.index, a.failures);
        let is_over = over_ms.is_some_and(|over_ms| over_ms <= self.clock_ms + longer_ms);
        let waits = longer_ms == 0 || a.waits_until_ms == Some(self.clock_ms + longer_ms);
        must(a.state == StepState::Error || waits, Invariant::Movers, || {
            format!("step {} does not wait longer after {} failures", self.index, a.failures)
        })?;
        let is_last = a.failures >= self.flow.max_failures[self.index];
        let is_so = if a.state == StepState::Error { is_last || is_over } else { !is_last };
        must(is_so, Invariant::Movers, || format!("step {} is {:?} after {} failures", self.index, a.state, a.failures))
    }

    /// A counted failure is real: an attempt that expired by the writer's clock, a rejection of that attempt, or its dead
    /// letter.
    pub(super) fn failure_is_real(&self) -> Finding {
        let (b, a) = self.steps();
        let of = self.of(b);
        let Some((code, at_ms)) = &a.last_error else {
            return Err((Invariant::Movers, format!("a failure of {of} is counted without a word")));
        };
        match &**code {
            EXPIRED | DEAD_LETTER if a.state == StepState::Skipped => {
                Err((Invariant::Applies, format!("{of} had no answer, and is skipped")))
            }
            EXPIRED => {
                let earliest_ms = self.flow.expires_ms(self.index, b, *at_ms).unwrap_or(i64::MAX);
                must(*at_ms >= earliest_ms, Invariant::Movers, || {
                    format!("{of} is taken for expired {} ms too early", earliest_ms - at_ms)
                })?;
                must(!b.is_to_look, Invariant::Movers, || format!("{of} is taken for expired without a last look"))?;
                self.expiry_is_meant(of)?;
                self.is_at_threshold()
            }
            NOT_APPROVED => {
                self.is_decided(false)?;
                self.rejection_ends_well()
            }
            DEAD_LETTER => must(self.dossier.dead_letters.contains(&of), Invariant::Movers, || {
                format!("a dead letter about {of} is counted that nobody has seen")
            }),
            _ => {
                let is_real =
                    [Ending::Failed, Ending::TooLarge].iter().any(|ending| self.dossier.has_reply(of, *ending));
                must(is_real, Invariant::Movers, || format!("a failure of {of} is counted, and it never said so"))?;
                self.rejection_is_meant(of)?;
                self.rejection_ends_well()
            }
        }
    }
}
