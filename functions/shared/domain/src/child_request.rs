//! The message that has a step carried out by another order.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::OrderId;
use crate::state::Direction;

/// Carry out or undo a step whose service is another order. What the other order gets follows from the task (rule 49).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ChildRequest {
    /// The order of the step.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Name of a step in its workflow.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    pub step: Arc<str>,
    /// Forward: make the child. Undo: cancel it.
    pub direction: Direction,
    /// Fencing token.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub attempt: u32,
    /// Messages in the chain so far.
    #[serde(default)]
    pub hops: u32,
}
