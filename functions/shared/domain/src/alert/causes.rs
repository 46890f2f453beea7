//! The causes that hold now, and what becomes of the alert about each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Alert, CAUSES_MAX, DEAD_LETTER_MS, OUTAGE_MS};
use crate::id::OrderId;
use crate::ports::{Breaker, DeadLetterOutcome, DeadLetterRecord, OutageReason, ServiceHealth};
use crate::schedule::{Refused, ScheduleRecord};
use crate::situation::{explain, outage_text, outage_to_do, remedy, step_in_error};
use crate::tally::Numbers;
use crate::task::Task;
use crate::time::Timestamp;

/// A cause that holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cause {
    since: Timestamp,
    text: String,
    to_do: String,
    count: u64,
    order_id: Option<OrderId>,
}

impl Cause {
    /// When its alert begins. Of two alerts about one outage the second begins now, since it is not the same alert.
    fn began(&self, last: Option<&Alert>, now: Timestamp) -> Timestamp {
        if last.is_some_and(|last| self.since <= last.since) { now } else { self.since }
    }
}

/// Where causes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The orders in `Error`.
    Orders,
    /// The health of the services.
    Services,
    /// The dead letters.
    DeadLetters,
    /// The numbers: of late orders.
    Numbers,
    /// The numbers: of orders that people are asked about.
    Approvals,
    /// The numbers: of results that contradict the end of an order or a step.
    Contradictions,
    /// The schedules.
    Schedules,
}

impl Source {
    /// How the keys of its causes begin.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Orders => "order/",
            Self::Services => "service/",
            Self::DeadLetters => "dead-letter/",
            Self::Numbers => "late/",
            Self::Approvals => "approval/",
            Self::Contradictions => "contradicted/",
            Self::Schedules => "schedule/",
        }
    }
}

/// The causes that hold now.
#[derive(Debug, Default)]
pub struct Causes {
    found: BTreeMap<Arc<str>, Cause>,
    /// Sources of which only a part was looked at.
    partly: BTreeSet<Source>,
}

impl Causes {
    /// Adds an order in `Error`.
    pub fn order(&mut self, task: &Task, now: Timestamp) {
        let code = task.reason.as_ref().map_or("", |reason| &*reason.code);
        let step = step_in_error(task);
        let key = format!("{}{code}/{}", Source::Orders.prefix(), step.unwrap_or("-"));
        let of_orders = self.found.keys().filter(|key| key.starts_with(Source::Orders.prefix())).count();
        if of_orders >= CAUSES_MAX && !self.found.contains_key(&*key) {
            return self.looked_at_a_part_of(Source::Orders);
        }
        let at = step.map(|step| format!(" at {step}")).unwrap_or_default();
        let cause = |(meaning, to_do): (&str, &str)| Cause {
            since: now,
            text: format!("Orders wait for an operator{at}: {code}. {meaning}"),
            to_do: to_do.to_owned(),
            count: 0,
            order_id: Some(task.order_id),
        };
        let (meaning, to_do) = remedy(task);
        let found = self.found.entry(key.into()).or_insert_with(|| cause((meaning, to_do)));
        // Where the orders differ, it says what the code usually means.
        if !found.text.ends_with(meaning) {
            found.text = cause(explain(code)).text;
        }
        if found.to_do != to_do {
            explain(code).1.clone_into(&mut found.to_do);
        }
        found.count += 1;
    }

    /// Adds the health of a service. A service without a call for [`OUTAGE_MS`] holds no request back, even if its
    /// breaker is open. Returns since when it holds requests back.
    pub fn service(&mut self, health: &ServiceHealth, now: Timestamp) -> Option<Timestamp> {
        let outage = health.outage.as_ref().filter(|_| health.state != Breaker::Closed)?;
        let is_short = !outage.since.is_beyond(now, 0) && outage.since.ms_until(now) < OUTAGE_MS;
        if health.until.ms_until(now) >= OUTAGE_MS || (outage.reason == OutageReason::Failing && is_short) {
            return None;
        }
        let reason = match outage.reason {
            OutageReason::Failing => "failing",
            OutageReason::Misconfigured => "misconfigured",
            OutageReason::Rejections => "rejections",
        };
        let (service, since) = (&health.service, outage.since.min(now));
        let cause = Cause {
            since,
            text: format!("{}.", outage_text(service, outage)),
            to_do: outage_to_do(service, outage),
            count: 0,
            order_id: None,
        };
        self.found.insert(format!("{}{service}/{reason}", Source::Services.prefix()).into(), cause);
        Some(since)
    }

    /// Adds a dead letter.
    pub fn dead_letter(&mut self, letter: &DeadLetterRecord, now: Timestamp) {
        let (text, to_do) = match letter.outcome {
            DeadLetterOutcome::Unreadable => {
                ("A message cannot be read.", "Look at the dead letters: their bodies are kept.")
            }
            DeadLetterOutcome::LostCommand => (
                "A command of an operator was not carried out.",
                "Look at the dead letters, and give the command again.",
            ),
            DeadLetterOutcome::Refused => (
                "A message was refused: its sender may not send it.",
                "Look at the dead letters: they name the sender. Find out who has its keys.",
            ),
            DeadLetterOutcome::Stored
            | DeadLetterOutcome::Held
            | DeadLetterOutcome::Stale
            | DeadLetterOutcome::NoOrder => return,
        };
        if is_recent(letter, now) {
            let cause =
                Cause { since: now, text: text.into(), to_do: to_do.into(), count: 0, order_id: letter.order_id };
            let key = format!("{}{}", Source::DeadLetters.prefix(), letter.outcome.name());
            self.found.entry(key.into()).or_insert(cause);
        }
    }

    /// Adds the late orders of the spans that are read (rule 37), and the results that contradict an end (rule 5).
    pub fn numbers(&mut self, numbers: &Numbers, now: Timestamp) {
        for (workflow, flow) in numbers.spans.iter().flat_map(|span| &span.tally.workflows) {
            let text = "are not finished at their deadline.";
            self.of_numbers(
                Source::Numbers,
                workflow,
                (text, "Look at them: stepwarden list --late"),
                flow.orders.late,
                now,
            );
            let text = "are contradicted: a service reports a step done after its undo, or failed after it was done.";
            let to_do = "Look at them: stepwarden list --contradicted. The history says what came. Put it right at the service.";
            self.of_numbers(Source::Contradictions, workflow, (text, to_do), flow.orders.contradicted, now);
        }
    }

    fn of_numbers(&mut self, source: Source, workflow: &str, (text, to_do): (&str, &str), count: u64, now: Timestamp) {
        if count == 0 {
            return;
        }
        let text = format!("Orders of {workflow} {text}");
        let cause = || Cause { since: now, text, to_do: to_do.to_owned(), count: 0, order_id: None };
        self.found.entry(format!("{}{workflow}", source.prefix()).into()).or_insert_with(cause).count += count;
    }

    /// Adds the orders that people are asked about now (rule 40), by the numbers since the count began.
    pub fn approvals(&mut self, numbers: &Numbers, now: Timestamp) {
        let flows = numbers.total.workflows.iter().map(|(workflow, flow)| (workflow, flow.orders.approvals()));
        for (workflow, count) in flows.filter(|(_, count)| *count > 0) {
            let cause = Cause {
                since: now,
                text: format!("Orders of {workflow} wait for an approval."),
                to_do: "Decide on them: stepwarden list --approval, then stepwarden approve or reject.".to_owned(),
                count,
                order_id: None,
            };
            self.found.insert(format!("{}{workflow}", Source::Approvals.prefix()).into(), cause);
        }
    }

    /// Adds a schedule whose last due time has no order (rule 48).
    pub fn schedule(&mut self, record: &ScheduleRecord) {
        let Some(Refused { due_at, at, problem }) = &record.refused else { return };
        let name = &record.name;
        let cause = Cause {
            since: *at,
            text: format!("Schedule {name} posted no order at {due_at}: {problem}"),
            to_do: "Correct the schedule, or its workflow, and apply the folder. The order is then posted, unless catch_up \
                    passes it over."
                .to_owned(),
            count: 0,
            order_id: None,
        };
        self.found.insert(format!("{}{name}", Source::Schedules.prefix()).into(), cause);
    }

    /// Only a part of this source was looked at: an alert whose cause was not found may still be on.
    pub fn looked_at_a_part_of(&mut self, source: Source) {
        self.partly.insert(source);
    }

    fn may_lack(&self, key: &str) -> bool {
        self.partly.iter().any(|source| key.starts_with(source.prefix()))
    }

    /// The keys of all causes.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.found.keys()
    }

    /// The next record of a cause, for these sinks. `None`: nothing changes.
    #[must_use]
    pub fn next(&self, key: &Arc<str>, stored: Option<&Alert>, sinks: &[Arc<str>], now: Timestamp) -> Option<Alert> {
        let after = match (stored, self.found.get(key)) {
            (None, None) => return None,
            (Some(alert), None) if alert.ended_at.is_some() => alert.remembered(sinks, now),
            (Some(alert), None) if self.may_lack(key) => Alert { gone_since: None, ..alert.clone() },
            (Some(alert), None) => alert.missed(now),
            (stored, Some(cause)) => {
                let is_on = stored.filter(|alert| alert.ended_at.is_none());
                Alert {
                    cause: key.clone(),
                    version: stored.map_or(0, |alert| alert.version),
                    since: is_on.map_or_else(|| cause.began(stored, now), |alert| alert.since),
                    text: cause.text.as_str().into(),
                    to_do: cause.to_do.as_str().into(),
                    count: cause.count,
                    at_least: cause.count > 0 && self.may_lack(key),
                    order_id: cause.order_id,
                    gone_since: None,
                    ended_at: None,
                    told: is_on.map_or_else(Vec::new, |alert| alert.told.clone()),
                    telling_until: is_on.and_then(|alert| alert.telling_until),
                }
            }
        };
        (stored != Some(&after)).then(|| Alert { version: after.version + 1, ..after })
    }
}

/// Whether an event of the order, the service or the message itself tells of this cause too.
#[must_use]
pub fn has_own_event(cause: &str) -> bool {
    let is_of = |source: Source| cause.starts_with(source.prefix());
    let of_services = ["/misconfigured", "/rejections"].iter().any(|reason| cause.ends_with(reason));
    [Source::Orders, Source::Numbers, Source::Contradictions].into_iter().any(is_of)
        || (is_of(Source::Services) && of_services)
        || (is_of(Source::DeadLetters) && cause.ends_with(DeadLetterOutcome::Unreadable.name()))
}

/// Whether a letter was settled within [`DEAD_LETTER_MS`]. A time ahead was written by a wrong clock.
#[must_use]
pub fn is_recent(letter: &DeadLetterRecord, now: Timestamp) -> bool {
    letter.settled_at.ms_until(now) < DEAD_LETTER_MS && !letter.settled_at.is_beyond(now, 0)
}
