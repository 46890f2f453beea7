//! What was written and sent, for checks over a whole test.

use std::sync::Arc;

use domain::message::{Request, SchedulerMessage};
use domain::task::Task;

/// All that was written and sent, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Every version of every task.
    pub tasks: Vec<Arc<Task>>,
    /// Every message to the scheduler.
    pub to_scheduler: Vec<SchedulerMessage>,
    /// Every request, with the agent that it was for.
    pub to_agents: Vec<(String, Request)>,
}
