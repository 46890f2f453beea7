//! The record of one step. `Direction` is stored only while it is `Undo`. A step without it goes forward.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::json::Json;
use domain::task::{Approvers, Direction, Poll, Step, StepError, StepState};

use super::{Item, Reader, Unreadable, number, put, put_if, text, time};

pub(super) fn step_value(step: &Step) -> AttributeValue {
    let mut item = Item::with_capacity(16);
    put(&mut item, "Name", text(&*step.name));
    put(&mut item, "Agent", text(&*step.agent));
    put(&mut item, "ProcessState", text(step_state(step)));
    put(&mut item, "LockedBy", step.locked_by.as_deref().map_or(AttributeValue::Null(true), text));
    put(&mut item, "CompleteBy", step.complete_by.map_or(AttributeValue::Null(true), time));
    put(&mut item, "FailureCount", number(step.failure_count));
    put(&mut item, "Attempt", number(step.attempt));
    let direction = (step.direction != Direction::Forward).then(|| text(step.direction.name()));
    put_if(&mut item, "Direction", direction);
    put_if(&mut item, "Optional", step.optional.then_some(AttributeValue::Bool(true)));
    put_if(&mut item, "Pivot", step.pivot.then_some(AttributeValue::Bool(true)));
    put_if(&mut item, "Dropped", step.dropped.then_some(AttributeValue::Bool(true)));
    put_if(&mut item, "Approval", step.approval.as_ref().map(approvers_value));
    put_if(&mut item, "DoubtedAt", step.doubted_at.map(time));
    put_if(&mut item, "NotBefore", step.not_before.map(time));
    put_if(&mut item, "WaitsUntil", step.waits_until.map(time));
    put_if(&mut item, "WaitToCome", step.wait_to_come.then_some(AttributeValue::Bool(true)));
    put_if(&mut item, "Poll", step.poll.as_ref().map(poll_value));
    put_if(&mut item, "MayRunUntil", step.may_run_until.map(time));
    put_if(&mut item, "Declined", (step.declined > 0).then(|| number(step.declined)));
    let fallback = step.fallback.iter().map(|agent| text(&**agent)).collect();
    put_if(&mut item, "Fallback", (!step.fallback.is_empty()).then_some(AttributeValue::L(fallback)));
    // The output is stored as text, so that numbers keep their digits.
    put_if(&mut item, "Output", step.output.as_ref().map(|output| text(output.text())));
    put_if(&mut item, "LastError", step.last_error.as_ref().map(error_value));
    put_if(&mut item, "CallMs", step.call_ms.map(number));
    put_if(&mut item, "StartedAt", step.started_at.map(time));
    put_if(&mut item, "FinishedAt", step.finished_at.map(time));
    AttributeValue::M(item)
}

pub(super) fn step(mut reader: Reader) -> Result<Step, Unreadable> {
    let output = reader.text_if("Output")?.map(|output| serde_json::from_str::<Json>(&output)).transpose();
    Ok(Step {
        name: reader.text("Name")?.into(),
        agent: reader.text("Agent")?.into(),
        process_state: reader.word("ProcessState", state)?,
        locked_by: reader.text_if("LockedBy")?.map(Arc::from),
        complete_by: reader.time_if("CompleteBy")?,
        failure_count: reader.number("FailureCount")?,
        attempt: reader.number("Attempt")?,
        direction: reader.word_if("Direction", direction)?.unwrap_or(Direction::Forward),
        optional: reader.flag("Optional")?,
        pivot: reader.flag("Pivot")?,
        dropped: reader.flag("Dropped")?,
        approval: reader.map_if("Approval")?.map(approvers).transpose()?,
        doubted_at: reader.time_if("DoubtedAt")?,
        not_before: reader.time_if("NotBefore")?,
        waits_until: reader.time_if("WaitsUntil")?,
        wait_to_come: reader.flag("WaitToCome")?,
        poll: reader.map_if("Poll")?.map(poll).transpose()?,
        may_run_until: reader.time_if("MayRunUntil")?,
        declined: reader.number_if("Declined")?.unwrap_or(0),
        fallback: reader.texts("Fallback")?,
        output: output.map_err(|error| reader.wrong("Output", error.to_string()))?,
        last_error: reader.map_if("LastError")?.map(error).transpose()?,
        call_ms: reader.number_if("CallMs")?,
        started_at: reader.time_if("StartedAt")?,
        finished_at: reader.time_if("FinishedAt")?,
    })
}

fn poll_value(Poll { path, at }: &Poll) -> AttributeValue {
    let mut item = Item::with_capacity(2);
    put(&mut item, "Path", text(&**path));
    put_if(&mut item, "At", at.map(time));
    AttributeValue::M(item)
}

fn poll(mut reader: Reader) -> Result<Poll, Unreadable> {
    Ok(Poll { path: reader.text("Path")?.into(), at: reader.time_if("At")? })
}

fn approvers_value(Approvers { role, not_by, since_version }: &Approvers) -> AttributeValue {
    let mut item = Item::with_capacity(3);
    put_if(&mut item, "Role", role.as_deref().map(text));
    put_if(&mut item, "NotBy", not_by.as_deref().map(text));
    put_if(&mut item, "SinceVersion", (*since_version > 0).then(|| number(*since_version)));
    AttributeValue::M(item)
}

fn approvers(mut reader: Reader) -> Result<Approvers, Unreadable> {
    Ok(Approvers {
        role: reader.text_if("Role")?.map(Arc::from),
        not_by: reader.text_if("NotBy")?.map(Arc::from),
        since_version: reader.number_if("SinceVersion")?.unwrap_or(0),
    })
}

fn error_value(error: &StepError) -> AttributeValue {
    let mut item = Item::with_capacity(4);
    put(&mut item, "Code", text(&*error.code));
    put(&mut item, "Message", text(&*error.message));
    put(&mut item, "Attempt", number(error.attempt));
    put(&mut item, "At", time(error.at));
    AttributeValue::M(item)
}

fn error(mut reader: Reader) -> Result<StepError, Unreadable> {
    Ok(StepError {
        code: reader.text("Code")?.into(),
        message: reader.text("Message")?.into(),
        attempt: reader.number("Attempt")?,
        at: reader.time("At")?,
    })
}

/// The stored word for a step's state.
pub(in crate::dynamo) const fn step_state(step: &Step) -> &'static str {
    state_name(step.process_state)
}

const fn state_name(state: StepState) -> &'static str {
    match state {
        StepState::Pending => "Pending",
        StepState::Processing => "Processing",
        StepState::Processed => "Processed",
        StepState::Error => "Error",
        StepState::Skipped => "Skipped",
    }
}

fn state(name: &str) -> Option<StepState> {
    const ALL: [StepState; 5] =
        [StepState::Pending, StepState::Processing, StepState::Processed, StepState::Error, StepState::Skipped];
    ALL.into_iter().find(|state| state_name(*state) == name)
}

fn direction(name: &str) -> Option<Direction> {
    [Direction::Forward, Direction::Undo].into_iter().find(|direction| direction.name() == name)
}
