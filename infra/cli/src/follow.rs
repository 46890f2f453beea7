//! Polls one order until a condition holds.

use std::time::{Duration, Instant};

use http::HeaderName;
use wire::Task;

use crate::exit::Exit;
use crate::remote::{Answer, Call, Remote, RemoteError, clock, encoded, etag};

/// The usual poll period: short after a change, longer otherwise.
pub(crate) const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(1_000));
/// The tolerated downtime of the API in between, such as a restart.
const AWAY: Duration = Duration::from_secs(30);

/// An observed order.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) task: Task<'static>,
    /// The API's JSON.
    pub(crate) answer: Answer,
}

/// The outcome of polling.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The condition holds.
    Reached(Sight),
    /// The time is over. `None` if the order never existed.
    TimedOut(Option<Sight>),
}

/// The path of an order.
pub(crate) fn order_path(id: &str) -> String {
    format!("/orders/{}", encoded(id))
}

/// The present order.
pub(crate) async fn look(remote: &Remote, id: &str) -> Result<Sight, RemoteError> {
    let (task, answer) = remote.ask(&Call::get(order_path(id))).await?;
    Ok(Sight { task, answer })
}

/// The same, or `None` if the version is unchanged.
pub(crate) async fn look_again(remote: &Remote, id: &str, seen: Option<u64>) -> Result<Option<Sight>, RemoteError> {
    let mut call = Call::get(order_path(id));
    if let Some(version) = seen {
        call = call.with(HeaderName::from_static("if-none-match"), etag(version));
    }
    let answer = remote.call(&call).await?;
    if answer.status == 304 { Ok(None) } else { Ok(Some(Sight { task: answer.read()?, answer })) }
}

/// Polls an order until `is_reached` holds, at most for `at_most`, with pauses from `shortest` to `longest`, and reports each change to `changed`. A missing order
/// may still appear: it is stored a moment after its acceptance.
pub(crate) async fn follow(
    remote: &Remote,
    id: &str,
    (shortest, longest): (Duration, Duration),
    at_most: Duration,
    is_reached: impl Fn(&Task<'_>) -> bool,
    mut changed: impl FnMut(&Task<'_>),
) -> Result<Followed, RemoteError> {
    let began = clock::instant();
    let mut heard_of = began;
    let mut last: Option<Sight> = None;
    let mut pause = shortest;
    loop {
        match look_again(remote, id, last.as_ref().map(|sight| sight.task.version)).await {
            Ok(Some(sight)) => {
                changed(&sight.task);
                if is_reached(&sight.task) {
                    return Ok(Followed::Reached(sight));
                }
                last = Some(sight);
                pause = shortest;
                heard_of = clock::instant();
            }
            Ok(None) => heard_of = clock::instant(),
            Err(error) if error.exit() == Exit::NotFound => heard_of = clock::instant(),
            Err(error) => bear(error, heard_of, last.is_some())?,
        }
        let left = at_most.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(Followed::TimedOut(last));
        }
        clock::pause(pause.min(left)).await;
        pause = (pause * 13 / 10).min(longest);
    }
}

/// Tolerates a short downtime of an API that answered before; any other error ends the poll.
pub(crate) fn bear(error: RemoteError, heard_of: Instant, was_there: bool) -> Result<(), RemoteError> {
    let is_patient = was_there && error.exit() == Exit::Away && !error.is_unknown_call() && heard_of.elapsed() < AWAY;
    if is_patient { Ok(()) } else { Err(error) }
}
