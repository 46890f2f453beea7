//! When a port cannot do its work.

use std::error::Error;

/// A port could not do its work, or could not say whether it did.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {kind}")]
pub struct PortError {
    /// What was tried, like `store.commit`.
    pub operation: &'static str,
    /// What to do about it.
    pub kind: PortErrorKind,
    /// What the infrastructure said.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// What to do about a [`PortError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortErrorKind {
    /// Try again later.
    #[error("unavailable")]
    Unavailable,
    /// No retry will help; somebody has to mend something.
    #[error("refused")]
    Refused,
}

impl PortError {
    /// The infrastructure cannot be reached or is overloaded: try again later.
    pub fn unavailable(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Unavailable, source: Some(source.into()) }
    }

    /// The infrastructure understood and said no, or what is stored cannot be read.
    pub fn refused(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Refused, source: Some(source.into()) }
    }
}
