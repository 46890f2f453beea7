//! The meaning of a call's end for the health of its service.

use domain::output::OUTPUT_TOO_LARGE;
use domain::ports::OutageReason;
use domain::task::Direction;

use crate::agent::AgentPorts;
use crate::call::{Called, NO_ANSWER, PANICKED};
use crate::health::rejections::Said;
use crate::health::{Pass, SharedHealth};
use crate::service::Answer;

impl SharedHealth {
    /// Reports the end of a call; whether its answer counts. A rejection does not while most steps are rejected. A panic,
    /// or a call that could not be made, is a fault of the agent and says nothing about the service. But a probe must
    /// have an end.
    pub(crate) async fn report(
        &self,
        ports: &impl AgentPorts,
        pass: Pass,
        direction: Direction,
        called: &Called,
    ) -> bool {
        match (called, direction) {
            (Called::Answered(Answer::Done(_)), Direction::Forward) => return self.said(ports, pass, Said::Yes).await,
            // The service did the work, and only its output cannot be kept.
            (Called::Answered(Answer::Fail(failure)), Direction::Forward) if *failure.code == *OUTPUT_TOO_LARGE => {
                return self.said(ports, pass, Said::Yes).await;
            }
            (Called::Answered(Answer::Fail(_)), Direction::Forward) => return self.said(ports, pass, Said::No).await,
            (Called::Answered(Answer::Done(_) | Answer::Fail(_)), Direction::Undo)
            | (Called::Answered(Answer::UnderWay { .. }), _) => self.succeeded(ports, pass).await,
            (Called::Answered(Answer::Retry { problem, .. } | Answer::Unknown { problem, .. }), _) => {
                self.failed(ports, pass, OutageReason::Failing, problem).await;
            }
            (Called::Answered(Answer::Misconfigured { problem, .. }), _) => {
                self.failed(ports, pass, OutageReason::Misconfigured, problem).await;
            }
            (Called::Answered(Answer::NotCalled { problem }), _) if pass.probe => {
                self.failed(ports, pass, OutageReason::Failing, problem).await;
            }
            (Called::Answered(Answer::NotCalled { .. }), _) => {}
            (Called::TimedOut, _) => self.failed(ports, pass, OutageReason::Failing, NO_ANSWER).await,
            (Called::Panicked, _) if pass.probe => self.failed(ports, pass, OutageReason::Failing, PANICKED).await,
            (Called::Panicked, _) => {}
        }
        true
    }
}
