//! Faults of a workflow. Every error names the file's workflow and the step.

use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, COMPLETE_WITHIN_MS_MIN, FAILURES_MAX, HORIZON_MS_MAX, NAME_CHARS_MAX, STEPS_MAX,
};

/// Why a workflow cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowError {
    /// Not TOML, or a key that is missing, unknown or of the wrong type; the text has the key and the position.
    #[error("workflow file is not valid: {0}")]
    Malformed(String),
    /// A bad name.
    #[error("workflow name {0:?} is not valid: use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'")]
    Name(String),
    /// Versions start at 1.
    #[error("workflow {0:?}: version must be at least 1")]
    Version(String),
    /// No steps.
    #[error("workflow {0:?} has no steps")]
    NoSteps(String),
    /// Too many steps.
    #[error("workflow {workflow:?} has {steps} steps, the limit is {STEPS_MAX}")]
    TooManySteps {
        /// Name of the workflow.
        workflow: String,
        /// Steps in the file.
        steps: usize,
    },
    /// A value of `[supervision]` is out of bounds.
    #[error("workflow {workflow:?}: [supervision] {key} {problem}")]
    Supervision {
        /// Name of the workflow.
        workflow: String,
        /// The key at fault.
        key: &'static str,
        /// The fault of its value.
        problem: String,
    },
    /// An entry of `refuse`.
    #[error("workflow {workflow:?}: refuse {problem}")]
    Refuse {
        /// Name of the workflow.
        workflow: String,
        /// The fault.
        problem: String,
    },
    /// One step is at fault.
    #[error("workflow {workflow:?}, step {step:?}: {fault}")]
    Step {
        /// Name of the workflow.
        workflow: String,
        /// Name of the step.
        step: String,
        /// The fault.
        fault: StepFault,
    },
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

/// The fault of one step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFault {
    /// A bad name.
    #[error("the name is not valid: use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'")]
    Name,
    /// Two steps of one name.
    #[error("the name is used twice")]
    DuplicateName,
    /// An agent that does not exist.
    #[error("unknown agent {agent:?}, known are: {known}")]
    UnknownAgent {
        /// The agent named.
        agent: String,
        /// The known agents.
        known: String,
    },
    /// Comes after a step that does not exist.
    #[error("`after` names the unknown step {0:?}")]
    UnknownAfter(String),
    /// `after` names a step twice.
    #[error("`after` names the step {0:?} twice")]
    DuplicateAfter(String),
    /// Comes after itself, directly or over others.
    #[error("it comes after itself: {0}")]
    Cycle(String),
    /// Time limit out of bounds.
    #[error("complete_within {0}: must be between {COMPLETE_WITHIN_MS_MIN} ms and {hours} h, like \"30s\"", hours = COMPLETE_WITHIN_MS_MAX / 3_600_000)]
    CompleteWithin(String),
    /// Time for all attempts out of bounds.
    #[error("horizon {0}: must be at least complete_within and at most {days} days, like \"12h\"", days = HORIZON_MS_MAX / 86_400_000)]
    Horizon(String),
    /// A fault of `send`, `path`, `encode` or `keep`.
    #[error("{key}: {problem}")]
    Mapping {
        /// The key at fault, such as `undo.send`.
        key: String,
        /// The fault of its value.
        problem: String,
    },
    /// Failure limit out of bounds.
    #[error("max_failures is {0}: must be between 1 and {FAILURES_MAX}")]
    MaxFailures(i64),
}
