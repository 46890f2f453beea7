//! Random values that several properties need.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::id::OrderId;
use crate::index::Term;
use crate::json::Json;
use crate::message::{Deferral, Failure, Outcome, Priority, Trouble};
use crate::order::{AgainOf, Order};
use crate::pin::Pin;
use crate::time::Timestamp;
use crate::workflow::{Deadline, OnLate, Remedy, Supervision, Workflow};

/// Steps of a drawn workflow.
const STEPS: usize = 6;
/// A position that no drawn document has.
pub(super) const NOWHERE: &str = "/Order/no-such-member";
/// The names of their agents.
pub(super) const AGENTS: [&str; 2] = ["stock", "money"];

/// One step as written in the file.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// For each earlier step in the file: whether this step comes after it.
    pub(super) after: Vec<bool>,
    pub(super) complete_within_ms: u64,
    pub(super) horizon_ms: Option<u64>,
    pub(super) max_failures: u32,
    pub(super) on_rejected: Remedy,
    pub(super) on_exhausted: Remedy,
    pub(super) when: Condition,
    pub(super) optional: bool,
    pub(super) pivot: bool,
    pub(super) no_undo: bool,
    pub(super) each: Option<Each>,
}

/// How a step goes through the lines of the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Each {
    after_all: bool,
    /// Whether a rejection, and an exhaustion, drops its line.
    drops: [bool; 2],
    drop_max: Option<u8>,
}

/// Whether a step applies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Condition {
    /// To every order.
    Always,
    /// To none.
    Never,
    /// If the first step that it comes after has this output, or none.
    Output(&'static str),
}

/// A workflow as written in its file.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) priority: Priority,
    pub(super) patience: Supervision,
    pub(super) deadline: Deadline,
    pub(super) steps: Vec<Table>,
    /// Whether the last step stands first in the file.
    pub(super) is_backward: bool,
}

impl File {
    /// The indexes in the file, in the order of the steps.
    pub(super) fn indices(&self) -> Vec<usize> {
        let indices = 0..self.steps.len();
        if self.is_backward { indices.rev().collect() } else { indices.collect() }
    }

    /// The workflow in TOML.
    pub(super) fn text(&self) -> String {
        let patience = &self.patience;
        let priority = if self.priority == Priority::High { "high" } else { "normal" };
        let mut text = format!("name = \"drawn\"\nversion = 3\npriority = \"{priority}\"\n");
        if let Some(ms) = self.deadline.within_ms {
            let _ = writeln!(text, "complete_within = \"{}\"", duration(ms));
        }
        let _ = writeln!(text, "on_late = \"{}\"\n[supervision]", self.deadline.on_late.name());
        let times = [
            ("grace", Some(patience.grace_ms)),
            ("doubt_after", patience.doubt_after_ms),
            ("wake_lost_after", Some(patience.wake_lost_after_ms)),
            ("resend_after", Some(patience.resend_after_ms)),
            ("backoff_slot", Some(patience.backoff.slot_time_ms)),
        ];
        for (key, ms) in times.into_iter().filter_map(|(key, ms)| Some((key, ms?))) {
            let _ = writeln!(text, "{key} = \"{}\"", duration(ms));
        }
        let _ = writeln!(text, "backoff_ceiling = {}", patience.backoff.ceiling);
        let tables = self.steps.iter().enumerate().map(|(index, step)| step.text(index, self.is_past_pivot(index)));
        let mut tables: Vec<String> = tables.collect();
        if self.is_backward {
            tables.reverse();
        }
        text + &tables.concat()
    }

    /// The remedies of a step. After a pivot it holds the order, and an optional step has none for a rejection.
    pub(super) fn remedies(&self, index: usize) -> (Remedy, Remedy) {
        let table = &self.steps[index];
        let (rejected, exhausted) = match (self.is_past_pivot(index), table.optional) {
            (true, _) => (Remedy::Hold, Remedy::Hold),
            (false, true) => (Remedy::Compensate, table.on_exhausted),
            (false, false) => (table.on_rejected, table.on_exhausted),
        };
        let drops = table.each.map_or([false; 2], |each| each.drops);
        (
            if drops[0] && !table.optional { Remedy::Drop } else { rejected },
            if drops[1] { Remedy::Drop } else { exhausted },
        )
    }

    /// Without what a workflow may not have: a comparison with the outputs of all lines, and a drop beside a pivot or a step
    /// that waits for all lines.
    fn allowed(mut self) -> Self {
        let is_each: Vec<bool> = self.steps.iter().map(|table| table.each.is_some()).collect();
        for table in &mut self.steps {
            if table.after().next().is_some_and(|earlier| is_each[earlier])
                && matches!(table.when, Condition::Output(_))
            {
                table.when = Condition::Always;
            }
        }
        if Workflow::parse(&self.text(), &AGENTS).is_err() {
            self.steps.iter_mut().filter_map(|table| table.each.as_mut()).for_each(|each| each.drops = [false; 2]);
        }
        self
    }

    /// Whether a pivot comes before the step.
    fn is_past_pivot(&self, index: usize) -> bool {
        self.steps[index].after().any(|earlier| self.steps[earlier].pivot || self.is_past_pivot(earlier))
    }

    pub(super) fn workflow(&self) -> Workflow {
        let text = self.text();
        Workflow::parse(&text, &AGENTS).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

impl Table {
    fn text(&self, index: usize, is_past_pivot: bool) -> String {
        let after: Vec<String> = self.after().map(|earlier| format!("\"s{earlier}\"")).collect();
        let mut text = format!(
            "[[step]]\nname = \"s{index}\"\nagent = \"{}\"\nafter = [{}]\ncomplete_within = \"{}\"\nmax_failures = {}\n",
            AGENTS[index % AGENTS.len()],
            after.join(", "),
            duration(self.complete_within_ms),
            self.max_failures
        );
        if let Some(ms) = self.horizon_ms {
            let _ = writeln!(text, "horizon = \"{}\"", duration(ms));
        }
        let drops = self.each.map_or([false; 2], |each| each.drops);
        let remedies = [("on_rejected", self.on_rejected, drops[0]), ("on_exhausted", self.on_exhausted, drops[1])];
        for (key, remedy, drops) in remedies {
            let word = if remedy == Remedy::Hold || is_past_pivot { "hold" } else { "compensate" };
            let word = if drops { "drop" } else { word };
            if !(self.optional && key == "on_rejected") {
                let _ = writeln!(text, "{key} = \"{word}\"");
            }
        }
        for (key, is_set) in [("optional", self.optional), ("pivot", self.pivot)] {
            let _ = writeln!(text, "{key} = {is_set}");
        }
        match (self.no_undo, self.each) {
            (true, _) => text.push_str("undo = \"none\"\n"),
            (false, Some(_)) => text.push_str("undo = { send = {} }\n"),
            (false, None) => {}
        }
        if let Some(each) = self.each {
            let _ = writeln!(text, "for_each = \"/Order/Lines\"\nsend = {{}}\nafter_all = {}", each.after_all);
            if let Some(most) = each.drop_max {
                let _ = writeln!(text, "drop_max = {most}");
            }
        }
        if let Some(when) = self.when() {
            let _ = writeln!(text, "when = \"{when}\"");
        }
        text
    }

    /// The comparison of the step.
    pub(super) fn when(&self) -> Option<String> {
        match (self.when, self.after().next()) {
            (Condition::Always, _) => None,
            (Condition::Never, _) => Some(format!("{NOWHERE} exists")),
            (Condition::Output(test), Some(earlier)) => Some(format!("/Outputs/s{earlier} {test}")),
            (Condition::Output(_), None) => Some(format!("{NOWHERE} missing")),
        }
    }

    /// The steps that it comes after.
    pub(super) fn after(&self) -> impl Iterator<Item = usize> + '_ {
        self.after.iter().enumerate().filter_map(|(earlier, is_after)| is_after.then_some(earlier))
    }
}

/// A duration in a form that people write.
fn duration(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let parts = [(hours, "h"), (minutes, "m"), (seconds, "s"), (ms % 1_000, "ms")];
    let words: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    words.join(" ")
}

fn remedy() -> impl Strategy<Value = Remedy> {
    prop_oneof![Just(Remedy::Compensate), Just(Remedy::Hold)]
}

fn condition() -> impl Strategy<Value = Condition> {
    let output = proptest::sample::select(vec!["exists", "missing", "== null", "!= null"]).prop_map(Condition::Output);
    prop_oneof![6 => Just(Condition::Always), 1 => Just(Condition::Never), 2 => output]
}

fn each() -> impl Strategy<Value = Each> {
    let drop_max = proptest::option::weighted(0.3, 0..3_u8);
    let drops = [0.7, 0.5].map(proptest::bool::weighted);
    (proptest::bool::weighted(0.2), drops, drop_max).prop_map(|(after_all, drops, drop_max)| Each {
        after_all,
        drops,
        drop_max,
    })
}

fn table(index: usize) -> impl Strategy<Value = Table> {
    let complete_within_ms = prop_oneof![100..2_000_u64, 1_000..60_000_u64, 60_000..7_200_000_u64];
    let horizon_more_ms = proptest::option::weighted(0.7, 0..86_400_000_u64);
    let rare = || proptest::bool::weighted(0.2);
    let ways = (condition(), rare(), rare(), rare(), proptest::option::weighted(0.3, each()));
    (vec(any::<bool>(), index), complete_within_ms, horizon_more_ms, 1..4_u32, remedy(), remedy(), ways).prop_map(
        |(after, complete_within_ms, more_ms, max_failures, on_rejected, on_exhausted, ways)| Table {
            after,
            complete_within_ms,
            horizon_ms: more_ms.map(|more_ms| complete_within_ms + more_ms),
            max_failures,
            on_rejected,
            on_exhausted,
            when: ways.0,
            optional: ways.1,
            pivot: ways.2,
            no_undo: ways.3,
            each: ways.4,
        },
    )
}

fn patience() -> impl Strategy<Value = Supervision> {
    let doubt_after_ms = proptest::option::of(1..600_000_u64);
    (1..60_000_u64, doubt_after_ms, 1..90_000_u64, 1..90_000_u64, 1..5_000_u64, 0..9_u32).prop_map(
        |(grace_ms, doubt_after_ms, wake_lost_after_ms, resend_after_ms, slot_time_ms, ceiling)| {
            let backoff = crate::backoff::BackoffPolicy { slot_time_ms, ceiling, stay_at_ceiling: true };
            Supervision { grace_ms, doubt_after_ms, wake_lost_after_ms, resend_after_ms, backoff }
        },
    )
}

fn deadline() -> impl Strategy<Value = Deadline> {
    let within_ms = prop_oneof![1..10_000_u64, 1..600_000_u64, 1..7_200_000_u64];
    let on_late = prop_oneof![Just(OnLate::Alert), Just(OnLate::Compensate), Just(OnLate::Hold)];
    (proptest::option::of(within_ms), on_late).prop_map(|(within_ms, on_late)| Deadline { within_ms, on_late })
}

/// Any graph of one to six steps.
pub(super) fn file() -> impl Strategy<Value = File> {
    let tables: Vec<_> = (0..STEPS).map(table).collect();
    (tables, 1..=STEPS, patience(), deadline(), priority(), any::<bool>()).prop_map(
        |(mut steps, count, patience, deadline, priority, is_backward)| {
            steps.truncate(count);
            File { priority, patience, deadline, steps, is_backward }.allowed()
        },
    )
}

pub(super) fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Normal), Just(Priority::High)]
}

/// Any time that RFC 3339 can write.
pub(super) fn time() -> impl Strategy<Value = Timestamp> {
    (-62_167_219_200_000..=253_402_300_799_999_i64).prop_map(Timestamp::from_epoch_ms)
}

pub(super) fn order_id() -> impl Strategy<Value = OrderId> {
    let generated = (0..281_474_976_710_655_i64, any::<[u64; 2]>())
        .prop_map(|(ms, bits)| OrderId::generate(Timestamp::from_epoch_ms(ms), bits));
    prop_oneof![generated, ".{0,20}".prop_map(|key| OrderId::from_idempotency_key("shop", &key))]
}

/// Any text of an allowed length, of any characters.
pub(super) fn text() -> impl Strategy<Value = std::sync::Arc<str>> {
    ".{0,30}".prop_map(Into::into)
}

/// An agent of the workflows, or another.
fn fallback() -> impl Strategy<Value = std::sync::Arc<str>> {
    prop_oneof![proptest::sample::select(AGENTS.to_vec()).prop_map(Into::into), Just("another".into())]
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        super::json::value().prop_map(|value| Outcome::Done(Json::of(&value))),
        (text(), text()).prop_map(|(code, message)| Outcome::Failed(Failure { code, message })),
        (any::<u64>(), proptest::option::of(vec(fallback(), 0..4)))
            .prop_map(|(wait_ms, fallback)| Outcome::Deferred(Deferral { wait_ms, fallback })),
        text().prop_map(|problem| Outcome::Retrying(Trouble { problem })),
    ]
}

pub(super) fn order() -> impl Strategy<Value = Order> {
    let optional = || proptest::option::of(text());
    let again_of = (order_id(), text(), text(), optional()).prop_map(|(order_id, by, reason, bulk)| AgainOf {
        order_id,
        by,
        reason,
        bulk,
    });
    let pin = (text(), 1..=u32::MAX).prop_map(|(name, version)| Pin { name, version });
    let workflow = proptest::option::of(pin);
    let terms = vec(text().prop_map(|text| Term::correlation(&text)), 0..3);
    let again_of = proptest::option::of(again_of);
    let named = (optional(), optional(), proptest::option::of(priority()), workflow, terms, again_of);
    (order_id(), super::json::object(), time(), text(), named).prop_map(
        |(
            order_id,
            document,
            submitted_at,
            submitter,
            (reply_channel, correlation_id, priority, workflow, terms, again_of),
        )| Order {
            order_id,
            fingerprint: Json::of(&document).fingerprint().into(),
            document: Json::of(&document),
            submitted_at,
            submitter,
            reply_channel,
            correlation_id,
            priority,
            workflow,
            terms,
            again_of,
        },
    )
}
