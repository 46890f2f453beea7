//! What is wrong with the command line, with the environment, or with a file that these name.

/// A setting that cannot be used. The message names the setting, the reason, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl BadSetting {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
