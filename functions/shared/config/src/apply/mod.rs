//! Applies a checked folder to the records: first a plan, then its writes.
//!
//! The versions are written first and the deployment last, so an order is never pinned to a version that is not there.
//! A crash in between leaves versions that no order begins with. The next application finds them as they are.

mod agents;
mod difference;
mod plan;
mod schedules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::definition::{Catalogue, Definition, Deployment, Pin, installation, versions};
use domain::ports::{Commit, Environment, HasEnvironment, HasRecords, PortError, Record, Records, Seen};

pub use difference::difference;
pub use plan::Plan;

use crate::folder::{Checked, Fault};

/// Who applies, and which share of the orders a new version gets.
#[derive(Debug, Clone)]
pub struct Application {
    /// The operator.
    pub by: Arc<str>,
    /// The share of new orders that begin with the new versions, from 1 to 99 percent. `None`: all.
    pub share_percent: Option<u8>,
    /// The version of the deployment that the operator saw; 0: there was none. `None`: whatever there is.
    pub seen: Option<u64>,
    /// Makes a new key of callback addresses. Those of the earlier keys count for this long, in milliseconds.
    pub earlier_key_ms: Option<u64>,
}

/// A folder was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The folder contradicts what was applied before.
    #[error("{}", Refusal::lines(.0))]
    Refused(Vec<Refusal>),
    /// Another application was written in the meantime.
    #[error("another configuration was applied in the meantime: apply again, and look at what changes")]
    Overtaken,
    /// The store refused the write for now.
    #[error("the store is busy; it is safe to apply again")]
    Busy,
    /// The records cannot be read or written.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a folder is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another content was applied under the same version.
    #[error("{file}: workflow {pin} was applied with other content, and a version never changes: give this one the next version\n{}", .difference.join("\n"))]
    Changed {
        /// The file.
        file: Arc<str>,
        /// The workflow.
        pin: Pin,
        /// The lines that differ.
        difference: Vec<String>,
    },
    /// New orders would begin with a version that was retired.
    #[error("{file}: workflow {pin} was retired: take the file out, or give it a later version")]
    Retired {
        /// The file.
        file: Arc<str>,
        /// The workflow.
        pin: Pin,
    },
    /// An agent is left out that applied workflows name.
    #[error(
        "stepwarden.toml has no table [agents.{agent}], which {pin} names: keep it. Once the last order of this version is finished, retire the version (`stepwarden workflows retire`), then leave the table out"
    )]
    AgentInUse {
        /// The agent.
        agent: Arc<str>,
        /// A version that names it.
        pin: Pin,
    },
    /// An agent has lost its service. The undo of a finished step would reach nothing.
    #[error(
        "agents.{agent} has no url any more, and {pin} uses it: its undo would reach nobody, or a stand-in. Keep the url. Once the last order of this version is finished, retire the version (`stepwarden workflows retire`), then remove the url"
    )]
    ServiceGone {
        /// The agent.
        agent: Arc<str>,
        /// A version that uses it.
        pin: Pin,
    },
    /// The memo of an agent is switched on or off.
    #[error(
        "agents.{agent} switches its memo {}, and {pin} uses it: an order under way would miss its undo, or be charged twice. Give the service a second agent, and name that one in a new version",
        if *.is_on { "on" } else { "off" }
    )]
    MemoSwitched {
        /// The agent.
        agent: Arc<str>,
        /// A version that uses it.
        pin: Pin,
        /// Whether it is on now.
        is_on: bool,
    },
    /// An applied version would come to say what none may say.
    #[error("{0}")]
    Demand(Fault),
    /// A share is given, and no version is new.
    #[error(
        "no version of this folder is new, so there is nothing to share: `stepwarden workflows choose NAME/VERSION --share` changes a share"
    )]
    NothingToShare,
}

impl Refusal {
    /// Whether only a retired version is in the way, which stays retired.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        matches!(self, Self::Retired { .. })
    }

    /// All of them, a line or more each.
    fn lines(refusals: &[Self]) -> String {
        refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

/// What is applied now.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// All versions.
    pub definitions: BTreeMap<Pin, Definition>,
    /// What new orders begin with.
    pub deployment: Option<Deployment>,
}

impl Applied {
    /// Reads it.
    ///
    /// # Errors
    /// [`PortError`] if the records cannot be read.
    pub async fn read(ports: &impl HasRecords) -> Result<Self, PortError> {
        Ok(Self { definitions: versions(ports).await?, deployment: ports.records().get(Deployment::KEY).await? })
    }
}

/// The changes that applying this folder makes.
///
/// # Errors
/// [`ApplyError`] if it is refused, or the records cannot be read.
pub async fn plan(
    ports: &(impl HasRecords + HasEnvironment),
    catalogue: &Catalogue,
    checked: &Checked,
    application: &Application,
) -> Result<Plan, ApplyError> {
    let applied = Applied::read(ports).await?;
    let environment = ports.environment();
    let random = std::array::from_fn(|_| environment.random());
    let plan = Plan::of(checked, &applied, catalogue, application, environment.now(), random);
    let plan = plan.map_err(ApplyError::Refused)?;
    // A repeat after a lost answer finds its own version, and changes nothing.
    let is_change = plan.deployment.is_some() || !plan.definitions.is_empty();
    if is_change && application.seen.is_some_and(|seen| seen != plan.seen) {
        return Err(ApplyError::Overtaken);
    }
    Ok(plan)
}

/// Applies this folder, and returns what changed. The same folder again changes nothing.
///
/// # Errors
/// [`ApplyError`]; it is safe to repeat.
pub async fn apply(
    ports: &(impl HasRecords + HasEnvironment),
    catalogue: &Catalogue,
    checked: &Checked,
    application: &Application,
) -> Result<Plan, ApplyError> {
    let plan = plan(ports, catalogue, checked, application).await?;
    write(ports, &plan).await?;
    Ok(plan)
}

/// Carries a plan out, unless something else was applied since.
async fn write(ports: &(impl HasRecords + HasEnvironment), plan: &Plan) -> Result<(), ApplyError> {
    let now = ports.environment().now();
    for definition in &plan.definitions {
        put(ports, Seen::nothing(now), definition).await?;
    }
    // The supervisor on AWS only reads it.
    if plan.deployment.as_ref().is_some_and(|deployment| !deployment.schedules.is_empty()) {
        installation(ports).await?;
    }
    match &plan.deployment {
        Some(deployment) => put(ports, Seen { version: plan.seen, at: now }, deployment).await,
        None => Ok(()),
    }
}

/// Writes a record, unless another one was written since.
async fn put<R: Record + PartialEq>(ports: &impl HasRecords, seen: Seen, record: &R) -> Result<(), ApplyError> {
    if ports.records().put(seen, record).await? == Commit::Committed {
        return Ok(());
    }
    let stored: Option<R> = ports.records().get(record.key()).await?;
    match stored {
        // A write whose answer was lost is repeated below, and conflicts with itself.
        Some(stored) if stored == *record => Ok(()),
        // A store may refuse a write that meets another one, and neither is done.
        stored if stored.as_ref().map_or(0, Record::version) == seen.version => Err(ApplyError::Busy),
        Some(_) | None => Err(ApplyError::Overtaken),
    }
}
