//! What an ending requires: the memo, the reply, the message.

use domain::batch::Handled;
use domain::message::{Deferral, Outcome, Reply, SchedulerMessage, Trouble};
use domain::ports::{Environment, PortError, Queues};
use domain::trace;

use super::{Ending, Silence, Work};
use crate::ports::AgentPorts;
use crate::service::Service;

impl<P, F, S> Work<'_, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    /// # Errors
    /// [`PortError`] if the reply was not sent, or the message not hidden.
    pub(super) async fn settle(&mut self, ending: Ending) -> Result<Handled, PortError> {
        match ending {
            Ending::Reply(outcome) => {
                if self.is_uncalled && matches!(outcome, Outcome::Deferred(_)) {
                    // Only now: a call that was sent after all must not be blamed for it.
                    self.tell_trouble().await;
                }
                let outcome = self.write_down(outcome).await;
                self.reply(outcome).await
            }
            Ending::Park { wait_ms, reason } => {
                self.release_claim().await;
                trace::ended("parked");
                tracing::info!(
                    monotonic_counter.agent_parked = 1,
                    wait_ms,
                    ?reason,
                    retries = self.retries(),
                    "parked"
                );
                let open_until = self.own_until.max(self.earlier_until);
                self.agent.parked.note(&self.receipt.message_id, self.receive_count, open_until);
                self.ports.queues().return_to_agent(&self.agent.name, &self.receipt, wait_ms).await?;
                Ok(Handled::Later)
            }
            Ending::Silence(silence) => {
                self.release_claim().await;
                self.tell_trouble().await;
                Ok(self.let_go(silence))
            }
            Ending::Over => {
                self.release_claim().await;
                trace::ended("over");
                tracing::info!("the attempt is over");
                Ok(Handled::Done)
            }
        }
    }

    async fn write_down(&mut self, outcome: Outcome) -> Outcome {
        match (&mut self.keeper, &outcome) {
            (Some(keeper), Outcome::Done(_) | Outcome::Failed(_)) => {
                let counts = keeper.complete(self.ports, outcome.clone()).await;
                // It may be that of a duplicate.
                self.call_ms = self.call_ms.filter(|_| counts == outcome);
                counts
            }
            (Some(keeper), Outcome::Deferred(_)) => {
                keeper.release(self.ports).await;
                outcome
            }
            (_, _) => outcome,
        }
    }

    /// Lets operators see what is wrong with the last call while the attempt goes on (rule 32). Nothing rests on it.
    pub(super) async fn tell_trouble(&self) {
        let Some(problem) = self.problem.clone() else { return };
        if self.deadline.is_over(self.ports.environment().now()) {
            return;
        }
        let reply = self.request.reply(Outcome::Retrying(Trouble { problem }));
        let sent = self.ports.queues().to_scheduler(SchedulerMessage::Reply(reply), self.request.priority, 0).await;
        if let Err(error) = sent {
            tracing::info!(%error, "the scheduler does not learn what is wrong");
        }
    }

    pub(super) async fn release_claim(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.release(self.ports).await;
        }
    }

    async fn reply(&self, outcome: Outcome) -> Result<Handled, PortError> {
        // After a deferred look another one follows, however late.
        let is_put_off = self.request.look.is_some() && matches!(outcome, Outcome::Deferred(_));
        if self.deadline.is_over(self.ports.environment().now()) && !is_put_off {
            return Ok(self.let_go(Silence::AnsweredTooLate));
        }
        trace::ended(match &outcome {
            Outcome::Done(_) => "done",
            Outcome::Failed(_) => "failed",
            Outcome::Deferred(_) => "deferred",
            Outcome::Retrying(_) => "retrying",
            Outcome::Accepted(_) => "accepted",
        });
        match &outcome {
            Outcome::Done(_) => tracing::debug!(monotonic_counter.agent_done = 1, retries = self.retries(), "done"),
            Outcome::Failed(_) => {
                tracing::debug!(monotonic_counter.agent_failed = 1, retries = self.retries(), "failed");
            }
            Outcome::Deferred(Deferral { wait_ms, fallback }) => {
                if let Some(fallback) = fallback {
                    tracing::info!(monotonic_counter.agent_declined = 1, fallback = fallback.join(", "), "declined");
                }
                tracing::info!(monotonic_counter.agent_deferred = 1, wait_ms, retries = self.retries(), "deferred");
            }
            Outcome::Accepted(_) => {
                tracing::debug!(monotonic_counter.agent_accepted = 1, retries = self.retries(), "taken on");
            }
            Outcome::Retrying(_) => {}
        }
        let priority = self.request.priority;
        let now = self.ports.environment().now();
        let may_run_until = self.may_run_until.max(self.earlier_until).filter(|&until| now < until);
        let reply = Reply { may_run_until, call_ms: self.call_ms, ..self.request.reply(outcome) };
        self.ports.queues().to_scheduler(SchedulerMessage::Reply(reply), priority, 0).await?;
        Ok(Handled::Done)
    }

    fn let_go(&self, silence: Silence) -> Handled {
        trace::ended("silent");
        trace::failed(&format_args!("no answer: {silence:?}"));
        tracing::warn!(monotonic_counter.agent_silent = 1, reason = ?silence, retries = self.retries(), "silent");
        Handled::Done
    }
}
