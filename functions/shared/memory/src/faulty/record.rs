//! The record of writes and sends, for checks over a whole test.

use std::sync::Arc;

use domain::message::{Request, SchedulerMessage};
use domain::task::Task;

/// All writes and sends, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Every version of every task.
    pub tasks: Vec<Arc<Task>>,
    /// Every message to the scheduler.
    pub to_scheduler: Vec<SchedulerMessage>,
    /// Every request, with its agent.
    pub to_agents: Vec<(String, Request)>,
}
