//! One order of a probe: the steps before the probed one, its calls, and the undo of all.

use std::sync::Arc;
use std::time::Duration;

use agents::{Answer, Proof};
use domain::json::Json;
use domain::machine::{Foreseen, Preview, Previewed};
use domain::message::{Failure, Look, Outcome, Request};
use domain::order::Order;
use domain::output;
use domain::task::Direction;
use domain::workflow::Workflow;

use super::caller::{Caller, PAUSE_MS_MAX, Seen};
use super::plan::AGAIN;
use crate::remote::clock;

/// The first pause before a call is repeated.
const PAUSE_MS: u64 = 100;

/// An order that begins at the services, and never in a store.
pub(super) struct Trial<'a> {
    caller: &'a Caller,
    workflow: &'a Workflow,
    /// The probed step.
    index: usize,
    preview: Preview<'a>,
    /// What is known of the steps before it.
    known: Vec<(usize, Outcome)>,
    /// Those that were called, in turn.
    called: Vec<usize>,
}

/// A call with its repeats.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) first: Seen,
    /// After the service was at work on it, failed, or was silent.
    pub(super) last: Seen,
    /// From the first call to the last answer.
    pub(super) took_ms: u64,
}

impl<'a> Trial<'a> {
    pub(super) fn new(caller: &'a Caller, workflow: &'a Workflow, index: usize, order: &'a Order) -> Self {
        let preview = Preview::new(order, workflow);
        Self { caller, workflow, index, preview, known: Vec::new(), called: Vec::new() }
    }

    /// The same order with another document: what is known of the steps before stays.
    pub(super) fn with(&self, order: &'a Order) -> Self {
        let mut other = Self::new(self.caller, self.workflow, self.index, order);
        self.known.iter().for_each(|(index, outcome)| other.suppose(*index, outcome.clone()));
        other
    }

    /// Carries out the steps before the probed one.
    ///
    /// # Errors
    /// Why it is not reached.
    pub(super) async fn reach(&mut self) -> Result<(), String> {
        let ancestors = &self.workflow.steps[self.index].ancestors;
        for index in self.preview.in_turn().into_iter().filter(|index| ancestors.contains(index)) {
            let rule = &self.workflow.steps[index];
            if let Foreseen::Never(_) = self.preview.foresee(index) {
                continue;
            }
            if rule.service().is_none() {
                // People, or another order: no service is asked.
                self.suppose(index, Outcome::Done(Json::empty()));
                continue;
            }
            let request = self.request(index, Direction::Forward)?;
            self.called.push(index);
            let told = self.told(&request).await;
            match self.outcome(index, &told.last) {
                Some(Outcome::Done(output)) => self.suppose(index, Outcome::Done(output)),
                Some(outcome) if rule.optional => self.suppose(index, outcome),
                _ => {
                    return Err(format!(
                        "step {}, which comes before it, was answered {}",
                        rule.name,
                        told.last.words()
                    ));
                }
            }
        }
        match self.preview.foresee(self.index) {
            Foreseen::Never(why) => Err(format!("it does not run for this order: {why}")),
            Foreseen::Comes | Foreseen::Unknown(_) => Ok(()),
        }
    }

    /// The call of the probed step, and its repeats while the service is at work.
    pub(super) async fn forward(&mut self) -> Result<Told, String> {
        let request = self.own(Direction::Forward)?;
        let told = self.told(&request).await;
        self.learn(&told.last);
        Ok(told)
    }

    /// The request of the probed step.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn own(&self, direction: Direction) -> Result<Request, String> {
        self.request(self.index, direction)
    }

    /// One undo of the probed step.
    pub(super) async fn undo(&self) -> Result<Seen, String> {
        Ok(self.caller.call(&self.own(Direction::Undo)?, Proof::Own).await)
    }

    /// Takes an answer to the probed step as its outcome, so that its undo can send what it needs.
    pub(super) fn learn(&mut self, seen: &Seen) {
        match self.outcome(self.index, seen) {
            Some(outcome) => self.preview.suppose(self.index, &outcome),
            None => self.unanswered(),
        }
    }

    /// The probed step has no output: no answer came, or none was asked for.
    pub(super) fn unanswered(&mut self) {
        let failure = Failure { code: "unanswered".into(), message: "".into() };
        self.preview.suppose(self.index, &Outcome::Failed(failure));
    }

    /// Undoes the steps before the probed one, in reverse order.
    pub(super) async fn undo_before(&self) {
        for &index in self.called.iter().rev() {
            if let Ok(request) = self.request(index, Direction::Undo) {
                self.caller.call(&request, Proof::Own).await;
            }
        }
    }

    /// Makes a call, and repeats it while the service is at work, fails or is silent, or asks where the answer says.
    pub(super) async fn told(&self, request: &Request) -> Told {
        self.repeated(request, false).await
    }

    /// The last answer to a call while no other of its key is under way: then a 409 is a refusal.
    pub(super) async fn ended(&self, request: &Request) -> Seen {
        self.repeated(request, true).await.last
    }

    async fn repeated(&self, request: &Request, is_alone: bool) -> Told {
        let began = clock::instant();
        let first = self.caller.call(request, Proof::Own).await;
        let (mut last, mut request) = (first.clone(), request.clone());
        for turn in 0..AGAIN {
            if let Answer::UnderWay { poll: Some(Ok(path)), .. } = &last.answer {
                request = self.look(request, path);
            }
            let is_failing = matches!(last.answer, Answer::Retry { .. } | Answer::Unknown { .. });
            // What a success says in a wrong way, it says again.
            let is_success = last.status().is_some_and(|status| status < 300);
            let is_over = is_alone && last.is_refusal();
            if is_over || !last.is_under_way() && (!is_failing || is_success) {
                break;
            }
            let pause_ms = (PAUSE_MS * 3_u64.pow(turn)).max(last.asked_ms()).min(PAUSE_MS_MAX);
            clock::pause(Duration::from_millis(pause_ms)).await;
            last = self.caller.call(&request, Proof::Own).await;
        }
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Told { first, last, took_ms }
    }

    /// The look at the state of a call.
    fn look(&self, request: Request, path: &Arc<str>) -> Request {
        let rule =
            self.workflow.steps.iter().find(|rule| rule.name == request.step).and_then(|rule| rule.poll.as_ref());
        let answers = rule.map(|poll| poll.answers.clone()).unwrap_or_default();
        Request { look: Some(Look { path: path.clone(), answers }), ..request }
    }

    fn request(&self, index: usize, direction: Direction) -> Result<Request, String> {
        match self.preview.call(index, direction) {
            Some(Previewed::Request(request)) => Ok(*request),
            Some(Previewed::Unsendable(failure)) => Err(failure.message.to_string()),
            Some(Previewed::Unknown(missing)) => {
                let pointers: Vec<&str> = missing.iter().map(|missing| missing.pointer.as_str()).collect();
                Err(format!("it needs {}, of a step that was not called", pointers.join(", ")))
            }
            None => Err(format!("step {} has no such call", self.workflow.steps[index].name)),
        }
    }

    fn suppose(&mut self, index: usize, outcome: Outcome) {
        self.preview.suppose(index, &outcome);
        self.known.push((index, outcome));
    }

    /// The outcome of an answer to a step. `None`: it is no end.
    fn outcome(&self, index: usize, seen: &Seen) -> Option<Outcome> {
        match &seen.answer {
            Answer::Done(output) => {
                let keep = self.workflow.steps[index].keep.as_ref();
                Some(output::done(output.clone(), keep, Direction::Forward))
            }
            Answer::Fail(failure) | Answer::UnderWay { unless_alone: Some(failure), .. } => {
                Some(output::failed(failure.clone(), Direction::Forward))
            }
            Answer::UnderWay { unless_alone: None, .. }
            | Answer::Retry { .. }
            | Answer::Unknown { .. }
            | Answer::Misconfigured { .. }
            | Answer::NotCalled { .. } => None,
        }
    }
}
