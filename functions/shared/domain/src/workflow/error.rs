//! Faults of workflows.

use crate::located::Faults;

/// Why workflows cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowError {
    /// The faults of one file, each with its line and column.
    #[error("workflow file is not valid: {0}")]
    Invalid(#[from] Faults),
    /// The same name and version twice.
    #[error("workflow {workflow:?} version {version} is given twice")]
    DuplicateVersion {
        /// Name of the workflow.
        workflow: String,
        /// The version.
        version: u32,
    },
    /// The workflow for new orders is missing.
    #[error("no workflow named {0:?} is given")]
    Missing(String),
}
