//! A service's limit of calls, by the calls that it took before it refused one with 429.

use agent::Rate;

/// The times over which calls are counted: the first in which a call was taken.
const PERS_MS: [u64; 3] = [1_000, 10_000, 60_000];
/// The most calls and the longest time that the key `rate` takes.
const CALLS_MAX: usize = 1_000;
const PER_MS_MAX: u64 = 3_600_000;

/// What is known of the limit.
#[derive(Debug, Clone, Default)]
pub(super) struct Limit {
    taken_ms: Vec<u64>,
    pub(super) refusals: u32,
    /// The slowest rate that is left of each refusal.
    pub(super) rate: Option<Rate>,
}

impl Limit {
    /// A call was taken.
    pub(super) fn taken(&mut self, at_ms: u64) {
        self.taken_ms.push(at_ms);
    }

    /// A call was refused. `asked_ms`: the wait that the service asked for. Gives the rate to keep to.
    pub(super) fn refused(&mut self, at_ms: u64, asked_ms: u64) -> Option<Rate> {
        self.refusals += 1;
        let count = |per_ms: u64| self.taken_ms.iter().filter(|taken| **taken + per_ms > at_ms).count();
        let longest_ms = PERS_MS[2].max(asked_ms);
        let pers_ms = PERS_MS.map(|per_ms| per_ms.max(asked_ms).min(PER_MS_MAX));
        let per_ms = pers_ms.into_iter().find(|per_ms| count(*per_ms) > 0).unwrap_or(longest_ms.min(PER_MS_MAX));
        let calls = u32::try_from(count(per_ms).clamp(1, CALLS_MAX)).unwrap_or(1);
        let rate = Rate { calls, per_ms };
        let is_slower = |than: Rate| u64::from(rate.calls) * than.per_ms < u64::from(than.calls) * rate.per_ms;
        if self.rate.is_none_or(is_slower) {
            self.rate = Some(rate);
        }
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(taken_ms: &[u64], refused: &[(u64, u64)]) -> (u32, u64) {
        let mut limit = Limit::default();
        taken_ms.iter().for_each(|at_ms| limit.taken(*at_ms));
        let rates: Vec<_> = refused.iter().map(|&(at_ms, asked_ms)| limit.refused(at_ms, asked_ms)).collect();
        let Some(Some(Rate { calls, per_ms })) = rates.last() else { panic!("nothing was refused") };
        (*calls, *per_ms)
    }

    #[test]
    fn the_rate_is_what_was_taken_before_the_slowest_refusal() {
        assert_eq!(rate(&[0, 10, 20], &[(30, 0)]), (3, 1_000));
        assert_eq!(
            rate(&[0, 10, 20, 900, 1_500], &[(30, 0), (1_600, 0)]),
            (2, 1_000),
            "a bucket that is refilled slowly"
        );
        assert_eq!(rate(&[0, 10], &[(1_500, 0)]), (2, 10_000));
        assert_eq!(rate(&[0, 1_500, 1_800], &[(1_900, 2_000)]), (3, 2_000), "the service says for how long");
        assert_eq!(rate(&[], &[(0, 0)]), (1, 60_000));
        assert_eq!(rate(&[], &[(0, 9_000_000)]), (1, 3_600_000), "the longest that a rate takes");
    }
}
