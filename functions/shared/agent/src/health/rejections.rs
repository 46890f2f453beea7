//! The brake on mass rejection: counts the answers of the last minute (rule 18).

use domain::ports::{Answers, Rejections};
use domain::time::Timestamp;

use crate::health::RejectionsPolicy;

/// Parts of the window. The oldest part leaves it as a whole.
const PARTS: u64 = 6;

/// The answer of a service to a forward call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Yes,
    No,
}

/// One answer at `now`.
pub(crate) fn one(said: Said, now: Timestamp, policy: RejectionsPolicy) -> Answers {
    let part_ms = i64::try_from((policy.window_ms / PARTS).max(1)).unwrap_or(i64::MAX);
    let now_ms = now.epoch_ms();
    let from = Timestamp::from_epoch_ms(now_ms - now_ms.rem_euclid(part_ms));
    Answers { from, yes: u32::from(said == Said::Yes), no: u32::from(said == Said::No) }
}

/// Adds answers to those that are still in the window.
pub(crate) fn add(answers: &mut Vec<Answers>, more: &[Answers], now: Timestamp, policy: RejectionsPolicy) {
    for part in more {
        match answers.iter_mut().find(|known| known.from == part.from) {
            Some(known) => {
                known.yes = known.yes.saturating_add(part.yes);
                known.no = known.no.saturating_add(part.no);
            }
            None => answers.push(*part),
        }
    }
    // A clock that is ahead must not fill the window for longer than its own length.
    let is_in_window = |from: Timestamp| from.ms_until(now) < policy.window_ms && now.ms_until(from) < policy.window_ms;
    answers.retain(|part| is_in_window(part.from));
    answers.sort_unstable_by_key(|part| part.from);
}

/// The meaning of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Too few answers.
    Unknown,
    /// The rejections are no majority.
    Usual,
    /// The rejections are a majority.
    Most { no: u32, all: u32 },
}

/// The share of the rejections.
pub(crate) fn share(answers: &[Answers], policy: RejectionsPolicy) -> Share {
    let no = answers.iter().fold(0_u32, |sum, part| sum.saturating_add(part.no));
    let all = answers.iter().fold(no, |sum, part| sum.saturating_add(part.yes));
    if all < policy.answers_min {
        Share::Unknown
    } else if u64::from(no) * 100 > u64::from(all) * u64::from(policy.percent) {
        Share::Most { no, all }
    } else {
        Share::Usual
    }
}

/// Whether these answers change the brake: it takes hold, or the operator's acceptance is over.
pub(crate) fn turns(known: &Rejections, more: &[Answers], now: Timestamp, policy: RejectionsPolicy) -> bool {
    let mut answers = known.answers.clone();
    add(&mut answers, more, now, policy);
    match share(&answers, policy) {
        Share::Unknown => false,
        Share::Usual => known.accepted.is_some(),
        Share::Most { .. } => known.accepted.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_600_000);
    const POLICY: RejectionsPolicy = RejectionsPolicy { answers_min: 20, percent: 50, window_ms: 60_000 };

    fn at(ms: i64, yes: u32, no: u32) -> Answers {
        Answers { from: Timestamp::from_epoch_ms(NOW.epoch_ms() + ms), yes, no }
    }

    #[test]
    fn answers_are_counted_in_parts_of_the_window() {
        let mut answers = Vec::new();
        for (ms, said) in [(0, Said::Yes), (9_999, Said::No), (10_000, Said::No), (5_000, Said::No)] {
            let now = NOW.plus_ms(ms);
            add(&mut answers, &[one(said, now, POLICY)], now, POLICY);
        }
        assert_eq!(answers, [at(0, 1, 2), at(10_000, 0, 1)]);
    }

    #[test]
    fn a_part_leaves_the_window_after_its_length_and_one_of_a_fast_clock_too() {
        let all = [at(-50_000, 1, 0), at(0, 0, 1), at(60_000, 0, 1)];
        let kept = |ms| {
            let mut answers = all.to_vec();
            add(&mut answers, &[], NOW.plus_ms(ms), POLICY);
            answers
        };
        assert_eq!(kept(0), all[..2]);
        assert_eq!(kept(9_999), all);
        assert_eq!(kept(10_000), all[1..]);
        assert_eq!(kept(60_000), all[2..]);
    }

    #[test]
    fn most_are_rejections_with_more_than_the_share_of_enough_answers() {
        for (yes, no, expected) in [
            (0, 19, Share::Unknown),
            (0, 20, Share::Most { no: 20, all: 20 }),
            (10, 10, Share::Usual),
            (9, 11, Share::Most { no: 11, all: 20 }),
            (u32::MAX, u32::MAX, Share::Most { no: u32::MAX, all: u32::MAX }),
        ] {
            assert_eq!(share(&[at(0, yes, no)], POLICY), expected, "{yes} {no}");
        }
    }
}
