//! The life of one request, from its receipt to what becomes of its message.

use domain::batch::Record;
use domain::message::{Outcome, Receipt, Request, SchedulerMessage};
use domain::ports::PortError;
use domain::time::Timestamp;

use crate::agent::{Agent, AgentPorts};
use crate::call::{Called, call};
use crate::deadline::Deadline;
use crate::output;
use crate::retries::{Next, Retries};
use crate::service::{Answer, Call, Service};

/// One request and what is known of it in this delivery.
pub(crate) struct Work<'a, P, F, S> {
    ports: &'a P,
    agent: &'a Agent<F>,
    request: Request,
    receipt: Receipt,
    deadline: Deadline,
    retries: Retries,
    /// Made at the first call, and made again after a call that did not answer.
    service: Option<S>,
}

/// How the work on a request ended, in this delivery.
enum Ending {
    /// Tell the scheduler, then let the message go.
    Reply(Outcome),
    /// Hide the message for this long, then take it up again.
    Park { wait_ms: u64 },
    /// Let the message go without a word; the supervisor will notice.
    Silence(Silence),
}

/// Why nothing is said.
#[derive(Debug, Clone, Copy)]
enum Silence {
    /// No call may start any more.
    NoTimeLeft,
    /// There is an answer, but it came after the deadline.
    AnsweredTooLate,
    /// The service could not be brought to answer.
    RetriesExhausted,
}

/// Why a message is to be delivered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDone {
    /// It waits.
    #[error("waits on the queue for {wait_ms} ms")]
    Parked {
        /// For how long.
        wait_ms: u64,
    },
    /// The reply was not sent, or the message not hidden.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl<'a, P, F, S> Work<'a, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    pub(crate) fn new(ports: &'a P, agent: &'a Agent<F>, record: Record<Request>, received_at: Timestamp) -> Self {
        let Record { message: request, receipt, receive_count, .. } = record;
        let deadline = Deadline::of(&request, received_at, agent.policy.margin_ms);
        let retries = Retries::of_delivery(&agent.policy, receive_count);
        Self { ports, agent, request, receipt, deadline, retries, service: None }
    }

    /// # Errors
    /// [`NotDone`] when the message is to be delivered again.
    pub(crate) async fn run(mut self) -> Result<(), NotDone> {
        let ending = self.carry_out().await;
        self.settle(ending).await
    }

    /// Calls the service until the work ends, one way or another.
    async fn carry_out(&mut self) -> Ending {
        loop {
            let started_at = match self.let_through() {
                Ok(started_at) => started_at,
                Err(ending) => return ending,
            };
            let next = match self.call(started_at).await {
                Called::Answered(Answer::Done(output)) => return Ending::Reply(output::done(output)),
                Called::Answered(Answer::Fail(failure)) => return Ending::Reply(output::failed(failure)),
                Called::Answered(Answer::Retry { after_ms, problem }) => self.again(after_ms, &problem),
                Called::TimedOut => self.again(None, "no answer in time"),
                // What made it panic may have hurt more than the service object: not in this invocation.
                Called::Panicked => match self.again(None, "the service panicked") {
                    Next::Here { wait_ms } => Next::OnQueue { wait_ms },
                    next @ (Next::OnQueue { .. } | Next::Exhausted | Next::TooLate) => next,
                },
            };
            match next {
                Next::Here { wait_ms } => self.ports.sleep(wait_ms).await,
                Next::OnQueue { wait_ms } => return Ending::Park { wait_ms },
                Next::Exhausted => return Ending::Silence(Silence::RetriesExhausted),
                Next::TooLate => return Ending::Silence(Silence::NoTimeLeft),
            }
        }
    }

    /// The time, if a call may start now; if not, how the work ends without one.
    fn let_through(&self) -> Result<Timestamp, Ending> {
        let now = self.ports.now();
        if self.deadline.lets_start(now) { Ok(now) } else { Err(Ending::Silence(Silence::NoTimeLeft)) }
    }

    async fn call(&mut self, started_at: Timestamp) -> Called {
        let Self { ports, agent, request, deadline, service, .. } = self;
        let arguments = Call {
            order_id: request.order_id,
            step: &request.step,
            idempotency_key: &request.idempotency_key,
            order: &request.order,
            outputs: &request.outputs,
            attempt: request.attempt,
            started_at,
            timeout_ms: agent.policy.call_timeout_ms.min(deadline.left_ms(started_at)),
        };
        call(*ports, service, &agent.make_service, request.direction, &arguments).await
    }

    /// Counts a call that is to be made again, and says where it waits.
    fn again(&mut self, after_ms: Option<u64>, problem: &str) -> Next {
        let (now, draw) = (self.ports.now(), self.ports.random());
        let next = self.retries.next(&self.agent.policy, self.deadline, now, after_ms, draw);
        tracing::info!(retries = self.retries.count(), ?next, problem, "call to be made again");
        next
    }

    /// # Errors
    /// [`NotDone`] when the message is to be delivered again.
    async fn settle(self, ending: Ending) -> Result<(), NotDone> {
        match ending {
            Ending::Reply(_) if self.deadline.is_over(self.ports.now()) => {
                self.let_go(Silence::AnsweredTooLate);
                Ok(())
            }
            Ending::Reply(outcome) => {
                tracing::debug!(done = matches!(outcome, Outcome::Done(_)), retries = self.retries.count(), "replied");
                let reply = SchedulerMessage::Reply(self.request.reply(outcome));
                Ok(self.ports.to_scheduler(reply, 0).await?)
            }
            Ending::Park { wait_ms } => {
                tracing::info!(wait_ms, retries = self.retries.count(), "parked");
                self.ports.return_to_agent(&self.agent.name, &self.receipt, wait_ms).await?;
                Err(NotDone::Parked { wait_ms })
            }
            Ending::Silence(silence) => {
                self.let_go(silence);
                Ok(())
            }
        }
    }

    fn let_go(&self, silence: Silence) {
        tracing::warn!(reason = ?silence, retries = self.retries.count(), "silent");
    }
}
