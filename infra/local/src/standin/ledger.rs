//! The state of one stand-in, and its decision about a call. Pure: the time comes in as an argument.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use standins::{Behaviour, Entry, Operation, Side, UNDO_SUFFIX, Verdict, forward_key};

use super::pace::Pace;
use super::switches::Switches;

/// The known keys of a service. A call and its undo share one entry.
#[derive(Debug)]
pub struct Ledger {
    keys_max: usize,
    entries: HashMap<Arc<str>, Entry>,
    /// Keys by age, oldest dropped first.
    oldest_first: VecDeque<Arc<str>>,
    totals: Totals,
    pace: Pace,
    switches: Switches,
}

/// The totals of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls.
    pub calls: u64,
    /// Calls while the whole service was switched off.
    pub calls_while_down: u64,
    /// Effects, including undos.
    pub effects: u64,
    /// Keys dropped to make room.
    pub forgotten: u64,
}

impl Ledger {
    /// Keeps the newest `keys_max` keys. A dropped key counts as new.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            keys_max: keys_max.max(1),
            entries: HashMap::new(),
            oldest_first: VecDeque::new(),
            totals: Totals::default(),
            pace: Pace::default(),
            switches: Switches::default(),
        }
    }

    /// The switches of the whole service.
    pub const fn switches(&mut self) -> &mut Switches {
        &mut self.switches
    }

    /// The effects so far.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes the largest number of calls in any second since the last call of this function.
    pub fn take_peak(&mut self) -> u64 {
        std::mem::take(&mut self.pace).peak()
    }

    /// Decides one call with an idempotency key at `now_ms` of a monotonic clock.
    pub fn call(&mut self, key: &str, operation: Operation, behaviour: &Behaviour, now_ms: u64) -> Verdict {
        let Switches { down, forget_keys } = self.switches;
        self.totals.calls += 1;
        self.totals.calls_while_down += u64::from(down);
        self.pace.count(now_ms);
        // The service's switches come first.
        let behaviour = Behaviour {
            down: down || behaviour.down,
            forget_keys: forget_keys || behaviour.forget_keys,
            ..behaviour.clone()
        };
        let entry = self.entry(forward_key(key));
        let effects_before = entry.effects();
        let verdict = entry.call(operation, &behaviour, now_ms);
        let effects = entry.effects() - effects_before;
        self.totals.effects += effects;
        verdict
    }

    /// The effects so far.
    #[must_use]
    pub fn effects(&self) -> ServiceEffects {
        let mut keys = BTreeMap::new();
        for (key, entry) in &self.entries {
            if entry.forward.calls > 0 {
                keys.insert(key.to_string(), told(&entry.forward));
            }
            if entry.undo.calls > 0 {
                keys.insert(format!("{key}{UNDO_SUFFIX}"), told(&entry.undo));
            }
        }
        let Totals { calls, calls_while_down, effects, forgotten } = self.totals;
        ServiceEffects { calls, calls_while_down, effects, forgotten, keys }
    }

    fn entry(&mut self, key: &str) -> &mut Entry {
        if !self.entries.contains_key(key) {
            if self.entries.len() >= self.keys_max
                && let Some(oldest) = self.oldest_first.pop_front()
            {
                self.entries.remove(&oldest);
                self.totals.forgotten += 1;
            }
            self.oldest_first.push_back(key.into());
        }
        self.entries.entry(key.into()).or_default()
    }
}

const fn told(side: &Side) -> KeyEffects {
    KeyEffects { effects: side.effects, calls: side.calls }
}

/// The effects of one service, as `/effects` shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceEffects {
    /// All calls.
    pub calls: u64,
    /// Calls while the whole service was switched off.
    #[serde(default)]
    pub calls_while_down: u64,
    /// All effects, including undos.
    pub effects: u64,
    /// Keys dropped to make room.
    pub forgotten: u64,
    /// By idempotency key; an undo has its own key.
    pub keys: BTreeMap<String, KeyEffects>,
}

impl ServiceEffects {
    /// The record of a key; empty for an unknown key.
    #[must_use]
    pub fn of(&self, key: &str) -> KeyEffects {
        self.keys.get(key).copied().unwrap_or_default()
    }
}

/// The record of one idempotency key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct KeyEffects {
    /// Executions; more than 1 only at a service that ignores its keys.
    pub effects: u64,
    /// Calls with this key.
    pub calls: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Verdict = Verdict::Done { was_done: true, time: 1 };
    const DONE_AGAIN: Verdict = Verdict::Done { was_done: true, time: 2 };
    const NOTHING_TO_UNDO: Verdict = Verdict::Done { was_done: false, time: 1 };

    struct Case {
        ledger: Ledger,
        behaviour: Behaviour,
        now_ms: u64,
    }

    impl Case {
        fn new(behaviour: Behaviour) -> Self {
            Self { ledger: Ledger::new(usize::MAX), behaviour, now_ms: 1_000 }
        }

        fn forward(&mut self, key: &str) -> Verdict {
            self.ledger.call(key, Operation::Forward, &self.behaviour, self.now_ms)
        }

        fn undo(&mut self, key: &str) -> Verdict {
            self.ledger.call(&format!("{key}/undo"), Operation::Undo, &self.behaviour, self.now_ms)
        }

        fn told(&self, key: &str) -> (u64, u64) {
            let KeyEffects { effects, calls } = self.ledger.effects().of(key);
            (effects, calls)
        }
    }

    #[test]
    fn the_same_key_gives_the_same_answer_and_no_second_effect() {
        let mut case = Case::new(Behaviour::default());
        assert_eq!([case.forward("o1/a"), case.forward("o1/a"), case.forward("o2/a")], [DONE, DONE, DONE]);
        assert_eq!((case.told("o1/a"), case.told("o2/a")), ((1, 2), (1, 1)));
        assert_eq!((case.ledger.effects().calls, case.ledger.effects().effects), (3, 2));
    }

    #[test]
    fn an_undo_takes_back_once_and_closes_the_key() {
        let mut case = Case::new(Behaviour::default());
        assert_eq!([case.forward("o/a"), case.undo("o/a"), case.undo("o/a")], [DONE, DONE, DONE]);
        assert_eq!(case.told("o/a/undo"), (1, 2));
        assert_eq!(case.forward("o/a"), Verdict::AlreadyUndone);
        assert_eq!(case.told("o/a"), (1, 2));
    }

    #[test]
    fn undoing_nothing_succeeds_and_a_late_forward_call_is_refused() {
        let mut case = Case::new(Behaviour::default());
        assert_eq!(
            [case.undo("o/a"), case.forward("o/a"), case.undo("o/a")],
            [NOTHING_TO_UNDO, Verdict::AlreadyUndone, NOTHING_TO_UNDO]
        );
        assert_eq!((case.told("o/a"), case.told("o/a/undo")), ((0, 1), (0, 2)));
    }

    #[test]
    fn a_flaky_service_fails_the_first_calls_of_each_key() {
        let mut case = Case::new(Behaviour { flaky: 2, ..Behaviour::default() });
        for key in ["o1/a", "o2/a"] {
            let answers = [case.forward(key), case.forward(key), case.forward(key)];
            assert_eq!(answers, [Verdict::Unavailable, Verdict::Unavailable, DONE]);
            assert_eq!(case.told(key), (1, 3));
        }
    }

    #[test]
    fn a_lost_answer_hides_an_effect_that_happened() {
        let mut case = Case::new(Behaviour { flaky: 1, lose_answers: 1, ..Behaviour::default() });
        assert_eq!([case.forward("o/a"), case.forward("o/a")], [Verdict::Unavailable, Verdict::Lost]);
        assert_eq!(case.told("o/a"), (1, 2));
        assert_eq!(case.forward("o/a"), DONE);
        assert_eq!(case.told("o/a"), (1, 3));
    }

    #[test]
    fn a_service_that_is_down_does_nothing_until_its_time_is_over() {
        let mut case = Case::new(Behaviour { down_ms: 500, ..Behaviour::default() });
        assert_eq!(case.forward("o/a"), Verdict::Unavailable);
        case.now_ms += 499;
        assert_eq!(case.forward("o/a"), Verdict::Unavailable);
        case.now_ms += 1;
        assert_eq!(case.forward("o/a"), DONE);
        case.behaviour = Behaviour { down: true, ..Behaviour::default() };
        assert_eq!(case.forward("o/b"), Verdict::Unavailable);
        assert_eq!(case.told("o/b"), (0, 1));
    }

    #[test]
    fn a_service_that_forgets_keys_does_it_again_at_every_call() {
        let mut case = Case::new(Behaviour { forget_keys: true, ..Behaviour::default() });
        assert_eq!([case.forward("o/a"), case.forward("o/a")], [DONE, DONE_AGAIN]);
        assert_eq!([case.undo("o/a"), case.undo("o/a")], [DONE, DONE_AGAIN]);
        assert_eq!((case.told("o/a"), case.told("o/a/undo")), ((2, 2), (2, 2)));
        assert_eq!(case.forward("o/a"), Verdict::Done { was_done: true, time: 3 }, "nor does it know of the undo");
        assert_eq!((case.undo("o/b"), case.told("o/b/undo")), (NOTHING_TO_UNDO, (0, 1)));
    }

    #[test]
    fn a_service_can_be_switched_to_forget_keys_and_back() {
        let mut case = Case::new(Behaviour::default());
        case.ledger.switches().forget_keys = true;
        assert_eq!([case.forward("o/a"), case.forward("o/a")], [DONE, DONE_AGAIN]);
        case.ledger.switches().forget_keys = false;
        assert_eq!((case.forward("o/a"), case.told("o/a")), (DONE_AGAIN, (2, 3)), "the answer of last time");
    }

    #[test]
    fn a_service_that_is_switched_off_refuses_and_counts_every_call_until_it_is_on_again() {
        let mut case = Case::new(Behaviour::default());
        assert_eq!(case.forward("o/a"), DONE);
        case.ledger.switches().down = true;
        let answers = [case.forward("o/a"), case.forward("o/b"), case.undo("o/a")];
        assert!(answers.iter().all(|answer| *answer == Verdict::Unavailable), "{answers:?}");
        case.ledger.switches().down = false;
        assert_eq!(case.forward("o/b"), DONE);
        let totals = case.ledger.totals();
        assert_eq!((totals.calls, totals.calls_while_down, totals.effects), (5, 3, 2));
    }

    #[test]
    fn the_busiest_second_is_told_once_and_then_counted_anew() {
        let mut case = Case::new(Behaviour::default());
        for ms in [0, 100, 900, 5_000] {
            case.now_ms = ms;
            case.forward("o/a");
        }
        assert_eq!((case.ledger.take_peak(), case.ledger.take_peak()), (3, 0));
    }

    #[test]
    fn a_declined_call_has_no_effect() {
        let mut case = Case::new(Behaviour { decline: Some("card_declined".to_owned()), ..Behaviour::default() });
        assert_eq!(case.forward("o/a"), Verdict::Declined("card_declined".to_owned()));
        assert_eq!(case.told("o/a"), (0, 1));
    }

    #[test]
    fn only_the_newest_keys_are_remembered() {
        let mut case = Case::new(Behaviour::default());
        case.ledger = Ledger::new(2);
        for key in ["o1/a", "o2/a", "o1/a", "o3/a"] {
            assert_eq!(case.forward(key), DONE);
        }
        let effects = case.ledger.effects();
        assert_eq!(effects.keys.keys().collect::<Vec<_>>(), ["o2/a", "o3/a"]);
        assert_eq!((effects.calls, effects.effects, effects.forgotten), (4, 3, 1));
    }
}
