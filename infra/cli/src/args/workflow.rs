//! The arguments of `stepwarden workflows`, and the name of a workflow.

use std::fmt;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::api::CommandArgs;

/// `stepwarden workflows`
#[derive(Debug, Clone, Args)]
pub struct WorkflowsArgs {
    /// Draw this workflow. Without a version: the one that new orders get
    #[arg(value_name = "NAME[/VERSION]")]
    pub workflow: Option<WorkflowName>,
    /// Print the version's file instead, as it was applied
    #[arg(long, requires = "workflow")]
    pub text: bool,
    /// The action.
    #[command(subcommand)]
    pub command: Option<WorkflowsCommand>,
}

/// `stepwarden workflows choose` and `retire`
#[derive(Debug, Clone, Subcommand)]
pub enum WorkflowsCommand {
    /// Choose the version that new orders begin with: all of them, or a share
    Choose(ChooseArgs),
    /// Retire a version. Refused while new orders begin with it, or open orders have it
    Retire(RetireArgs),
}

/// `stepwarden workflows choose`
#[derive(Debug, Clone, Args)]
pub struct ChooseArgs {
    /// The version that new orders of this workflow begin with
    #[arg(value_name = "NAME/VERSION")]
    pub workflow: WorkflowName,
    /// Only for this share of them, in percent: 1 to 99. The others keep the version that they have
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub share: Option<u8>,
    /// From now on, orders that name no workflow begin with this one
    #[arg(long)]
    pub default: bool,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
}

/// `stepwarden workflows retire`
#[derive(Debug, Clone, Args)]
pub struct RetireArgs {
    /// The version that no order begins with any more
    #[arg(value_name = "NAME/VERSION")]
    pub workflow: WorkflowName,
    /// The operator and the reason.
    #[command(flatten)]
    pub command: CommandArgs,
}

/// A share of new orders: `20` or `20%`.
pub(super) fn share(text: &str) -> Result<u8, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse();
    percent
        .ok()
        .filter(|percent| (1..=99).contains(percent))
        .ok_or_else(|| "must be from 1 to 99; without --share it is all new orders".to_owned())
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
        let (name, version) = text.split_once('/').map_or((text, None), |(name, version)| (name, Some(version)));
        let version = version.map(|version| {
            version.parse().map_err(|_| format!("{version:?} is no version; write NAME/2, or NAME alone"))
        });
        Ok(Self { name: name.to_owned(), version: version.transpose()? })
    }
}

impl fmt::Display for WorkflowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.map_or(Ok(()), |version| write!(f, "/{version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_named_with_or_without_a_version() {
        for (text, version) in [("order", None), ("order/2", Some(2)), ("order/10", Some(10))] {
            let name: WorkflowName = text.parse().unwrap();
            assert_eq!((&*name.name, name.version), ("order", version));
            assert_eq!(name.to_string(), text);
        }
        for text in ["order/", "order/two", "order/-1", "order/1/2"] {
            assert!(text.parse::<WorkflowName>().unwrap_err().contains("is no version"), "{text}");
        }
    }
}
