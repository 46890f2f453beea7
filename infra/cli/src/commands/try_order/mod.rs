//! `stepwarden try`: what a configuration folder would do with an order, without a call.
//!
//! The API's own code takes the order, the state machine's own code makes the requests, and the agents' own code makes the
//! calls of them and reads the answers. Nothing of that is written anew here.

mod shown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use agents::preview::{answered, polled_at, unread};
use agents::{Answer, HttpClients, Variable, machine_secrets};
use api::{ApiConfig, EXAMPLE};
use bytes::Bytes;
use config::apply::{Application, Applied, Plan};
use config::{AgentSettings, Checked};
use domain::definition::{Catalogue, Deployment, UnknownWorkflow};
use domain::limits::ANSWER_BYTES_MAX;
use domain::machine::Previewed;
use domain::message::{Outcome, Request};
use domain::order::Order;
use domain::output;
use domain::task::Direction;
use domain::time::Timestamp;
use domain::workflow::{StepRule, Workflow, Workflows};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_call::{Trial, call_of, unknown_base};
use local::folder;

use super::check::or_told;
use super::context::print;
use super::error::CommandError;
use super::submit;
use crate::args::{Format, Supposed, TryArgs};
use crate::exit::Exit;
use crate::remote::clock;
use shown::{Meant, Secret, Shown, Step, Tried};
use wire::Problem;

/// `stepwarden try DIR ORDER.json`.
pub(super) async fn run(args: &TryArgs, format: Format, variable: Variable) -> Result<Exit, CommandError> {
    let checked = match or_told(folder::check(&args.folder), &args.folder)? {
        Ok(checked) => checked,
        Err(exit) => return Ok(exit),
    };
    let (_, body) = submit::read(Some(&args.order), false)?;
    let answers = answers(&args.answers)?;
    let trial = Folder { answers, ..Folder::new(&checked, variable) };
    let shown = trial.order(body.into(), args.workflow.as_deref(), args.step.as_deref()).await?;
    let is_json = args.json || format == Format::Json;
    print(&if is_json { shown.json() } else { shown.text() })?;
    Ok(if shown.is_fine() { Exit::Fine } else { Exit::Otherwise })
}

/// The answers, by step.
fn answers(supposed: &[Supposed]) -> Result<BTreeMap<String, Response<Bytes>>, CommandError> {
    let mut answers = BTreeMap::new();
    for Supposed { step, status, file } in supposed {
        let mut body = Vec::new();
        let read = File::open(file).and_then(|file| file.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut body));
        read.map_err(|error| CommandError::usage(format!("{} cannot be read: {error}", file.display())))?;
        if answers.insert(step.clone(), response(*status, &body)).is_some() {
            return Err(CommandError::usage(format!("--answer is given twice for {step}")));
        }
    }
    Ok(answers)
}

/// The answer in a file: a body or, as `curl -i` writes it, a head and a body.
fn response(status: StatusCode, file: &[u8]) -> Response<Bytes> {
    let after = |blank: &[u8]| Some(file.windows(blank.len()).position(|bytes| bytes == blank)? + blank.len());
    let end = [after(b"\n\r\n"), after(b"\n\n")].into_iter().flatten().min();
    let (head, body) = file.split_at(end.filter(|_| file.starts_with(b"HTTP/")).unwrap_or(0));
    let mut response = Response::new(Bytes::copy_from_slice(body));
    *response.status_mut() = status;
    for line in String::from_utf8_lossy(head).lines() {
        if let Some((name, value)) = line.split_once(':')
            && let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.trim()))
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// An order and its workflow, or the answer of the API that refuses it.
pub(super) type Accepted = Result<(Order, Arc<Workflow>), Box<Problem<'static>>>;

/// A folder, and what is supposed.
pub(super) struct Folder<'a> {
    pub(super) checked: &'a Checked,
    variable: Variable,
    answers: BTreeMap<String, Response<Bytes>>,
    now: Timestamp,
}

impl<'a> Folder<'a> {
    /// Nothing is supposed.
    pub(super) fn new(checked: &'a Checked, variable: Variable) -> Self {
        Self { checked, variable, answers: BTreeMap::new(), now: clock::now() }
    }

    /// What this document becomes, under the id [`EXAMPLE`].
    pub(super) fn accepted(&self, document: &Bytes, workflow: Option<&str>) -> Result<Accepted, CommandError> {
        let compiled = Workflows::shipped().map_err(|fault| CommandError::usage(fault.to_string()))?;
        let catalogue = Catalogue::serving(compiled, None, BTreeMap::new(), Some(self.served()));
        let deployment = self.applied(&catalogue)?;
        let channels = ApiConfig::new(self.checked.reply_channels.keys().cloned());
        let choose = |named: Option<&str>| self.choose(&catalogue, deployment.as_ref(), workflow.or(named));
        let problem_of = |problem: Bytes| serde_json::from_slice(&problem).expect("the API's own document is JSON");
        Ok(api::preview(&channels, document, self.now, choose).map_err(problem_of))
    }

    /// What becomes of an order with this document, or why it is refused.
    async fn order(&self, document: Bytes, workflow: Option<&str>, only: Option<&str>) -> Result<Shown, CommandError> {
        let (order, workflow) = match self.accepted(&document, workflow)? {
            Ok(accepted) => accepted,
            Err(problem) => return Ok(Shown::Refused { problem }),
        };
        self.check_names(&workflow, only)?;
        let base = |agent: &str| self.base(agent);
        let mut trial = Trial::new(&order, &workflow, &self.checked.settings, &base);
        let mut tried: Vec<Option<Step>> = workflow.steps.iter().map(|_| None).collect();
        for index in trial.in_turn() {
            tried[index] = Some(self.step(&mut trial, &workflow.steps[index], index).await);
        }
        let is_shown = |step: &Step| only.is_none_or(|only| only == step.tried.step);
        let steps: Vec<Step> = tried.into_iter().flatten().filter(is_shown).collect();
        let secrets = self.secrets(&steps).await;
        let file = self.checked.workflows.iter().find(|one| one.workflow.pin() == workflow.pin());
        let file = file.map(|one| one.file.clone());
        let (workflow, version) = (workflow.name.clone(), workflow.version);
        Ok(Shown::Tried(Tried { workflow, version, file, order_id: EXAMPLE, steps, secrets }))
    }

    /// The steps that options name are those of the workflow.
    fn check_names(&self, workflow: &Workflow, only: Option<&str>) -> Result<(), CommandError> {
        let known: Vec<&str> = workflow.steps.iter().map(|rule| &*rule.name).collect();
        let mut given = self.answers.keys().map(|key| key.strip_suffix(UNDO).unwrap_or(key)).chain(only);
        given.find(|name| !known.contains(name)).map_or(Ok(()), |other| {
            let known = known.join(", ");
            Err(CommandError::usage(format!("workflow {} has no step {other}. It has: {known}", workflow.name)))
        })
    }

    /// The deployment that the folder makes where nothing was applied before.
    fn applied(&self, catalogue: &Catalogue) -> Result<Option<Deployment>, CommandError> {
        let by = Deployment::BY_START.into();
        let start = Application { by, share_percent: None, seen: None, earlier_key_ms: None };
        let plan = Plan::of(self.checked, &Applied::default(), catalogue, &start, self.now, [0; 4]);
        let lines = |refusals: Vec<_>| refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Ok(plan.map_err(|refusals| CommandError::usage(lines(refusals)))?.deployment)
    }

    fn choose(
        &self,
        catalogue: &Catalogue,
        deployment: Option<&Deployment>,
        name: Option<&str>,
    ) -> Result<Arc<Workflow>, UnknownWorkflow> {
        let found = catalogue.pin_of(deployment, name, EXAMPLE).and_then(|pin| {
            let of_folder = self.checked.workflows.iter().find(|one| one.workflow.pin() == pin);
            let compiled = || catalogue.compiled().get(&pin.name, pin.version).cloned();
            of_folder.map(|one| Arc::new(one.workflow.clone())).or_else(compiled)
        });
        found.ok_or_else(|| UnknownWorkflow {
            name: name.map_or_else(|| catalogue.default_name(deployment), Arc::from),
            known: catalogue.names(deployment),
        })
    }

    /// One step, of which those before it are known. Its own answer is supposed from then on.
    async fn step(&self, trial: &mut Trial<'_>, rule: &StepRule, index: usize) -> Step {
        let (mut tried, forward) = trial.forward(index);
        if tried.never_runs.is_some() {
            return Step { tried, answer: None, undo_answer: None };
        }
        let mut answer = None;
        let is_sent = tried.forward.as_ref().is_none_or(|call| call.unsendable.is_none());
        if is_sent
            && let Some((meant, outcome)) = self.meant(rule, Direction::Forward, request_of(forward.as_ref())).await
        {
            answer = Some(meant);
            outcome.iter().for_each(|outcome| trial.suppose(index, outcome));
        }
        tried.undo = Some(trial.undo(index));
        let undo_answer = self.meant(rule, Direction::Undo, None).await.map(|(meant, _)| meant);
        Step { tried, answer, undo_answer }
    }

    /// What the supposed answer of a step means, and the outcome if it ends the step.
    async fn meant(
        &self,
        rule: &StepRule,
        direction: Direction,
        request: Option<&Request>,
    ) -> Option<(Meant, Option<Outcome>)> {
        let undo = if direction == Direction::Undo { UNDO } else { "" };
        let answer = self.answers.get(&format!("{}{undo}", rule.name))?;
        let settings = self.settings(&rule.agent);
        let keep = rule.keep.as_ref().filter(|_| direction == Direction::Forward);
        let status = answer.status();
        let base = self.base(&rule.agent);
        let called = request.and_then(|request| call_of(request, &base, &settings).ok()).map(|call| call.uri);
        let call = called.as_ref().zip(request);
        let answer = answered(&settings, (direction, keep), call, answer.clone(), self.now).await;
        let polled = if let (Answer::UnderWay { poll: Some(poll), unless_alone: None, .. }, Some(request)) =
            (&answer, request)
        {
            let url = poll.clone().and_then(|path| polled_at(&path, request, &base, &settings));
            Some(url.map_or_else(|problem| format!("at no place: {problem}"), |url| format!("by GET {url}")))
        } else {
            None
        };
        let outcome = match &answer {
            Answer::Done(output) => Some(output::done(output.clone(), keep, direction)),
            // No earlier call is under way.
            Answer::Fail(failure) | Answer::UnderWay { unless_alone: Some(failure), .. } => {
                Some(output::failed(failure.clone(), direction))
            }
            Answer::Retry { .. }
            | Answer::Unknown { .. }
            | Answer::UnderWay { unless_alone: None, .. }
            | Answer::Misconfigured { .. }
            | Answer::NotCalled { .. } => None,
        };
        let mut meant = Meant::new(status, &answer, outcome.as_ref());
        meant.polled = polled;
        Some((meant, outcome))
    }

    pub(super) fn settings(&self, agent: &str) -> AgentSettings {
        self.checked.settings.of(agent).cloned().unwrap_or_default()
    }

    /// Where the service of an agent is that has no URL of its own.
    fn base(&self, agent: &str) -> String {
        self.url_of_variable(agent).unwrap_or_else(|| unknown_base(agent))
    }

    pub(super) fn url_of_variable(&self, agent: &str) -> Option<String> {
        let url = Workflows::SHIPPED_AGENTS.contains(&agent).then(|| (self.variable)(&variable_of(agent)))??;
        Some(url.trim().to_owned()).filter(|url| !url.is_empty())
    }

    /// The agents with a URL of the environment.
    fn served(&self) -> BTreeSet<Arc<str>> {
        let shipped = Workflows::SHIPPED_AGENTS.into_iter();
        shipped.filter(|agent| self.url_of_variable(agent).is_some()).map(Arc::from).collect()
    }

    /// The secrets of these steps' calls that cannot be read here.
    async fn secrets(&self, steps: &[Step]) -> Vec<Secret> {
        let resolver = machine_secrets(self.variable, clock::now, &HttpClients::new());
        let run = steps.iter().map(|step| &step.tried).filter(|step| step.never_runs.is_none());
        let agents: BTreeSet<&str> = run.map(|step| &*step.agent).collect();
        let mut secrets = Vec::new();
        for agent in agents {
            let unread = unread(&self.settings(agent), &resolver).await;
            secrets.extend(unread.into_iter().map(|(reference, problem)| Secret {
                agent: agent.into(),
                secret: reference.to_string(),
                problem,
            }));
        }
        secrets
    }
}

/// After the name of a step: its undo.
const UNDO: &str = "/undo";

fn variable_of(agent: &str) -> String {
    format!("{}_URL", agent.to_uppercase())
}

fn request_of(previewed: Option<&Previewed>) -> Option<&Request> {
    if let Some(Previewed::Request(request)) = previewed { Some(request) } else { None }
}
