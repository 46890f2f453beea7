//! Faults of a settings file.

use std::fmt;

use domain::located::{Fault, Faults};

/// Every fault of a settings file, in the order of the file. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct BadSettings {
    /// The name of the file, as the user gave it.
    pub file: String,
    /// The faults.
    pub faults: Vec<Fault>,
}

impl BadSettings {
    /// The faults of this file.
    #[must_use]
    pub fn new(file: &str, Faults(faults): Faults) -> Self {
        Self { file: file.to_owned(), faults }
    }
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{}:{fault}", if position > 0 { "; " } else { "" }, self.file)?;
        }
        Ok(())
    }
}
