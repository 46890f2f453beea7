//! What `stepwarden try` prints.

use std::borrow::Cow;
use std::sync::Arc;

use agents::Answer;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::Outcome;
use http::StatusCode;
use serde::Serialize;
use wire::{Problem, TriedCall, TriedHeader, TriedStep};

use super::super::context::body as json_of;
use crate::show::table::plain;

/// What becomes of the order.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Shown {
    /// It is accepted.
    Tried(Tried),
    /// It is not.
    Refused {
        /// The answer of the API.
        #[serde(rename = "Refused")]
        problem: Box<Problem<'static>>,
    },
}

/// An order that is accepted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tried {
    /// The workflow that takes it.
    pub(super) workflow: Arc<str>,
    pub(super) version: u32,
    /// The file of the workflow. `None`: it ships with the program.
    pub(super) file: Option<Arc<str>>,
    /// Stands for the id of the order.
    #[serde(rename = "OrderID")]
    pub(super) order_id: OrderId,
    /// In the order of the workflow.
    pub(super) steps: Vec<Step>,
    /// Those that cannot be read here.
    pub(super) secrets: Vec<Secret>,
}

/// One step, and what its answers mean.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Step {
    #[serde(flatten)]
    pub(super) tried: TriedStep<'static>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Meant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) undo_answer: Option<Meant>,
}

/// The meaning of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Meant {
    status: u16,
    means: &'static str,
    /// Of a rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Arc<str>>,
    /// Why it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Arc<str>>,
    /// What the step keeps of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Json>,
    /// How the state of a call that was taken on is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) polled: Option<String>,
}

/// A secret that is not known to be there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Secret {
    pub(super) agent: Arc<str>,
    pub(super) secret: String,
    /// Why it cannot be read. `None`: it was not looked at.
    pub(super) problem: Option<String>,
}

impl Meant {
    /// The meaning of an answer, with the outcome by which it ends the step, if it does.
    pub(super) fn new(status: StatusCode, answer: &Answer, outcome: Option<&Outcome>) -> Self {
        let (means, problem) = match answer {
            Answer::Done(_) | Answer::Fail(_) => ("rejected", None),
            Answer::UnderWay { unless_alone: Some(_), .. } => ("rejected, unless an earlier call is at work", None),
            Answer::UnderWay { unless_alone: None, .. } => ("under way: its result comes later", None),
            Answer::Retry { problem, .. } => ("failing: asked again", Some(problem)),
            Answer::Unknown { problem, .. } => ("failing, its effect unknown: asked again", Some(problem)),
            Answer::Misconfigured { problem, .. } => ("misconfigured: the order waits", Some(problem)),
            Answer::NotCalled { problem } => ("not called", Some(problem)),
        };
        let message = problem.map(|problem| Arc::from(&**problem));
        let meant = Self { status: status.as_u16(), means, code: None, message, output: None, polled: None };
        match outcome {
            Some(Outcome::Done(output)) => Self { means: "done", output: Some(output.clone()), ..meant },
            Some(Outcome::Failed(failure)) => {
                Self { code: Some(failure.code.clone()), message: Some(failure.message.clone()), ..meant }
            }
            Some(Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_)) | None => meant,
        }
    }

    fn text(&self, of: &str) -> String {
        let Self { status, means, code, message, output, polled } = self;
        let code = code.as_ref().map(|code| format!(": {code}")).unwrap_or_default();
        let message = message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        let head = plain(&format!("{of} {status} means {means}{code}{message}"));
        let output = output.as_ref().map(|output| format!("Its output: {}\n", output.text()));
        let polled = polled.as_ref().map(|polled| plain(&format!("Its state is asked {polled}")) + "\n");
        format!("{head}\n{}{}\n", polled.unwrap_or_default(), output.unwrap_or_default())
    }
}

impl Shown {
    /// Whether the order is accepted and no step is unsendable.
    pub(super) fn is_fine(&self) -> bool {
        let Self::Tried(tried) = self else { return false };
        let mut calls = tried.steps.iter().flat_map(|step| step.tried.forward.iter().chain(&step.tried.undo));
        !calls.any(|call| call.unsendable.is_some())
    }

    /// One document.
    pub(super) fn json(&self) -> String {
        json_of(self) + "\n"
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Refused { problem } => {
                format!("Refused: {} {}\n", problem.status, plain(&format!("{}: {}", problem.title, problem.detail)))
            }
            Self::Tried(tried) => tried.text(),
        }
    }
}

impl Tried {
    fn text(&self) -> String {
        let Self { workflow, version, file, order_id, .. } = self;
        let file = file.as_ref().map_or("it ships with the program", |file| file);
        let mut text = format!("{workflow}, version {version}, takes the order ({})\n", plain(file));
        text.push_str(&format!("{order_id} stands for its ID\n\n"));
        self.steps.iter().for_each(|step| step.write(&mut text));
        for Secret { agent, secret, problem } in &self.secrets {
            let problem = problem.as_deref().unwrap_or("was not looked at");
            text.push_str(&(plain(&format!("Secret of {agent}: {secret} {problem}")) + "\n"));
        }
        text
    }
}

impl Step {
    fn write(&self, text: &mut String) {
        let Self { tried, answer, undo_answer } = self;
        let TriedStep { step: name, agent, never_runs, runs_if, forward, undo } = tried;
        if let Some(never) = never_runs {
            text.push_str(&format!("○ {name} ({agent}) does not run: {never}\n\n"));
            return;
        }
        text.push_str(&format!("● {name} ({agent})\n"));
        if !runs_if.is_empty() {
            text.push_str(&format!("whether it runs {}\n", depends(runs_if)));
        }
        let both = [(forward, answer, String::new()), (undo, undo_answer, format!("↶ undo of {name}\n"))];
        for (call, answer, title) in both {
            let Some(call) = call else { continue };
            text.push_str(&title);
            write_call(call, text);
            if let Some(answer) = answer {
                text.push_str(&answer.text("The answer"));
            }
        }
    }
}

fn write_call(call: &TriedCall<'_>, text: &mut String) {
    let TriedCall { method, url, headers, body, whole_bytes: _, workflow, document, unsendable, needs, no_call } = call;
    if let (Some(method), Some(url)) = (method, url) {
        text.push_str(&format!("{method} {url}\n"));
        for TriedHeader { name, value } in headers {
            text.push_str(&format!("{name}: {}\n", plain(value)));
        }
        // Not a byte more: what is shown is what is sent.
        text.push_str(&format!("\n{}\n\n", body.as_deref().unwrap_or_default()));
    }
    if let (Some(workflow), Some(document)) = (workflow, document) {
        text.push_str(&format!("an order of {workflow}\n\n{document}\n\n"));
    }
    if let Some(unsendable) = unsendable {
        text.push_str(&format!("unsendable: {}\n\n", plain(unsendable)));
    }
    if !needs.is_empty() {
        text.push_str(&format!("what it sends {}\n\n", depends(needs)));
    }
    if let Some(no_call) = no_call {
        text.push_str(&format!("no call: {no_call}\n\n"));
    }
}

/// What is not known, and how to suppose it.
fn depends(missing: &[Cow<'_, str>]) -> String {
    let pointers: Vec<String> = missing.iter().map(|pointer| plain(pointer)).collect();
    let mut steps: Vec<&str> = missing.iter().filter_map(|pointer| pointer.split('/').nth(2)).collect();
    steps.dedup();
    let options: Vec<String> = steps.iter().map(|step| format!("--answer {step}:200=answer.json")).collect();
    format!("depends on {}: give {}", pointers.join(", "), options.join(" "))
}
