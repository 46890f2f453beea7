//! The permission to start a call: the task, the service's health, the memos, the deadline.

use std::sync::atomic::Ordering::Relaxed;

use domain::limits::{CONFLICTS_MAX, LOOKED_MS_MAX};
use domain::machine::{Wanted, wanted};
use domain::message::Outcome;
use domain::ports::{Environment, PortError, Store};
use domain::time::Timestamp;

use super::wait::{DUPLICATE_WAIT_MS, deferred};
use super::{Ending, Leave, Parked, Silence, Work, retries};
use crate::concurrency::Seat;
use crate::deadline::Room;
use crate::health::{Gate, Pass, Turn};
use crate::memo::{Claim, Plan};
use crate::ports::AgentPorts;
use crate::service::Service;

/// The longest wait in the invocation for another call of the instance to end, in milliseconds.
const SEAT_WAIT_MS: u64 = 1_000;

/// Whether a look at this time serves for a call that begins now.
pub(super) fn is_recent(looked_at: Option<Timestamp>, now: Timestamp) -> bool {
    looked_at.is_some_and(|at| at <= now && at.ms_until(now) <= LOOKED_MS_MAX)
}

impl<P, F, S> Work<'_, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    /// Leave to start a call now; otherwise the ending without one.
    ///
    /// # Errors
    /// [`PortError`] if the memos cannot be read or claimed: without them no call is safe.
    pub(super) async fn let_through(&mut self) -> Result<Result<Leave, Ending>, PortError> {
        for _ in 0..CONFLICTS_MAX {
            let now = self.ports.environment().now();
            if self.deadline.is_over(now) {
                return Ok(Err(Ending::Silence(Silence::NoTimeLeft)));
            }
            if let Some(ending) = self.look(now).await? {
                return Ok(Err(ending));
            }
            if let Some(ending) = self.remember().await? {
                return Ok(Err(ending));
            }
            match self.decline().await? {
                Some(Claim::Held) => return Ok(Err(self.declined().await)),
                Some(Claim::Lost) => continue,
                None => {}
            }
            let now = self.ports.environment().now();
            if self.was_queued_too_long(now) {
                return Ok(Err(self.later()));
            }
            if !self.has_room(now) {
                return Ok(Err(self.out_of_time().await));
            }
            let (waits_since, timeout_ms) = (self.waits_since(), self.timeout_ms(now));
            let pass = match self.agent.health.ask(self.ports, &self.request, waits_since, timeout_ms).await {
                Gate::Open(pass) => pass,
                Gate::Shut { wait_ms, is_its_own } => {
                    // What its own failures shut is no limit of ours.
                    let room = if is_its_own { Room::Cut } else { self.room() };
                    return Ok(Err(self.wait(wait_ms, room)));
                }
            };
            self.retries.get_or_insert_with(|| retries(self.agent, self.receive_count, &self.request, pass));
            let (seat, now) = match self.turn(pass).await {
                Ok(turn) => turn,
                Err(ending) => return Ok(Err(ending)),
            };
            if self.agent.stopping.load(Relaxed) {
                self.agent.health.give_back(self.ports, pass).await;
                return Ok(Err(Ending::Park { wait_ms: 0, reason: Parked::Stop }));
            }
            // It may have waited for its turn.
            let granted = match self.look(now).await {
                Ok(Some(ending)) => Ok(Some(Err(ending))),
                Ok(None) => self.claim(pass, seat).await.map(|leave| leave.map(Ok)),
                Err(error) => Err(error),
            };
            if !matches!(granted, Ok(Some(Ok(_)))) {
                self.agent.health.give_back(self.ports, pass).await;
            }
            if let Some(ended) = granted? {
                return Ok(ended);
            }
        }
        Ok(Err(self.wait_for_duplicate(self.ports.environment().now().plus_ms(DUPLICATE_WAIT_MS)).await))
    }

    /// The ending of an attempt that is over; `None` if a call is wanted. A look serves for one call and for a second, and
    /// so does the sender's (rule 6): a request that is called at once costs no read.
    pub(super) async fn look(&mut self, now: Timestamp) -> Result<Option<Ending>, PortError> {
        if self.has_looked(now) {
            return Ok(None);
        }
        self.looked_at = Some(now);
        let task = self.ports.store().task(self.request.order_id).await?;
        Ok(match task.map_or(Wanted::Yes, |task| wanted(&task, &self.request)) {
            Wanted::Yes => None,
            Wanted::NoMore => {
                // The scheduler knows since when no call is wanted, and so when the calls of earlier deliveries have
                // settled. One of this delivery may have begun while that was being stored.
                (self.may_run_until, self.earlier_until) = (self.own_until, None);
                Some(deferred(0))
            }
            Wanted::Over => Some(Ending::Over),
        })
    }

    fn has_looked(&self, now: Timestamp) -> bool {
        is_recent(self.looked_at, now)
    }

    /// The ending that the memos give; `None` if the service must be called.
    async fn remember(&mut self) -> Result<Option<Ending>, PortError> {
        let Some(keeper) = &mut self.keeper else { return Ok(None) };
        Ok(match keeper.plan(self.ports).await? {
            Plan::Answer(outcome) => {
                if matches!(outcome, Outcome::Failed(_)) {
                    // A memo does not say whether a call before the rejection is still under way.
                    self.extend_if_over();
                }
                Some(Ending::Reply(outcome))
            }
            Plan::Wait { until } => Some(self.wait_for_duplicate(until).await),
            Plan::Declined => Some(self.declined().await),
            Plan::Call | Plan::MarkOnly => None,
        })
    }

    /// Waits for the turn of the call if the service has a rate, or the instance a number of calls at once (rule 20). A
    /// probe goes at once, since all others wait for it. Also returns the time then.
    pub(super) async fn turn(&mut self, pass: Pass) -> Result<(Option<Seat>, Timestamp), Ending> {
        let environment = self.ports.environment();
        let (began, mut seat) = (environment.now(), None);
        if pass.probe {
            return Ok((None, began));
        }
        let mut left_ms = self.spare_ms(began);
        if let Some(concurrency) = &self.agent.concurrency {
            seat = concurrency.seat(environment, SEAT_WAIT_MS.min(left_ms)).await;
            if seat.is_none() {
                return Err(self.wait_for_turn(SEAT_WAIT_MS + environment.random() % (3 * SEAT_WAIT_MS)));
            }
            left_ms = self.spare_ms(environment.now());
        }
        // A time that its call may not have would be lost, also for the others.
        let wait_ms_max = self.agent.policy.wait_in_invocation_ms_max.min(left_ms.saturating_sub(1));
        match self.agent.health.turn(self.ports, self.waits_since().is_some(), wait_ms_max).await {
            Turn::Call { wait_ms: 0 } => {}
            Turn::Call { wait_ms } if wait_ms < left_ms => environment.sleep(wait_ms).await,
            Turn::Call { wait_ms } | Turn::Line { wait_ms } => return Err(self.wait_for_turn(wait_ms)),
        }
        Ok((seat, environment.now()))
    }

    /// Declines the step if its service is failing and another agent may be asked (rule 21). `None` if it may not be
    /// declined. An earlier delivery may have called when this agent had no memos yet.
    async fn decline(&mut self) -> Result<Option<Claim>, PortError> {
        let may_decline = match self.request.attempt {
            _ if self.receive_count > 1 => false,
            1 => !self.agent.policy.fallback.is_empty(),
            _ => self.request.may_decline,
        };
        match &mut self.keeper {
            Some(keeper) if may_decline && keeper.is_uncalled() => {
                match self.agent.health.shut(self.ports, self.request.order_id).await {
                    Some(_) => keeper.decline(self.ports).await.map(Some),
                    None => Ok(None),
                }
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Claims the key if there are memos, and gives leave if nothing changed meanwhile.
    pub(super) async fn claim(&mut self, pass: Pass, seat: Option<Seat>) -> Result<Option<Leave>, PortError> {
        let mut until = None;
        if let Some(keeper) = &mut self.keeper {
            let now = self.ports.environment().now();
            let claimed_until = now.plus_ms(self.agent.policy.call_timeout_ms.min(self.deadline.left_ms(now)));
            if keeper.claim(self.ports, claimed_until).await? == Claim::Lost {
                return Ok(None);
            }
            until = Some(claimed_until);
        }
        let at = self.ports.environment().now();
        if until.is_some_and(|until| at >= until) || !self.has_looked(at) {
            // The claim ended during its own write. Another request may have called since, so claim or plan again. Or
            // the attempt may be over since.
            return Ok(None);
        }
        // The call must not outlast its claim.
        let timeout_ms = until.map_or(u64::MAX, |until| at.ms_until(until)).min(self.timeout_ms(at));
        Ok(self.has_room(at).then_some(Leave { pass, at, timeout_ms, seat }))
    }
}
