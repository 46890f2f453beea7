//! `stepwarden probe`: whether the services of a folder keep what is assumed of them, by real calls.
//!
//! The agents' own code makes the calls and reads the answers (`caller`), and the state machine's own code makes the requests
//! (`trial`). `plan` says before how many there are at most, `series` makes them, `judge` says what the answers mean by what
//! they have in common (`marks`), and `propose` makes settings of it.
//!
//! Never here: a call that was not announced, an order in a store.

mod caller;
mod judge;
mod limit;
mod marks;
mod plan;
mod propose;
mod series;
mod shown;
#[cfg(test)]
mod tests;
mod trial;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agents::{HttpClients, Variable, http_service, machine_secrets};
use bytes::Bytes;
use config::auth::Scheme;
use config::{AgentSettings, Checked, DEPLOYMENT_FILE};
use domain::id::OrderId;
use domain::json::Json;
use domain::machine::{Foreseen, Preview};
use domain::order::Order;
use domain::workflow::{Method, StepRule, Workflow};
use local::folder::{self, REHEARSAL_FILE};
use local::terminal::tell;
use rehearsal::description::Description;
use serde_json::Value;

use super::check::or_told;
use super::context::{Terminal, print, random};
use super::dialogue::{note, yes};
use super::error::CommandError;
use super::submit;
use super::try_order::Folder;
use crate::args::{Format, ProbeArgs};
use crate::exit::Exit;
use crate::remote::clock;
use caller::Caller;
use plan::Subject;
use propose::Known;
use series::Series;
use shown::{Called, Probed};

/// So many ways are tried to change the order, so that another body is sent.
const CHANGES_MAX: usize = 12;

/// Who asks, and how it is answered.
pub(super) struct Asking {
    pub(super) format: Format,
    /// Whether the answer is yes.
    pub(super) yes: bool,
    pub(super) terminal: Terminal,
    pub(super) variable: Variable,
}

/// `stepwarden probe DIR [AGENT…] --order FILE`.
pub(super) async fn run(args: &ProbeArgs, asking: Asking) -> Result<Exit, CommandError> {
    let checked = match or_told(folder::check(&args.folder), &args.folder)? {
        Ok(checked) => checked,
        Err(exit) => return Ok(exit),
    };
    let written = written_to(args)?;
    let (_, body) = submit::read(Some(&args.order), false)?;
    let probe = Probe::of(&checked, &body.into(), args, asking.variable)?;
    let called = probe.called()?;
    let announced = shown::announced(&called);
    if args.dry_run {
        return print(&announced);
    }
    let caller = probe.caller(&called, asking.variable).await?;
    tell(announced.trim_end());
    if !may_call(&asking)? {
        return Ok(Exit::Usage);
    }
    let files = folder::read(&args.folder).map_err(|error| CommandError::usage(error.to_string()))?;
    let (probed, description) = probe.made(&caller, &files).await?;
    let rehearsal = description.to_string();
    print(&match asking.format {
        Format::Json => shown::json(&probed, &called, &rehearsal),
        Format::Table => shown::text(&probed, if written.is_some() { "" } else { &rehearsal }),
    })?;
    if let Some(path) = written.filter(|_| !rehearsal.is_empty()) {
        fs::write(&path, with_others(&path, &description).as_ref().unwrap_or(&rehearsal))?;
        let folder = args.folder.display();
        note(&format!("{} is written, for stepwarden rehearse {folder}", path.display()));
    }
    Ok(match probed.iter().any(Probed::is_broken) {
        true => Exit::Otherwise,
        false if probed.iter().any(|one| one.unseen.is_some()) => Exit::Usage,
        false => Exit::Fine,
    })
}

/// The same with what the file says of agents that were not probed.
fn with_others(path: &Path, probed: &Description) -> Option<String> {
    let mut all = Description::parse(&fs::read_to_string(path).ok()?).ok()?;
    probed.agents().for_each(|agent| all.set(agent, probed.of(agent)));
    Some(all.to_string())
}

/// Where the description goes, if it is written. No call is made for one that would be lost.
fn written_to(args: &ProbeArgs) -> Result<Option<PathBuf>, CommandError> {
    let path = args.folder.join(REHEARSAL_FILE);
    match path.symlink_metadata().is_ok() && args.write && !args.force {
        true => Err(CommandError::usage(format!("{} is there: --force overwrites it", path.display()))),
        false => Ok(args.write.then_some(path)),
    }
}

fn may_call(asking: &Asking) -> Result<bool, CommandError> {
    if asking.yes {
        return Ok(true);
    }
    if !asking.terminal.stdin || !asking.terminal.stderr {
        return Err(CommandError::usage("no call was made: there is no terminal for a confirmation: give --yes"));
    }
    let may = yes("Make these calls?", &mut io::stdin().lock(), &mut io::stderr())
        .map_err(|error| CommandError::usage(format!("the confirmation could not be read: {error}")))?;
    if !may {
        note("no call was made");
    }
    Ok(may)
}

/// What is probed.
struct Probe<'a> {
    folder: Folder<'a>,
    order: Order,
    workflow: Arc<Workflow>,
    subjects: Vec<Subject>,
    /// The order with one member changed, in several ways. Each is an order of the same workflow.
    changed: Vec<Json>,
}

impl<'a> Probe<'a> {
    /// # Errors
    /// [`CommandError`] if the order is refused, or an agent cannot be probed.
    fn of(checked: &'a Checked, body: &Bytes, args: &ProbeArgs, variable: Variable) -> Result<Self, CommandError> {
        let folder = Folder::new(checked, variable);
        let named = args.workflow.as_deref();
        let (order, workflow) = folder.accepted(body, named)?.map_err(|problem| {
            CommandError::usage(format!("the order is refused: {}: {}", problem.title, problem.detail))
        })?;
        let mut changed = Vec::new();
        for document in changes(body) {
            let document = document.into();
            if let Ok((other, of)) = folder.accepted(&document, named)?
                && of.pin() == workflow.pin()
            {
                changed.push(other.document);
            }
        }
        let mut probe = Self { folder, order, workflow, subjects: Vec::new(), changed };
        probe.subjects = probe.subjects(args)?;
        Ok(probe)
    }

    /// The steps that are probed: those that are named, or the first of each agent, if it can be one with an undo.
    fn subjects(&self, args: &ProbeArgs) -> Result<Vec<Subject>, CommandError> {
        let mut preview = Preview::new(&self.order, &self.workflow);
        let in_turn = preview.in_turn();
        let rule = |index: usize| &self.workflow.steps[index];
        let mut may_be = |index: usize| {
            let is_call = rule(index).service().is_some() && rule(index).forward.method != Method::Get;
            is_call
                && !self.folder.settings(&rule(index).agent).has_own_queue
                && !matches!(preview.foresee(index), Foreseen::Never(_))
        };
        let (probed, unprobed): (Vec<usize>, Vec<usize>) = in_turn.into_iter().partition(|&index| may_be(index));
        let chosen: Vec<usize> = if args.steps.is_empty() {
            let mut agents: Vec<&Arc<str>> = Vec::new();
            for &index in &probed {
                let agent = &rule(index).agent;
                let is_named = args.agents.is_empty() || args.agents.iter().any(|name| **name == **agent);
                if is_named && !agents.contains(&agent) {
                    agents.push(agent);
                }
            }
            let first = |agent: &Arc<str>| {
                let of_agent = || probed.iter().copied().filter(|&index| rule(index).agent == *agent);
                of_agent().find(|&index| !rule(index).no_undo).or_else(|| of_agent().next())
            };
            agents.into_iter().filter_map(first).collect()
        } else {
            probed.iter().copied().filter(|&index| args.steps.iter().any(|step| **step == *rule(index).name)).collect()
        };
        let is_missing_step = |step: &&String| !chosen.iter().any(|&index| *rule(index).name == ***step);
        let is_missing_agent = |agent: &&String| !chosen.iter().any(|&index| *rule(index).agent == ***agent);
        let missing = args.steps.iter().find(is_missing_step).or_else(|| args.agents.iter().find(is_missing_agent));
        if let Some(missing) = missing {
            let known: Vec<String> =
                probed.iter().map(|&index| format!("{} ({})", rule(index).name, rule(index).agent)).collect();
            let why = "is no step, or agent of a step, that this order calls over HTTP with an effect";
            return Err(CommandError::usage(format!("{missing} {why}. These are: {}", known.join(", "))));
        }
        if chosen.is_empty() {
            return Err(CommandError::usage("this order calls no service over HTTP with an effect"));
        }
        let left: Vec<&str> = unprobed
            .iter()
            .map(|&index| rule(index))
            .filter(|rule| rule.service().is_some())
            .map(|it| &*it.name)
            .collect();
        if !left.is_empty() && args.agents.is_empty() && args.steps.is_empty() {
            note(&format!(
                "not probed, as they only read, have a queue of their own, or do not run: {}",
                left.join(", ")
            ));
        }
        Ok(chosen.into_iter().map(|index| Subject::of(&self.workflow, index, self.has_proof(index))).collect())
    }

    fn has_proof(&self, index: usize) -> bool {
        let auth = self.folder.settings(&self.workflow.steps[index].agent).auth;
        auth.scheme.is_some() || auth.signature.is_some() || !auth.headers.is_empty()
    }

    /// The services that are called.
    ///
    /// # Errors
    /// [`CommandError`] if one has no URL.
    fn called(&self) -> Result<Vec<Called>, CommandError> {
        let counts = plan::counts(&self.workflow, &self.subjects);
        let called = counts.into_iter().map(|(agent, counts)| {
            let settings = self.folder.settings(&agent);
            if settings.has_own_queue {
                let why = "has a queue of its own, and comes before a step that is probed";
                return Err(CommandError::usage(format!("agent {agent} {why}")));
            }
            let Some(url) = self.url(&agent, &settings) else {
                return Err(CommandError::usage(format!("agent {agent} has no url: give it in {DEPLOYMENT_FILE}")));
            };
            let probed: Vec<Arc<str>> =
                self.subjects.iter().filter(|it| it.agent == agent).map(|it| it.step.clone()).collect();
            let is_before = |rule: &&StepRule| rule.agent == agent;
            let mut before = Vec::new();
            for rule in self.subjects.iter().flat_map(|it| plan::before(&self.workflow, it.index)).filter(is_before) {
                if !before.contains(&rule.name) {
                    before.push(rule.name.clone());
                }
            }
            let token_url = match &settings.auth.scheme {
                Some(Scheme::OAuth2 { settings, .. }) => Some(settings.url.to_string()),
                Some(Scheme::Basic { .. } | Scheme::Bearer { .. } | Scheme::SigV4 { .. }) | None => None,
            };
            let is_of_step = |rule: &&StepRule| probed.contains(&rule.name) || before.contains(&rule.name);
            let is_told_later = settings.policy.memo.is_none()
                && self.workflow.steps.iter().filter(is_of_step).any(|rule| rule.waits.within_ms.is_some());
            Ok(Called { agent, url, token_url, counts, is_told_later, steps: [probed, before] })
        });
        called.collect()
    }

    fn url(&self, agent: &str, settings: &AgentSettings) -> Option<String> {
        settings.url().map(str::to_owned).or_else(|| self.folder.url_of_variable(agent))
    }

    /// What calls these services, with their secrets.
    ///
    /// # Errors
    /// [`CommandError`] if a secret cannot be read.
    async fn caller(&self, called: &[Called], variable: Variable) -> Result<Caller, CommandError> {
        let clients = HttpClients::new();
        let resolver = machine_secrets(variable, clock::now, &clients);
        let served: Vec<&str> = called.iter().map(|called| &*called.agent).collect();
        let text = &self.folder.checked.deployment_text;
        let settings = agents::Settings::read(DEPLOYMENT_FILE, text, &served, &resolver, &clients).await;
        let settings = settings.map_err(|faults| CommandError::usage(faults.to_string()))?;
        let mut caller = Caller::new();
        for Called { agent, url, counts, .. } in called {
            let of_agent = settings.of(agent).cloned().unwrap_or_default();
            let http = http_service(agent, url, of_agent.clone(), &clients);
            let http = http.map_err(|fault| CommandError::usage(format!("agent {agent}: {fault}")))?;
            caller.allow(agent, http, &of_agent, *counts);
        }
        Ok(caller)
    }

    /// Makes the calls, and says what came of them.
    async fn made(
        &self,
        caller: &Caller,
        files: &[(String, String)],
    ) -> Result<(Vec<Probed>, Description), CommandError> {
        // Without random numbers no key would be new.
        random()?;
        let mut probed = Vec::new();
        let mut description = Description::default();
        for subject in &self.subjects {
            let orders = Mutex::new(Vec::new());
            let new_id = |step: &str| {
                let order_id = new_id();
                note(&format!("probing {step} by order {order_id}"));
                orders.lock().unwrap_or_else(PoisonError::into_inner).push(order_id);
                order_id
            };
            let (workflow, order) = (&*self.workflow, &self.order);
            let series = Series { caller, workflow, subject, order, changed: &self.changed, new_id: &new_id };
            let observed = series.run().await;
            let mut one = Probed {
                agent: subject.agent.clone(),
                step: subject.step.clone(),
                unseen: observed.as_ref().err().cloned(),
                findings: Vec::new(),
                orders: orders.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                said: caller.said(&subject.agent),
                settings: Vec::new(),
            };
            if let Ok(observed) = &observed {
                let settings = self.folder.settings(&subject.agent);
                one.findings = judge::findings(observed, settings.policy.memo.is_some(), subject.is_only);
                let is_waiting = |rule: &StepRule| rule.agent == subject.agent && rule.waits.within_ms.is_some();
                let known = Known {
                    agent: &subject.agent,
                    settings: &settings,
                    waits: workflow.steps.iter().any(is_waiting),
                    observed,
                    findings: &one.findings,
                    said: &one.said,
                };
                let lines = known.lines(files);
                description.set(&subject.agent, known.described());
                one.settings = lines;
            }
            probed.push(one);
        }
        Ok((probed, description))
    }
}

/// An id that no other order has.
fn new_id() -> OrderId {
    let random = random().unwrap_or_default();
    let half = |range| random.get(range).and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or_default();
    OrderId::generate(clock::now(), [half(0..16), half(16..32)])
}

/// The document with one value changed: numbers first, then the longest texts.
fn changes(document: &[u8]) -> Vec<String> {
    fn places(found: &mut Vec<(usize, String)>, place: &str, value: &Value) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(found, &format!("{place}/{name}"), value);
            }),
            Value::Array(elements) => {
                elements.iter().enumerate().for_each(|(at, value)| places(found, &format!("{place}/{at}"), value));
            }
            Value::Number(_) => found.push((usize::MAX, place.to_owned())),
            Value::String(text) => found.push((text.len(), place.to_owned())),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let Ok(whole) = serde_json::from_slice::<Value>(document) else { return Vec::new() };
    let mut found = Vec::new();
    places(&mut found, "", &whole);
    found.sort_by_key(|(length, _)| usize::MAX - length);
    let changed = |(_, place): (usize, String)| {
        let mut changed = whole.clone();
        let value = changed.pointer_mut(&place)?;
        *value = match &*value {
            Value::Number(number) => number
                .as_i64()
                .and_then(|whole| whole.checked_add(1))
                .map_or_else(|| Value::from(number.as_f64().unwrap_or(0.0) + 1.0), Value::from),
            Value::String(text) => Value::from(format!("{text}x")),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        Some(changed.to_string())
    };
    found.into_iter().take(CHANGES_MAX).filter_map(changed).collect()
}
