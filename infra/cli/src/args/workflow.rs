//! The argument of `stepwarden workflows`.

use std::fmt;
use std::str::FromStr;

use clap::Args;

/// `stepwarden workflows`
#[derive(Debug, Clone, Args)]
pub struct WorkflowsArgs {
    /// Draw this workflow. Without a version: the one that new orders get
    #[arg(value_name = "NAME[@VERSION]")]
    pub workflow: Option<WorkflowName>,
}

/// A workflow, and one of its versions if named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowName {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<u32>,
}

impl FromStr for WorkflowName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version)));
        let version = version.map(|version| {
            version.parse().map_err(|_| format!("{version:?} is no version; write NAME@2, or NAME alone"))
        });
        Ok(Self { name: name.to_owned(), version: version.transpose()? })
    }
}

impl fmt::Display for WorkflowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_named_with_or_without_a_version() {
        for (text, version) in [("order", None), ("order@2", Some(2))] {
            let name: WorkflowName = text.parse().unwrap();
            assert_eq!((&*name.name, name.version), ("order", version));
            assert_eq!(name.to_string(), text);
        }
        for text in ["order@", "order@two", "order@-1", "order@1@2"] {
            assert!(text.parse::<WorkflowName>().unwrap_err().contains("is no version"), "{text}");
        }
    }
}
