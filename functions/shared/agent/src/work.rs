//! The life of one request, from its receipt to the end of its message.

use domain::batch::{Handled, Record};
use domain::limits::{CONFLICTS_MAX, DEFERRAL_MS_MAX};
use domain::message::{Deferral, Outcome, Receipt, Reply, Request, SchedulerMessage};
use domain::ports::{Environment, PortError, Queues};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::trace;
use tracing::Instrument;

use crate::agent::{Agent, AgentPorts};
use crate::call::{Called, NO_ANSWER, PANICKED, call};
use crate::deadline::Deadline;
use crate::health::{Gate, Pass};
use crate::memo::{Claim, Keeper, Plan};
use crate::output;
use crate::policy::PARKED_RECEIVES_MAX;
use crate::retries::{Next, Retries};
use crate::service::{Answer, Call, Service};

/// The longest wait for a duplicate's call, in milliseconds, before its memo is read again.
const DUPLICATE_WAIT_MS: u64 = 1_000;

/// The most time left for a parked request to be taken up again, in milliseconds.
const PARK_SLACK_MS_MAX: u64 = 1_000;

/// Attempts of a step that may be given back because they were queued too long.
const QUEUED_ATTEMPTS_MAX: u32 = 10;

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
    /// The latest time at which a call of the step without an answer may still have its effect (rule 16).
    may_run_until: Option<Timestamp>,
    /// The wait before the next look, in milliseconds, if the service said of the last call that it is at work on it.
    under_way_ms: Option<u64>,
    /// The same if the service refused the last call because of a fault in the configuration (rule 17).
    misconfigured_ms: Option<u64>,
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
}

/// The reason for parking a request.
#[derive(Debug, Clone, Copy)]
enum Parked {
    /// Its back-off.
    Retry,
    /// The recovery of the service, or its turn after it.
    Health,
    /// The end of a call with the same key.
    Twin,
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

/// The permission to start a call.
struct Leave {
    pass: Pass,
    at: Timestamp,
    timeout_ms: u64,
}

impl<'a, P, F, S> Work<'a, P, F, S>
where
    P: AgentPorts,
    F: Fn() -> S + Sync,
    S: Service,
{
    pub(crate) fn new(ports: &'a P, agent: &'a Agent<F>, record: Record<Request>, received_at: Timestamp) -> Self {
        let Record { message: request, receipt, receive_count, .. } = record;
        let deadline = Deadline::of(&request, received_at, agent.policy.margin_ms);
        let keeper = agent.policy.memo.as_ref().map(|policy| Keeper::new(policy, &request, sent_at(&request)));
        // An earlier delivery may have called, and this one does not know how that ended.
        let earlier = (receive_count > 1).then(|| received_at.plus_ms(request.settles_within_ms));
        let may_run_until = request.may_run_until.max(earlier);
        Self {
            ports,
            agent,
            request,
            receipt,
            receive_count,
            deadline,
            retries: None,
            keeper,
            may_run_until,
            under_way_ms: None,
            misconfigured_ms: None,
            service: None,
        }
    }

    /// # Errors
    /// [`PortError`] if the memos cannot be read, the reply was not sent, or the message not hidden.
    pub(crate) async fn run(mut self) -> Result<Handled, PortError> {
        let ending = self.carry_out().await?;
        self.settle(ending).await
    }

    /// Calls the service until the work ends.
    async fn carry_out(&mut self) -> Result<Ending, PortError> {
        loop {
            let leave = match self.let_through().await? {
                Ok(leave) => leave,
                Err(ending) => return Ok(ending),
            };
            let called = self.call(&leave).await;
            let called = self.judge(leave.at, called);
            let counts = self.agent.health.report(self.ports, leave.pass, self.request.direction, &called).await;
            self.note_unanswered(leave.at, &called);
            (self.under_way_ms, self.misconfigured_ms) = (None, None);
            let next = match called {
                Called::Answered(Answer::Done(output)) => {
                    return Ok(Ending::Reply(output::done(output, &self.request)));
                }
                Called::Answered(Answer::Fail(_)) if !counts => self.again(None, "most steps are rejected"),
                Called::Answered(Answer::Fail(failure)) => {
                    return Ok(Ending::Reply(output::failed(failure, self.request.direction)));
                }
                Called::Answered(Answer::UnderWay { after_ms, .. }) => {
                    let next = self.again(after_ms, "a call with this key is under way");
                    self.under_way_ms = Some(self.wait_ms().max(after_ms.unwrap_or(0)));
                    next
                }
                Called::Answered(Answer::Retry { after_ms, problem }) => self.again(after_ms, &problem),
                Called::Answered(Answer::Unknown { problem }) => self.again(None, &problem),
                Called::Answered(Answer::Misconfigured { problem }) => {
                    let next = self.again(None, &problem);
                    self.misconfigured_ms = Some(self.wait_ms());
                    next
                }
                Called::TimedOut => self.again(None, NO_ANSWER),
                // The cause of the panic may affect more than the service object, so the retry is not in this
                // invocation.
                Called::Panicked => match self.again(None, PANICKED) {
                    Next::Here { wait_ms } => Next::OnQueue { wait_ms },
                    next @ (Next::OnQueue { .. } | Next::Exhausted | Next::TooLate) => next,
                },
            };
            match next {
                Next::Here { wait_ms } => self.ports.environment().sleep(wait_ms).await,
                Next::OnQueue { wait_ms } => return Ok(self.back_off(wait_ms).await),
                Next::Exhausted => return Ok(self.give_up(Silence::RetriesExhausted).await),
                Next::TooLate => return Ok(self.give_up(Silence::NoTimeLeft).await),
            }
        }
    }

    /// Leave to start a call now; otherwise the ending without one.
    ///
    /// # Errors
    /// [`PortError`] if the memos cannot be read or claimed: without them no call is safe.
    async fn let_through(&mut self) -> Result<Result<Leave, Ending>, PortError> {
        for _ in 0..CONFLICTS_MAX {
            if self.deadline.is_over(self.ports.environment().now()) {
                return Ok(Err(Ending::Silence(Silence::NoTimeLeft)));
            }
            if let Some(ending) = self.remember().await? {
                return Ok(Err(ending));
            }
            let now = self.ports.environment().now();
            if self.was_queued_too_long(now) {
                return Ok(Err(self.later()));
            }
            if !self.deadline.lets_start(now) {
                return Ok(Err(self.out_of_time().await));
            }
            let pass = match self.agent.health.ask(self.ports, self.has_waited(), self.timeout_ms(now)).await {
                Gate::Open(pass) => pass,
                Gate::Shut { wait_ms } => return Ok(Err(self.wait_for_service(wait_ms))),
            };
            self.retries.get_or_insert_with(|| retries(self.agent, self.receive_count, &self.request, pass));
            match self.claim(pass).await {
                Ok(Some(leave)) => return Ok(Ok(leave)),
                Ok(None) => self.agent.health.give_back(self.ports, pass).await,
                Err(error) => {
                    self.agent.health.give_back(self.ports, pass).await;
                    return Err(error);
                }
            }
        }
        Ok(Err(self.wait_for_duplicate(self.ports.environment().now().plus_ms(DUPLICATE_WAIT_MS)).await))
    }

    /// The ending that the memos give; `None` if the service must be called.
    async fn remember(&mut self) -> Result<Option<Ending>, PortError> {
        let Some(keeper) = &mut self.keeper else { return Ok(None) };
        Ok(match keeper.plan(self.ports).await? {
            Plan::Answer(outcome) => {
                if matches!(outcome, Outcome::Failed(_)) {
                    // A memo does not say whether a call before the rejection is still under way.
                    self.extend_under_way(self.deadline.settled_at(self.request.settles_within_ms));
                }
                Some(Ending::Reply(outcome))
            }
            Plan::Wait { until } => Some(self.wait_for_duplicate(until).await),
            Plan::Call | Plan::MarkOnly => None,
        })
    }

    /// Claims the key if there are memos, and gives leave if nothing changed meanwhile.
    async fn claim(&mut self, pass: Pass) -> Result<Option<Leave>, PortError> {
        let mut until = None;
        if let Some(keeper) = &mut self.keeper {
            let now = self.ports.environment().now();
            let claimed_until = now.plus_ms(self.agent.policy.call_timeout_ms.min(self.deadline.left_ms(now)));
            if keeper.claim(self.ports, claimed_until).await? == Claim::Lost {
                return Ok(None);
            }
            until = Some(claimed_until);
        }
        let at = self.ports.environment().now();
        if until.is_some_and(|until| at >= until) {
            // The claim ended during its own write. Another request may have called since, so claim or plan again.
            return Ok(None);
        }
        // The call must not outlast its claim.
        let timeout_ms = until.map_or(u64::MAX, |until| at.ms_until(until)).min(self.timeout_ms(at));
        Ok(self.deadline.lets_start(at).then_some(Leave { pass, at, timeout_ms }))
    }

    async fn call(&mut self, leave: &Leave) -> Called {
        let retries = self.retries();
        let Self { ports, agent, request, service, .. } = self;
        let arguments = Call {
            order_id: request.order_id,
            step: &request.step,
            idempotency_key: &request.idempotency_key,
            order: &request.order,
            outputs: &request.outputs,
            body: request.body.as_ref(),
            encode: request.encode,
            path: request.path.as_deref(),
            attempt: request.attempt,
            started_at: leave.at,
            timeout_ms: leave.timeout_ms,
        };
        tracing::debug!(monotonic_counter.agent_calls = 1, timeout_ms = leave.timeout_ms, "call");
        let calling = async {
            let called = call(ports.environment(), service, &agent.make_service, request.direction, &arguments).await;
            called.trace_end();
            called
        };
        let called = calling.instrument(trace::called(&agent.name, request.order_id, retries)).await;
        tracing::debug!(histogram.agent_call_ms = leave.at.ms_until(ports.environment().now()), "call over");
        called
    }

    /// Takes an answer that is a rejection unless a call is under way as the one or the other.
    fn judge(&mut self, started_at: Timestamp, called: Called) -> Called {
        match called {
            Called::Answered(Answer::UnderWay { unless_alone: Some(failure), .. })
                if self.may_run_until.is_none_or(|until| until <= started_at) =>
            {
                // A duplicate of this request may be the call that is under way.
                self.extend_under_way(self.deadline.settled_at(self.request.settles_within_ms));
                Called::Answered(Answer::Fail(failure))
            }
            called @ (Called::Answered(_) | Called::TimedOut | Called::Panicked) => called,
        }
    }

    /// A call without an answer may still have its effect for a while. So may one that the service took on.
    fn note_unanswered(&mut self, started_at: Timestamp, called: &Called) {
        if called.leaves_effect_open() {
            self.extend_under_way(started_at.plus_ms(self.request.settles_within_ms));
        }
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
        tracing::info!(monotonic_counter.agent_retries = 1, retries = retries.count(), ?next, problem, "to be retried");
        next
    }

    /// Waits for the service, or gives the attempt back if the wait would be too long.
    fn wait_for_service(&self, wait_ms: u64) -> Ending {
        if !self.is_worn_out() && self.deadline.lets_start(self.back_at(wait_ms)) {
            Ending::Park { wait_ms, reason: Parked::Health }
        } else {
            deferred(wait_ms)
        }
    }

    /// Waits for the back-off, or gives up if the wait would be too long.
    async fn back_off(&self, wait_ms: u64) -> Ending {
        if self.is_worn_out() {
            deferred(wait_ms)
        } else if self.deadline.lets_start(self.back_at(wait_ms)) {
            Ending::Park { wait_ms, reason: Parked::Retry }
        } else {
            self.give_up(Silence::NoTimeLeft).await
        }
    }

    /// Waits for a call with the same key. A forward request may leave the reply to that call; an undo may not, since
    /// that call is forward.
    async fn wait_for_duplicate(&self, until: Timestamp) -> Ending {
        let wait_ms = self.ports.environment().now().ms_until(until).min(DUPLICATE_WAIT_MS);
        if self.is_worn_out() {
            deferred(wait_ms)
        } else if !self.deadline.is_over(self.back_at(wait_ms)) {
            Ending::Park { wait_ms, reason: Parked::Twin }
        } else {
            match self.request.direction {
                Direction::Forward => self.give_up(Silence::TwinAtWork).await,
                Direction::Undo => deferred(wait_ms),
            }
        }
    }

    /// The latest time at which a parked request should be back. It may come late, and must still have time for a
    /// deferral: that costs nothing, and silence costs a failure.
    fn back_at(&self, wait_ms: u64) -> Timestamp {
        let slack_ms = PARK_SLACK_MS_MAX.min(self.request.budget_ms / 10);
        self.ports.environment().now().plus_ms(wait_ms.saturating_add(slack_ms))
    }

    /// Whether its message was received too often to be parked again. A new message starts from 1.
    const fn is_worn_out(&self) -> bool {
        self.receive_count >= PARKED_RECEIVES_MAX
    }

    /// Whether the request was queued so long before its first call that the requests behind it would be too late.
    fn was_queued_too_long(&self, now: Timestamp) -> bool {
        let queued_ms = sent_at(&self.request).ms_until(now);
        let queued_ms_max = self.request.budget_ms.saturating_mul(self.agent.policy.queued_percent_max) / 100;
        let is_first_look = self.receive_count == 1 && self.retries.is_none();
        // A fast clock makes every request look old; it must not send them away for ever.
        is_first_look && queued_ms > queued_ms_max && self.request.attempt <= QUEUED_ATTEMPTS_MAX
    }

    /// Gives the attempt back for a random time that grows with each attempt, so that retries spread out.
    fn later(&self) -> Ending {
        tracing::info!(monotonic_counter.agent_crowded_out = 1, attempt = self.request.attempt, "queued too long");
        let span_ms = self.request.budget_ms.saturating_mul(u64::from(self.request.attempt)).max(1);
        deferred(self.ports.environment().random() % span_ms)
    }

    /// There is no time for a call. If it was spent waiting for the service, that is no failure of the step.
    async fn out_of_time(&self) -> Ending {
        match self.agent.health.failed_since(self.ports, sent_at(&self.request)).await {
            Some(wait_ms) => deferred(wait_ms),
            None => Ending::Silence(Silence::NoTimeLeft),
        }
    }

    /// There is no answer of the service. If it is known to fail, is at work on the call or refuses its caller, that is no
    /// failure of the step.
    async fn give_up(&self, silence: Silence) -> Ending {
        let waits = || self.until_settled_ms().or(self.misconfigured_ms);
        match self.agent.health.failing(self.ports).await.or_else(waits) {
            Some(wait_ms) => deferred(wait_ms),
            None => Ending::Silence(silence),
        }
    }

    /// If the service is at work on the call: the time until the calls of this attempt have settled, in milliseconds. A
    /// next attempt before that would take every 409 for a call under way, and so would the one after it.
    fn until_settled_ms(&self) -> Option<u64> {
        let settled = self.deadline.settled_at(self.request.settles_within_ms);
        let until_settled_ms = self.ports.environment().now().ms_until(settled);
        self.under_way_ms.map(|wait_ms| wait_ms.max(until_settled_ms))
    }

    /// Whether it may be one of the requests that an outage delayed. A deferred request comes as a new message of a
    /// later attempt.
    fn has_waited(&self) -> bool {
        self.receive_count > 1 || self.request.attempt > 1 || self.retries() > 0
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

    /// # Errors
    /// [`PortError`] if the reply was not sent, or the message not hidden.
    async fn settle(mut self, ending: Ending) -> Result<Handled, PortError> {
        match ending {
            Ending::Reply(outcome) => {
                let outcome = self.write_down(outcome).await;
                self.reply(outcome).await
            }
            Ending::Park { wait_ms, reason } => {
                self.release_claim().await;
                trace::ended("parked");
                tracing::info!(
                    monotonic_counter.agent_parked = 1,
                    wait_ms,
                    ?reason,
                    retries = self.retries(),
                    "parked"
                );
                self.ports.queues().return_to_agent(&self.agent.name, &self.receipt, wait_ms).await?;
                Ok(Handled::Later)
            }
            Ending::Silence(silence) => {
                self.release_claim().await;
                Ok(self.let_go(silence))
            }
        }
    }

    async fn write_down(&mut self, outcome: Outcome) -> Outcome {
        match (&mut self.keeper, &outcome) {
            (Some(keeper), Outcome::Done(_) | Outcome::Failed(_)) => keeper.complete(self.ports, outcome).await,
            (Some(keeper), Outcome::Deferred(_)) => {
                keeper.release(self.ports).await;
                outcome
            }
            (None, Outcome::Done(_) | Outcome::Failed(_) | Outcome::Deferred(_)) => outcome,
        }
    }

    async fn release_claim(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.release(self.ports).await;
        }
    }

    async fn reply(self, outcome: Outcome) -> Result<Handled, PortError> {
        if self.deadline.is_over(self.ports.environment().now()) {
            return Ok(self.let_go(Silence::AnsweredTooLate));
        }
        trace::ended(match &outcome {
            Outcome::Done(_) => "done",
            Outcome::Failed(_) => "failed",
            Outcome::Deferred(_) => "deferred",
        });
        match &outcome {
            Outcome::Done(_) => tracing::debug!(monotonic_counter.agent_done = 1, retries = self.retries(), "done"),
            Outcome::Failed(_) => {
                tracing::debug!(monotonic_counter.agent_failed = 1, retries = self.retries(), "failed");
            }
            Outcome::Deferred(Deferral { wait_ms }) => {
                tracing::info!(monotonic_counter.agent_deferred = 1, wait_ms, retries = self.retries(), "deferred");
            }
        }
        let priority = self.request.priority;
        let now = self.ports.environment().now();
        let may_run_until = self.may_run_until.filter(|&until| now < until);
        let reply = Reply { may_run_until, ..self.request.reply(outcome) };
        self.ports.queues().to_scheduler(SchedulerMessage::Reply(reply), priority, 0).await?;
        Ok(Handled::Done)
    }

    fn let_go(&self, silence: Silence) -> Handled {
        trace::ended("silent");
        trace::failed(&format_args!("no answer: {silence:?}"));
        tracing::warn!(monotonic_counter.agent_silent = 1, reason = ?silence, retries = self.retries(), "silent");
        Handled::Done
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

fn deferred(wait_ms: u64) -> Ending {
    Ending::Reply(Outcome::Deferred(Deferral { wait_ms: wait_ms.min(DEFERRAL_MS_MAX) }))
}
