//! The results that services tell later (rule 38). Whoever holds the address of a call may do so. The state machine
//! decides what counts, as for any reply.

use bytes::Bytes;
use domain::callback::{self, Awaited, NotTaken};
use domain::json::Json;
use domain::machine::Dropped;
use domain::message::{Acceptance, Failure, Outcome, SchedulerMessage, Trouble};
use domain::output;
use domain::ports::{Environment, PortError, Queues, Store};
use domain::task::{Direction, Task, shortened};
use domain::template::Template;
use http::{HeaderMap, Response, StatusCode};
use wire::{Callback, CalledBack};

use crate::config::{ApiConfig, BODY_BYTES_MAX};
use crate::members::Members;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{body, reply};

const NOT_QUEUED: &str = "it is not known whether the result was queued; it is safe to send it again";
const BETWEEN: &str = "the step is between two attempts; send it again";
/// The path of the addresses, and what comes after their token.
const CALLBACKS: &str = "/callbacks/";

/// What a service said.
enum Said {
    Done(Json),
    No(Failure),
}

/// `POST /callbacks/{token}`: the result of a call.
pub(crate) async fn result(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    token: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let awaited = awaited(ports, config, token).await?;
    let said = read(headers, body);
    let Some(task) = ports.store().task(awaited.order_id).await.map_err(Problem::unread)? else {
        return said.map(|_| gone());
    };
    let said = match said {
        Ok(said) => said,
        Err(problem) => return Err(refused(ports, &task, awaited, problem).await),
    };
    let outcome = match said {
        Said::Done(output) => {
            let keep = keep(ports, config, &task, &awaited).await?;
            let output = match &keep {
                Some(keep) => keep.of_body(output),
                None => output,
            };
            match refusal(&output, keep.as_ref(), awaited.direction) {
                None => output::done(output, keep.as_ref(), awaited.direction),
                Some(fault) if counts(&task, &awaited) => {
                    let problem = Problem::member("Output", format!("cannot be taken: {fault}"));
                    return Err(refused(ports, &task, awaited, problem).await);
                }
                // That the work is done may contradict the end of the step, whatever its output.
                Some(_) => Outcome::Done(Json::empty()),
            }
        }
        Said::No(failure) => output::failed(failure, awaited.direction),
    };
    tell(ports, &task, awaited, outcome).await
}

/// `POST /callbacks/{token}/heartbeat`: the service is at work still.
pub(crate) async fn heartbeat(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    token: &str,
) -> Result<Response<Bytes>, Problem> {
    let awaited = awaited(ports, config, token).await?;
    match ports.store().task(awaited.order_id).await.map_err(Problem::unread)? {
        Some(task) => tell(ports, &task, awaited, Outcome::Accepted(Acceptance::default())).await,
        None => Ok(gone()),
    }
}

/// The path for logs: a token is a secret.
pub(crate) fn without_token(path: &str) -> &str {
    if path.starts_with(CALLBACKS) { CALLBACKS } else { path }
}

/// The call of a token.
///
/// # Errors
/// [`Problem::ForgedCallback`] if no key signed it.
async fn awaited(ports: &impl ApiPorts, config: &ApiConfig, token: &str) -> Result<Awaited, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::ForgedCallback)?;
    let deployment = catalogue.deployment(ports).await.map_err(Problem::unread)?;
    let now = ports.environment().now();
    let keys = |deployment: &domain::definition::Deployment| {
        callback::read(deployment.callback_keys.iter().filter(|key| key.counts(now)), token)
    };
    if let Some(awaited) = deployment.as_deref().and_then(keys) {
        return Ok(awaited);
    }
    // The first key may have been made a moment ago. Nothing is read for the tokens of anybody else.
    if deployment.is_some_and(|deployment| !deployment.callback_keys.is_empty()) {
        return Err(Problem::ForgedCallback);
    }
    let newest = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
    newest.as_deref().and_then(keys).ok_or(Problem::ForgedCallback)
}

/// Reads `{Outcome, Output}` or `{Outcome, Code, Message}`.
fn read(headers: &HeaderMap, body: &Bytes) -> Result<Said, Problem> {
    body::check(headers, body)?;
    let document = Json::document(body)?;
    let members = Members::of(&document, &Callback::MEMBERS)?;
    let foreign = |names: &[&'static str], of: &str| match names.iter().find(|name| members.value(name).is_some()) {
        Some(name) => Err(Problem::member(*name, format!("belongs to an outcome {of}"))),
        None => Ok(()),
    };
    match &*members.text("Outcome")? {
        "Done" => {
            foreign(&["Code", "Message"], "No")?;
            let output = members.value("Output").map(|output| Json::parse(output.get().as_bytes(), BODY_BYTES_MAX));
            let output = output.transpose().map_err(|fault| Problem::member("Output", format!("is {fault}")))?;
            Ok(Said::Done(output.unwrap_or_else(Json::empty)))
        }
        "No" => {
            foreign(&["Output"], "Done")?;
            let code = members.text("Code")?;
            // What services say is cut, never refused (rule 15).
            let message = members.value("Message").map(|value| serde_json::from_str::<String>(value.get())).transpose();
            let message = message.map_err(|_| Problem::member("Message", "must be a string"))?;
            let message = message.filter(|message| !message.trim().is_empty());
            let message = message.map_or_else(|| code.clone(), |message| shortened(&message));
            Ok(Said::No(Failure { code, message }))
        }
        _ => Err(Problem::member("Outcome", "must be Done or No")),
    }
}

/// What the workflow keeps of the step's output.
async fn keep(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    task: &Task,
    awaited: &Awaited,
) -> Result<Option<Template>, Problem> {
    let (Some(catalogue), Direction::Forward) = (config.catalogue(), awaited.direction) else { return Ok(None) };
    let workflow = catalogue.of_task(ports, task).await.map_err(Problem::unread)?;
    let rule = workflow.as_ref().and_then(|workflow| workflow.steps.iter().find(|rule| rule.name == awaited.step));
    Ok(rule.and_then(|rule| rule.keep.clone()))
}

/// Why an output cannot be the result. The step is not rejected for it: its service did the work.
fn refusal(output: &Json, keep: Option<&Template>, direction: Direction) -> Option<String> {
    let unusable = output::unusable(output, keep, direction);
    unusable.or_else(|| match output::done(output.clone(), keep, direction) {
        Outcome::Failed(failure) => Some(failure.message.to_string()),
        Outcome::Done(_) | Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => None,
    })
}

/// Whether the result would change the order, and contradict nothing.
fn counts(task: &Task, awaited: &Awaited) -> bool {
    matches!(awaited.clone().reply(task, Outcome::Done(Json::empty())), Ok((_, None)))
}

/// Refuses a result. The order shows why while it waits on; who told the result learns it from the answer.
async fn refused(ports: &impl ApiPorts, task: &Task, awaited: Awaited, problem: Problem) -> Problem {
    if counts(task, &awaited) {
        let trouble = Trouble { problem: shortened(&format!("a result was refused: {problem}")) };
        let _ = tell(ports, task, awaited, Outcome::Retrying(trouble)).await;
    }
    problem
}

/// Queues the reply, unless it would change nothing. One that contradicts what is known goes to the scheduler as well.
async fn tell(
    ports: &impl ApiPorts,
    task: &Task,
    awaited: Awaited,
    outcome: Outcome,
) -> Result<Response<Bytes>, Problem> {
    let is_event = awaited.agent.is_some();
    let is_no = matches!(outcome, Outcome::Failed(_));
    let (reply, dropped) = match awaited.reply(task, outcome) {
        Ok(reply) => reply,
        // A provider tells an event once, unless it is asked to repeat it: the next call may hear no more than the first.
        Err(NotTaken::Dropped(Dropped::StaleFailure)) if is_event && is_no => {
            return Err(Problem::Unavailable { advice: BETWEEN, error: PortError::unavailable("callback", BETWEEN) });
        }
        Err(dropped) => return Ok(not_taken(dropped.to_string())),
    };
    let (order_id, step) = (reply.order_id, reply.step.clone());
    let queued = ports.queues().to_scheduler(SchedulerMessage::Reply(reply), task.priority, 0).await;
    queued.map_err(|error| Problem::Unavailable { advice: NOT_QUEUED, error })?;
    if let Some(dropped) = dropped {
        return Ok(not_taken(format!("{dropped}; it contradicts what is known, so an operator is told")));
    }
    tracing::debug!(monotonic_counter.callbacks_queued = 1, %order_id, %step, "called back");
    Ok(reply::json(StatusCode::ACCEPTED, &CalledBack { taken: true, because: None }))
}

/// No error: the service did its part, and must not send it again.
fn not_taken(because: String) -> Response<Bytes> {
    tracing::debug!(monotonic_counter.callbacks_dropped = 1, because, "called back");
    reply::json(StatusCode::OK, &CalledBack { taken: false, because: Some(because.into()) })
}

fn gone() -> Response<Bytes> {
    not_taken("there is no such order, or no more".to_owned())
}

#[cfg(test)]
mod tests;
