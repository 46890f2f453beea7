//! Reads definitions and the deployment through to the records, and caches them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Choice, Definition, Deployment, Pin};
use crate::id::OrderId;
use crate::order::Order;
use crate::ports::{Environment, HasEnvironment, HasRecords, PortError, Records};
use crate::redaction::Redaction;
use crate::task::Task;
use crate::time::Timestamp;
use crate::workflow::{StepRule, Workflow, Workflows, agent_names, agents_without_service, settles_within_ms};

/// How long the deployment is used without another look at its record, in milliseconds. What is applied reaches every
/// instance within this time.
pub const DEPLOYMENT_FRESH_MS: u64 = 5_000;

/// Workflows of orders with lines that are kept, each of up to 200 steps.
const OF_LINES_MAX: usize = 64;

/// The workflows of an instance. A version is cached for ever, the deployment for [`DEPLOYMENT_FRESH_MS`]. Cloning copies
/// a pointer.
#[derive(Debug, Clone)]
pub struct Catalogue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The workflows that are compiled in.
    compiled: Workflows,
    /// The default for `doubt_after` of the workflows, in milliseconds.
    doubt_after_ms: Option<u64>,
    /// The agents' times for calls under way that the host sets, in milliseconds.
    settles_within_ms: BTreeMap<Arc<str>, u64>,
    /// The agents to which the host gives services of its own, besides those of the deployment. `None`: it is not known.
    served: Option<BTreeSet<Arc<str>>>,
    /// What no child order is found by (rule 28).
    redaction: Redaction,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    deployment: Option<Arc<Deployment>>,
    /// When the record of the deployment was read last.
    read_at: Option<Timestamp>,
    /// As they were applied.
    definitions: BTreeMap<Pin, Arc<Workflow>>,
    /// The same with the settings of the deployment.
    workflows: BTreeMap<Pin, Arc<Workflow>>,
    /// Those of orders with lines, beside the workflow that they are made of.
    of_lines: BTreeMap<OrderId, [Arc<Workflow>; 2]>,
    named: Option<Named>,
}

/// The agents that settings name: each new order asks for them. A plan asks for those of settings that may never apply.
#[derive(Debug)]
struct Named {
    settings: Arc<str>,
    agents: Arc<[Arc<str>]>,
}

/// An order names a workflow that there is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWorkflow {
    /// The name that it gives, or the default.
    pub name: Arc<str>,
    /// The workflows that there are.
    pub known: Vec<Arc<str>>,
}

impl Catalogue {
    /// The compiled workflows, and those that the records have.
    #[must_use]
    pub fn new(compiled: Workflows) -> Self {
        Self::with(compiled, None, BTreeMap::new())
    }

    /// The same with a default for `doubt_after`, in milliseconds, and the host's settings of `settles_within` by agent, in
    /// milliseconds. If the deployment has settings of agents, the host's do not count.
    #[must_use]
    pub fn with(compiled: Workflows, doubt_after_ms: Option<u64>, settles_within_ms: BTreeMap<Arc<str>, u64>) -> Self {
        Self::serving(compiled, doubt_after_ms, settles_within_ms, None)
    }

    /// The same for a host that knows to which agents it gives services of its own (rule 22).
    #[must_use]
    pub fn serving(
        compiled: Workflows,
        doubt_after_ms: Option<u64>,
        settles_within_ms: BTreeMap<Arc<str>, u64>,
        served: Option<BTreeSet<Arc<str>>>,
    ) -> Self {
        let (redaction, cache) = (Redaction::default(), Mutex::default());
        Self(Arc::new(Inner { compiled, doubt_after_ms, settles_within_ms, served, redaction, cache }))
    }

    /// The same workflows for a host that finds orders by no member that is redacted.
    #[must_use]
    pub fn redacting(&self, redaction: Redaction) -> Self {
        let Inner { compiled, doubt_after_ms, settles_within_ms, served, redaction: _, cache: _ } = &*self.0;
        Self(Arc::new(Inner {
            compiled: compiled.clone(),
            doubt_after_ms: *doubt_after_ms,
            settles_within_ms: settles_within_ms.clone(),
            served: served.clone(),
            redaction,
            cache: Mutex::default(),
        }))
    }

    /// What no child order is found by (rule 28).
    #[must_use]
    pub fn redaction(&self) -> &Redaction {
        &self.0.redaction
    }

    /// The compiled workflows.
    #[must_use]
    pub fn compiled(&self) -> &Workflows {
        &self.0.compiled
    }

    /// The deployment that applies; `None` if none was applied. If its record cannot be read, the last one that was read
    /// is used on.
    ///
    /// # Errors
    /// [`PortError`] if it cannot be read, and never was.
    pub async fn deployment(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
    ) -> Result<Option<Arc<Deployment>>, PortError> {
        let now = ports.environment().now();
        {
            let cache = self.cache();
            let age_ms = cache.read_at.map(|at| now.epoch_ms() - at.epoch_ms());
            if age_ms.is_some_and(|age_ms| (0..DEPLOYMENT_FRESH_MS.cast_signed()).contains(&age_ms)) {
                return Ok(cache.deployment.clone());
            }
        }
        self.read_deployment(ports, now).await
    }

    /// The deployment as its record says now, for a caller that misses something in the cached one.
    ///
    /// # Errors
    /// As [`Catalogue::deployment`].
    pub async fn newest_deployment(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
    ) -> Result<Option<Arc<Deployment>>, PortError> {
        self.read_deployment(ports, ports.environment().now()).await
    }

    async fn read_deployment(
        &self,
        ports: &impl HasRecords,
        now: Timestamp,
    ) -> Result<Option<Arc<Deployment>>, PortError> {
        match ports.records().get::<Deployment>(Deployment::KEY).await {
            Ok(read) => {
                let mut cache = self.cache();
                cache.read_at = Some(now);
                // An older answer may come after a newer one.
                let is_newer =
                    read.as_ref().map(|read| read.version) > cache.deployment.as_ref().map(|has| has.version);
                if is_newer {
                    cache.deployment = read.map(Arc::new);
                    cache.workflows.clear();
                }
                Ok(cache.deployment.clone())
            }
            Err(error) => {
                let mut cache = self.cache();
                if cache.read_at.is_none() {
                    return Err(error);
                }
                cache.read_at = Some(now);
                tracing::warn!("the deployment cannot be read, and the last one is used on: {error}");
                Ok(cache.deployment.clone())
            }
        }
    }

    /// A version of a workflow; `None` if it was never applied.
    ///
    /// # Errors
    /// [`PortError`] if the records cannot be read, or the definition is of a later version of the program.
    pub async fn workflow(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
        pin: &Pin,
    ) -> Result<Option<Arc<Workflow>>, PortError> {
        let deployment = self.deployment(ports).await?;
        {
            let cache = self.cache();
            if let Some(workflow) = cache.workflows.get(pin) {
                return Ok(Some(workflow.clone()));
            }
        }
        let Some(definition) = self.definition(ports, pin).await? else { return Ok(None) };
        let workflow = Arc::new(self.adapted(&definition, deployment.as_deref()));
        let mut cache = self.cache();
        let version = |of: &Option<Arc<Deployment>>| of.as_ref().map(|of| of.version);
        if version(&cache.deployment) == version(&deployment) {
            cache.workflows.insert(pin.clone(), workflow.clone());
        }
        Ok(Some(workflow))
    }

    async fn definition(&self, ports: &impl HasRecords, pin: &Pin) -> Result<Option<Arc<Workflow>>, PortError> {
        if let Some(workflow) = self.0.compiled.get(&pin.name, pin.version) {
            return Ok(Some(workflow.clone()));
        }
        let cached = self.cache().definitions.get(pin).cloned();
        if cached.is_some() {
            return Ok(cached);
        }
        let Some(definition) = ports.records().get::<Definition>(&pin.to_string()).await? else { return Ok(None) };
        let workflow = Workflow::read(&definition.text);
        let workflow = workflow.map_err(|fault| PortError::refused("definitions.definition", fault))?;
        let workflow = Arc::new(workflow);
        self.cache().definitions.insert(pin.clone(), workflow.clone());
        Ok(Some(workflow))
    }

    /// The workflow with the settings of its host and of the deployment.
    fn adapted(&self, definition: &Workflow, deployment: Option<&Deployment>) -> Workflow {
        let mut workflow = definition.clone();
        if let (None, Some(ms)) = (workflow.supervision.doubt_after_ms, self.0.doubt_after_ms) {
            workflow.supervision.doubt_after_ms = Some(ms);
        }
        let applied = deployment.and_then(Deployment::agents).map(|settings| settles_within_ms(settings));
        let applied = applied.map(Result::unwrap_or_default);
        let times = applied.as_ref().unwrap_or(&self.0.settles_within_ms);
        for rule in &mut workflow.steps {
            rule.settles_within_ms = times.get(&rule.agent).copied().unwrap_or(rule.settles_within_ms);
        }
        workflow
    }

    /// The workflow that a new order begins with: of the name that it gives, or the default one.
    ///
    /// # Errors
    /// [`PortError`] if the records cannot be read.
    pub async fn choose(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
        name: Option<&str>,
        order_id: OrderId,
    ) -> Result<Result<Arc<Workflow>, UnknownWorkflow>, PortError> {
        let mut deployment = self.deployment(ports).await?;
        let mut pin = self.pin_of(deployment.as_deref(), name, order_id);
        if pin.is_none() {
            // It may have been applied a moment ago.
            deployment = self.newest_deployment(ports).await?;
            pin = self.pin_of(deployment.as_deref(), name, order_id);
        }
        let found = match pin {
            Some(pin) => self.workflow(ports, &pin).await?,
            None => None,
        };
        let deployment = deployment.as_deref();
        Ok(found.ok_or_else(|| UnknownWorkflow {
            name: name.map_or_else(|| self.default_name(deployment), Arc::from),
            known: self.names(deployment),
        }))
    }

    /// The workflow of a task, with a step for each of its lines; `None` if it was never applied.
    ///
    /// # Errors
    /// As [`Catalogue::workflow`].
    pub async fn of_task(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
        task: &Task,
    ) -> Result<Option<Arc<Workflow>>, PortError> {
        let found = self.workflow(ports, &task.pin()).await?;
        Ok(found.map(|workflow| if workflow.has_lines() { self.of_lines(workflow, task) } else { workflow }))
    }

    /// The elements of an order never change, and each of its results asks for its workflow.
    fn of_lines(&self, workflow: Arc<Workflow>, task: &Task) -> Arc<Workflow> {
        let (order_id, cache) = (task.order_id, &mut self.cache().of_lines);
        if let Some([of, own]) = cache.get(&order_id)
            && Arc::ptr_eq(of, &workflow)
        {
            return own.clone();
        }
        let own = workflow.of_steps(task.steps.iter().map(|step| &*step.name));
        while cache.len() >= OF_LINES_MAX {
            cache.pop_first();
        }
        cache.insert(order_id, [workflow, own.clone()]);
        own
    }

    /// The workflow of an accepted order: the one that it is pinned to, or the compiled one.
    ///
    /// # Errors
    /// [`PortError`] if the records cannot be read, or do not have it.
    pub async fn of_order(
        &self,
        ports: &(impl HasRecords + HasEnvironment),
        order: &Order,
    ) -> Result<Arc<Workflow>, PortError> {
        let pin = order.workflow.clone().unwrap_or_else(|| self.0.compiled.current().pin());
        let found = self.workflow(ports, &pin).await?;
        found.ok_or_else(|| PortError::refused("definitions.definition", format!("there is no workflow {pin}")))
    }

    /// The versions that were chosen for new orders of a workflow; `None` if there is no such workflow. A compiled version
    /// need not be chosen.
    #[must_use]
    pub fn choice(&self, deployment: Option<&Deployment>, name: &str) -> Option<Choice> {
        let applied = deployment.and_then(|deployment| deployment.workflows.get(name).copied());
        applied.or_else(|| Some(Choice::all(self.0.compiled.newest(name)?.version)))
    }

    /// The same, if any of these versions takes new orders.
    #[must_use]
    pub fn taken(&self, deployment: Option<&Deployment>, name: &str) -> Option<Choice> {
        let choice = self.choice(deployment, name)?;
        choice.versions().any(|version| self.unserved(deployment, name, version).is_none()).then_some(choice)
    }

    /// The first agent without a service of a compiled version. Its new orders would only wait, so it takes none.
    #[must_use]
    pub fn unserved(&self, deployment: Option<&Deployment>, name: &str, version: u32) -> Option<&Arc<str>> {
        let compiled = self.0.compiled.get(name, version)?;
        self.without_service(deployment, compiled.steps.iter().filter_map(StepRule::service))
    }

    /// The first of these agents that has no service, as far as the host knows.
    pub fn without_service<'a>(
        &self,
        deployment: Option<&Deployment>,
        mut agents: impl Iterator<Item = &'a Arc<str>>,
    ) -> Option<&'a Arc<str>> {
        let (served, named) = (self.0.served.as_ref()?, self.named(deployment?));
        agents.find(|agent| !named.is_empty() && !served.contains(*agent) && !named.contains(agent))
    }

    /// The agents that its settings name.
    fn named(&self, deployment: &Deployment) -> Arc<[Arc<str>]> {
        let mut cache = self.cache();
        if let Some(Named { settings, agents }) = &cache.named
            && (Arc::ptr_eq(settings, &deployment.settings) || *settings == deployment.settings)
        {
            return agents.clone();
        }
        let agents: Arc<[Arc<str>]> = agent_names(&deployment.settings).into();
        cache.named = Some(Named { settings: deployment.settings.clone(), agents: agents.clone() });
        agents
    }

    /// Whether stand-ins play an agent, if there are any, as far as the host knows and by the deployment that was read
    /// last. It asks no store.
    #[must_use]
    pub fn has_played(&self) -> bool {
        let Some(served) = &self.0.served else { return true };
        let deployment = self.cache().deployment.clone();
        let mut played = match deployment.as_deref().and_then(Deployment::agents) {
            Some(settings) => agents_without_service(settings),
            None => self.0.compiled.agents(),
        };
        played.retain(|agent| !served.contains(agent));
        !played.is_empty()
    }

    /// The names of the workflows that an order may name, sorted.
    #[must_use]
    pub fn names(&self, deployment: Option<&Deployment>) -> Vec<Arc<str>> {
        let applied = deployment.into_iter().flat_map(|deployment| deployment.workflows.keys().cloned());
        let compiled = self.0.compiled.all().map(|workflow| workflow.name.clone());
        let mut names: Vec<Arc<str>> = applied.chain(compiled).collect();
        names.sort();
        names.dedup();
        names.retain(|name| self.taken(deployment, name).is_some());
        names
    }

    /// The workflow of orders that name none.
    #[must_use]
    pub fn default_name(&self, deployment: Option<&Deployment>) -> Arc<str> {
        deployment.map_or_else(|| self.0.compiled.current().name.clone(), |deployment| deployment.default.clone())
    }

    /// The version that an order of this id begins with: of the workflow that it names, or of the default one. `None`: there
    /// is none that takes new orders.
    #[must_use]
    pub fn pin_of(&self, deployment: Option<&Deployment>, name: Option<&str>, order_id: OrderId) -> Option<Pin> {
        let name = name.map_or_else(|| self.default_name(deployment), Arc::from);
        let version = self.choice(deployment, &name)?.of(order_id);
        self.unserved(deployment, &name, version).is_none().then_some(Pin { name, version })
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
