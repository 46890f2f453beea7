//! One service with its keys in memory: its state, its counts and its decision about a call.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::behaviour::Switches;
use crate::call::Call;
use crate::entry::{Decision, Entry, Side, forward_key};
use crate::pace::Pace;
use crate::service::UNDO_SUFFIX;

/// The known keys of a service. A call and its undo share one entry.
#[derive(Debug)]
pub(crate) struct Ledger {
    keys_max: usize,
    entries: HashMap<Arc<str>, Entry>,
    /// Keys by age, oldest dropped first.
    oldest_first: VecDeque<Arc<str>>,
    /// The effects that will come, by time.
    due: BinaryHeap<Reverse<(u64, Arc<str>)>>,
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
    pub(crate) fn new(keys_max: usize) -> Self {
        Self {
            keys_max: keys_max.max(1),
            entries: HashMap::new(),
            oldest_first: VecDeque::new(),
            due: BinaryHeap::new(),
            totals: Totals::default(),
            pace: Pace::default(),
            switches: Switches::default(),
        }
    }

    /// The switches of the whole service.
    pub(crate) const fn switches(&mut self) -> &mut Switches {
        &mut self.switches
    }

    /// The effects so far, as of the last call or look.
    pub(crate) const fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes the largest number of calls in any second since the last call of this function.
    pub(crate) fn take_peak(&mut self) -> u64 {
        std::mem::take(&mut self.pace).peak()
    }

    /// Decides one call at `now_ms` of a monotonic clock. The switches of the service come first.
    pub(crate) fn call(&mut self, call: &Call<'_>, now_ms: u64) -> Decision {
        self.totals.calls += 1;
        self.totals.calls_while_down += u64::from(self.switches.down);
        self.pace.count(now_ms);
        self.book(now_ms);
        let behaviour = self.switches.over(&call.behaviour);
        let key = forward_key(call.key);
        let entry = self.entry(key);
        let effects_before = entry.effects();
        let decision = entry.call(call.operation, &behaviour, now_ms);
        let effects = entry.effects() - effects_before;
        self.totals.effects += effects;
        self.due.extend(decision.due_ms.map(|due_ms| Reverse((due_ms, key.into()))));
        decision
    }

    /// Books the effects that came until `now_ms`. They come, even if the key was dropped.
    fn book(&mut self, now_ms: u64) {
        while let Some(Reverse((due_ms, _))) = self.due.peek()
            && *due_ms <= now_ms
            && let Some(Reverse((_, key))) = self.due.pop()
        {
            self.totals.effects += 1;
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.book(now_ms);
            }
        }
    }

    /// The effects so far.
    pub(crate) fn effects(&mut self, now_ms: u64) -> ServiceEffects {
        self.book(now_ms);
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
    use crate::behaviour::Behaviour;
    use crate::entry::Verdict;
    use crate::service::{Operation, Service};

    const DONE: Verdict = Verdict::Done { was_done: true, time: 1 };

    fn call(ledger: &mut Ledger, key: &str, now_ms: u64) -> Verdict {
        let operation = if key.ends_with(UNDO_SUFFIX) { Operation::Undo } else { Operation::Forward };
        let behaviour = Behaviour::default();
        ledger.call(&Call { service: Service::Payment, operation, key, behaviour }, now_ms).verdict
    }

    #[test]
    fn each_key_has_its_own_count_and_an_undo_has_its_own() {
        let mut ledger = Ledger::new(usize::MAX);
        for key in ["o1/a", "o1/a", "o2/a", "o1/a/undo"] {
            assert_eq!(call(&mut ledger, key, 0), DONE);
        }
        let effects = ledger.effects(0);
        assert_eq!(effects.of("o1/a"), KeyEffects { effects: 1, calls: 2 });
        assert_eq!([effects.of("o2/a"), effects.of("o1/a/undo")], [KeyEffects { effects: 1, calls: 1 }; 2]);
        assert_eq!((effects.calls, effects.effects, effects.keys.len()), (4, 3, 3));
    }

    #[test]
    fn a_service_can_be_switched_to_forget_keys_and_back() {
        let mut ledger = Ledger::new(usize::MAX);
        let mut effects_after_a_call = |forget_keys| {
            ledger.switches().forget_keys = forget_keys;
            call(&mut ledger, "o/a", 0);
            ledger.effects(0).of("o/a").effects
        };
        assert_eq!([true, true, false].map(&mut effects_after_a_call), [1, 2, 2]);
    }

    #[test]
    fn a_service_that_is_switched_off_refuses_and_counts_every_call_until_it_is_on_again() {
        let mut ledger = Ledger::new(usize::MAX);
        assert_eq!(call(&mut ledger, "o/a", 0), DONE);
        ledger.switches().down = true;
        for key in ["o/a", "o/b", "o/a/undo"] {
            assert_eq!(call(&mut ledger, key, 0), Verdict::Unavailable);
        }
        ledger.switches().down = false;
        assert_eq!(call(&mut ledger, "o/b", 0), DONE);
        let totals = ledger.totals();
        assert_eq!((totals.calls, totals.calls_while_down, totals.effects), (5, 3, 2));
    }

    #[test]
    fn the_busiest_second_is_told_once_and_then_counted_anew() {
        let mut ledger = Ledger::new(usize::MAX);
        for now_ms in [0, 100, 900, 5_000] {
            call(&mut ledger, "o/a", now_ms);
        }
        assert_eq!((ledger.take_peak(), ledger.take_peak()), (3, 0));
    }

    #[test]
    fn only_the_newest_keys_are_remembered() {
        let mut ledger = Ledger::new(2);
        for key in ["o1/a", "o2/a", "o1/a", "o3/a"] {
            assert_eq!(call(&mut ledger, key, 0), DONE);
        }
        let effects = ledger.effects(0);
        assert_eq!(effects.keys.keys().collect::<Vec<_>>(), ["o2/a", "o3/a"]);
        assert_eq!((effects.calls, effects.effects, effects.forgotten), (4, 3, 1));
    }

    #[test]
    fn an_effect_that_comes_later_is_in_the_books_when_it_came() {
        let mut ledger = Ledger::new(1);
        let behaviour = Behaviour { busy_ms: 300, ..Behaviour::default() };
        for (key, now_ms) in [("o1/a", 0), ("o2/a", 100)] {
            let call =
                Call { service: Service::Payment, operation: Operation::Forward, key, behaviour: behaviour.clone() };
            assert_eq!(ledger.call(&call, now_ms).verdict, DONE);
        }
        let mut seen = |now_ms| (ledger.effects(now_ms).effects, ledger.effects(now_ms).of("o2/a").effects);
        assert_eq!([299, 300, 399, 400].map(&mut seen), [(0, 0), (1, 0), (1, 0), (2, 1)]);
    }
}
