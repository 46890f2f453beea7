//! A service's state for one key, and its verdict on a call. Pure: the time comes in as an argument.

use crate::behaviour::Behaviour;
use crate::service::Operation;

/// The suffix of an undo's key. The rest is the key of the forward call (rule 4).
pub const UNDO_SUFFIX: &str = "/undo";

/// The calls under one idempotency key. A call and its undo share one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The forward call.
    pub forward: Side,
    /// Its undo.
    pub undo: Side,
    /// Whether the undo was called. Then no forward call is carried out, even if the undo had no effect.
    pub closed: bool,
}

/// The calls in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Side {
    /// The number of calls.
    pub calls: u64,
    /// The number of effects. It exceeds 1 only at a service that ignores its keys.
    pub effects: u64,
    /// The time of the first call, in milliseconds.
    pub first_call_ms: u64,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Done, now or before.
    Done {
        /// Whether an undo had an effect to compensate. Always true for a forward call.
        was_done: bool,
        /// The number of this effect among the effects of its kind for this key, from 1. It exceeds 1 only at a service
        /// that ignores its keys.
        time: u64,
    },
    /// Done, and the answer is lost.
    Lost,
    /// Temporarily unavailable.
    Unavailable,
    /// Refused permanently, with this code.
    Declined(String),
    /// Refused permanently: it was compensated before.
    AlreadyUndone,
}

impl Entry {
    /// Handles one call at `now_ms`. The clock may be any that does not go back.
    pub fn call(&mut self, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> Verdict {
        let side = match operation {
            Operation::Forward => &mut self.forward,
            Operation::Undo => &mut self.undo,
        };
        side.calls += 1;
        if side.calls == 1 {
            side.first_call_ms = now_ms;
        }
        let (calls, down_until_ms) = (side.calls, side.first_call_ms.saturating_add(behaviour.down_ms));
        if behaviour.down || now_ms < down_until_ms || calls <= behaviour.flaky {
            return Verdict::Unavailable;
        }
        if let Some(code) = &behaviour.decline {
            return Verdict::Declined(code.clone());
        }
        let (was_done, time) = match operation {
            Operation::Forward if self.closed && !behaviour.forget_keys => return Verdict::AlreadyUndone,
            Operation::Forward => {
                self.forward.take_effect(behaviour.forget_keys);
                (true, self.forward.effects)
            }
            Operation::Undo => {
                self.closed = true;
                let was_done = self.forward.effects > 0;
                if was_done {
                    self.undo.take_effect(behaviour.forget_keys);
                }
                (was_done, self.undo.effects.max(1))
            }
        };
        if calls <= behaviour.flaky.saturating_add(behaviour.lose_answers) {
            Verdict::Lost
        } else {
            Verdict::Done { was_done, time }
        }
    }

    /// The number of effects in both directions.
    #[must_use]
    pub const fn effects(&self) -> u64 {
        self.forward.effects + self.undo.effects
    }
}

impl Side {
    /// Carries out the call: only the first time, unless the service ignores its keys.
    const fn take_effect(&mut self, forgets: bool) {
        if forgets || self.effects == 0 {
            self.effects += 1;
        }
    }
}

/// The forward call's key for any key.
#[must_use]
pub fn forward_key(key: &str) -> &str {
    key.strip_suffix(UNDO_SUFFIX).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Verdict = Verdict::Done { was_done: true, time: 1 };

    #[test]
    fn a_key_has_one_effect_and_its_undo_takes_it_back_once() {
        let (mut entry, good) = (Entry::default(), Behaviour::default());
        assert_eq!([entry.call(Operation::Forward, &good, 5), entry.call(Operation::Forward, &good, 6)], [DONE, DONE]);
        assert_eq!(entry.forward, Side { calls: 2, effects: 1, first_call_ms: 5 });
        assert_eq!([entry.call(Operation::Undo, &good, 7), entry.call(Operation::Undo, &good, 8)], [DONE, DONE]);
        assert_eq!((entry.undo.effects, entry.effects()), (1, 2));
        assert_eq!(entry.call(Operation::Forward, &good, 9), Verdict::AlreadyUndone);
    }

    #[test]
    fn undoing_nothing_succeeds_and_closes_the_key() {
        let (mut entry, good) = (Entry::default(), Behaviour::default());
        assert_eq!(entry.call(Operation::Undo, &good, 1), Verdict::Done { was_done: false, time: 1 });
        assert_eq!(entry.call(Operation::Forward, &good, 2), Verdict::AlreadyUndone);
        assert_eq!(entry.effects(), 0);
    }

    #[test]
    fn a_refused_call_has_no_effect_and_a_lost_one_has() {
        let mut entry = Entry::default();
        let bad = Behaviour { flaky: 1, lose_answers: 1, ..Behaviour::default() };
        assert_eq!((entry.call(Operation::Forward, &bad, 1), entry.effects()), (Verdict::Unavailable, 0));
        assert_eq!((entry.call(Operation::Forward, &bad, 2), entry.effects()), (Verdict::Lost, 1));
        assert_eq!((entry.call(Operation::Forward, &bad, 3), entry.effects()), (DONE, 1));
    }

    #[test]
    fn a_key_and_its_undo_have_one_entry() {
        assert_eq!([forward_key("o/a"), forward_key("o/a/undo")], ["o/a", "o/a"]);
    }
}
