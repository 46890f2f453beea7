//! A folder made ready for worlds: its workflows, the settings of its agents, its services and its orders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::Policy;
use api::ApiConfig;
use bytes::Bytes;
use config::{AgentSettings, Checked, Faults, Folder as Checker, Operations, Settings};
use domain::definition::Pin;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::time::Timestamp;
use domain::workflow::{StepRule, Workflow, WorkflowError, Workflows};
use rehearsal::described::{Said, Words};
use rehearsal::description::{Description, SHARE_MAX, Service};
use rehearsal::shape::{Shape, Version};
use rehearsal::state::EPOCH_MS;
use rehearsal::wire::url_of;
use serde_json::Value;
use toml::Table;

use crate::edit::Files;
use crate::orders::{Lines, large, varied};
use crate::wishes::{pointer, wishes};
use crate::words::{Texts, spoken};

/// The share of the calls that a service takes on, where the workflow awaits a later result and nothing is said, in
/// millionths.
const LATER_SHARE: u32 = 700_000;

/// Why a folder cannot be rehearsed.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It has faults.
    #[error(transparent)]
    Faults(#[from] Faults),
    /// Its workflows do not go together.
    #[error(transparent)]
    Workflows(#[from] WorkflowError),
    /// It has no workflow.
    #[error("the folder has no workflow: add one in workflows/")]
    Empty,
    /// What is said of the services fits nothing.
    #[error("rehearsal.toml: {0}")]
    Description(String),
    /// No order can be posted.
    #[error("no order can be posted: {0}")]
    Orders(String),
}

/// What is given.
#[derive(Debug, Clone)]
pub struct Given {
    /// The files of the folder.
    pub files: Files,
    /// The services.
    pub description: Description,
    /// The orders.
    pub orders: Vec<Value>,
}

/// A folder that is ready.
#[derive(Debug)]
pub struct Folder {
    /// What was given.
    pub given: Given,
    /// The folder without faults.
    pub checked: Checked,
    /// Its agents and workflows.
    pub shape: Arc<Shape>,
    /// The settings of the agents, with the URLs of the world.
    pub(crate) settings: Arc<str>,
    /// By agent.
    pub(crate) agents: Vec<Agent>,
    /// The documents that are posted.
    pub documents: Vec<Arc<str>>,
    /// Documents with as many lines as an order may have (rule 50).
    pub(crate) large: Vec<Arc<str>>,
    /// The most lines of an order that was given, and of any.
    pub(crate) lines_max: [usize; 2],
    /// The documents that the API refuses, and why.
    pub refused: Vec<(Arc<str>, String)>,
    /// What could not be made as it should be.
    pub problems: Vec<String>,
}

/// An agent and its service.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) policy: Policy,
    pub(crate) settles_within_ms: u64,
    pub(crate) service: Service,
    /// What the service says, by step. One of them is drawn for each world.
    pub(crate) words: Vec<Arc<BTreeMap<Arc<str>, [Words; 2]>>>,
}

impl Given {
    /// Makes the folder ready.
    ///
    /// # Errors
    /// [`NotReady`]
    pub fn ready(self) -> Result<Folder, NotReady> {
        let checked = Checker::check(&self.files)?;
        if checked.workflows.is_empty() {
            return Err(NotReady::Empty);
        }
        let tables: Vec<Table> = checked.workflows.iter().filter_map(|one| one.text.parse().ok()).collect();
        let names = agents_of(&checked);
        let shape = Arc::new(shape(&checked, &names)?);
        let mut problems = Vec::new();
        let deployment: Table = checked.deployment_text.parse().unwrap_or_default();
        let agents = names
            .iter()
            .map(|name| agent(name, &self.description, &checked, &shape, &tables, &deployment, &mut problems))
            .collect();
        let settings = settings(&deployment, &names);
        let lines: Vec<Lines> = tables.iter().filter_map(Lines::of).collect();
        let (documents, refused) = accepted(varied(&self.orders, &tables, &lines), &checked, &shape);
        let (large, _) = accepted(large(&self.orders, &lines), &checked, &shape);
        let counts = self.orders.iter().flat_map(|order| lines.iter().map(|lines| lines.count(order)));
        let lines_max = [counts.max().unwrap_or(0), lines.iter().map(|lines| lines.most).max().unwrap_or(0)];
        if documents.is_empty() {
            let why = refused.first().map_or_else(|| "there is none".to_owned(), |(_, why)| why.clone());
            return Err(NotReady::Orders(why));
        }
        let unknown = unknown_answers(&self.description, &checked, &shape);
        if !unknown.is_empty() {
            return Err(NotReady::Description(unknown.join("; ")));
        }
        problems.sort();
        problems.dedup();
        Ok(Folder { given: self, checked, shape, settings, agents, documents, large, lines_max, refused, problems })
    }
}

impl Folder {
    /// The file of a workflow.
    #[must_use]
    pub fn file_of(&self, pin: &Pin) -> Option<&Arc<str>> {
        self.checked.workflows.iter().find(|one| one.workflow.pin() == *pin).map(|one| &one.file)
    }

    /// The settings of an agent.
    #[must_use]
    pub fn settings_of(&self, agent: &str) -> AgentSettings {
        self.checked.settings.of(agent).cloned().unwrap_or_default()
    }

    /// The body of the answer that carries a step out.
    pub(crate) fn answer_to(&self, rule: &StepRule) -> Option<Value> {
        let agent = self.agents.get(self.shape.place_of(rule.service()?)?)?;
        let [forward, _] = agent.words.first()?.get(&rule.name)?;
        serde_json::from_str(&forward.done.body).ok()
    }

    /// Whether a step of this name says what a rejection means.
    pub(crate) fn says_on_rejected(&self, step: &str) -> bool {
        let is_said = |text: &Arc<str>| {
            let table: Option<Table> = text.parse().ok();
            let steps = table.and_then(|mut table| table.remove("step"));
            let steps = steps.as_ref().and_then(toml::Value::as_array).into_iter().flatten();
            let mut own = steps.filter(|of| of.get("name").and_then(toml::Value::as_str) == Some(step));
            own.any(|step| step.get("on_rejected").is_some())
        };
        self.checked.workflows.iter().any(|one| is_said(&one.text))
    }

    /// What is said of the service of an agent.
    #[must_use]
    pub fn service_of(&self, agent: &str) -> Option<&Service> {
        Some(&self.agents.get(self.shape.place_of(agent)?)?.service)
    }
}

/// What is said of agents, operations and latencies that there cannot be.
fn unknown_answers(description: &Description, checked: &Checked, shape: &Shape) -> Vec<String> {
    let mut faults = Vec::new();
    for agent in description.agents() {
        let known = shape.agents.iter().map(|name| &**name).collect::<Vec<_>>();
        if !known.contains(&agent) {
            faults.push(format!("services.{agent}: no step has the agent {agent}. Agents: {}", known.join(", ")));
            continue;
        }
        let service = description.of(agent);
        let [half, most, max] = service.latency_ms;
        if half > most || most > max {
            faults.push(format!("services.{agent}.latency: p50 is at most p99, and p99 at most max"));
        }
        let settings = checked.settings.of(agent).cloned().unwrap_or_default();
        let Operations { forward, undo } = settings.operations(Operations::usual(agent));
        let mut names: Vec<String> =
            ["forward", "undo", "rejected", forward, undo].into_iter().map(ToOwned::to_owned).collect();
        for step in &shape.steps {
            names.extend([step.to_string(), format!("{step}/undo"), format!("{step}/rejected")]);
        }
        let others = service.answers.keys().filter(|name| !names.iter().any(|known| **known == ***name));
        faults.extend(others.map(|name| {
            format!("services.{agent}.answers.{name} is no step, no operation and none of forward, undo and rejected")
        }));
    }
    faults
}

/// The agents of all steps, with those that may be asked instead.
fn agents_of(checked: &Checked) -> Vec<Arc<str>> {
    let steps = checked.workflows.iter().flat_map(|one| &one.workflow.steps);
    let mut names: BTreeSet<Arc<str>> = steps.filter_map(|rule| rule.service()).cloned().collect();
    let others = names.iter().filter_map(|name| checked.settings.of(name)).flat_map(|of| of.policy.fallback.clone());
    names.extend(others.collect::<Vec<_>>());
    names.into_iter().collect()
}

fn shape(checked: &Checked, agents: &[Arc<str>]) -> Result<Shape, NotReady> {
    let newest = checked.workflows.iter().max_by_key(|one| one.workflow.version);
    let default = checked.default.clone().or_else(|| Some(newest?.workflow.name.clone())).unwrap_or_default();
    let mut texts: Vec<&str> = checked.workflows.iter().map(|one| &*one.text).collect();
    if !checked.workflows.iter().any(|one| one.workflow.name == default) {
        texts.extend(Workflows::shipped_text(&Pin { name: default.clone(), version: 1 }));
    }
    let known: Vec<&str> = agents.iter().map(|name| &**name).chain(Workflows::SHIPPED_AGENTS).collect();
    let workflows = Workflows::parse(&texts, &default, &known)?;
    let one = workflows.current().clone();
    let others = workflows.all().filter(|workflow| workflow.pin() != one.pin()).cloned();
    let applied = others.map(|workflow| Version { text: "".into(), workflow }).collect();
    let mut steps: Vec<Arc<str>> = Vec::new();
    for rule in workflows.all().flat_map(|workflow| &workflow.steps) {
        if !steps.contains(&rule.name) {
            steps.push(rule.name.clone());
        }
    }
    Ok(Shape {
        agents: agents.to_vec(),
        steps,
        first: workflows.clone(),
        both: workflows,
        two: one.clone(),
        one,
        applied,
        short_horizon: false,
    })
}

/// The settings of the agents: each service is in the world, on no queue of its own, and needs no certificate.
fn settings(deployment: &Table, names: &[Arc<str>]) -> Arc<str> {
    let mut agents = Table::new();
    for (place, name) in names.iter().enumerate() {
        let own = deployment.get("agents").and_then(|agents| agents.get(&**name)?.as_table());
        let mut table = own.cloned().unwrap_or_default();
        for key in ["tls", "queue", "allow_http"] {
            table.remove(key);
        }
        table.insert("url".to_owned(), url_of(place).into());
        agents.insert(name.to_string(), table.into());
    }
    Table::from_iter([("agents".to_owned(), toml::Value::Table(agents))]).to_string().into()
}

fn agent(
    name: &Arc<str>,
    description: &Description,
    checked: &Checked,
    shape: &Shape,
    workflows: &[Table],
    deployment: &Table,
    problems: &mut Vec<String>,
) -> Agent {
    let settings = checked.settings.of(name).cloned().unwrap_or_default();
    let mut service = description.of(name);
    let own = deployment.get("agents").and_then(|agents| agents.get(&**name)?.as_table());
    let mut words = vec![BTreeMap::new(), BTreeMap::new()];
    let mut awaited_ms = Vec::new();
    for workflow in shape.versions() {
        for rule in &workflow.steps {
            let is_asked = rule.service() == Some(name) || is_fallback(name, rule.service(), &checked.settings);
            let Some(step) = table_of(workflows, workflow, &rule.name).filter(|_| is_asked) else { continue };
            awaited_ms.extend(rule.waits.within_ms);
            for (variant, words) in words.iter_mut().enumerate() {
                let wanted = wanted(workflows, &rule.name, variant);
                let spoken = spoken(
                    name,
                    &service,
                    &settings,
                    rule,
                    &Texts {
                        step,
                        agent: own,
                        has_code: !description.says_nothing_of(name, "rejects.code"),
                        is_variant: variant > 0,
                        wanted: &wanted,
                    },
                );
                problems.extend(spoken.problem);
                // A provider of events sends them until they are taken.
                if spoken.is_always_later && description.says_nothing_of(name, "later") {
                    (service.later.share, service.later.lost) = (SHARE_MAX, 0);
                }
                let mut of_step = spoken.words;
                of_step[0].may_come_later = rule.waits.within_ms.is_some();
                if let Some(earlier) = words.get(&rule.name) {
                    with_members(&mut of_step, earlier);
                }
                words.insert(rule.name.clone(), of_step);
            }
        }
    }
    // A result that is awaited comes later in most cases, in good time.
    if let Some(shortest_ms) = awaited_ms.iter().copied().min()
        && description.says_nothing_of(name, "later")
    {
        service.later.share = service.later.share.max(LATER_SHARE);
        service.later.within_ms = shortest_ms / 2;
    }
    // Nothing is awaited, and it says 202 all the same.
    if awaited_ms.is_empty() {
        words.iter_mut().flat_map(BTreeMap::values_mut).for_each(|[forward, _]| forward.may_come_later = true);
    }
    words.dedup();
    let words = words.into_iter().map(Arc::new).collect();
    let settles_within_ms = checked.settings.of(name).map_or(SETTLES_WITHIN_MS_DEFAULT, |of| of.settles_within_ms);
    Agent { policy: settings.policy, settles_within_ms, service, words }
}

/// A step of the same name in another workflow, or version, finds what it names too.
fn with_members(words: &mut [Words; 2], earlier: &[Words; 2]) {
    let merge = |said: &mut Said, of: &Said| {
        let [mine, others] = [&*said.body, &*of.body].map(|text| serde_json::from_str::<Value>(text).ok());
        if let (Some(Value::Object(mut mine)), Some(Value::Object(others))) = (mine, others) {
            others.into_iter().for_each(|(name, value)| {
                mine.entry(name).or_insert(value);
            });
            said.body = Value::Object(mine).to_string().into();
        }
    };
    for (words, of) in words.iter_mut().zip(earlier) {
        merge(&mut words.done, &of.done);
        merge(&mut words.taken_on, &of.taken_on);
        merge(&mut words.found, &of.found);
    }
}

fn is_fallback(name: &Arc<str>, of: Option<&Arc<str>>, settings: &Settings) -> bool {
    of.and_then(|of| settings.of(of)).is_some_and(|settings| settings.policy.fallback.contains(name))
}

/// The table of a step.
fn table_of<'t>(workflows: &'t [Table], of: &Workflow, step: &str) -> Option<&'t Table> {
    fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
        table.get(key).and_then(toml::Value::as_str)
    }
    let is_it = |table: &&Table| {
        let version = table.get("version").and_then(toml::Value::as_integer);
        text(table, "name") == Some(&*of.name) && version == Some(of.version.into())
    };
    let steps = workflows.iter().find(is_it)?.get("step")?.as_array()?;
    steps.iter().filter_map(toml::Value::as_table).find(|table| text(table, "name") == Some(step))
}

/// The values of a step's output that conditions and expressions of later steps look at.
fn wanted(workflows: &[Table], step: &str, variant: usize) -> Vec<(Vec<String>, Value)> {
    let mut texts = Vec::new();
    for table in workflows.iter().filter_map(|workflow| workflow.get("step")) {
        expressions(table, &mut texts);
    }
    let of_step = |wish: crate::wishes::Wish| {
        let [root, of, rest @ ..] = &*wish.names else { return None };
        let is_it = root == "Outputs" && of == step && !rest.is_empty();
        let value = wish.values.get(variant).or(wish.values.first()).cloned()?;
        is_it.then(|| (rest.to_vec(), value))
    };
    texts.iter().flat_map(|text| wishes(text)).filter_map(of_step).collect()
}

/// The texts that are computed: comparisons, and what begins with `=`.
fn expressions(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => {
            let is_pointer = pointer(text).is_some() && !text.contains(' ');
            if text.contains('{') {
                let places = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
                found.extend(places.map(|(place, _)| place.to_owned()).filter(|place| place.starts_with('=')));
            } else if text.contains("/Outputs/") && !is_pointer {
                found.push(text.clone());
            }
        }
        toml::Value::Array(elements) => elements.iter().for_each(|element| expressions(element, found)),
        toml::Value::Table(members) => members.values().for_each(|member| expressions(member, found)),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) | toml::Value::Datetime(_) => {}
    }
}

type Taken = (Vec<Arc<str>>, Vec<(Arc<str>, String)>);

/// The documents that the API takes, and the others with the reason.
fn accepted(documents: Vec<Arc<str>>, checked: &Checked, shape: &Shape) -> Taken {
    let channels = ApiConfig::new(checked.reply_channels.keys().cloned());
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for document in documents {
        let body = Bytes::from(document.to_string());
        let choose = |named: Option<&str>| {
            let found = match named {
                Some(name) => shape.first.newest(name),
                None => Some(&shape.one),
            };
            found.cloned().ok_or_else(|| domain::definition::UnknownWorkflow {
                name: named.unwrap_or_default().into(),
                known: shape.versions().map(|workflow| workflow.name.clone()).collect(),
            })
        };
        match api::preview(&channels, &body, Timestamp::from_epoch_ms(EPOCH_MS), choose) {
            Ok(_) => taken.push(document),
            Err(problem) => {
                let problem: Value = serde_json::from_slice(&problem).unwrap_or_default();
                let words = problem["detail"].as_str().or(problem["title"].as_str()).unwrap_or("refused");
                refused.push((document, words.to_owned()));
            }
        }
    }
    (taken, refused)
}
