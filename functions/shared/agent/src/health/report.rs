//! The meaning of a call's end for the health of its service.

use domain::message::Request;
use domain::output::OUTPUT_TOO_LARGE;
use domain::ports::OutageReason;
use domain::task::Direction;
use domain::time::Timestamp;

use crate::call::{Called, NO_ANSWER, PANICKED};
use crate::health::pass::Failed;
use crate::health::rejections::Said;
use crate::health::{Pass, SharedHealth};
use crate::ports::AgentPorts;
use crate::service::Answer;

impl SharedHealth {
    /// Reports the end of a call of an attempt that was sent at this time; whether the order must bear it. A rejection is
    /// not the order's while most steps are rejected. A failure is the order's only if the service answered others well
    /// meanwhile, or in the time of one attempt before. A panic, or a call that could not be made, is a fault of the agent
    /// and says nothing about the service. But a probe must have an end. A step that was taken on, whose result comes later,
    /// is no rejection.
    pub(crate) async fn report(
        &self,
        ports: &impl AgentPorts,
        pass: Pass,
        request: &Request,
        sent_at: Timestamp,
        called: &Called,
        is_taken_on: bool,
    ) -> bool {
        self.is_back(pass);
        let (order, is_forward) = (request.order_id, request.direction == Direction::Forward);
        let since = sent_at.minus_ms(request.budget_ms);
        let failed =
            |reason, problem, after_ms| self.failed(ports, pass, order, since, Failed { reason, problem, after_ms });
        let (problem, after_ms) = match called {
            Called::Answered(Answer::Done(_)) if is_forward => return self.said(ports, pass, order, Said::Yes).await,
            // The service did the work, and only its output cannot be kept.
            Called::Answered(Answer::Fail(failure)) if is_forward && *failure.code == *OUTPUT_TOO_LARGE => {
                return self.said(ports, pass, order, Said::Yes).await;
            }
            Called::Answered(Answer::Fail(_)) if is_forward => return self.said(ports, pass, order, Said::No).await,
            Called::Answered(Answer::UnderWay { .. }) if is_forward && is_taken_on => {
                self.said(ports, pass, order, Said::Yes).await;
                return false;
            }
            Called::Answered(answer @ (Answer::Done(_) | Answer::Fail(_) | Answer::UnderWay { .. })) => {
                let is_taken = is_forward && matches!(answer, Answer::UnderWay { .. });
                self.succeeded(ports, pass, order, is_taken).await;
                return !matches!(answer, Answer::UnderWay { .. });
            }
            Called::Answered(Answer::Misconfigured { after_ms, problem }) => {
                return failed(OutageReason::Misconfigured, problem, *after_ms).await;
            }
            Called::Answered(Answer::Retry { after_ms, problem } | Answer::Unknown { after_ms, problem }) => {
                (&**problem, *after_ms)
            }
            Called::TimedOut => (NO_ANSWER, None),
            Called::Answered(Answer::NotCalled { problem }) if pass.probe => (&**problem, None),
            Called::Panicked if pass.probe => (PANICKED, None),
            Called::Answered(Answer::NotCalled { .. }) | Called::Panicked => return false,
        };
        failed(OutageReason::Failing, problem, after_ms).await
    }
}
