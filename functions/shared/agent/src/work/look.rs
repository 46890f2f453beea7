//! A look at the state of a call that was taken on (rule 36). It has no effect, so it leaves no call open. Only a result is
//! replied: nothing else of it counts, neither for the order nor for the health of the service.

use domain::message::Outcome;
use domain::output::{self, OUTPUT_TOO_LARGE};
use domain::ports::{Environment, PortError};
use domain::task::shortened;

use super::{Ending, Work};
use crate::call::{Called, NO_ANSWER, PANICKED};
use crate::ports::AgentPorts;
use crate::retries::Next;
use crate::service::{Answer, Service};

impl<P, F, S> Work<'_, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    /// Asks for the state, and again while a failure is waited for here.
    pub(super) async fn look_at_state(&mut self) -> Result<Ending, PortError> {
        loop {
            let mut leave = match self.let_through().await? {
                Ok(leave) => leave,
                Err(ending @ Ending::Park { .. }) => return Ok(ending),
                Err(Ending::Reply(_) | Ending::Silence(_) | Ending::Over) => return Ok(Ending::Over),
            };
            let (called, _) = self.call(&leave, None).await;
            drop(leave.seat.take());
            self.looked_at = None;
            self.agent.health.give_back(self.ports, leave.pass).await;
            let (after_ms, problem) = match self.judge(leave.at, called).await {
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
                    (after_ms, problem)
                }
                Called::Answered(Answer::NotCalled { problem }) => (None, problem),
                Called::TimedOut => (None, NO_ANSWER.to_owned()),
                Called::Panicked => return Ok(self.in_vain(PANICKED).await),
            };
            match self.again(after_ms, &problem) {
                Next::Here { wait_ms } => self.ports.environment().sleep(wait_ms).await,
                Next::OnQueue { .. } | Next::AskedLater { .. } | Next::Exhausted | Next::TooLate => {
                    return Ok(self.in_vain(&problem).await);
                }
            }
        }
    }

    /// Nothing is learned. Operators see why.
    async fn in_vain(&mut self, problem: &str) -> Ending {
        self.problem = Some(shortened(&format!("look at the state: {problem}")));
        self.tell_trouble().await;
        Ending::Over
    }
}
