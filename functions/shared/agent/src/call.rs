//! One call of a service: it ends in time, and a panic is contained.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use domain::ports::Environment;
use domain::task::Direction;
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
