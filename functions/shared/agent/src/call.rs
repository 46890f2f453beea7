//! One call of a service: it ends in time, and a panic is contained.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use domain::ports::Environment;
use domain::task::Direction;
use domain::trace;
use futures_util::FutureExt;
use futures_util::future::{Either, select};

use crate::service::{Answer, Call, Service};

/// How a call ended.
pub(crate) enum Called {
    /// With an answer.
    Answered(Answer),
    /// Not within its time: its effect is unknown.
    TimedOut,
    /// With a panic: its effect is unknown.
    Panicked,
}

/// The problem of a call without an answer.
pub(crate) const NO_ANSWER: &str = "no answer in time";
/// The problem of a call whose caller panicked.
pub(crate) const PANICKED: &str = "the service's caller panicked";

impl Called {
    /// Whether the call may still have its effect: it has no answer, or the service took it on.
    pub(crate) const fn leaves_effect_open(&self) -> bool {
        match self {
            Self::Answered(
                Answer::Done(_)
                | Answer::Fail(_)
                | Answer::Retry { .. }
                | Answer::Misconfigured { .. }
                | Answer::NotCalled { .. },
            ) => false,
            Self::Answered(Answer::UnderWay { unless_alone, .. }) => unless_alone.is_none(),
            Self::Answered(Answer::Unknown { .. }) | Self::TimedOut | Self::Panicked => true,
        }
    }

    /// Writes its end on its span.
    pub(crate) fn trace_end(&self) {
        match self {
            Self::Answered(Answer::Done(_)) => trace::ended("done"),
            Self::Answered(Answer::Retry { problem, .. }) => {
                trace::ended("retry");
                trace::failed(problem);
            }
            Self::Answered(Answer::UnderWay { .. }) => trace::ended("under-way"),
            Self::Answered(Answer::Unknown { problem, .. }) => {
                trace::ended("unknown");
                trace::failed(problem);
            }
            Self::Answered(Answer::Misconfigured { problem, .. }) => {
                trace::ended("misconfigured");
                trace::failed(problem);
            }
            Self::Answered(Answer::NotCalled { problem }) => {
                trace::ended("not-called");
                trace::failed(problem);
            }
            Self::Answered(Answer::Fail(_)) => {
                trace::ended("refused");
                // The service's own text may contain data of the order.
                trace::failed(&"the service rejected the step");
            }
            Self::TimedOut => trace::failed(&NO_ANSWER),
            Self::Panicked => trace::failed(&PANICKED),
        }
    }
}

/// Calls the service. Makes one if there is none, and drops it unless it answered: its state, such as a connection in
/// the middle of a response, must not affect the next call.
pub(crate) async fn call<S: Service>(
    environment: &impl Environment,
    service: &mut Option<S>,
    make_service: &impl Fn() -> S,
    direction: Direction,
    call: &Call<'_>,
) -> Called {
    let answer = async {
        let service = service.get_or_insert_with(make_service);
        match direction {
            _ if call.look.is_some() => service.look(call).await,
            Direction::Forward => service.forward(call).await,
            Direction::Undo => service.undo(call).await,
        }
    };
    let called =
        match select(pin!(AssertUnwindSafe(answer).catch_unwind()), pin!(environment.sleep(call.timeout_ms))).await {
            Either::Left((Ok(answer), _)) => return Called::Answered(answer),
            Either::Left((Err(_), _)) => Called::Panicked,
            Either::Right(((), _)) => Called::TimedOut,
        };
    *service = None;
    called
}
