//! What is wrong with the command line, with the environment, or with a file that these name.

/// It cannot be used. The message says which setting, why, and what to do: whoever gave it mends it and starts again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl BadSetting {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
