//! A service as its user describes it: when it is at work, away or busy, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::Answer;

use crate::description::{SHARE_MAX, Service};
use crate::manner::IN_USE;
use crate::rng::Rng;
use crate::seen::Way;

/// The code of the answer to an undo of what was never done, where that is no success.
pub(crate) const NOTHING: &str = "not-found";
/// The problem of a service that is away, and says so.
pub(crate) const AWAY: &str = "away";
/// The problem of a service that is called too often.
pub(crate) const TOO_MANY: &str = "too-many";

/// A service in a world.
#[derive(Debug, Clone)]
pub struct Described {
    /// What is said of it.
    pub service: Service,
    /// How long its answers take today.
    pub pace: Pace,
    /// What it says of each step of a workflow, also of each line: forward, and of the undo.
    pub words: Arc<BTreeMap<Arc<str>, [Words; 2]>>,
}

/// How long the answers of a service take on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As long as is said.
    Usual,
    /// All of them long.
    Slow,
    /// All of them equally long: what comes together stays together.
    Even,
}

/// What a service says of a step in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// It is carried out.
    pub done: Said,
    /// It is rejected.
    pub no: Said,
    /// There was nothing to undo.
    pub nothing: Said,
    /// Whether it may take the call on, and have the result later.
    pub may_come_later: bool,
    /// It is taken on.
    pub taken_on: Said,
    /// To a question for its state: it is at work.
    pub at_work: Said,
    /// To a question for its state: it is carried out.
    pub found: Said,
    /// To a question for its state: it is rejected.
    pub refused: Said,
}

/// A status and a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Arc<str>,
}

impl Described {
    /// What it says of a step in this direction.
    pub(crate) fn words(&self, step: &str, way: Way) -> Option<&Words> {
        let [forward, undo] = self.words.get(step)?;
        Some(if way == Way::Forward { forward } else { undo })
    }

    /// The status and the body of the answer to a call of which it says this.
    pub(crate) fn puts(&self, answer: &Answer, words: Option<&Words>) -> (u16, String) {
        let of_step = |said: &Said| (said.status, said.body.to_string());
        let Some(words) = words else { return (404, String::new()) };
        match answer {
            Answer::Done(_) => of_step(&words.done),
            Answer::Fail(failure) if *failure.code == *NOTHING => of_step(&words.nothing),
            Answer::Fail(_) => of_step(&words.no),
            Answer::UnderWay { unless_alone: Some(failure), .. } if *failure.code == *IN_USE => {
                (self.service.busy, format!("{{\"code\":\"{IN_USE}\",\"message\":\"the key is in use\"}}"))
            }
            Answer::UnderWay { unless_alone: Some(_), .. } => of_step(&words.no),
            Answer::UnderWay { unless_alone: None, .. } => of_step(&words.taken_on),
            Answer::Retry { problem, .. } if **problem == *AWAY => (self.service.outage.answers, String::new()),
            Answer::Retry { problem, .. } if **problem == *TOO_MANY => (429, String::new()),
            Answer::Retry { .. } => (503, String::new()),
            Answer::Unknown { .. } => (504, "<html>".to_owned()),
            Answer::Misconfigured { .. } | Answer::NotCalled { .. } => (401, String::new()),
        }
    }

    /// The same of the answer to a question for the state of a call.
    pub(crate) fn tells(answer: &Answer, words: Option<&Words>) -> (u16, String) {
        let of_step = |said: &Said| (said.status, said.body.to_string());
        match (answer, words) {
            (Answer::Done(_), Some(words)) => of_step(&words.found),
            (Answer::UnderWay { .. }, Some(words)) => of_step(&words.at_work),
            (Answer::Fail(_), Some(words)) => of_step(&words.refused),
            (Answer::Retry { .. } | Answer::Unknown { .. }, _) => (503, String::new()),
            (_, _) => (404, String::new()),
        }
    }

    /// Whether something that happens in this share of the cases, in millionths, happens.
    pub(crate) fn happens(rng: &mut Rng, share: u32) -> bool {
        share > 0 && rng.below(u64::from(SHARE_MAX)) < u64::from(share)
    }

    /// Draws how long it works on a call, in milliseconds: the effect is at the end of it.
    pub(crate) fn draw_latency(&self, rng: &mut Rng) -> u64 {
        let [half, most, max] = self.service.latency_ms;
        if self.pace == Pace::Even {
            return half.max(1);
        }
        let is_slow = self.pace == Pace::Slow;
        let (least, longest) = match rng.below(if is_slow { 1 } else { 100 }) {
            0 => (most, max),
            1..=50 => (half / 2, half),
            _ => (half, most),
        };
        // Few are near the end.
        let share = rng.below(1_000) * rng.below(1_000) / 1_000;
        let share = if is_slow { 1_000 - share } else { share };
        (least + longest.saturating_sub(least) * share / 1_000).max(1)
    }

    /// Draws when a call has its effect whose caller has left, in milliseconds: often at the very end.
    pub(crate) fn draw_late(&self, rng: &mut Rng) -> u64 {
        let latest_ms = self.service.effect_after_caller_left_ms;
        let usual_ms = self.service.latency_ms[2].min(latest_ms);
        let earliest_ms = if rng.chance(3_000) { usual_ms.max(latest_ms - latest_ms / 20) } else { usual_ms };
        rng.between(earliest_ms, latest_ms).max(1)
    }

    /// Draws whether it takes a call on, and when its result comes then, in milliseconds.
    pub(crate) fn puts_off(&self, rng: &mut Rng, words: Option<&Words>) -> Option<u64> {
        if !words.is_some_and(|words| words.may_come_later) || !Self::happens(rng, self.service.later.share) {
            return None;
        }
        let within_ms = self.service.later.within_ms;
        let share = match self.pace {
            Pace::Even => 500,
            Pace::Slow => rng.between(900, 1_000),
            Pace::Usual if rng.chance(1_000) => rng.between(900, 1_000),
            Pace::Usual => rng.between(0, 1_000),
        };
        Some((within_ms * share / 1_000).max(1))
    }

    /// The calls that it takes within a second. The network brings a few together that were sent apart.
    pub(crate) fn calls_max(&self) -> Option<usize> {
        let limit = usize::try_from(self.service.limit?).unwrap_or(usize::MAX);
        Some(limit.saturating_add(limit / 10 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_take_as_long_as_is_said() {
        let mut described = Described { service: Service::default(), pace: Pace::Usual, words: Arc::default() };
        described.service.latency_ms = [100, 1_000, 9_000];
        let mut rng = Rng::new(7);
        let mut drawn: Vec<u64> = (0..20_000).map(|_| described.draw_latency(&mut rng)).collect();
        drawn.sort_unstable();
        assert!((90..=140).contains(&drawn[10_000]), "half: {}", drawn[10_000]);
        assert!((500..=1_500).contains(&drawn[19_750]), "99 of 100: {}", drawn[19_750]);
        assert!(drawn[19_999] <= 9_000 && drawn[19_999] > 4_000, "the slowest: {}", drawn[19_999]);
        described.pace = Pace::Slow;
        assert!((0..1_000).all(|_| (1_000..=9_000).contains(&described.draw_latency(&mut rng))));
    }

    #[test]
    fn a_service_with_a_limit_bears_what_the_network_brings_together() {
        let mut described = Described { service: Service::default(), pace: Pace::Usual, words: Arc::default() };
        assert_eq!(described.calls_max(), None);
        for (limit, calls) in [(1, 2), (5, 6), (20, 23)] {
            described.service.limit = Some(limit);
            assert_eq!(described.calls_max(), Some(calls));
        }
    }
}
