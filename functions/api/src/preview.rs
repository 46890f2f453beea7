//! What `POST /orders` makes of a document, where nothing is queued.

use std::sync::Arc;

use bytes::Bytes;
use domain::definition::UnknownWorkflow;
use domain::id::OrderId;
use domain::order::{Order, UNAUTHENTICATED};
use domain::time::Timestamp;
use domain::workflow::Workflow;

use crate::accept::{check_channel, pin};
use crate::config::ApiConfig;
use crate::orders::read;
use crate::problem::Problem;

/// Stands for the id of an order that there is not.
pub const EXAMPLE: OrderId = OrderId::from_bytes([1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);

/// The order that a body would become now, under the id [`EXAMPLE`], and its workflow. `choose` finds the workflow that the document
/// names, or the default one.
///
/// # Errors
/// The problem document that the API answers with.
pub fn preview(
    config: &ApiConfig,
    body: &Bytes,
    now: Timestamp,
    choose: impl FnOnce(Option<&str>) -> Result<Arc<Workflow>, UnknownWorkflow>,
) -> Result<(Order, Arc<Workflow>), Bytes> {
    taken(config, body, now, choose).map_err(|problem| problem.response().into_body())
}

/// The same, with the problem itself.
pub(crate) fn taken(
    config: &ApiConfig,
    body: &Bytes,
    now: Timestamp,
    choose: impl FnOnce(Option<&str>) -> Result<Arc<Workflow>, UnknownWorkflow>,
) -> Result<(Order, Arc<Workflow>), Problem> {
    let [_, caller] = UNAUTHENTICATED;
    let mut given = read(caller, now, body, || EXAMPLE)?;
    check_channel(config, &given.order)?;
    let workflow = choose(given.workflow.as_deref());
    let workflow = workflow.map_err(|UnknownWorkflow { name, known }| Problem::unknown_workflow(&name, &known))?;
    pin(&workflow, &mut given.order, now, config)?;
    Ok((given.order, workflow))
}
