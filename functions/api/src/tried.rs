//! `POST /workflows/{name}/{version}/try`: what the steps of an order would send. Nothing is stored or called.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use config::{Settings, without_likely_secrets};
use domain::definition::Pin;
use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::Outcome;
use domain::ports::Environment;
use domain::time::Timestamp;
use domain::workflow::Workflow;
use http::{HeaderMap, Response, StatusCode};
use http_call::{Trial, unknown_base};
use wire::{Tried, TriedCall, TriedStep, Try};

use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::members::Members;
use crate::ports::ApiPorts;
use crate::preview::{EXAMPLE, taken};
use crate::problem::Problem;
use crate::{body, reply, workflows};

/// The bytes that are shown of the body of a call.
const SHOWN_BYTES_MAX: usize = 16 * 1024;
/// The bytes that are shown of all bodies. Their escapes in JSON, and those of a Lambda function's answer, fit into its
/// 6 MiB.
const ALL_SHOWN_BYTES_MAX: usize = 512 * 1024;
/// The time after which a try pauses before the next call, in milliseconds.
const BUSY_MS_MAX: u64 = 10;

/// Tries an order with a version of a workflow.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    pin: &Pin,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::NoWorkflow)?;
    body::check(headers, body)?;
    let document = Json::document(body)?;
    let members = Members::of(&document, &Try::MEMBERS)?;
    let order = members.value("Order").ok_or_else(|| Problem::member("Order", "is missing"))?;
    let definition = workflows::known_definition(ports, pin).await?.ok_or(Problem::NoWorkflow)?;
    let workflow = Workflow::read(&definition.text).map_err(|fault| unreadable(&fault))?;
    let outputs = outputs(&members, &workflow)?;
    let deployment = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
    let text = deployment.as_ref().map_or("", |deployment| &deployment.settings);
    let hidden = (!caller.may_configure()).then(|| without_likely_secrets(text).unwrap_or_default());
    let settings =
        Settings::parse("stepwarden.toml", hidden.as_deref().unwrap_or(text)).map_err(|fault| unreadable(&fault))?;

    let order = Bytes::copy_from_slice(order.get().as_bytes());
    let (order, workflow) = taken(config, &order, ports.environment().wall(), |_| Ok(Arc::new(workflow)))?;
    let mut trial = Trial::new(&order, &workflow, &settings, &unknown_base);
    let mut steps: Vec<TriedStep<'_>> = workflow.steps.iter().map(|_| TriedStep::default()).collect();
    let mut room = ALL_SHOWN_BYTES_MAX;
    let mut since = ports.environment().now();
    for index in trial.in_turn() {
        pause(ports, &mut since).await;
        let (mut step, _) = trial.forward(index);
        if step.never_runs.is_none() {
            let is_sent = step.forward.as_ref().is_none_or(|call| call.unsendable.is_none());
            if let Some(output) = outputs.get(&*step.step).filter(|_| is_sent) {
                trial.suppose(index, &Outcome::Done(output.clone()));
            }
            pause(ports, &mut since).await;
            step.undo = Some(trial.undo(index));
        }
        step.forward.iter_mut().chain(&mut step.undo).for_each(|call| cut(call, &mut room));
        steps[index] = step;
    }
    Ok(reply::json(StatusCode::OK, &Tried { order_id: EXAMPLE, steps }))
}

/// Lets the host do other work, or end this if the caller is gone, once the calls since then took long to compute.
async fn pause(ports: &impl ApiPorts, since: &mut Timestamp) {
    let environment = ports.environment();
    if since.ms_until(environment.now()) >= BUSY_MS_MAX {
        environment.sleep(1).await;
        *since = environment.now();
    }
}

/// The supposed outputs of its steps. Each is as small as a step's.
fn outputs(members: &Members<'_>, workflow: &Workflow) -> Result<BTreeMap<String, Json>, Problem> {
    let Some(outputs) = members.value("Outputs") else { return Ok(BTreeMap::new()) };
    let fault = || Problem::member("Outputs", "must be an object with the output of each step by its name");
    let mut outputs: BTreeMap<String, Json> = serde_json::from_str(outputs.get()).map_err(|_| fault())?;
    outputs.retain(|step, _| workflow.steps.iter().any(|rule| *rule.name == **step));
    for (step, output) in &outputs {
        output
            .fits(OUTPUT_BYTES_MAX)
            .map_err(|error| Problem::member(format!("Outputs.{step}"), format!("is {error}")))?;
    }
    Ok(outputs)
}

/// What was applied by a later version of this program.
fn unreadable(fault: &impl ToString) -> Problem {
    Problem::ConfigurationRefused { reasons: vec![fault.to_string()] }
}

/// Shows no more of a body than there is room for.
fn cut(call: &mut TriedCall<'_>, room: &mut usize) {
    for shown in call.body.iter_mut().chain(&mut call.document) {
        let shown_bytes_max = SHOWN_BYTES_MAX.min(*room);
        if shown.len() > shown_bytes_max {
            call.whole_bytes = Some(shown.len());
            let end = shown.floor_char_boundary(shown_bytes_max);
            shown.to_mut().truncate(end);
        }
        *room = room.saturating_sub(shown.len());
    }
}

#[cfg(test)]
mod tests;
