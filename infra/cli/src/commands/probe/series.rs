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
    /// The orders of the probe, to look them up in the service's books.
    pub(super) orders: Vec<OrderId>,
    /// The first forward calls of different orders.
    pub(super) firsts: Vec<Told>,
    /// The first undos of different orders.
    pub(super) undos: Vec<Seen>,
    /// The repeat of the first one.
    pub(super) repeat: Result<Told, Unseen>,
    /// Both of two calls at once.
    pub(super) at_once: Result<[Told; 2], Unseen>,
    /// The repeat after the caller hung up; whether the work was over before that, and the time since the first call.
    pub(super) hung_up: Result<(Told, bool, u64), Unseen>,
    /// The key of the first one with another body; and what that body gets under a key of its own.
    pub(super) other_body: Result<[Seen; 2], Unseen>,
    pub(super) other_step: Result<Seen, Unseen>,
    /// `None`: its calls have no proof of identity.
    pub(super) wrong_token: Option<Seen>,
    /// The rest is `None` where the step has no undo.
    pub(super) undo_twice: Option<Result<[Seen; 2], Unseen>>,
    pub(super) undo_of_nothing: Option<Result<Seen, Unseen>>,
    /// Of the first order, and of one that was undone before it was done.
    pub(super) after_undo: [Option<Seen>; 2],
}

impl Observed {
    /// Whether a repeat was told that the call is under way, at a service that answers first calls at once.
    pub(super) fn is_busy(&self, repeat: &Told) -> bool {
        repeat.first.is_under_way() && self.firsts.first().is_some_and(|told| told.first.is_done())
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
    pub(super) new_id: &'a (dyn Fn() -> OrderId + Sync),
}

impl Series<'_> {
    /// Makes all calls.
    pub(super) async fn run(&self) -> Observed {
        let unseen = || Unseen::from("the calls before it did not succeed");
        let mut seen = Observed {
            orders: Vec::new(),
            firsts: Vec::new(),
            undos: Vec::new(),
            repeat: Err(unseen()),
            at_once: Err(unseen()),
            hung_up: Err(unseen()),
            other_body: Err(unseen()),
            other_step: Err(unseen()),
            wrong_token: None,
            undo_twice: self.subject.has_undo.then(|| Err(unseen())),
            undo_of_nothing: self.subject.has_undo.then(|| Err(unseen())),
            after_undo: [None, None],
        };
        let changed = self.repeated(&mut seen).await;
        // A service that does not even take one order says nothing more by others.
        if seen.firsts.first().is_some_and(|told| told.last.is_done()) {
            self.changed(&mut seen, changed).await;
            self.at_once(&mut seen).await;
            self.hung_up(&mut seen).await;
            self.undone_first(&mut seen).await;
        }
        seen
    }

    /// A new order, whose id no other order has.
    fn order(&self, seen: &mut Observed, document: Option<&Json>) -> Order {
        let order_id = (self.new_id)();
        seen.orders.push(order_id);
        let document = document.unwrap_or(&self.order.document).clone();
        Order { order_id, document, ..self.order.clone() }
    }

    fn trial<'o>(&'o self, order: &'o Order) -> Trial<'o> {
        Trial::new(self.caller, self.workflow, self.subject.index, order)
    }

    /// One order: done, repeated, with another body, under another key, with a wrong token, undone twice, and done again.
    /// Gives the change that the service is sent, with what its key got.
    async fn repeated(&self, seen: &mut Observed) -> Option<(Json, Seen)> {
        let order = self.order(seen, None);
        let mut trial = self.trial(&order);
        let mut misused = None;
        match self.done_once(&mut trial).await {
            Err(unseen) => seen.repeat = Err(unseen),
            Ok((request, first)) => {
                let is_done = first.last.is_done();
                seen.firsts.push(first);
                if is_done {
                    seen.repeat = Ok(trial.told(&request).await);
                    misused = self.misused(&trial, &order, &request).await;
                    seen.other_step = Ok(self.caller.call(&self.of_other_step(&request), Proof::Own).await);
                }
                if self.subject.has_proof {
                    seen.wrong_token = Some(self.caller.call(&request, Proof::Wrong).await);
                }
                if self.subject.has_undo {
                    self.undone_twice(seen, &trial, is_done, &request).await;
                }
            }
        }
        trial.undo_before().await;
        misused
    }

    async fn done_once(&self, trial: &mut Trial<'_>) -> Result<(Request, Told), Unseen> {
        trial.reach().await?;
        let request = trial.own(Direction::Forward)?;
        let told = trial.forward().await?;
        Ok((request, told))
    }

    /// The same key with a body of a changed order.
    async fn misused(&self, trial: &Trial<'_>, order: &Order, request: &Request) -> Option<(Json, Seen)> {
        for document in self.changed {
            let order = Order { document: document.clone(), ..order.clone() };
            let Ok(other) = trial.with(&order).own(Direction::Forward) else { continue };
            let body = |request: &Request| request.body.clone().unwrap_or_else(|| request.order.clone());
            if body(&other) != body(request) && other.path == request.path {
                return Some((document.clone(), self.caller.call(&other, Proof::Own).await));
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

    async fn undone_twice(&self, seen: &mut Observed, trial: &Trial<'_>, is_done: bool, request: &Request) {
        let twice = async {
            let [first, second] = [trial.undo().await?, trial.undo().await?];
            Ok([first, second])
        };
        let twice = twice.await;
        if let (Ok([first, _]), true) = (&twice, is_done) {
            seen.undos.push(first.clone());
        }
        if is_done && twice.as_ref().is_ok_and(|[first, _]| first.is_done()) {
            seen.after_undo[0] = Some(self.caller.call(request, Proof::Own).await);
        }
        seen.undo_twice =
            Some(twice.and_then(|twice| if is_done { Ok(twice) } else { Err("nothing was done".into()) }));
        // Takes back what the key of the other step has done.
        if let Ok(undo) = trial.own(Direction::Undo) {
            self.caller.call(&self.of_other_step(&undo), Proof::Own).await;
        }
    }

    /// An order with another body, under its own key.
    async fn changed(&self, seen: &mut Observed, misused: Option<(Json, Seen)>) {
        let Some((document, misused)) = misused else {
            let nothing = "no value of the order changes the body: give an order with a number that the step sends";
            seen.other_body = Err(nothing.to_owned());
            return;
        };
        let order = self.order(seen, Some(&document));
        let mut trial = self.trial(&order);
        seen.other_body = match self.done_once(&mut trial).await {
            Err(unseen) => Err(unseen),
            Ok((_, told)) => {
                let own = told.last.clone();
                if own.is_done() {
                    seen.firsts.push(told);
                }
                Ok([misused, own])
            }
        };
        self.take_back(seen, &trial).await;
    }

    /// Two calls at once.
    async fn at_once(&self, seen: &mut Observed) {
        let order = self.order(seen, None);
        let mut trial = self.trial(&order);
        let both = async {
            trial.reach().await?;
            let request = trial.own(Direction::Forward)?;
            let both = join(trial.told(&request), trial.told(&request)).await;
            trial.learn(if both.0.last.is_done() { &both.0.last } else { &both.1.last });
            Ok([both.0, both.1])
        };
        seen.at_once = both.await;
        let done = seen.at_once.as_ref().ok().and_then(|both| both.iter().find(|told| told.last.is_done()));
        seen.firsts.extend(done.cloned());
        self.take_back(seen, &trial).await;
    }

    /// A call whose caller hangs up halfway, and its repeat after the work is over.
    async fn hung_up(&self, seen: &mut Observed) {
        let order = self.order(seen, None);
        let mut trial = self.trial(&order);
        let took_ms = || seen.firsts.iter().map(|told| told.first.took_ms);
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
        seen.hung_up = repeat.await;
        self.take_back(seen, &trial).await;
    }

    /// The undo of what was never done, and the call after it.
    async fn undone_first(&self, seen: &mut Observed) {
        if !self.subject.has_undo {
            return;
        }
        let order = self.order(seen, None);
        let mut trial = self.trial(&order);
        let undo = async {
            trial.reach().await?;
            let request = trial.own(Direction::Forward)?;
            trial.unanswered();
            Ok((trial.undo().await?, request))
        };
        let undo = undo.await;
        if let Ok((undo, request)) = &undo
            && undo.is_done()
        {
            seen.after_undo[1] = Some(self.caller.call(request, Proof::Own).await);
        }
        seen.undo_of_nothing = Some(undo.map(|(undo, _)| undo));
        trial.undo_before().await;
    }

    /// Undoes the step and those before it.
    async fn take_back(&self, seen: &mut Observed, trial: &Trial<'_>) {
        if self.subject.has_undo
            && let Ok(undo) = trial.undo().await
        {
            seen.undos.push(undo);
        }
        trial.undo_before().await;
    }
}
