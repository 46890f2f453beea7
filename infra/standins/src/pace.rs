//! How many calls come in a second, at the most.

use std::collections::VecDeque;

/// Time is cut into pieces of this length, in milliseconds: the seconds that are looked at begin at each of them.
const PIECE_MS: u64 = 100;
/// Pieces in a second.
const PIECES: u64 = 1_000 / PIECE_MS;

/// Counts calls over the last second, whichever second that is, and keeps the largest count. Its size is bounded by the
/// number of pieces in a second.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The pieces of the last second in which there were calls: their numbers, and the calls.
    pieces: VecDeque<(u64, u64)>,
    in_last_second: u64,
    peak: u64,
}

impl Pace {
    /// Counts a call at `now_ms` of any clock that does not go back.
    pub(crate) fn count(&mut self, now_ms: u64) {
        let now = now_ms / PIECE_MS;
        while let Some(&(piece, calls)) = self.pieces.front()
            && piece + PIECES <= now
        {
            self.in_last_second -= calls;
            self.pieces.pop_front();
        }
        match self.pieces.back_mut() {
            Some((piece, calls)) if *piece == now => *calls += 1,
            Some(_) | None => self.pieces.push_back((now, 1)),
        }
        self.in_last_second += 1;
        self.peak = self.peak.max(self.in_last_second);
    }

    /// The largest number of calls in any second.
    pub(crate) const fn peak(&self) -> u64 {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(calls_at_ms: impl IntoIterator<Item = u64>) -> u64 {
        let mut pace = Pace::default();
        calls_at_ms.into_iter().for_each(|at_ms| pace.count(at_ms));
        assert!(pace.pieces.len() as u64 <= PIECES, "it stays small");
        pace.peak()
    }

    #[test]
    fn a_steady_rate_is_its_own_peak() {
        assert_eq!(peak((0..5_000).step_by(10)), 100);
        assert_eq!(peak((0..3_600_000).step_by(60_000)), 1);
        assert_eq!(peak([]), 0);
    }

    #[test]
    fn a_burst_across_the_border_of_two_seconds_is_seen_whole() {
        assert_eq!(peak([900, 950, 990, 1_010, 1_050, 1_890]), 6);
        assert_eq!(peak([900, 950, 990, 1_010, 1_050, 1_900]), 5, "the last is a second later than the first");
    }
}
