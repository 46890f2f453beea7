//! No wait is above its limit, and each is a whole number of slots.

use proptest::prelude::*;

use super::cases;
use crate::backoff::{Backoff, BackoffPolicy};

fn policy() -> impl Strategy<Value = BackoffPolicy> {
    (1..1_000_000_u64, 0..=32_u32, any::<bool>()).prop_map(|(slot_time_ms, ceiling, stay_at_ceiling)| BackoffPolicy {
        slot_time_ms,
        ceiling,
        stay_at_ceiling,
    })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn each_wait_is_a_power_of_two_less_one_within_its_slot(policy in policy(), draws in proptest::collection::vec(any::<u64>(), 1..80)) {
        let mut backoff = Backoff::new(policy);
        for (retries, draw) in (1..).zip(draws) {
            let slot = backoff.slot;
            backoff = backoff.next(draw);
            let slots = backoff.wait_time_ms / policy.slot_time_ms;
            prop_assert_eq!(backoff.wait_time_ms % policy.slot_time_ms, 0);
            prop_assert!((slots + 1).is_power_of_two() && slots < 1 << (slot + 1) && slot <= policy.ceiling);
            prop_assert!(backoff.wait_time_ms <= policy.wait_ms_max());
            prop_assert_eq!(backoff.total_retries, retries);
            prop_assert!(policy.stay_at_ceiling || backoff.retries <= policy.ceiling.max(1));
        }
    }

    #[test]
    fn only_the_last_draw_shows_in_a_wait(policy in policy(), draws in proptest::collection::vec(any::<u64>(), 1..80)) {
        let walked = draws.iter().fold(Backoff::new(policy), |backoff, &draw| backoff.next(draw));
        let retry = u32::try_from(draws.len()).unwrap();
        prop_assert_eq!(Backoff::at_retry(policy, retry, *draws.last().unwrap()), walked);
    }

    #[test]
    fn every_exponent_up_to_the_slot_is_as_likely(policy in policy(), retries in 0..40_u32) {
        let backoff = (0..retries).fold(Backoff::new(policy), |backoff, _| backoff.next(0));
        let waits: std::collections::BTreeSet<u64> =
            (0..=u64::from(backoff.slot)).map(|draw| backoff.next(draw).wait_time_ms).collect();
        prop_assert_eq!(waits.len(), usize::try_from(backoff.slot).unwrap() + 1);
    }
}
