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

/// The order that a body would become now, under this id, and its workflow. `choose` finds the workflow that the document
/// names, or the default one.
///
/// # Errors
/// The problem document that the API answers with.
pub fn preview(
    config: &ApiConfig,
    body: &Bytes,
    order_id: OrderId,
    now: Timestamp,
    choose: impl FnOnce(Option<&str>) -> Result<Arc<Workflow>, UnknownWorkflow>,
) -> Result<(Order, Arc<Workflow>), Bytes> {
    let taken = || {
        let [_, caller] = UNAUTHENTICATED;
        let mut given = read(caller, now, body, || order_id)?;
        check_channel(config, &given.order)?;
        let workflow = choose(given.workflow.as_deref());
        let workflow = workflow.map_err(|UnknownWorkflow { name, known }| Problem::unknown_workflow(&name, &known))?;
        pin(&workflow, &mut given.order, now, config)?;
        Ok((given.order, workflow))
    };
    taken().map_err(|problem: Problem| problem.response().into_body())
}
