//! The series of calls at one service. It only looks: `judge` says what the answers mean.

use std::time::Duration;

use agents::Proof;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::Request;
use domain::order::Order;
use domain::task::Direction;
use domain::workflow::Workflow;
use futures_util::future::join;
use serde::de::IgnoredAny as Ignored;

use super::caller::{Caller, Seen};
use super::plan::Subject;
use super::trial::{Told, Trial};
use crate::remote::clock;

/// The shortest wait until the work of a call is over whose caller hung up.
const OVER_MS_MIN: u64 = 50;

/// Why something was not looked at.
pub(super) type Unseen = String;

/// What was seen of one service.
#[derive(Debug)]
pub(super) struct Observed {
    /// The forward calls of different orders that were done. There is at least one.
    pub(super) firsts: Vec<Told>,
    /// The first undos of different orders.
    pub(super) undos: Vec<Seen>,
    /// The repeat of the first one.
    pub(super) repeat: Told,
    /// Both of two calls at once.
    pub(super) at_once: Result<[Told; 2], Unseen>,
    /// The repeat after the caller hung up; whether the work was over before that, and the time since the first call.
    pub(super) hung_up: Result<(Told, bool, u64), Unseen>,
    /// The key of the first one with another body; and what that body gets under a key of its own.
    pub(super) other_body: Result<[Seen; 2], Unseen>,
    pub(super) other_step: Seen,
    /// `None`: its calls have no proof of identity.
    pub(super) wrong_token: Option<Seen>,
    /// The rest is `None` where the step has no undo.
    pub(super) undo_twice: Option<Result<[Seen; 2], Unseen>>,
    pub(super) undo_of_nothing: Option<Result<Seen, Unseen>>,
    /// Of the first order, and of one that was undone before it was done.
    pub(super) after_undo: [Option<Seen>; 2],
}

impl Observed {
    /// The answer to the first call.
    pub(super) fn first_answer(&self) -> &Seen {
        &self.firsts[0].last
    }

    /// Whether a repeat was told that the call is under way, at a service that answers first calls at once.
    pub(super) fn is_busy(&self, repeat: &Told) -> bool {
        repeat.first.is_under_way() && self.firsts[0].first.is_done()
    }
}

/// What a series needs.
pub(super) struct Series<'a> {
    pub(super) caller: &'a Caller,
    pub(super) workflow: &'a Workflow,
    pub(super) subject: &'a Subject,
    pub(super) order: &'a Order,
    /// The order with one member changed, in several ways.
    pub(super) changed: &'a [Json],
    pub(super) new_id: &'a (dyn Fn(&str) -> OrderId + Sync),
}

impl Series<'_> {
    /// Makes all calls.
    ///
    /// # Errors
    /// Why even the first one was not done. Then others would say nothing more.
    pub(super) async fn run(&self) -> Result<Observed, Unseen> {
        let (mut seen, changed) = self.repeated().await?;
        seen.other_body = self.changed(&mut seen, changed).await;
        seen.at_once = self.at_once(&mut seen).await;
        seen.hung_up = self.hung_up(&mut seen).await;
        if self.subject.has_undo {
            seen.undo_of_nothing = Some(self.undone_first(&mut seen).await);
        }
        Ok(seen)
    }

    /// A new order, whose id no other order has.
    fn order(&self, document: Option<&Json>) -> Order {
        let order_id = (self.new_id)(&self.subject.step);
        Order { order_id, document: document.unwrap_or(&self.order.document).clone(), ..self.order.clone() }
    }

    fn trial<'o>(&'o self, order: &'o Order) -> Trial<'o> {
        Trial::new(self.caller, self.workflow, self.subject.index, order)
    }

    /// One order: done, repeated, with another body, under another key, with a wrong token, undone twice, and done again.
    /// Also gives the change that the service was sent, with what its key got.
    async fn repeated(&self) -> Result<(Observed, Option<(Json, Seen)>), Unseen> {
        let order = self.order(None);
        let mut trial = self.trial(&order);
        let first = self.done_once(&mut trial).await.and_then(|(request, told)| match told.last.is_done() {
            true => Ok((request, told)),
            false => Err(format!("its first call was not done: {}{}", told.last.words(), hint(&told.last))),
        });
        let (request, first) = match first {
            Ok(first) => first,
            Err(unseen) => {
                self.take_back(&trial).await;
                return Err(unseen);
            }
        };
        let repeat = trial.told(&request).await;
        let misused = self.misused(&trial, &order, &request).await;
        let other_step = trial.ended(&self.of_other_step(&request)).await;
        let mut seen = Observed {
            firsts: vec![first],
            undos: Vec::new(),
            repeat,
            at_once: Err(Unseen::new()),
            hung_up: Err(Unseen::new()),
            other_body: Err(Unseen::new()),
            other_step,
            wrong_token: None,
            undo_twice: None,
            undo_of_nothing: None,
            after_undo: [None, None],
        };
        if self.subject.has_proof {
            seen.wrong_token = Some(self.caller.call(&request, Proof::Wrong).await);
        }
        if self.subject.has_undo {
            self.undone_twice(&mut seen, &trial, &request).await;
        }
        trial.undo_before().await;
        Ok((seen, misused))
    }

    async fn done_once(&self, trial: &mut Trial<'_>) -> Result<(Request, Told), Unseen> {
        trial.reach().await?;
        Ok((trial.own(Direction::Forward)?, trial.forward().await?))
    }

    /// The same key with a body of a changed order.
    async fn misused(&self, trial: &Trial<'_>, order: &Order, request: &Request) -> Option<(Json, Seen)> {
        for document in self.changed {
            let order = Order { document: document.clone(), ..order.clone() };
            let Ok(other) = trial.with(&order).own(Direction::Forward) else { continue };
            let body = |request: &Request| request.body.clone().unwrap_or_else(|| request.order.clone());
            if body(&other) != body(request) && other.path == request.path {
                return Some((document.clone(), trial.ended(&other).await));
            }
        }
        None
    }

    /// The same call under the key of another step.
    fn of_other_step(&self, request: &Request) -> Request {
        let of = |step| domain::id::idempotency_key(request.order_id, step, request.direction);
        let (own, other) = (of(&self.subject.step), of(&self.subject.other_step));
        let replaced = |text: &str| text.replace(&*own, &other);
        let body = request.body.as_ref().map(|body| {
            let text = replaced(body.text());
            Json::of_any_depth(text.as_bytes(), text.len()).unwrap_or_else(|_| body.clone())
        });
        let headers = request.headers.iter().map(|(name, value)| (name.clone(), replaced(value).into())).collect();
        Request { idempotency_key: other.clone(), body, headers, ..request.clone() }
    }

    async fn undone_twice(&self, seen: &mut Observed, trial: &Trial<'_>, request: &Request) {
        let twice = async { Ok([trial.undo().await?, trial.undo().await?]) }.await;
        if let Ok([first, _]) = &twice {
            seen.undos.push(first.clone());
            if first.is_done() {
                seen.after_undo[0] = Some(trial.ended(request).await);
            }
        }
        seen.undo_twice = Some(twice);
        // Takes back what the key of the other step has done.
        if let Ok(undo) = trial.own(Direction::Undo) {
            self.caller.call(&self.of_other_step(&undo), Proof::Own).await;
        }
    }

    /// An order with another body, under its own key.
    async fn changed(&self, seen: &mut Observed, misused: Option<(Json, Seen)>) -> Result<[Seen; 2], Unseen> {
        let nothing = "no value of the order changes the body: give an order with a number that the step sends";
        let (document, misused) = misused.ok_or(nothing)?;
        let order = self.order(Some(&document));
        let mut trial = self.trial(&order);
        let told = self.done_once(&mut trial).await.map(|(_, told)| told);
        seen.firsts.extend(told.iter().filter(|told| told.last.is_done()).cloned());
        seen.undos.extend(self.take_back(&trial).await);
        Ok([misused, told?.last])
    }

    /// Two calls at once.
    async fn at_once(&self, seen: &mut Observed) -> Result<[Told; 2], Unseen> {
        let order = self.order(None);
        let mut trial = self.trial(&order);
        let both = async {
            trial.reach().await?;
            let request = trial.own(Direction::Forward)?;
            self.caller.rest(&self.subject.agent).await;
            let both: [Told; 2] = join(trial.told(&request), trial.told(&request)).await.into();
            trial.learn(&both.iter().find(|told| told.last.is_done()).unwrap_or(&both[0]).last);
            Ok(both)
        };
        let both = both.await;
        seen.firsts.extend(both.iter().flatten().find(|told| told.last.is_done()).cloned());
        seen.undos.extend(self.take_back(&trial).await);
        both
    }

    /// A call whose caller hangs up halfway, and its repeat after the work is over.
    async fn hung_up(&self, seen: &mut Observed) -> Result<(Told, bool, u64), Unseen> {
        let order = self.order(None);
        let mut trial = self.trial(&order);
        let took_ms = || seen.firsts.iter().filter(|told| told.first.is_done()).map(|told| told.first.took_ms);
        let (shortest, longest) = (took_ms().min().unwrap_or(0), took_ms().max().unwrap_or(0));
        let repeat = async {
            trial.reach().await?;
            let request = trial.own(Direction::Forward)?;
            let began = clock::instant();
            let halfway = Duration::from_millis((shortest / 2).max(1));
            let is_over = self.caller.call_within(&request, Proof::Own, Some(halfway)).await.is_some();
            clock::pause(Duration::from_millis((2 * longest).max(OVER_MS_MIN))).await;
            let told = trial.told(&request).await;
            trial.learn(&told.last);
            Ok((told, is_over, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)))
        };
        let repeat = repeat.await;
        seen.undos.extend(self.take_back(&trial).await);
        repeat
    }

    /// The undo of what was never done, and the call after it.
    async fn undone_first(&self, seen: &mut Observed) -> Result<Seen, Unseen> {
        let order = self.order(None);
        let mut trial = self.trial(&order);
        let undo = async {
            trial.reach().await?;
            let request = trial.own(Direction::Forward)?;
            trial.unanswered();
            let undo = trial.undo().await?;
            if undo.is_done() {
                seen.after_undo[1] = Some(trial.ended(&request).await);
            }
            Ok(undo)
        };
        let undo = undo.await;
        trial.undo_before().await;
        undo
    }

    /// Undoes the step and those before it. Gives the answer to the undo of the step.
    async fn take_back(&self, trial: &Trial<'_>) -> Option<Seen> {
        let undo = if self.subject.has_undo { trial.undo().await.ok() } else { None };
        trial.undo_before().await;
        undo
    }
}

/// What to do where a service took a call, and it was not done.
fn hint(seen: &Seen) -> &'static str {
    match seen.status() {
        Some(202) => ". Later results are not awaited: give an order that it answers at once, or [step.poll]",
        Some(200..=299) if serde_json::from_str::<Ignored>(seen.body()).is_err() => {
            ". A text is an output with keep = { Text = \"answer:text\" }"
        }
        _ => "",
    }
}
