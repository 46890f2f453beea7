//! The failure of a port.

use std::error::Error;

use crate::batch::HasCause;

/// A port could not do its work, or the result is not known.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {kind}")]
pub struct PortError {
    /// The operation, like `store.commit`.
    pub operation: &'static str,
    /// Whether a retry can help.
    pub kind: PortErrorKind,
    /// The error of the infrastructure.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// Whether a retry of the operation can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortErrorKind {
    /// Try again later.
    #[error("unavailable")]
    Unavailable,
    /// No retry helps; the deployment has to be fixed.
    #[error("refused")]
    Refused,
}

impl HasCause for PortError {
    fn may_pass(&self) -> bool {
        self.kind == PortErrorKind::Unavailable
    }
}

impl PortError {
    /// The infrastructure is unreachable or overloaded: try again later.
    pub fn unavailable(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Unavailable, source: Some(source.into()) }
    }

    /// The infrastructure refused the operation, or the stored value cannot be read.
    pub fn refused(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Refused, source: Some(source.into()) }
    }
}
