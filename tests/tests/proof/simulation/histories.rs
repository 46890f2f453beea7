//! Histories for the auditor, written by hand: a good one, which a test can end badly at any place.

use std::sync::Arc;

use domain::id::OrderId;
use rehearsal::seen::{
    Body, Choices, Element, Ending, Heard, Kind, OrderState, Pinned, Record, Seen, StepSeen, StepState, Try, WANTED_MS,
    Way,
};
use rehearsal::watcher::Watcher;
use tests::simulation::auditor::lines::Each;
use tests::simulation::auditor::ways::Ways;
use tests::simulation::auditor::{Auditor, Flow, Invariant, Rules};

/// The grace of the workflow, in milliseconds.
pub(crate) const GRACE_MS: i64 = 1_000;
/// The margin of the agents, in milliseconds.
pub(crate) const MARGIN_MS: i64 = 50;
/// The maximum duration of an attempt, in milliseconds.
pub(crate) const WITHIN_MS: i64 = 10_000;
/// The fingerprint of the document.
pub(crate) const FINGERPRINT: &str = "f";
/// The hash of the document.
pub(crate) const DOCUMENT: u64 = 7;
/// The number of a call. Each is over before the next.
pub(crate) const CALL: u64 = 1;
/// The code of a rejection.
pub(crate) const NO: &str = "declined";
/// The hash of each step's outcome.
pub(crate) const OUTPUT: u64 = 11;
/// How long a step may be tried, in milliseconds.
pub(crate) const HORIZON_MS: i64 = 100_000;

/// The time within which a call has its effect, in milliseconds.
pub(crate) const SETTLED_MS: i64 = 30_000;
/// The number of failures after which a step is given up.
pub(crate) const FAILURES_MAX: u32 = 2;

/// One order in its two steps, and the auditor that observes it. All clocks are right.
pub(crate) struct History {
    pub(crate) auditor: Auditor,
    pub(crate) now_ms: i64,
    pub(crate) record: Record,
    /// The lines of the order.
    elements: Vec<Element>,
}

pub(crate) fn order() -> OrderId {
    OrderId::from_idempotency_key("test", "history")
}

/// The API tells a customer that the document posted at that time is accepted.
pub(crate) fn accepted(posted_ms: i64) -> Seen {
    Seen::Accepted { order: order(), fingerprint: FINGERPRINT.into(), posted_ms }
}

/// Posted with a reply channel, and with the workflow that the API chose.
pub(crate) fn posted(channel: Option<&str>, pinned: Option<Pinned>) -> Seen {
    let channel = channel.map(Arc::from);
    Seen::Posted {
        order: order(),
        fingerprint: FINGERPRINT.into(),
        document: DOCUMENT,
        channel,
        elements: Vec::new(),
        pinned,
    }
}

pub(crate) fn step_of(step: usize, attempt: u32) -> Try {
    Try { order: order(), step, way: Way::Forward, attempt }
}

pub(crate) fn undo_of(step: usize, attempt: u32) -> Try {
    Try { way: Way::Undo, ..step_of(step, attempt) }
}

impl History {
    /// The start, without any event.
    pub(crate) fn new() -> Self {
        Self::with(false, Vec::new())
    }

    /// The same, with the ways of the first steps.
    pub(crate) fn with_ways(ways: Vec<Ways>) -> Self {
        Self::with(false, ways)
    }

    /// The same, where clocks and leaders are wrong.
    pub(crate) fn with_wrong_clocks() -> Self {
        Self::with(true, Vec::new())
    }

    fn with(wrong_clocks: bool, ways: Vec<Ways>) -> Self {
        let flow = Flow {
            after: vec![vec![], vec![0]],
            horizons_ms: vec![HORIZON_MS; 2],
            within_ms: vec![WITHIN_MS; 2],
            waits_ms: vec![0; 2],
            awaited_ms: vec![0; 2],
            max_failures: vec![FAILURES_MAX; 2],
            holds_rejected: vec![false; 2],
            holds_exhausted: vec![true; 2],
            ways,
            grace_ms: GRACE_MS,
            ..Flow::default()
        };
        Self::of_flow(wrong_clocks, flow)
    }

    /// Of an order with two lines, which go through one step with these keys.
    pub(crate) fn with_lines(each: Each) -> Self {
        let flow = Flow {
            after: vec![vec![]],
            horizons_ms: vec![HORIZON_MS],
            within_ms: vec![WITHIN_MS],
            waits_ms: vec![0],
            awaited_ms: vec![0],
            max_failures: vec![FAILURES_MAX],
            holds_rejected: vec![false],
            holds_exhausted: vec![true],
            each: vec![Some(each)],
            grace_ms: GRACE_MS,
            ..Flow::default()
        };
        let element = |name: &str| Element { name: name.into(), number: 1, hash: 1 };
        let mut history = Self::of_flow(false, flow);
        history.elements = ["mug", "cup"].map(element).to_vec();
        history
    }

    fn of_flow(wrong_clocks: bool, flow: Flow) -> Self {
        let workflows = [(1, flow)].into();
        let (margins_ms, settled_ms) = (vec![MARGIN_MS], vec![SETTLED_MS]);
        let choices = Choices::default();
        let rules = Rules { workflows, margins_ms, settled_ms, wrong_clocks, are_careless: vec![], choices };
        let record = Record {
            order: order(),
            version: 1,
            workflow: 1,
            state: OrderState::Pending,
            reason: None,
            entered: None,
            paused: false,
            notes: Vec::new(),
            contradicted: 0,
            taken_version: 0,
            complete_by_ms: None,
            late_ms: None,
            watch_ms: Some(0),
            unsent: Vec::new(),
            // Each waited, so it need not be claimed in the insert.
            steps: vec![StepSeen { waits_until_ms: Some(0), ..StepSeen::new(StepState::Pending) }; 2],
            lines: Default::default(),
        };
        let mut auditor = Auditor::new(rules);
        auditor.troubled(i64::MAX);
        Self { auditor, now_ms: 0, record, elements: Vec::new() }
    }

    /// Posted, accepted and stored.
    pub(crate) fn stored() -> Self {
        Self::new().store()
    }

    /// Continues until the order is stored.
    pub(crate) fn store(mut self) -> Self {
        let mut post = posted(Some("shop"), None);
        if let Seen::Posted { elements, .. } = &mut post {
            elements.clone_from(&self.elements);
        }
        self.see(post);
        self.see(Seen::Kept { order: order() });
        self.see(accepted(0));
        self.insert();
        self.see(Seen::LetGo { order: order() });
        self
    }

    /// Stored, and the first step claimed and requested.
    pub(crate) fn claimed() -> Self {
        let mut history = Self::stored();
        history.claim(0);
        history
    }

    /// The first step done.
    pub(crate) fn half() -> Self {
        let mut history = Self::claimed();
        history.done(0);
        history
    }

    /// Both steps done.
    pub(crate) fn processed() -> Self {
        let mut history = Self::half();
        history.claim(1);
        history.succeed(1);
        history.write(|record| {
            finish(&mut record.steps[1]);
            record.state = OrderState::Processed;
            record.unsent = vec![(Kind::Processed, record.version)];
        });
        history
    }

    /// The first step is being compensated, with a claimed undo. The second step never began.
    pub(crate) fn compensating() -> Self {
        let mut history = Self::half();
        history.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
        history.write(|record| {
            record.state = OrderState::Compensating;
            record.reason = Some(("cancelled".into(), record.version));
            record.steps[0] = StepSeen { way: Way::Undo, state: StepState::Pending, ..record.steps[0].clone() };
        });
        history.claim(0);
        history
    }

    pub(crate) fn insert(&mut self) {
        let record = self.record.clone();
        let clock_ms = self.now_ms;
        self.see(Seen::Inserted { fingerprint: FINGERPRINT.into(), record, by: 0, clock_ms });
    }

    /// Stores the order with its first step claimed.
    pub(crate) fn insert_with_claim(&mut self) {
        (self.record.version, self.record.state) = (2, OrderState::Processing);
        self.record.steps[0] = StepSeen {
            state: StepState::Processing,
            attempt: 1,
            locked_by: Some("submission".into()),
            complete_by_ms: Some(self.now_ms + WITHIN_MS),
            started_ms: Some(self.now_ms),
            ..StepSeen::new(StepState::Pending)
        };
        self.insert();
    }

    #[expect(clippy::needless_pass_by_value, reason = "a history reads better without a borrow in each line")]
    pub(crate) fn see(&mut self, seen: Seen) {
        self.now_ms += 1;
        self.auditor.see(self.now_ms, &seen);
    }

    /// Writes the next version of the record.
    pub(crate) fn write(&mut self, change: impl FnOnce(&mut Record)) {
        let before = self.record.state;
        self.record.version += 1;
        change(&mut self.record);
        if self.record.state != before {
            self.record.entered = Some(self.record.state);
        }
        let (record, clock_ms) = (self.record.clone(), self.now_ms);
        self.see(Seen::Written { record, by: 1, clock_ms });
    }

    /// Claims a step in its direction.
    pub(crate) fn claim_only(&mut self, step: usize) {
        let complete_by_ms = self.now_ms + WITHIN_MS;
        let now_ms = self.now_ms;
        self.write(|record| {
            if record.state == OrderState::Pending {
                record.state = OrderState::Processing;
            }
            let step = &mut record.steps[step];
            step.state = StepState::Processing;
            step.attempt += 1;
            step.locked_by = Some("scheduler".into());
            step.waits_until_ms = None;
            step.complete_by_ms = Some(complete_by_ms);
            step.started_ms.get_or_insert(now_ms);
        });
    }

    /// Claims a step and requests it.
    pub(crate) fn claim(&mut self, step: usize) {
        self.claim_only(step);
        let (of, complete_by_ms) = (self.of(step), self.complete_by_ms(step));
        let clock_ms = self.now_ms;
        let budget_ms = u64::try_from(complete_by_ms - clock_ms).unwrap_or(0);
        self.see(Seen::Requested { of, complete_by_ms, budget_ms, clock_ms });
    }

    /// The present attempt of a step.
    pub(crate) fn of(&self, step: usize) -> Try {
        let StepSeen { way, attempt, .. } = self.record.steps[step];
        Try { way, ..step_of(step, attempt) }
    }

    pub(crate) fn complete_by_ms(&self, step: usize) -> i64 {
        self.record.steps[step].complete_by_ms.expect("a claim")
    }

    /// The service carries it out, and the agent replies.
    pub(crate) fn succeed(&mut self, step: usize) {
        let of = self.of(step);
        self.call(of, "key");
        self.see(Seen::Effect { of });
        self.see(Seen::Confirmed { of });
        self.hear(of, Heard::Settled);
        self.reply(of, Ending::Done);
    }

    /// An agent's instance receives a request.
    pub(crate) fn hand(&mut self, of: Try, is_copied: bool, is_fresh: bool) {
        let fresh_until_ms = is_fresh.then_some(self.now_ms + WANTED_MS);
        let (to, until_ms, message) = ("agent".into(), i64::MAX, "m".into());
        self.see(Seen::Handed {
            of,
            to,
            until_ms,
            budget_ms: 1_000,
            message,
            overlaps: false,
            is_copied,
            fresh_until_ms,
        });
    }

    /// The same instance looks at the task.
    pub(crate) fn look(&mut self) {
        self.see(Seen::Looked { order: order(), by: "agent".into() });
    }

    pub(crate) fn call(&mut self, of: Try, key: &str) {
        // The second step follows the first. An undo receives the forward output.
        let needed = 0..of.step + usize::from(of.way == Way::Undo);
        let outputs = needed.filter_map(|step| Some((step, self.record.steps[step].output?))).collect();
        self.call_with(of, key, Body::whole(DOCUMENT, outputs));
    }

    pub(crate) fn call_with(&mut self, of: Try, key: &str, body: Body) {
        let undo = if of.way == Way::Undo { "/undo" } else { "" };
        let step = self.elements.get(of.step).map_or_else(|| format!("s{}", of.step), |own| format!("s0/{}", own.name));
        let order = if key == "key" { of.order.to_string() } else { key.to_owned() };
        let (key, clock_ms) = (format!("{order}/{step}{undo}").into(), self.now_ms);
        self.see(Seen::Called { of, call: CALL, key, body, twins: 0, agent: 0, by: "agent".into(), clock_ms });
    }

    /// The agent hears from the service.
    pub(crate) fn hear(&mut self, of: Try, heard: Heard) {
        self.see(Seen::Answered { of, call: CALL, heard });
    }

    /// The service says no, and the agent replies.
    pub(crate) fn reject(&mut self, of: Try) {
        self.call(of, "key");
        self.see(Seen::Refused { of });
        self.hear(of, Heard::No(NO.into()));
        self.reply(of, Ending::Failed);
    }

    pub(crate) fn reply(&mut self, of: Try, ending: Ending) {
        let clock_ms = self.now_ms;
        let output = (ending == Ending::Done).then_some(OUTPUT);
        let code = (ending == Ending::Failed).then(|| Arc::from(NO));
        self.see(Seen::Replied { of, ending, output, kept: None, code, by: "agent".into(), clock_ms });
    }

    /// A step is carried out, in its direction.
    pub(crate) fn done(&mut self, step: usize) {
        self.succeed(step);
        self.write(|record| finish(&mut record.steps[step]));
    }

    /// A failure of the step is counted, and the step is free again.
    pub(crate) fn count(&mut self, step: usize, code: &str) {
        let now_ms = self.now_ms;
        self.write(|record| {
            let step = &mut record.steps[step];
            free(step);
            step.failures += 1;
            step.last_error = Some((code.into(), now_ms));
        });
    }

    /// Advances the clock until the attempt of a step is over, including the grace.
    pub(crate) fn expire(&mut self, step: usize) {
        self.now_ms = self.complete_by_ms(step) + GRACE_MS;
    }

    /// The auditor's reports.
    pub(crate) fn complaints(&self) -> Vec<Invariant> {
        self.auditor.violations().iter().map(|violation| violation.invariant).collect()
    }
}

pub(crate) fn free(step: &mut StepSeen) {
    step.state = StepState::Pending;
    (step.locked_by, step.complete_by_ms) = (None, None);
}

pub(crate) fn finish(step: &mut StepSeen) {
    free(step);
    step.state = StepState::Processed;
    if step.way == Way::Forward {
        step.output = Some(OUTPUT);
    }
}
