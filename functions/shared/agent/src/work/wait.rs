//! The waits without a call: parked, deferred, or in silence.

use domain::limits::DEFERRAL_MS_MAX;
use domain::message::{Deferral, Outcome};
use domain::ports::Environment;
use domain::task::Direction;
use domain::time::Timestamp;

use super::{Ending, Parked, Silence, Work, sent_at};
use crate::deadline::Room;
use crate::policy::PARKED_RECEIVES_MAX;
use crate::ports::AgentPorts;
use crate::service::Service;

/// The longest wait for a duplicate's call, in milliseconds, before its memo is read again.
pub(super) const DUPLICATE_WAIT_MS: u64 = 1_000;

/// The most time left for a parked request to be taken up again, in milliseconds.
const PARK_SLACK_MS_MAX: u64 = 1_000;

/// Attempts of a step that may be given back because they were queued too long.
const QUEUED_ATTEMPTS_MAX: u32 = 10;

impl<P, F, S> Work<'_, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    /// Waits for a limit of ours, or gives the attempt back if its call would have too little time after the wait.
    pub(super) fn wait_for_turn(&self, wait_ms: u64) -> Ending {
        self.wait(wait_ms, self.room())
    }

    /// The same for a call that needs this room.
    pub(super) fn wait(&self, wait_ms: u64, room: Room) -> Ending {
        if !self.is_worn_out() && self.deadline.room(self.back_at(wait_ms)) >= room {
            Ending::Park { wait_ms, reason: Parked::Health }
        } else {
            deferred(wait_ms)
        }
    }

    /// The reply to a request that was declined, also to its repeats.
    pub(super) async fn declined(&self) -> Ending {
        let wait_ms = self.agent.health.failing(self.ports).await.unwrap_or(0).min(DEFERRAL_MS_MAX);
        let fallback = Some(self.agent.policy.fallback.clone());
        Ending::Reply(Outcome::Deferred(Deferral { wait_ms, fallback }))
    }

    /// Waits for the back-off, or gives up if the wait would be too long.
    pub(super) async fn back_off(&self, wait_ms: u64) -> Ending {
        if self.is_worn_out() {
            deferred(wait_ms)
        } else if self.deadline.lets_start(self.back_at(wait_ms)) {
            Ending::Park { wait_ms, reason: Parked::Retry }
        } else {
            let mut ending = self.give_up(Silence::NoTimeLeft).await;
            // The service may have asked for it.
            if let Ending::Reply(Outcome::Deferred(deferral)) = &mut ending {
                deferral.wait_ms = deferral.wait_ms.max(wait_ms.min(DEFERRAL_MS_MAX));
            }
            ending
        }
    }

    /// Waits for a call with the same key. A forward request may leave the reply to that call; an undo may not, since
    /// that call is forward.
    pub(super) async fn wait_for_duplicate(&self, until: Timestamp) -> Ending {
        let wait_ms = self.ports.environment().now().ms_until(until).min(DUPLICATE_WAIT_MS);
        if self.is_worn_out() {
            deferred(wait_ms)
        } else if !self.deadline.is_over(self.back_at(wait_ms)) {
            Ending::Park { wait_ms, reason: Parked::Twin }
        } else {
            match self.request.direction {
                Direction::Forward => self.give_up(Silence::TwinAtWork).await,
                Direction::Undo => deferred(wait_ms),
            }
        }
    }

    /// The latest time at which a parked request should be back. It may come late, and must still have time for a
    /// deferral: that costs nothing, and silence costs a failure.
    fn back_at(&self, wait_ms: u64) -> Timestamp {
        let slack_ms = PARK_SLACK_MS_MAX.min(self.request.budget_ms / 10);
        self.ports.environment().now().plus_ms(wait_ms.saturating_add(slack_ms))
    }

    /// Whether its message was received too often to be parked again. A new message starts from 1.
    const fn is_worn_out(&self) -> bool {
        self.receive_count >= PARKED_RECEIVES_MAX
    }

    /// Whether the request was queued so long before its first call that the requests behind it would be too late.
    pub(super) fn was_queued_too_long(&self, now: Timestamp) -> bool {
        let queued_ms = sent_at(&self.request).ms_until(now);
        let queued_ms_max = self.request.budget_ms.saturating_mul(self.agent.policy.queued_percent_max) / 100;
        let is_first_look = self.receive_count == 1 && self.retries.is_none();
        // A fast clock makes every request look old; it must not send them away for ever.
        is_first_look && queued_ms > queued_ms_max && self.request.attempt <= QUEUED_ATTEMPTS_MAX
    }

    /// Gives the attempt back for a random time that grows with each attempt, so that retries spread out.
    pub(super) fn later(&self) -> Ending {
        tracing::info!(monotonic_counter.agent_crowded_out = 1, attempt = self.request.attempt, "queued too long");
        let span_ms = self.request.budget_ms.saturating_mul(u64::from(self.request.attempt)).max(1);
        deferred(self.ports.environment().random() % span_ms)
    }

    /// Whether a call that starts at this time has the room that it had when it was due: else a limit of ours would cut it
    /// off. An order whose failures are its own must not be given back for that: it would never be given up.
    pub(super) fn has_room(&self, at: Timestamp) -> bool {
        self.deadline.room(at) >= self.room()
    }

    /// How long its call may be held up, in milliseconds.
    pub(super) fn spare_ms(&self, now: Timestamp) -> u64 {
        self.deadline.spare_ms(now, self.room())
    }

    pub(super) fn room(&self) -> Room {
        if self.is_own { Room::Cut } else { self.deadline.room(self.due_at).max(Room::Cut) }
    }

    /// There is too little time for a call. If it was spent waiting for the service, or for a limit of ours, that is no
    /// failure of the step.
    pub(super) async fn out_of_time(&self) -> Ending {
        let waits = self.agent.health.held_back_since(self.ports, sent_at(&self.request)).await;
        let waits = waits.or_else(|| self.until_settled_ms());
        let was_held_back = self.deadline.lets_start(self.due_at);
        match waits.or(was_held_back.then_some(self.no_failure_ms.unwrap_or(0))) {
            Some(wait_ms) if !self.is_own => deferred(wait_ms),
            Some(_) | None => Ending::Silence(Silence::NoTimeLeft),
        }
    }

    /// There is no answer of the service. If it is known to fail, is at work on the call, refuses its caller or could not be
    /// called, that is no failure of the step. If it answers others well, it is.
    pub(super) async fn give_up(&self, silence: Silence) -> Ending {
        let waits = || self.until_settled_ms().or(self.no_failure_ms);
        match self.agent.health.failing(self.ports).await.or_else(waits) {
            Some(wait_ms) if !self.is_own => deferred(wait_ms),
            Some(_) | None => Ending::Silence(silence),
        }
    }

    /// The service asked for a wait that goes beyond the attempt. It is kept, and is no failure of the step. If it answers
    /// others well, it is.
    pub(super) async fn come_later(&self, wait_ms: u64) -> Ending {
        if self.is_own {
            return Ending::Silence(Silence::NoTimeLeft);
        }
        let held_back_ms = self.agent.health.failing(self.ports).await.or_else(|| self.until_settled_ms());
        deferred(wait_ms.max(held_back_ms.unwrap_or(0)))
    }

    /// If the service is at work on the call: the time until the calls of this attempt have settled, in milliseconds. A
    /// next attempt before that would take every 409 for a call under way, and so would the one after it.
    fn until_settled_ms(&self) -> Option<u64> {
        let settled = self.deadline.settled_at(self.request.settles_within_ms);
        let until_settled_ms = self.ports.environment().now().ms_until(settled);
        self.under_way_ms.map(|wait_ms| wait_ms.max(until_settled_ms))
    }

    /// Since when it waits, if it may have waited at all: an outage that ended before that did not delay it. A deferred
    /// request comes back as a new message of a later attempt, which does not say when the first was sent.
    pub(super) fn waits_since(&self) -> Option<Timestamp> {
        let is_back = self.receive_count > 1 || self.retries() > 0;
        if self.request.attempt > 1 { Some(Timestamp::default()) } else { is_back.then(|| sent_at(&self.request)) }
    }
}

pub(super) fn deferred(wait_ms: u64) -> Ending {
    Ending::Reply(Outcome::Deferred(Deferral::after(wait_ms.min(DEFERRAL_MS_MAX))))
}
