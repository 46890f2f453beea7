//! A look at the state of a call that was taken on (rule 36). It has no effect, so it leaves no call open. Only a result is
//! replied, or that it has to wait: nothing else of it counts, neither for the order nor for the health of the service.

use std::sync::atomic::Ordering::Relaxed;

use domain::limits::CONFLICTS_MAX;
use domain::message::Outcome;
use domain::output::{self, OUTPUT_TOO_LARGE};
use domain::ports::{Environment, PortError};
use domain::task::shortened;

use super::wait::deferred;
use super::{Ending, Leave, Parked, Work};
use crate::call::{Called, NO_ANSWER, PANICKED};
use crate::health::Pass;
use crate::ports::AgentPorts;
use crate::retries::{Next, Retries};
use crate::service::{Answer, Service};

impl<P, F, S> Work<'_, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    /// Asks for the state, and again while a failure is waited for here.
    pub(super) async fn look_at_state(&mut self) -> Result<Ending, PortError> {
        // No delivery before this one was a retry: a look waits on its queue for limits of ours alone.
        self.retries = Some(Retries::of_delivery(&self.agent.policy, 1));
        loop {
            let mut leave = match self.let_look_through().await? {
                Ok(leave) => leave,
                Err(ending) => return Ok(ending),
            };
            let (called, _) = self.call(&leave, None).await;
            drop(leave.seat.take());
            self.looked_at = None;
            let (after_ms, is_ours, problem) = match self.judge(leave.at, called).await {
                Called::Answered(Answer::Done(found)) => {
                    match output::done(found, self.request.keep.as_ref(), self.request.direction) {
                        done @ Outcome::Done(_) => return Ok(Ending::Reply(done)),
                        Outcome::Failed(failure) => return Ok(self.in_vain(&failure.message).await),
                        Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => return Ok(Ending::Over),
                    }
                }
                Called::Answered(Answer::Fail(failure)) if *failure.code == *OUTPUT_TOO_LARGE => {
                    return Ok(self.in_vain(&failure.message).await);
                }
                Called::Answered(Answer::Fail(failure)) => {
                    return Ok(Ending::Reply(output::failed(failure, self.request.direction)));
                }
                Called::Answered(Answer::UnderWay { .. }) => return Ok(Ending::Over),
                Called::Answered(Answer::Misconfigured { problem, .. }) => return Ok(self.in_vain(&problem).await),
                Called::Answered(Answer::Retry { after_ms, problem } | Answer::Unknown { after_ms, problem }) => {
                    (after_ms.filter(|&wait_ms| wait_ms > 0), false, problem)
                }
                Called::Answered(Answer::NotCalled { problem }) => (None, true, problem),
                Called::TimedOut => (None, false, NO_ANSWER.to_owned()),
                Called::Panicked => return Ok(self.in_vain(PANICKED).await),
            };
            match self.again(after_ms, &problem) {
                Next::Here { wait_ms } => {
                    self.ports.environment().sleep(wait_ms).await;
                    self.due_at = self.ports.environment().now();
                }
                Next::OnQueue { .. } | Next::AskedLater { .. } | Next::Exhausted | Next::TooLate => {
                    let ending = self.in_vain(&problem).await;
                    // The service asked for this wait, or no call was made.
                    let wait_ms = after_ms.or(is_ours.then(|| self.wait_ms()));
                    return Ok(wait_ms.map_or(ending, deferred));
                }
            }
        }
    }

    /// Leave to look now. It takes the rate and the seat of a call, and nothing of the breaker. What a limit of ours, or the
    /// queue, holds up beyond its time is replied, so that another look comes.
    async fn let_look_through(&mut self) -> Result<Result<Leave, Ending>, PortError> {
        for _ in 0..CONFLICTS_MAX {
            let now = self.ports.environment().now();
            if let Some(ending) = self.look(now).await? {
                return Ok(Err(ending));
            }
            if !self.has_room(now) {
                break;
            }
            let (seat, now) = match self.turn(Pass::OF_LOOK).await {
                Ok(turn) => turn,
                Err(ending) => return Ok(Err(ending)),
            };
            if self.agent.stopping.load(Relaxed) {
                return Ok(Err(Ending::Park { wait_ms: 0, reason: Parked::Stop }));
            }
            // It may have waited for its turn.
            if let Some(ending) = self.look(now).await? {
                return Ok(Err(ending));
            }
            if let Some(leave) = self.claim(Pass::OF_LOOK, seat).await? {
                return Ok(Ok(leave));
            }
        }
        Ok(Err(deferred(0)))
    }

    /// Nothing is learned. Operators see why.
    async fn in_vain(&mut self, problem: &str) -> Ending {
        self.problem = Some(shortened(&format!("look at the state: {problem}")));
        self.tell_trouble().await;
        Ending::Over
    }
}
