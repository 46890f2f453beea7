//! What the agent of a service makes of an answer, and which of its secrets are there, where no call is made.

use agent::Answer;
use bytes::Bytes;
use config::{AgentSettings, Reference, SecretSource};
use domain::message::Request;
use domain::task::Direction;
use domain::template::Template;
use domain::time::Timestamp;
use http::{Response, Uri};
use http_body_util::Full;
use http_call::remote;

use crate::answer::{Expected, answer_to};
use crate::auth::Resolver;
use crate::client::Timer;
use crate::poll::Polled;

/// The meaning of an answer to a step, in this direction and with this `keep`. `now` is by the agent's clock. `call`: what was
/// called, and its request.
pub async fn answered(
    settings: &AgentSettings,
    (direction, keep): (Direction, Option<&Template>),
    call: Option<(&Uri, &Request)>,
    answer: Response<Bytes>,
    now: Timestamp,
) -> Answer {
    let statuses = match direction {
        Direction::Forward => settings.forward_statuses(),
        Direction::Undo => settings.undo_statuses(),
    };
    // A memo asks for the result by the same call.
    let call = call.filter(|_| settings.policy.memo.is_none());
    let poll = call.and_then(|(called, request)| {
        // All of the answer is there, so nothing waits.
        Some(Polled::new(request.poll.as_ref()?, called, request.budget_ms, Timer::of_machine()))
    });
    let answer = answer_to(answer.map(Full::new), statuses, Expected { keep, poll }, now).await;
    if let Answer::Done(output) = answer { Answer::done(output, keep, direction) } else { answer }
}

/// The URL at which the agent of a request would ask for the state of its call, of which the answer said this path.
///
/// # Errors
/// Why there is none.
pub fn polled_at(path: &str, request: &Request, base: &str, settings: &AgentSettings) -> Result<Uri, String> {
    let remote = remote(&request.agent, base, settings).map_err(|fault| fault.to_string())?;
    remote.at(path).map_err(|fault| fault.to_string())
}

/// The secrets of an agent that cannot be read here, each with the cause. One in a store of AWS has none: the store is not
/// asked.
pub async fn unread(settings: &AgentSettings, resolver: &Resolver) -> Vec<(Reference, Option<String>)> {
    let of_events = settings.webhook.iter().flat_map(|webhook| &webhook.secrets).map(|placed| &placed.reference);
    let mut unread = Vec::new();
    for reference in settings.auth.references().into_iter().chain(of_events) {
        let cause = match reference.source {
            SecretSource::Parameter | SecretSource::SecretsManager => None,
            SecretSource::Environment | SecretSource::File => match resolver(reference.clone()).await {
                Ok(secret) if !secret.expose().is_empty() => continue,
                Ok(_) => Some("is empty".to_owned()),
                Err(cause) => Some(cause),
            },
        };
        unread.push((reference.clone(), cause));
    }
    unread
}
