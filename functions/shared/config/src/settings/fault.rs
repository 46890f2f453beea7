//! Faults of a settings file, and what its reading needs beside [`domain::located`].

use std::fmt;

use domain::located::{Entry, Fault, Faults, Reader};
use domain::workflow::settling_ms;

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

/// The time for which a call may have its effect, in milliseconds. The scheduler reads it by the same rule.
pub(super) fn settling(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<u64> {
    let entry = entry?;
    let settling_ms = settling_ms(entry.value.as_str().unwrap_or_default());
    settling_ms.map_err(|fault| reader.blame_value(&entry, fault)).ok()
}
