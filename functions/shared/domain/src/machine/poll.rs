//! The looks at the state of a call that was taken on (rule 36). A look is no attempt: it counts no failure, and no wait
//! becomes longer by it, except for the last look and for a deferred one.

use super::decision::{Dropped, Effect, Verdict};
use super::turn::Turn;
use crate::limits::DEFERRAL_MS_MAX;
use crate::message::{Acceptance, Deferral, is_poll};
use crate::task::{Direction, Poll};
use crate::time::Timestamp;

impl Turn<'_> {
    /// Begins to ask where the agent says. A heartbeat says nothing of it, and lets the looks go on after the last one.
    pub(super) fn poll_from_now(&mut self, index: usize, acceptance: &Acceptance) {
        let Some(rule) = &self.workflow.steps[index].poll else { return };
        let now = self.moment.now;
        let step = &mut self.task.steps[index];
        let said = acceptance.poll.as_ref().filter(|path| is_poll(path) && step.direction == Direction::Forward);
        let Some(path) = said.or_else(|| step.poll.as_ref().map(|poll| &poll.path)).cloned() else { return };
        let end = step.waits_until.unwrap_or(now);
        let at = step.poll.as_ref().and_then(|poll| poll.at);
        // After the last look, only a wait that became longer has another one.
        let goes_on = step.poll.is_none() || self.changed;
        let at = at.or_else(|| goes_on.then(|| now.plus_ms(rule.every_ms).min(end)));
        let poll = Some(Poll { path, at });
        self.changed |= step.poll != poll;
        step.poll = poll;
    }

    /// When the next look at a call that was taken on is due. One further ahead than it may honestly be was set by a wrong
    /// clock (rule 23).
    pub(super) fn look_at(&self, index: usize) -> Option<Timestamp> {
        let (step, rule) = (&self.task.steps[index], self.workflow.steps[index].poll.as_ref()?);
        let at = step.poll.as_ref().filter(|_| step.is_awaited())?.at?;
        let latest_ms = rule.every_ms.max(DEFERRAL_MS_MAX);
        Some(if at.is_beyond(self.moment.now, latest_ms) { self.moment.now } else { at })
    }

    /// Looks at the state of the call, if it is time. The last look is made when the wait is over, and may take the time of
    /// an attempt: so no wait ends as a failure before it, however late the supervisor comes.
    pub(super) fn look_if_due(&mut self, index: usize) -> bool {
        let now = self.moment.now;
        let rule = &self.workflow.steps[index];
        let (Some(at), Some(poll)) = (self.look_at(index), &rule.poll) else { return false };
        if now < at {
            return false;
        }
        let end = self.ends_at(index).unwrap_or(now);
        let is_last = end <= now;
        let step = &mut self.task.steps[index];
        if let Some(polled) = &mut step.poll {
            polled.at = (!is_last).then(|| now.plus_ms(poll.every_ms).min(end));
        }
        if is_last {
            self.wait_until(index, now.plus_ms(rule.complete_within_ms));
        }
        self.effects.push(Effect::Look { step: index, hops: 1 });
        true
    }

    /// Looks later: a limit of ours held the look up, or the service asked for the wait. If the wait for the result would be
    /// over by then, it becomes longer, but not beyond the step's horizon: nothing else ends such waits.
    pub(super) fn defer_look(&mut self, index: usize, deferral: &Deferral) -> Verdict {
        let (now, rule) = (self.moment.now, &self.workflow.steps[index]);
        let horizon = self.task.steps[index].started_at.map_or(now, |at| at.plus_ms(rule.horizon_ms));
        if horizon <= now {
            return Verdict::Dropped(Dropped::TakenOn);
        }
        let at = now.plus_ms(deferral.wait_ms.min(DEFERRAL_MS_MAX)).min(horizon);
        let end = self.ends_at(index);
        let step = &mut self.task.steps[index];
        let Some(poll) = &mut step.poll else { return Verdict::Dropped(Dropped::TakenOn) };
        // A later one is the last, at the end of the wait.
        let is_followed = poll.at.is_some() && end.is_some_and(|end| at < end);
        poll.at = Some(at);
        if !is_followed {
            self.wait_until(index, at.plus_ms(rule.complete_within_ms).min(horizon));
        }
        self.changed = true;
        Verdict::Taken
    }
}
