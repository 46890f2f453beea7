//! A task under a sequence of events, with every invariant between one version and the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::draw::NOWHERE;
use super::written::Written;
use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, DELAY_MS_MAX, FALLBACKS_MAX, HISTORY_MAX, SETTLES_WITHIN_MS_MAX, SHARDS,
    STATUS_RESEND_DOUBLINGS_MAX, UNWATCHED_MS_MAX,
};
use crate::machine::{Decision, Effect, Event, Happened, Moment, Verdict, decide, request};
use crate::message::{Action, Deferral, Outcome, idempotency_key};
use crate::order::Order;
use crate::task::{Attempt, Direction, NoticeKind, ProcessState, Step, StepState, Task, Watch, What, reason};
use crate::time::Timestamp;
use crate::workflow::{OnLate, StepRule, Workflow};

/// A task under test, and the facts that the checks remember.
pub(super) struct Walker {
    pub(super) workflow: Workflow,
    pub(super) order: Order,
    pub(super) task: Task,
    pub(super) now: Timestamp,
    /// The effects of the last decision.
    pub(super) effects: Vec<Effect>,
    /// The latest time of any clock.
    latest: Timestamp,
    /// Direction of each attempt, by step and number.
    pub(super) claims: BTreeMap<(usize, u32), Direction>,
    /// Attempts that their agent declined.
    declined: BTreeSet<(usize, u32)>,
    /// Attempts whose failure was counted.
    counted: BTreeSet<(usize, u32)>,
    /// Versions of the alerts that were returned as effects.
    alerts: BTreeSet<u64>,
    instance: Arc<str>,
    pub(super) draws: u64,
    written: Written,
}

impl Walker {
    pub(super) fn new(workflow: Workflow, order: Order) -> Self {
        let (task, now) = (Task::new(&order, &workflow, SHARDS, 0), order.submitted_at);
        let (claims, declined, counted, alerts) = Default::default();
        let written = Written::new(task.clone());
        Self {
            workflow,
            order,
            task,
            now,
            effects: Vec::new(),
            latest: now,
            claims,
            declined,
            counted,
            alerts,
            instance: "walker".into(),
            draws: 0,
            written,
        }
    }

    /// Decides, checks the decision, and applies it.
    pub(super) fn apply(&mut self, event: Event<'_>) -> Verdict {
        self.draws += 1;
        self.latest = self.latest.max(self.now);
        let draw = self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let moment = Moment { now: self.now, instance: &self.instance, nonce: self.draws, draw };
        let decision = decide(&self.task, &self.workflow, event, moment).expect("a state that it made itself");
        let again = decide(&self.task, &self.workflow, event, moment).expect("the same again");
        assert_eq!(decision, again, "a decision depends on nothing else");
        let Decision { change, effects, happened, mut verdicts } = decision;
        let verdict = verdicts.pop().expect("one for the event");
        match verdict {
            Verdict::Taken => assert!(change.is_some(), "taken, and nothing changed"),
            Verdict::Dropped(_)
                if happened.iter().any(|what| matches!(what, Happened::What(What::Contradicted(_)))) =>
            {
                check_told(&self.task, change.as_ref(), &happened);
            }
            Verdict::Nothing | Verdict::Dropped(_) | Verdict::Refused(_) => {
                assert!(change.iter().all(|after| self.is_repeat(after)), "{verdict:?}: {change:?}");
            }
        }
        let before = self.task.clone();
        if let Some(after) = change {
            assert_eq!(after.nonce, self.draws);
            self.check_change(&before, &after, event);
            check_reported(&before, &after, &happened);
            self.written.check(&before, &after);
            self.task = after;
        }
        effects.iter().for_each(|&effect| self.check_effect(effect));
        self.effects = effects;
        verdict
    }

    /// Whether nothing changed but that requests in flight are sent again.
    fn is_repeat(&self, after: &Task) -> bool {
        let Task { version, nonce, watch, watch_at, .. } = self.task;
        let mut repeated = Task { version, nonce, watch, watch_at, ..after.clone() };
        for (step, before) in repeated.steps.iter_mut().zip(&self.task.steps) {
            if step.process_state == StepState::Processing {
                step.may_run_until = before.may_run_until;
            }
        }
        repeated == self.task
    }

    fn check_change(&mut self, before: &Task, after: &Task, event: Event<'_>) {
        assert_eq!(after.version, before.version + 1);
        assert!(after.history.len() <= HISTORY_MAX);
        let fixed =
            |task: &Task| (task.order_id, task.workflow.clone(), task.workflow_version, task.priority, task.notify);
        assert_eq!(fixed(after), fixed(before));
        if before.process_state.is_final() {
            assert_eq!((after.process_state, &after.steps), (before.process_state, &before.steps), "what ended stays");
            assert_eq!((&after.reason, &after.paused), (&before.reason, &before.paused));
        }
        for index in 0..after.steps.len() {
            self.check_step(before, after, index, event);
        }
        check_end(after);
        self.check_lines(before, after);
        let is_past = before.steps.iter().any(|step| {
            step.pivot && step.direction == Direction::Forward && step.process_state == StepState::Processed
        });
        let is_undone = after.steps.iter().any(|step| step.direction == Direction::Undo && !step.dropped);
        assert!(!is_past || !is_undone, "{event:?} turned an order round that was past its pivot");
        self.check_close(before, after, event);
        self.check_notices(before, after, event);
        self.check_late(before, after, event);
        self.check_watch(after);
    }

    fn check_step(&mut self, before: &Task, after: &Task, index: usize, event: Event<'_>) {
        let (b, a) = (&before.steps[index], &after.steps[index]);
        let is_claimed = a.attempt == b.attempt + 1;
        assert!(is_claimed || a.attempt == b.attempt, "{} to {}", b.attempt, a.attempt);
        let is_held = a.process_state == StepState::Processing;
        assert_eq!(
            (is_held, is_held),
            (a.locked_by.is_some(), a.complete_by.is_some()),
            "a claim has holder and deadline"
        );
        if is_claimed {
            self.claims.insert((index, a.attempt), a.direction);
            self.check_claim(after, index);
        }
        assert!(!(b.direction == Direction::Undo && a.direction == Direction::Forward), "nothing turns forward again");
        assert!(!b.is_undone() || a.is_undone(), "an undo that is confirmed stays");
        if a.failure_count > b.failure_count {
            assert_eq!(a.failure_count, b.failure_count + 1);
            assert_eq!(b.process_state, StepState::Processing, "only an attempt under way can fail");
            assert!(self.counted.insert((index, b.attempt)), "attempt {} is counted twice", b.attempt);
        }
        assert!(a.failure_count <= a.attempt);
        self.check_agent([b, a], index, event);
        if a.process_state == StepState::Skipped && b.process_state != StepState::Skipped {
            let rule = &self.workflow.steps[index];
            let is_so = a.dropped || if a.was_claimed() { rule.optional } else { !applies(rule, after) };
            assert!(is_so && a.direction == Direction::Forward, "{a:?} is skipped");
        }
        let has_ended = b.process_state == StepState::Processing && (!is_held || is_claimed);
        assert!(!has_ended || self.may_end(before, after, index, event), "{event:?} ended {b:?}");
    }

    /// The agent changes only after every attempt so far was declined (rule 21).
    fn check_agent(&mut self, [before, after]: [&Step; 2], index: usize, event: Event<'_>) {
        if let Event::Reply { reply, .. } = event
            && let Outcome::Deferred(Deferral { fallback: Some(_), .. }) = &reply.outcome
            && (&reply.step, reply.attempt) == (&before.name, before.attempt)
            && (before.direction, before.process_state) == (Direction::Forward, StepState::Processing)
        {
            self.declined.insert((index, before.attempt));
        }
        let may_change = before.direction == Direction::Forward
            && (1..=before.attempt).all(|attempt| self.declined.contains(&(index, attempt)));
        assert!(before.agent == after.agent || may_change, "{event:?} gave a step to another agent: {after:?}");
        let usual = &self.workflow.steps[index].agent;
        assert!(after.fallback.is_empty() || after.agent != *usual, "the usual agent names its own fallback");
        assert!(!after.fallback.contains(usual) && after.fallback.len() < FALLBACKS_MAX);
    }

    /// Whether every attempt before the present one was declined.
    fn is_uncalled(&self, index: usize) -> bool {
        let step = &self.task.steps[index];
        let mut earlier = 1..step.attempt;
        step.direction == Direction::Forward && earlier.all(|attempt| self.declined.contains(&(index, attempt)))
    }

    fn check_claim(&self, after: &Task, index: usize) {
        let (step, rule) = (&after.steps[index], &self.workflow.steps[index]);
        assert_eq!(step.process_state, StepState::Processing);
        assert_eq!(step.locked_by.as_ref(), Some(&self.instance));
        assert_eq!(step.complete_by, Some(self.now.plus_ms(rule.complete_within_ms)));
        assert!(step.started_at.is_some() && step.not_before.is_none());
        assert!(after.paused.is_none(), "nothing starts while an operator holds it");
        match step.direction {
            Direction::Forward => {
                let may_begin = |step: &Step| is_over(step) || step.dropped;
                assert!(rule.ancestors.iter().all(|&earlier| may_begin(&after.steps[earlier])) && !step.dropped);
                assert!(applies(rule, after), "a step that does not apply is claimed");
            }
            Direction::Undo => {
                let is_gone = |step: &Step| !step.was_claimed() || step.is_undone();
                let mut steps = after.steps.iter().zip(&self.workflow.steps);
                let is_whole = after.process_state == ProcessState::Compensating;
                let is_later =
                    |other: &StepRule| other.ancestors.contains(&index) && (is_whole || other.is_of_line(rule));
                assert!((is_whole || step.dropped) && steps.all(|(step, other)| !is_later(other) || is_gone(step)));
                assert!(!rule.no_undo, "an undo that there is not is claimed");
            }
        }
    }

    /// Whether this event may end the attempt in flight of a step.
    fn may_end(&self, before: &Task, after: &Task, index: usize, event: Event<'_>) -> bool {
        let (b, a) = (&before.steps[index], &after.steps[index]);
        let has_turned = b.direction != a.direction;
        let rule = &self.workflow.steps[index];
        match event {
            Event::Reply { reply, .. } if *reply.step == *b.name => {
                let is_of_this = reply.direction == b.direction && (1..=b.attempt).contains(&reply.attempt);
                is_of_this && (matches!(reply.outcome, Outcome::Done(_)) || reply.attempt == b.attempt)
            }
            Event::Sweep => has_turned || self.expires_at(b, rule).is_none_or(|at| at <= self.now),
            Event::DeadLetter {
                dead_letter: crate::machine::DeadLetterSubject::Attempt { step, direction, attempt },
            } => **step == *b.name && (*direction, *attempt) == (b.direction, b.attempt),
            // A claim may find that the horizon of a step is over, which may start the compensation.
            Event::Reply { .. } | Event::Command { .. } | Event::Wake { .. } => has_turned,
            Event::DeadLetter { dead_letter: crate::machine::DeadLetterSubject::Wake } | Event::Sent { .. } => false,
        }
    }

    /// When an attempt in flight expires by this clock. A deadline that lies further ahead than an attempt lasts is a wrong
    /// clock's (rule 23).
    fn expires_at(&self, step: &Step, rule: &StepRule) -> Option<Timestamp> {
        let by = step.complete_by?;
        let again = step.doubted_at.map(|at| at.plus_ms(rule.complete_within_ms));
        let is_believed = !by.is_beyond(self.now, rule.complete_within_ms);
        let ends = again.filter(|again| *again > by || !is_believed).unwrap_or(by);
        Some(ends.plus_ms(self.workflow.supervision.grace_ms))
    }

    /// An order is closed by an operator alone, out of `Error` and with its steps as they were, once no call can have its
    /// effect any more (rule 31).
    fn check_close(&self, before: &Task, after: &Task, event: Event<'_>) {
        if after.process_state != ProcessState::Closed || before.process_state == ProcessState::Closed {
            return;
        }
        assert!(matches!(event, Event::Command { command, .. } if command.action == Action::Close));
        assert_eq!((before.process_state, &after.steps), (ProcessState::Error, &before.steps));
        let longest_ms = COMPLETE_WITHIN_MS_MAX + SETTLES_WITHIN_MS_MAX;
        for (step, rule) in before.steps.iter().zip(&self.workflow.steps) {
            let in_flight = step.complete_by.map(|at| at.plus_ms(rule.settles_within_ms));
            let ends = step.may_run_until.max(in_flight);
            assert!(ends.is_none_or(|at| at <= self.now || at.is_beyond(self.now, longest_ms)), "{step:?} is at work");
        }
    }

    /// An order is found late once, after its deadline and before its end. The workflow says what comes of it, if nothing
    /// else decided before (rule 37).
    fn check_late(&self, before: &Task, after: &Task, event: Event<'_>) {
        assert_eq!(after.complete_by, before.complete_by);
        let is_over = before.deadline_ahead().is_some_and(|at| at <= self.now);
        let is_owed =
            after.unsent.iter().any(|notice| (notice.kind, notice.version) == (NoticeKind::OrderLate, after.version));
        let is_marked = before.late_since != after.late_since;
        assert_eq!(is_owed, is_marked, "it is told once");
        assert!(!is_marked || (is_over && before.late_since.is_none() && after.late_since == Some(self.now)));
        let is_forward = |task: &Task| matches!(task.process_state, ProcessState::Pending | ProcessState::Processing);
        if is_marked && is_forward(before) && is_forward(after) {
            let on_late = self.workflow.deadline.on_late;
            let has_way_back = on_late == OnLate::Compensate && before.past_pivot().is_none();
            assert!(on_late != OnLate::Hold && !has_way_back, "{event:?} let a late order go on");
        }
        let is_looked_at = matches!(event, Event::Sweep)
            || matches!(event, Event::Wake { hops, .. } if hops <= self.workflow.hops_max());
        if is_over && is_looked_at {
            assert!(after.process_state.is_final() || is_marked, "{event:?} did not see that the order is late");
        }
    }

    fn check_notices(&mut self, before: &Task, after: &Task, event: Event<'_>) {
        for notice in &after.unsent {
            let is_old = before.unsent.iter().any(|old| (old.kind, old.version) == (notice.kind, notice.version));
            assert!(is_old || notice.version == after.version, "a notice tells of the version that it came up in");
            assert!(after.notify || !notice.kind.is_status(), "the order names no reply channel");
        }
        for notice in &before.unsent {
            let is_kept = after.unsent.iter().any(|kept| (kept.kind, kept.version) == (notice.kind, notice.version));
            let may_go = match event {
                Event::Sent { notices } => {
                    notices.iter().any(|sent| (sent.kind, sent.version) == (notice.kind, notice.version))
                }
                Event::Command { .. } => notice.kind == NoticeKind::OrderNeedsOperator,
                Event::Wake { .. } | Event::Reply { .. } | Event::Sweep | Event::DeadLetter { .. } => false,
            };
            assert!(is_kept || may_go, "{event:?} forgot {notice:?}");
        }
        if after.process_state == ProcessState::Error {
            let since = after.reason.as_ref().expect("Error has a reason").since_version;
            let alert = (NoticeKind::OrderNeedsOperator, since);
            let is_owed = after.unsent.iter().any(|notice| (notice.kind, notice.version) == alert);
            assert!(is_owed || self.alerts.contains(&since), "in Error, and nobody was called");
            assert!(after.paused.is_none());
        }
    }

    /// A task has a watch exactly while it needs one, and its time is not later than the deadline.
    fn check_watch(&self, after: &Task) {
        let needs_care = !after.process_state.is_final() || !after.unsent.is_empty();
        assert_eq!((after.watch.is_some(), after.watch_at.is_some()), (needs_care, needs_care));
        let is_due = matches!(after.watch, Some(Watch::Due(_)));
        assert!(is_due || after.unsent.is_empty(), "what is owed is looked after");
        if let Some(at) = after.deadline_ahead() {
            assert!(after.watch.is_some_and(Watch::is_of_supervisor) && after.watch_at <= Some(at.max(self.now)));
        }
        if after.process_state.is_settled() {
            return;
        }
        assert!(is_due || after.paused.is_some(), "an order under way is never without somebody who looks");
        let patience = &self.workflow.supervision;
        for (step, rule) in after.steps.iter().zip(&self.workflow.steps) {
            if let Some(at) = self.expires_at(step, rule) {
                let is_endless = at.is_beyond(self.now, rule.complete_within_ms + patience.grace_ms);
                let latest = if is_endless { self.now } else { at };
                assert!(after.watch_at <= Some(latest), "the watch is later than a deadline");
            }
        }
        let unwatched = self.now.plus_ms(UNWATCHED_MS_MAX);
        // A paused order only waits, and its watch stays where it was.
        let is_due = is_due && after.paused.is_none();
        assert!(!is_due || after.watch_at <= Some(unwatched), "nobody looks for longer than the bound");
        let longest_ms = self.workflow.steps.iter().map(|rule| rule.complete_within_ms + patience.grace_ms).max();
        let waits_until = after.steps.iter().filter_map(|step| step.not_before).chain([self.latest]).max();
        let resend_ms = patience.resend_after_ms << STATUS_RESEND_DOUBLINGS_MAX;
        let longest_ms = longest_ms.unwrap_or(0).max(patience.wake_lost_after_ms).max(resend_ms);
        let latest = waits_until.map(|at| at.plus_ms(longest_ms));
        assert!(!is_due || after.watch_at <= latest, "nobody looks for longer than anything takes");
    }

    /// Every effect follows from the state of the task.
    fn check_effect(&mut self, effect: Effect) {
        let task = &self.task;
        match effect {
            Effect::Request { step, hops } => {
                let sent = request(task, &self.workflow, step, &self.order, self.now, hops);
                let (agent, request) = sent.expect("an attempt under way").expect("no mapping");
                let stored = &task.steps[step];
                assert_eq!(stored.process_state, StepState::Processing);
                assert_eq!((&agent, &request.step), (&stored.agent, &stored.name));
                assert_eq!(request.may_decline, stored.attempt > 1 && self.is_uncalled(step));
                assert_eq!((request.direction, request.attempt), (stored.direction, stored.attempt));
                assert_eq!(Some(request.complete_by), stored.complete_by);
                assert_eq!(request.idempotency_key, idempotency_key(task.order_id, &stored.name, stored.direction));
                let text = serde_json::to_string(&request).expect("a message");
                assert_eq!(crate::message::decode::<crate::message::Request>(text.as_bytes()), Ok(request));
            }
            Effect::Look { .. } => panic!("no drawn step has a poll"),
            Effect::Wake { delay_ms, .. } => {
                assert!(delay_ms <= DELAY_MS_MAX);
                assert!(!task.process_state.is_settled());
            }
            Effect::Notify(notice) => {
                assert!(notice.kind.is_status() && task.notify);
                assert!(notice.version <= task.version, "it tells of what is committed");
            }
            Effect::TellParent(notice) => {
                assert!(notice.kind == NoticeKind::ParentTold && task.parent.is_some());
                assert!(task.process_state.is_final() && notice.version <= task.version);
            }
            Effect::Alert(notice) => {
                assert!(!notice.kind.is_status());
                self.alerts.insert(notice.version);
            }
        }
    }
}

/// Whether the steps after it may start.
fn is_over(step: &Step) -> bool {
    step.direction == Direction::Forward && matches!(step.process_state, StepState::Processed | StepState::Skipped)
}

/// Whether a step of a drawn workflow applies, by the outputs of the steps before it.
fn applies(rule: &StepRule, task: &Task) -> bool {
    rule.when.iter().all(|comparison| match comparison.text().strip_prefix(NOWHERE) {
        Some(test) => test == " missing",
        None => {
            let (step, test) =
                comparison.text().strip_prefix("/Outputs/").and_then(|rest| rest.split_once(' ')).unwrap();
            let output = task.step(step).and_then(|(_, step)| step.output.as_ref());
            let is_null = output.is_some_and(|output| output.text() == "null");
            match test {
                "exists" => output.is_some(),
                "missing" => output.is_none(),
                "== null" => is_null,
                "!= null" => !is_null,
                other => panic!("{other} is never drawn"),
            }
        }
    })
}

/// A dropped reply that contradicts what is known is told, and changes nothing else.
fn check_told(before: &Task, after: Option<&Task>, happened: &[Happened]) {
    // Requests in flight may be sent again in the same write.
    let steps =
        |task: &Task| task.steps.iter().map(|step| Step { may_run_until: None, ..step.clone() }).collect::<Vec<_>>();
    let parts = |task: &Task| (task.process_state, steps(task), task.reason.clone(), task.paused.clone());
    assert_eq!(after.map(parts), Some(parts(before)));
    let [Happened::What(told @ What::Contradicted(_))] = happened else { panic!("{happened:?}") };
    assert!(before.history.iter().all(|line| line.what != *told), "told twice: {happened:?}");
}

/// The steps agree with the final state.
fn check_end(after: &Task) {
    match after.process_state {
        ProcessState::Processed => {
            let is_gone = |step: &Step| step.dropped && (!step.was_claimed() || step.is_undone());
            assert!(after.steps.iter().all(|step| is_over(step) || is_gone(step)));
        }
        ProcessState::Compensated => assert!(after.steps.iter().all(|step| !step.was_claimed() || step.is_undone())),
        ProcessState::Pending => assert!(after.steps.iter().all(|step| !step.was_claimed())),
        ProcessState::Processing => {
            let is_forward = |step: &Step| {
                (step.direction == Direction::Forward || step.dropped) && step.process_state != StepState::Error
            };
            assert!(after.steps.iter().all(is_forward), "under way, and a step is given up");
        }
        ProcessState::Compensating => {
            let is_turned = |step: &Step| !step.was_claimed() || step.direction == Direction::Undo;
            assert!(after.steps.iter().all(is_turned), "being undone, and a step is not turned round");
            assert!(after.steps.iter().all(|step| step.process_state != StepState::Error));
        }
        ProcessState::Error | ProcessState::Closed => {}
    }
}

/// Each change is reported once, in the events and in the history alike.
fn check_reported(before: &Task, after: &Task, happened: &[Happened]) {
    let expired = happened.iter().filter_map(|one| if let Happened::ExpiredLast(of) = one { Some(of) } else { None });
    let expired: Vec<&Attempt> = expired.collect();
    let lines =
        happened.iter().filter_map(|one| if let Happened::What(what) = one { Some(what.clone()) } else { None });
    let happened: &[What] = &lines.collect::<Vec<_>>();
    let count = |what: &What| happened.iter().filter(|one| *one == what).count();
    let told_once = |is_so: bool, what: What| {
        assert_eq!(count(&what), usize::from(is_so), "{what:?} in {happened:?}");
        assert!(!is_so || after.history.iter().any(|line| line.what == what), "{what:?} in {:?}", after.history);
    };
    told_once(before.late_since != after.late_since, What::Late);
    for (index, (b, a)) in before.steps.iter().zip(&after.steps).enumerate() {
        let attempt = |of: &Step| Attempt::current(index, of);
        told_once(a.attempt > b.attempt, What::Claimed(attempt(a)));
        // If the same write started the compensation, the step starts afresh.
        let turns = [before, after].map(|task| task.process_state == ProcessState::Compensating) == [false, true];
        if a.direction == b.direction && !(b.dropped && turns) {
            let is_now = |state| a.process_state == state && b.process_state != state;
            let is_skipped = a.process_state == StepState::Skipped;
            let is_done = happened.iter().any(|what| {
                let is_end = matches!(what, What::Processed(_))
                    || matches!(what, What::Settled(_) if !is_skipped)
                    || matches!(what, What::Skipped(of) if of.direction == Direction::Undo);
                is_end && what.attempt().is_some_and(|of| of.step == index)
            });
            assert_eq!(is_done, is_now(StepState::Processed), "{} in {happened:?}", a.name);
            let is_rejected = happened.contains(&What::Rejected(attempt(a)));
            let end = if is_rejected { What::Rejected } else { What::GivenUp };
            let is_undone_without_call =
                is_now(StepState::Processed) && a.direction == Direction::Undo && a.started_at.is_none();
            let is_skipped =
                is_now(StepState::Skipped) && a.dropped == b.dropped && !happened.contains(&What::Settled(attempt(a)));
            told_once(is_skipped || is_undone_without_call, What::Skipped(attempt(a)));
            if !is_now(StepState::Skipped) {
                told_once(is_now(StepState::Error), end(attempt(a)));
            }
            let has_failed = a.failure_count > b.failure_count;
            let tells = |what: &What| matches!(what, What::Expired(of) | What::Rejected(of) if of.step == index);
            let is_dead_letter = a.last_error.as_ref().is_some_and(|error| *error.code == *reason::DEAD_LETTER);
            let is_told = happened.iter().filter(|what| tells(what)).count()
                + expired.iter().filter(|of| of.step == index).count();
            assert_eq!(is_told, usize::from(has_failed && !is_dead_letter), "{} in {happened:?}", a.name);
        }
    }
    for state in [ProcessState::Processed, ProcessState::Error, ProcessState::Compensated, ProcessState::Closed] {
        let is_new = after.process_state == state && before.process_state != state;
        // An operator lets the order go on. If another step is given up in the same write, it is in `Error` once more.
        let lets_go_on = |what: &What| matches!(what, What::Settled(_) | What::Cancelled | What::Resubmitted);
        let is_back = before.process_state == state && happened.iter().any(lets_go_on);
        if !(is_back && count(&What::Entered(state)) == 1) {
            told_once(is_new, What::Entered(state));
        }
    }
}
