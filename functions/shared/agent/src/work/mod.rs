//! The life of one request, from its receipt to the end of its message.

mod leave;
mod look;
mod settle;
mod wait;

use std::sync::Arc;

use domain::batch::{Handled, Record};
use domain::limits::LOOKED_MS_MAX;
use domain::message::{Acceptance, Outcome, Receipt, Request};
use domain::output;
use domain::ports::{Environment, PortError, Store};
use domain::task::shortened;
use domain::time::Timestamp;
use domain::trace;
use tracing::Instrument;

use crate::agent::Agent;
use crate::call::{Called, NO_ANSWER, PANICKED, call};
use crate::concurrency::Seat;
use crate::deadline::Deadline;
use crate::health::Pass;
use crate::memo::Keeper;
use crate::ports::AgentPorts;
use crate::retries::{Next, Retries};
use crate::service::{Answer, Call, MayBegin, Service};
use leave::is_recent;

/// One request and its state in this delivery.
pub(crate) struct Work<'a, P, F, S> {
    ports: &'a P,
    agent: &'a Agent<F>,
    request: Request,
    receipt: Receipt,
    receive_count: u32,
    deadline: Deadline,
    /// Known from the first call on.
    retries: Option<Retries>,
    keeper: Option<Keeper>,
    /// When it was last known that the next call is wanted (rule 6): the request was sent, or the task was read.
    looked_at: Option<Timestamp>,
    /// The latest time at which a call of the step without an answer may still have its effect (rule 16).
    may_run_until: Option<Timestamp>,
    /// The same for calls of earlier deliveries, as far as this instance knows.
    earlier_until: Option<Timestamp>,
    /// The same for the calls of this delivery alone.
    own_until: Option<Timestamp>,
    /// The wait before the next look, in milliseconds, if the service said of the last call that it is at work on it.
    under_way_ms: Option<u64>,
    /// The same if the last call says nothing about the step: it was refused because of a fault in the configuration, or
    /// could not be made (rule 17).
    no_failure_ms: Option<u64>,
    /// Whether the last call failed by a fault of the order: the service answered others well meanwhile.
    is_own: bool,
    /// How long the call took that brought the outcome, in milliseconds.
    call_ms: Option<u64>,
    /// What went wrong with the last call of this delivery.
    problem: Option<Arc<str>>,
    /// When its next call was due: at its receipt, or after its back-off. What holds the call up since is a limit of ours.
    due_at: Timestamp,
    /// Whether the last call could not be made.
    is_uncalled: bool,
    /// Made at the first call, and made again after a call without an answer.
    service: Option<S>,
}

/// How the work on a request ended, in this delivery.
enum Ending {
    /// Reply to the scheduler, then acknowledge the message.
    Reply(Outcome),
    /// Hide the message for this long, then take it up again.
    Park { wait_ms: u64, reason: Parked },
    /// Acknowledge the message without a reply; the supervisor notices.
    Silence(Silence),
    /// Acknowledge the message: nobody waits for a reply.
    Over,
}

/// The reason for parking a request.
#[derive(Debug, Clone, Copy)]
enum Parked {
    /// Its back-off.
    Retry,
    /// The recovery of the service, or its turn at a limit of ours.
    Health,
    /// The end of a call with the same key.
    Twin,
    /// The next start of the host.
    Stop,
}

/// The reason for silence.
#[derive(Debug, Clone, Copy)]
enum Silence {
    /// Too late for another call.
    NoTimeLeft,
    /// There is an answer, but it came after the deadline.
    AnsweredTooLate,
    /// The retries ended without an answer of the service.
    RetriesExhausted,
    /// A duplicate of the request is at work, and will answer.
    TwinAtWork,
}

/// What another call of the step may be doing.
enum Other {
    None,
    Runs,
    /// It has settled, and its service may have taken it on.
    MayBeTakenOn,
}

/// The permission to start a call.
struct Leave {
    pass: Pass,
    at: Timestamp,
    timeout_ms: u64,
    /// Held during the call.
    seat: Option<Seat>,
}

impl<'a, P, F, S> Work<'a, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    pub(crate) fn new(ports: &'a P, agent: &'a Agent<F>, record: Record<Request>, received_at: Timestamp) -> Self {
        let Record { message: request, receipt, receive_count, .. } = record;
        let deadline = Deadline::of(&request, received_at, &agent.policy);
        let is_look = request.look.is_some();
        let keeper = agent.policy.memo.as_ref().filter(|_| !is_look);
        let keeper = keeper.map(|policy| Keeper::new(policy, &request, sent_at(&request)));
        // An earlier delivery may have called, and who does not remember it does not know how that ended.
        let unknown = || Some(received_at.plus_ms(request.settles_within_ms));
        let known = agent.parked.take(&receipt.message_id, receive_count);
        let earlier_until = known.unwrap_or_else(|| if receive_count > 1 && !is_look { unknown() } else { None });
        let may_run_until = request.may_run_until;
        // The sender's clock may be ahead. A message that comes again may have been hidden for long. A request that is sent
        // again, which shows by the end of its attempt, may be of a paused order.
        let is_sent_again = may_run_until.is_some_and(|at| request.complete_by <= at);
        let looked_at = (receive_count == 1 && !is_sent_again).then(|| sent_at(&request).min(received_at));
        Self {
            ports,
            agent,
            request,
            receipt,
            receive_count,
            deadline,
            retries: None,
            keeper,
            looked_at,
            may_run_until,
            earlier_until,
            own_until: None,
            under_way_ms: None,
            no_failure_ms: None,
            is_own: false,
            call_ms: None,
            problem: None,
            due_at: received_at,
            is_uncalled: false,
            service: None,
        }
    }

    /// # Errors
    /// [`PortError`] if the memos cannot be read, the reply was not sent, or the message not hidden.
    pub(crate) async fn run(&mut self) -> Result<Handled, PortError> {
        let ending = self.carry_out().await?;
        self.settle(ending).await
    }

    /// Calls the service until the work ends.
    async fn carry_out(&mut self) -> Result<Ending, PortError> {
        if self.request.look.is_some() {
            return Box::pin(self.look_at_state()).await;
        }
        let callback_url = self.callback_url().await?;
        loop {
            let mut leave = match self.let_through().await? {
                Ok(leave) => leave,
                Err(ending) => return Ok(ending),
            };
            let (called, call_ms) = self.call(&leave, callback_url.as_deref()).await;
            drop(leave.seat.take());
            self.looked_at = None;
            // Not for a 409 that is taken for a 202 below: the service may have rejected the step.
            let is_202 = matches!(called, Called::Answered(Answer::UnderWay { unless_alone: None, .. }));
            let is_taken_on = is_202 && self.may_be_told_later();
            let called = self.judge(leave.at, called).await;
            let (sent_at, health) = (sent_at(&self.request), &self.agent.health);
            self.is_own = health.report(self.ports, leave.pass, &self.request, sent_at, &called, is_taken_on).await;
            self.note_unanswered(leave.at, &called);
            (self.under_way_ms, self.no_failure_ms) = (None, None);
            self.is_uncalled = matches!(called, Called::Answered(Answer::NotCalled { .. }));
            let next = match called {
                Called::Answered(Answer::Done(output)) => {
                    self.call_ms = Some(call_ms);
                    return Ok(Ending::Reply(output::done(output, self.request.keep.as_ref(), self.request.direction)));
                }
                Called::Answered(Answer::Fail(_)) if !self.is_own => self.again(None, "most steps are rejected"),
                Called::Answered(Answer::Fail(failure)) => {
                    self.call_ms = Some(call_ms);
                    return Ok(Ending::Reply(output::failed(failure, self.request.direction)));
                }
                Called::Answered(Answer::UnderWay { unless_alone: None, poll, .. }) if self.may_be_told_later() => {
                    return Ok(Ending::Reply(Outcome::Accepted(self.acceptance(poll).await)));
                }
                Called::Answered(Answer::UnderWay { after_ms, .. }) => {
                    let next = self.again(after_ms.or(Some(0)), "a call with this key is under way");
                    // Nothing is wrong.
                    self.problem = None;
                    self.under_way_ms = Some(self.wait_ms().max(after_ms.unwrap_or(0)));
                    next
                }
                Called::Answered(Answer::Retry { after_ms, problem } | Answer::Unknown { after_ms, problem }) => {
                    self.again(after_ms, &problem)
                }
                Called::Answered(Answer::Misconfigured { after_ms, problem }) => {
                    let next = self.again(after_ms, &problem);
                    self.no_failure_ms = (!self.is_own).then(|| self.wait_ms().max(after_ms.unwrap_or(0)));
                    next
                }
                Called::Answered(Answer::NotCalled { problem }) => {
                    let next = self.again(None, &problem);
                    self.no_failure_ms = Some(self.wait_ms());
                    next
                }
                Called::TimedOut => self.again(None, NO_ANSWER),
                // The cause of the panic may affect more than the service object, so the retry is not in this
                // invocation.
                Called::Panicked => match self.again(None, PANICKED) {
                    Next::Here { wait_ms } => Next::OnQueue { wait_ms },
                    next @ (Next::OnQueue { .. } | Next::AskedLater { .. } | Next::Exhausted | Next::TooLate) => next,
                },
            };
            let goes_on = matches!(next, Next::Here { .. } | Next::OnQueue { .. });
            if goes_on && !self.is_uncalled && self.retries.is_some_and(Retries::is_told) {
                self.tell_trouble().await;
            }
            match next {
                Next::Here { wait_ms } => {
                    self.ports.environment().sleep(wait_ms).await;
                    if !self.is_uncalled {
                        self.due_at = self.ports.environment().now();
                    }
                }
                Next::OnQueue { wait_ms } if self.is_uncalled => return Ok(self.wait_for_turn(wait_ms)),
                Next::OnQueue { wait_ms } => return Ok(self.back_off(wait_ms).await),
                Next::AskedLater { wait_ms } => {
                    self.tell_trouble().await;
                    return Ok(self.come_later(wait_ms).await);
                }
                Next::Exhausted => return Ok(self.give_up(Silence::RetriesExhausted).await),
                Next::TooLate => return Ok(self.give_up(Silence::NoTimeLeft).await),
            }
        }
    }

    /// The answer to a call, and how many milliseconds it took.
    async fn call(&mut self, leave: &Leave, callback_url: Option<&str>) -> (Called, u64) {
        let retries = self.retries();
        let Self { ports, agent, request, service, looked_at, .. } = self;
        let may_begin = || is_recent(*looked_at, ports.environment().now());
        let started_at = ports.environment().wall();
        let arguments = Call {
            callback_url,
            is_probe: leave.pass.probe || leave.pass.other,
            ..Call::of(request, started_at, leave.timeout_ms, MayBegin(&may_begin))
        };
        tracing::debug!(monotonic_counter.agent_calls = 1, timeout_ms = leave.timeout_ms, "call");
        let calling = async {
            let called = call(ports.environment(), service, &agent.make_service, request.direction, &arguments).await;
            called.trace_end();
            called
        };
        let called = calling.instrument(trace::called(&agent.name, request.order_id, retries)).await;
        let call_ms = leave.at.ms_until(ports.environment().now());
        tracing::debug!(histogram.agent_call_ms = call_ms, "call over");
        (called, call_ms.min(leave.timeout_ms))
    }

    /// Takes an answer that is a rejection unless a call is under way as the one or the other. Takes a success of which the
    /// step cannot keep what it needs as no answer: its body may be lost.
    async fn judge(&mut self, started_at: Timestamp, called: Called) -> Called {
        match called {
            Called::Answered(Answer::Done(output)) => {
                let Request { keep, direction, .. } = &self.request;
                Called::Answered(Answer::done(output, keep.as_ref(), *direction))
            }
            Called::Answered(Answer::UnderWay { unless_alone: Some(failure), after_ms, poll }) => {
                Called::Answered(match self.other(started_at).await {
                    Other::Runs => Answer::UnderWay { unless_alone: Some(failure), after_ms, poll },
                    Other::MayBeTakenOn => {
                        // A person may know better.
                        let said = failure.message;
                        self.problem =
                            Some(shortened(&format!("{said}: taken for a 202, as an answer got lost before")));
                        self.tell_trouble().await;
                        Answer::UnderWay { unless_alone: None, after_ms, poll }
                    }
                    Other::None => {
                        // A duplicate of this request may be the call that is under way.
                        self.extend_if_over();
                        Answer::Fail(failure)
                    }
                })
            }
            called @ (Called::Answered(_) | Called::TimedOut | Called::Panicked) => called,
        }
    }

    /// The other call of the step that may be under way when this one starts. The task says whether the request was sent
    /// again since. If the task cannot be read, such a call may run.
    async fn other(&mut self, started_at: Timestamp) -> Other {
        let is_over = |until: Option<Timestamp>| until.is_none_or(|until| until <= started_at);
        if !is_over(self.may_run_until.max(self.earlier_until)) {
            return Other::Runs;
        }
        let Ok(task) = self.ports.store().task(self.request.order_id).await else { return Other::Runs };
        let stored = task.and_then(|task| task.step(&self.request.step)?.1.may_run_until);
        self.may_run_until = self.may_run_until.max(stored);
        if !is_over(stored) {
            return Other::Runs;
        }
        // The answer that got lost may have been a 202. Its result is awaited from the start of that call.
        let until = self.may_run_until.max(self.earlier_until);
        let called_at = until.map(|until| until.minus_ms(self.request.settles_within_ms));
        let is_awaited = |ms| called_at.is_some_and(|called_at| started_at < called_at.plus_ms(ms));
        match self.request.wait_within_ms {
            Some(wait_within_ms) if self.may_be_told_later() && is_awaited(wait_within_ms) => Other::MayBeTakenOn,
            Some(_) | None => Other::None,
        }
    }

    /// A call without an answer may still have its effect for a while. So may one that the service took on.
    fn note_unanswered(&mut self, started_at: Timestamp, called: &Called) {
        if called.leaves_effect_open() {
            self.own_until = Some(started_at.plus_ms(self.request.settles_within_ms));
            self.may_run_until = self.may_run_until.max(self.own_until);
        }
    }

    /// The address for a result that comes later, if it may.
    async fn callback_url(&self) -> Result<Option<String>, PortError> {
        match &self.agent.callbacks {
            Some(callbacks) if self.may_be_told_later() => callbacks.url(self.ports, &self.request).await,
            Some(_) | None => Ok(None),
        }
    }

    /// That the service took the call on. Where no state can be asked, the result is awaited all the same.
    async fn acceptance(&mut self, poll: Option<Result<Arc<str>, String>>) -> Acceptance {
        let poll = match poll.transpose() {
            Ok(poll) => poll,
            Err(problem) => {
                self.problem = Some(shortened(&format!("the state is not asked: {problem}")));
                self.tell_trouble().await;
                None
            }
        };
        Acceptance { poll }
    }

    /// Whether the service may tell the result later (rule 36). A memo cannot know what came of such a call.
    const fn may_be_told_later(&self) -> bool {
        self.request.wait_within_ms.is_some() && self.keeper.is_none()
    }

    /// A duplicate of this request may have begun a call, until it looks at the step and finds it over (rule 6).
    fn extend_if_over(&mut self) {
        let now = self.ports.environment().now();
        self.extend_under_way(now.plus_ms(LOOKED_MS_MAX + self.request.settles_within_ms));
    }

    fn extend_under_way(&mut self, until: Timestamp) {
        self.may_run_until = self.may_run_until.max(Some(until));
    }

    /// Counts a call that must be repeated, and returns where it waits.
    fn again(&mut self, after_ms: Option<u64>, problem: &str) -> Next {
        let (now, draw) = (self.ports.environment().now(), self.ports.environment().random());
        let policy = &self.agent.policy;
        let retries = self.retries.get_or_insert_with(|| Retries::of_delivery(policy, self.receive_count));
        let next = retries.next(policy, self.deadline, now, after_ms, draw);
        tracing::info!(
            monotonic_counter.agent_retries = 1,
            retries = retries.count(),
            next = next.name(),
            problem,
            "to be retried"
        );
        self.problem = Some(shortened(problem));
        next
    }

    fn timeout_ms(&self, at: Timestamp) -> u64 {
        self.agent.policy.call_timeout_ms.min(self.deadline.left_ms(at))
    }

    /// The back-off's present wait, in milliseconds.
    fn wait_ms(&self) -> u64 {
        self.retries.as_ref().map_or(0, Retries::wait_ms)
    }

    fn retries(&self) -> u32 {
        self.retries.as_ref().map_or(0, Retries::count)
    }
}

/// When the request was sent, by the sender's clock.
fn sent_at(request: &Request) -> Timestamp {
    request.complete_by.minus_ms(request.budget_ms)
}

/// The retries so far. If the service failed since the request was sent, earlier deliveries may have been waits for it
/// and no retries. These cannot be distinguished, so the count starts afresh: the breaker bounds the calls to a
/// failing service.
fn retries<F>(agent: &Agent<F>, receive_count: u32, request: &Request, pass: Pass) -> Retries {
    let may_have_been_parked = pass.failed_since(sent_at(request));
    Retries::of_delivery(&agent.policy, if may_have_been_parked { 1 } else { receive_count })
}
