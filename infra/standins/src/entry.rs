//! A service's state for one key, and its decision about a call. Pure: the time comes in as an argument.

use crate::behaviour::Behaviour;
use crate::service::Operation;

/// The suffix of an undo's key. The rest is the key of the forward call (rule 4).
pub(crate) const UNDO_SUFFIX: &str = "/undo";

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

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// The delay of the answer, in milliseconds.
    pub delay_ms: u64,
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
    /// Decides one call at `now_ms`. The clock may be any that does not go back.
    pub fn call(&mut self, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> Decision {
        Decision { verdict: self.verdict(operation, behaviour, now_ms), delay_ms: behaviour.slow_ms }
    }

    fn verdict(&mut self, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> Verdict {
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
pub(crate) fn forward_key(key: &str) -> &str {
    key.strip_suffix(UNDO_SUFFIX).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Verdict = Verdict::Done { was_done: true, time: 1 };
    const DONE_AGAIN: Verdict = Verdict::Done { was_done: true, time: 2 };
    const NOTHING_TO_UNDO: Verdict = Verdict::Done { was_done: false, time: 1 };

    #[derive(Default)]
    struct Case {
        entry: Entry,
        behaviour: Behaviour,
        now_ms: u64,
    }

    impl Case {
        fn new(behaviour: Behaviour) -> Self {
            Self { behaviour, now_ms: 1_000, ..Self::default() }
        }

        fn forward(&mut self) -> Verdict {
            self.entry.call(Operation::Forward, &self.behaviour, self.now_ms).verdict
        }

        fn undo(&mut self) -> Verdict {
            self.entry.call(Operation::Undo, &self.behaviour, self.now_ms).verdict
        }

        /// Effects and calls, forward and undo.
        fn counts(&self) -> [(u64, u64); 2] {
            [self.entry.forward, self.entry.undo].map(|side| (side.effects, side.calls))
        }
    }

    #[test]
    fn a_key_has_one_effect_and_its_undo_takes_it_back_once() {
        let mut case = Case::new(Behaviour::default());
        assert_eq!([case.forward(), case.forward()], [DONE, DONE]);
        case.now_ms += 1;
        assert_eq!([case.undo(), case.undo(), case.forward()], [DONE, DONE, Verdict::AlreadyUndone]);
        assert_eq!((case.counts(), case.entry.effects()), ([(1, 3), (1, 2)], 2));
        assert_eq!((case.entry.forward.first_call_ms, case.entry.undo.first_call_ms), (1_000, 1_001));
    }

    #[test]
    fn undoing_nothing_succeeds_and_a_late_forward_call_is_refused() {
        let mut case = Case::new(Behaviour::default());
        let answers = [case.undo(), case.forward(), case.undo()];
        assert_eq!(answers, [NOTHING_TO_UNDO, Verdict::AlreadyUndone, NOTHING_TO_UNDO]);
        assert_eq!(case.counts(), [(0, 1), (0, 2)]);
    }

    #[test]
    fn a_flaky_service_fails_the_first_calls() {
        let mut case = Case::new(Behaviour { flaky: 2, ..Behaviour::default() });
        let answers = [case.forward(), case.forward(), case.forward()];
        assert_eq!(answers, [Verdict::Unavailable, Verdict::Unavailable, DONE]);
        assert_eq!(case.counts()[0], (1, 3));
    }

    #[test]
    fn a_lost_answer_hides_an_effect_that_happened() {
        let mut case = Case::new(Behaviour { flaky: 1, lose_answers: 1, ..Behaviour::default() });
        assert_eq!((case.forward(), case.counts()[0]), (Verdict::Unavailable, (0, 1)));
        assert_eq!((case.forward(), case.counts()[0]), (Verdict::Lost, (1, 2)));
        assert_eq!((case.forward(), case.counts()[0]), (DONE, (1, 3)));
    }

    #[test]
    fn a_service_that_is_down_does_nothing_until_its_time_is_over() {
        let mut case = Case::new(Behaviour { down_ms: 500, ..Behaviour::default() });
        assert_eq!(case.forward(), Verdict::Unavailable);
        case.now_ms += 499;
        assert_eq!((case.forward(), case.counts()[0]), (Verdict::Unavailable, (0, 2)));
        case.now_ms += 1;
        assert_eq!(case.forward(), DONE);
        case.behaviour = Behaviour { down: true, ..Behaviour::default() };
        assert_eq!(case.forward(), Verdict::Unavailable);
    }

    #[test]
    fn a_service_that_forgets_keys_does_it_again_at_every_call() {
        let forgets = Behaviour { forget_keys: true, ..Behaviour::default() };
        let mut case = Case::new(forgets.clone());
        assert_eq!([case.forward(), case.forward(), case.undo(), case.undo()], [DONE, DONE_AGAIN, DONE, DONE_AGAIN]);
        assert_eq!(case.counts(), [(2, 2), (2, 2)]);
        assert_eq!(case.forward(), Verdict::Done { was_done: true, time: 3 }, "nor does it know of the undo");
        let mut case = Case::new(forgets);
        assert_eq!((case.undo(), case.counts()[1]), (NOTHING_TO_UNDO, (0, 1)));
    }

    #[test]
    fn a_service_that_honours_keys_again_gives_its_last_answer() {
        let mut case = Case::new(Behaviour { forget_keys: true, ..Behaviour::default() });
        assert_eq!([case.forward(), case.forward()], [DONE, DONE_AGAIN]);
        case.behaviour = Behaviour::default();
        assert_eq!((case.forward(), case.counts()[0]), (DONE_AGAIN, (2, 3)));
    }

    #[test]
    fn a_declined_call_has_no_effect() {
        let mut case = Case::new(Behaviour { decline: Some("card_declined".to_owned()), ..Behaviour::default() });
        assert_eq!((case.forward(), case.counts()[0]), (Verdict::Declined("card_declined".to_owned()), (0, 1)));
    }

    #[test]
    fn a_slow_service_decides_at_once_and_answers_later() {
        let slow = Behaviour { slow_ms: 700, ..Behaviour::default() };
        let decision = Entry::default().call(Operation::Forward, &slow, 1);
        assert_eq!(decision, Decision { verdict: DONE, delay_ms: 700 });
    }

    #[test]
    fn a_key_and_its_undo_have_one_entry() {
        assert_eq!([forward_key("o/a"), forward_key("o/a/undo")], ["o/a", "o/a"]);
    }
}
