//! Alerts by cause (rule 29): what an operator has to look at now. One alert for a cause, however many orders wait
//! because of it, and one message when it is over.
//!
//! The causes follow from what is stored: the orders in `Error`, the health of the services, the dead letters, the numbers. So no
//! writer has to remember a cause, and none is forgotten.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::OrderId;
use crate::json::Json;
use crate::message::CloudEvent;
use crate::order::ERASED;
use crate::ports::{
    Breaker, DeadLetterOutcome, DeadLetterRecord, Listed, OutageReason, Record, RecordKind, ServiceHealth, Shown,
};
use crate::situation::{explain, outage_text, outage_to_do, remedy, step_in_error};
use crate::tally::Numbers;
use crate::task::{Quoted, Task};
use crate::time::Timestamp;

/// The time for which a cause must be gone before its alert ends, in milliseconds. So an order that is resubmitted and
/// fails again makes no second alert.
pub const GONE_MS: u64 = 60_000;
/// The time after which a failing service is a cause, in milliseconds. A shorter outage ends by itself.
pub const OUTAGE_MS: u64 = 5 * 60_000;
/// The time after which a dead letter is no cause any more, in milliseconds.
pub const DEAD_LETTER_MS: u64 = 60 * 60_000;
/// The time in which one supervisor tells of an alert, in milliseconds. Others leave it alone.
pub const TELLING_MS: u64 = 60_000;
/// The wait after the first failure of a sink, in milliseconds. Each further failure doubles it.
pub const RETRY_MS: u64 = 10_000;
/// The longest wait between two tries of a sink that fails, in milliseconds.
pub const RETRY_MS_MAX: u64 = 15 * 60_000;
/// The time after the end in which sinks that fail are tried, in milliseconds.
pub const TRIED_MS: u64 = 24 * 60 * 60_000;
/// Causes about orders that are looked at. Further ones have no alert of their own.
pub const CAUSES_MAX: usize = 100;

/// A cause with an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alert {
    /// What it is about: `order/CODE/STEP`, `service/NAME/REASON`, `late/WORKFLOW`, `approval/WORKFLOW` or
    /// `dead-letter/OUTCOME`.
    pub cause: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// When it began.
    pub since: Timestamp,
    /// What happened, in words.
    pub text: Arc<str>,
    /// The operator's remedy.
    pub to_do: Arc<str>,
    /// The orders that waited because of it at the last look; 0 if it is not about orders.
    #[serde(default)]
    pub count: u64,
    /// Whether there may be more of them.
    #[serde(default)]
    pub at_least: bool,
    /// One of them.
    #[serde(rename = "OrderID", default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    /// Since when it is not found any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<Timestamp>,
    /// When it ended: the first look that did not find the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The sinks that may know that it is on: from the first try until they took the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Told>,
    /// Until when one supervisor tells the sinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telling_until: Option<Timestamp>,
}

/// What a sink was told of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Told {
    /// Its name.
    pub sink: Arc<str>,
    /// Whether it took that the alert is on.
    pub took: bool,
    /// Tries in a row that failed.
    #[serde(default)]
    pub failures: u32,
    /// When it is tried again after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

impl Told {
    /// It took nothing yet, and nothing failed.
    const fn of(sink: Arc<str>) -> Self {
        Self { sink, took: false, failures: 0, not_before: None }
    }

    /// Whether it waits after a failure. A time further ahead than any wait was written by a wrong clock (rule 23).
    fn waits(&self, now: Timestamp) -> bool {
        self.not_before.is_some_and(|at| now < at && !at.is_beyond(now, RETRY_MS_MAX))
    }

    fn failed(&self, now: Timestamp) -> Self {
        let wait_ms = RETRY_MS.saturating_mul(1 << self.failures.min(16)).min(RETRY_MS_MAX);
        Self { failures: self.failures.saturating_add(1), not_before: Some(now.plus_ms(wait_ms)), ..self.clone() }
    }
}

impl Alert {
    /// The next record, without the text about an outage that may quote this order (rule 46). `None` if it has none.
    #[must_use]
    pub fn erased(&self, quoted: &Quoted) -> Option<Self> {
        let quotes = self.cause.starts_with(Source::Services.prefix()) && quoted.covers(self.since, self.ended_at);
        (quotes && *self.text != *ERASED).then(|| Self {
            version: self.version + 1,
            text: ERASED.into(),
            ..self.clone()
        })
    }
}

impl Record for Alert {
    const KIND: RecordKind = RecordKind::Alert;

    fn key(&self) -> &str {
        &self.cause
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn is_over(&self) -> bool {
        self.ended_at.is_some() && self.told.is_empty()
    }

    /// Those that are on come first, then the last ended.
    fn compare(&self, other: &Self) -> Ordering {
        let place =
            |alert: &Self| (alert.is_over(), alert.ended_at.is_some(), Reverse(alert.ended_at), Reverse(alert.since));
        place(self).cmp(&place(other)).then_with(|| self.cause.cmp(&other.cause))
    }

    fn shown(&self) -> Vec<(&'static str, Shown)> {
        vec![("Since", Shown::Time(self.since)), ("Text", Shown::Text(self.text.to_string()))]
    }
}

impl Listed for Alert {}

/// What a sink is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The alert is on.
    Began,
    /// It is over.
    Ended,
}

impl Turn {
    /// The type of its event.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Began => "AlertBegan",
            Self::Ended => "AlertEnded",
        }
    }
}

/// The data of an event about an alert.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Data<'a> {
    cause: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_do: Option<&'a str>,
    since: Timestamp,
    count: u64,
    at_least: bool,
    #[serde(rename = "OrderID", skip_serializing_if = "Option::is_none")]
    order_id: Option<OrderId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
}

impl Alert {
    /// What a sink has to be told now. A sink that was never tried is not told of the end.
    #[must_use]
    pub fn turn(&self, sink: &str, now: Timestamp) -> Option<Turn> {
        let told = self.told.iter().find(|told| *told.sink == *sink);
        match (self.ended_at, told) {
            (_, Some(told)) if told.waits(now) => None,
            (None, Some(Told { took: true, .. })) | (Some(_), None) => None,
            (None, _) => Some(Turn::Began),
            (Some(_), Some(_)) => Some(Turn::Ended),
        }
    }

    /// The event for a sink. Its id is the same in every repeat.
    #[must_use]
    pub fn event(&self, turn: Turn, now: Timestamp) -> CloudEvent {
        let data = Data {
            cause: &self.cause,
            text: &self.text,
            to_do: (turn == Turn::Began).then_some(&*self.to_do),
            since: self.since,
            count: self.count,
            at_least: self.at_least,
            order_id: self.order_id,
            ended_at: self.ended_at,
        };
        CloudEvent {
            specversion: "1.0".into(),
            id: format!("alert/{}/{}/{}", self.cause, self.since.epoch_ms(), turn.kind()).into(),
            source: "stepwarden".into(),
            kind: turn.kind().into(),
            subject: self.cause.clone(),
            time: now,
            datacontenttype: "application/json".into(),
            data: Json::of(&data),
        }
    }

    /// Whether another supervisor tells the sinks at `now`. A time further ahead than any telling takes was written by
    /// a wrong clock (rule 23).
    #[must_use]
    pub fn is_being_told(&self, now: Timestamp) -> bool {
        self.telling_until.is_some_and(|until| now < until && !until.is_beyond(now, TELLING_MS))
    }

    /// The next record, before these sinks are told. After a crash it is not known which of them learned of it.
    #[must_use]
    pub fn before_telling<'a>(&self, sinks: impl Iterator<Item = &'a Arc<str>>, now: Timestamp) -> Self {
        let mut told = self.told.clone();
        for sink in sinks {
            if told.iter().all(|told| told.sink != *sink) {
                told.push(Told::of(sink.clone()));
            }
        }
        Self { told, telling_until: Some(now.plus_ms(TELLING_MS)), ..self.clone() }
    }

    /// The next record, after these sinks were told: with each, whether it took the message.
    #[must_use]
    pub fn after_telling(&self, tried: &[(Arc<str>, bool)], now: Timestamp) -> Self {
        let after = |told: &Told| match tried.iter().find(|(sink, _)| *sink == told.sink) {
            None => Some(told.clone()),
            Some((_, false)) => Some(told.failed(now)),
            Some((_, true)) if self.ended_at.is_some() => None,
            Some((sink, true)) => Some(Told { took: true, ..Told::of(sink.clone()) }),
        };
        let told = self.told.iter().filter_map(after).collect();
        Self { version: self.version + 1, told, telling_until: None, ..self.clone() }
    }
}

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
}

impl Source {
    /// How the keys of its causes begin.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Orders => "order/",
            Self::Services => "service/",
            Self::DeadLetters => "dead-letter/",
            Self::Numbers => "late/",
            Self::Approvals => "approval/",
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

    /// Adds the health of a service. A service that nobody has called for [`OUTAGE_MS`] holds no request back, whatever
    /// its breaker says. Returns since when it holds requests back.
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
            to_do: outage_to_do(service, outage.reason),
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

    /// Adds the late orders of the spans that are read (rule 37).
    pub fn numbers(&mut self, numbers: &Numbers, now: Timestamp) {
        let flows = numbers.spans.iter().flat_map(|span| &span.tally.workflows);
        for (workflow, flow) in flows.filter(|(_, flow)| flow.orders.late > 0) {
            let cause = || Cause {
                since: now,
                text: format!("Orders of {workflow} are not finished at their deadline."),
                to_do: "Look at them: stepwarden list --late".to_owned(),
                count: 0,
                order_id: None,
            };
            let key = format!("{}{workflow}", Source::Numbers.prefix());
            self.found.entry(key.into()).or_insert_with(cause).count += flow.orders.late;
        }
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

/// Whether a letter was settled within [`DEAD_LETTER_MS`]. A time ahead was written by a wrong clock.
#[must_use]
pub fn is_recent(letter: &DeadLetterRecord, now: Timestamp) -> bool {
    letter.settled_at.ms_until(now) < DEAD_LETTER_MS && !letter.settled_at.is_beyond(now, 0)
}

impl Alert {
    /// The next record, after a look that did not find the cause. A time ahead was written by a wrong clock, and begins
    /// anew.
    fn missed(&self, now: Timestamp) -> Self {
        match self.gone_since.filter(|gone_since| *gone_since <= now) {
            None => Self { gone_since: Some(now), count: 0, at_least: false, ..self.clone() },
            Some(gone_since) if gone_since.ms_until(now) < GONE_MS => self.clone(),
            Some(gone_since) => {
                // What failed before says nothing about the end: each sink is tried at once.
                let told = self.told.iter().map(|told| Told::of(told.sink.clone())).collect();
                Self { ended_at: Some(gone_since), count: 0, at_least: false, told, ..self.clone() }
            }
        }
    }

    /// The next record after the end. Sinks that are gone, and those that fail for [`TRIED_MS`], are not tried any more.
    fn remembered(&self, sinks: &[Arc<str>], now: Timestamp) -> Self {
        let ended_at = self.ended_at.filter(|at| self.is_over() || !at.is_beyond(now, 0)).unwrap_or(now);
        let is_late = ended_at.plus_ms(TRIED_MS) <= now;
        let told = self.told.iter().filter(|told| !is_late && sinks.contains(&told.sink)).cloned().collect();
        Self { ended_at: Some(ended_at), told, ..self.clone() }
    }
}

#[cfg(test)]
mod tests;
