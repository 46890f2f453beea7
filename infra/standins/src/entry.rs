//! A service's state for one key, and its decision about a call. Pure: the time comes in as an argument.
//!
//! A call has three moments: the service takes it on, it has its effect, and it is answered. They are one moment unless
//! the behaviour sets them apart. An effect that is due is booked when somebody looks at the key.

use crate::behaviour::Behaviour;
use crate::service::{Operation, UNDO_SUFFIX};

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// The number of calls.
    pub calls: u64,
    /// The number of effects. It exceeds 1 only at a service that ignores its keys.
    pub effects: u64,
    /// The time of the first call, in milliseconds.
    pub first_call_ms: u64,
    /// When the effects of the calls at work come, in milliseconds. More than one only at a service that ignores its
    /// keys.
    pub due_ms: Vec<u64>,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// The delay of the answer, in milliseconds.
    pub delay_ms: u64,
    /// When the effect of this call comes, if it comes later.
    pub due_ms: Option<u64>,
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
    /// Taken on: the result comes later.
    Pending,
    /// Not taken on: an earlier call with this key is at work.
    InUse,
    /// The caller is not known.
    Unauthorised,
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
        self.book(now_ms);
        let (verdict, due_ms) = match self.refusal(operation, behaviour, now_ms) {
            Some(refusal) => (refusal, None),
            None => self.take_on(operation, behaviour, now_ms),
        };
        // A pending call is answered at once; its result comes with a later call.
        let answered_ms = due_ms.filter(|_| verdict != Verdict::Pending).unwrap_or(now_ms);
        let work_ms = answered_ms.saturating_sub(now_ms);
        Decision { verdict, delay_ms: work_ms.saturating_add(behaviour.slow_ms), due_ms }
    }

    /// Counts the call, and refuses it if it is not taken on.
    fn refusal(&mut self, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> Option<Verdict> {
        let side = match operation {
            Operation::Forward => &mut self.forward,
            Operation::Undo => &mut self.undo,
        };
        side.calls += 1;
        if side.calls == 1 {
            side.first_call_ms = now_ms;
        }
        let down_until_ms = side.first_call_ms.saturating_add(behaviour.down_ms);
        if side.calls <= behaviour.unauthorised {
            return Some(Verdict::Unauthorised);
        }
        if behaviour.down || now_ms < down_until_ms || side.calls <= behaviour.failing_calls() {
            return Some(Verdict::Unavailable);
        }
        if let Some(code) = &behaviour.decline {
            return Some(Verdict::Declined(code.clone()));
        }
        if behaviour.forget_keys {
            return None;
        }
        if !side.due_ms.is_empty() {
            return Some(if behaviour.pending_ms > 0 { Verdict::Pending } else { Verdict::InUse });
        }
        (operation == Operation::Forward && self.closed).then_some(Verdict::AlreadyUndone)
    }

    /// Carries the call out, now or later.
    fn take_on(&mut self, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> (Verdict, Option<u64>) {
        let (side, was_done) = match operation {
            Operation::Forward => (&mut self.forward, true),
            Operation::Undo => {
                self.closed = true;
                (&mut self.undo, self.forward.effects > 0)
            }
        };
        let pending_ms = side.first_call_ms.saturating_add(behaviour.pending_ms).saturating_sub(now_ms);
        let work_ms = behaviour.busy_ms.saturating_add(pending_ms);
        let due_ms = if was_done { side.take_on(work_ms, now_ms, behaviour.forget_keys) } else { None };
        let verdict = if due_ms.is_some() && pending_ms > 0 {
            Verdict::Pending
        } else if side.calls <= behaviour.failing_calls().saturating_add(behaviour.lose_answers) {
            Verdict::Lost
        } else {
            Verdict::Done { was_done, time: side.taken_on().max(1) }
        };
        (verdict, due_ms)
    }

    /// Books the effects that came until now.
    pub fn book(&mut self, now_ms: u64) {
        self.forward.book(now_ms);
        self.undo.book(now_ms);
    }

    /// The number of effects in both directions.
    #[must_use]
    pub const fn effects(&self) -> u64 {
        self.forward.effects + self.undo.effects
    }
}

impl Side {
    /// Carries out the call: only the first time, unless the service ignores its keys. Returns when its effect comes,
    /// if not now.
    fn take_on(&mut self, work_ms: u64, now_ms: u64, forgets: bool) -> Option<u64> {
        if self.taken_on() > 0 && !forgets {
            return None;
        }
        if work_ms == 0 {
            self.effects += 1;
            return None;
        }
        let due_ms = now_ms.saturating_add(work_ms);
        self.due_ms.push(due_ms);
        Some(due_ms)
    }

    /// The effects that came, and those that will come.
    fn taken_on(&self) -> u64 {
        self.effects + self.due_ms.len() as u64
    }

    fn book(&mut self, now_ms: u64) {
        let taken_on = self.taken_on();
        self.due_ms.retain(|&due_ms| due_ms > now_ms);
        self.effects = taken_on - self.due_ms.len() as u64;
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
            [&self.entry.forward, &self.entry.undo].map(|side| (side.effects, side.calls))
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
        assert_eq!(decision, Decision { verdict: DONE, delay_ms: 700, due_ms: None });
    }

    #[test]
    fn a_busy_service_has_its_effect_when_its_work_is_over_and_refuses_a_repeat_until_then() {
        let mut case = Case::new(Behaviour { busy_ms: 300, slow_ms: 20, ..Behaviour::default() });
        let first = case.entry.call(Operation::Forward, &case.behaviour, case.now_ms);
        assert_eq!(first, Decision { verdict: DONE, delay_ms: 320, due_ms: Some(1_300) });
        case.now_ms += 299;
        let repeat = case.entry.call(Operation::Forward, &case.behaviour, case.now_ms);
        assert_eq!(repeat, Decision { verdict: Verdict::InUse, delay_ms: 20, due_ms: None });
        assert_eq!(case.counts()[0], (0, 2));
        case.now_ms += 1;
        case.entry.book(case.now_ms);
        assert_eq!(case.counts()[0], (1, 2), "also if nobody calls");
        assert_eq!((case.forward(), case.counts()[0]), (DONE, (1, 3)));
    }

    #[test]
    fn an_undo_of_a_call_at_work_finds_nothing_and_does_not_prevent_the_effect() {
        let mut case = Case::new(Behaviour { busy_ms: 300, ..Behaviour::default() });
        assert_eq!([case.forward(), case.undo(), case.forward()], [DONE, NOTHING_TO_UNDO, Verdict::InUse]);
        case.now_ms += 300;
        assert_eq!((case.forward(), case.counts()), (Verdict::AlreadyUndone, [(1, 3), (0, 1)]));
        // The undo takes its time as well.
        assert_eq!([case.undo(), case.undo()], [DONE, Verdict::InUse]);
        case.now_ms += 300;
        assert_eq!((case.undo(), case.counts()), (DONE, [(1, 3), (1, 4)]));
    }

    #[test]
    fn a_pending_call_is_answered_at_once_and_its_effect_comes_later() {
        let mut case = Case::new(Behaviour { pending_ms: 300, ..Behaviour::default() });
        let first = case.entry.call(Operation::Forward, &case.behaviour, case.now_ms);
        assert_eq!(first, Decision { verdict: Verdict::Pending, delay_ms: 0, due_ms: Some(1_300) });
        case.now_ms += 299;
        assert_eq!((case.forward(), case.undo(), case.counts()[0]), (Verdict::Pending, NOTHING_TO_UNDO, (0, 2)));
        case.now_ms += 1;
        case.entry.book(case.now_ms);
        assert_eq!((case.undo(), case.counts()[0]), (Verdict::Pending, (1, 2)), "the undo is pending as well");
    }

    #[test]
    fn a_busy_service_that_forgets_keys_works_on_every_call() {
        let mut case = Case::new(Behaviour { busy_ms: 300, forget_keys: true, ..Behaviour::default() });
        assert_eq!([case.forward(), case.forward()], [DONE, DONE_AGAIN]);
        assert_eq!(case.counts()[0], (0, 2));
        case.now_ms += 300;
        case.entry.book(case.now_ms);
        assert_eq!(case.counts()[0], (2, 2));
        // A pending call gets its result once the time is over, and not a new wait.
        let mut case = Case::new(Behaviour { pending_ms: 300, forget_keys: true, ..Behaviour::default() });
        assert_eq!(case.forward(), Verdict::Pending);
        case.now_ms += 300;
        assert_eq!((case.forward(), case.counts()[0]), (DONE_AGAIN, (2, 2)));
    }

    #[test]
    fn an_unknown_caller_is_refused_before_all_else() {
        let mut case = Case::new(Behaviour { unauthorised: 1, flaky: 1, lose_answers: 1, ..Behaviour::default() });
        let answers = [case.forward(), case.forward(), case.forward(), case.forward()];
        assert_eq!(answers, [Verdict::Unauthorised, Verdict::Unavailable, Verdict::Lost, DONE]);
    }

    #[test]
    fn a_key_and_its_undo_have_one_entry() {
        assert_eq!([forward_key("o/a"), forward_key("o/a/undo")], ["o/a", "o/a"]);
    }
}
