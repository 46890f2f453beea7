//! Alerts by cause (rule 29): what an operator has to look at now. One alert for a cause, however many orders wait
//! because of it, and one message when it is over.
//!
//! The causes follow from what is stored: the orders in `Error`, the health of the services, the dead letters, the numbers. So no
//! writer has to remember a cause, and none is forgotten.

mod causes;
#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::OrderId;
use crate::json::Json;
use crate::message::CloudEvent;
use crate::order::ERASED;
use crate::ports::{Listed, Record, RecordKind, Shown};
use crate::task::Quoted;
use crate::time::Timestamp;

pub use causes::{Causes, Source, has_own_event, is_recent};

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
    /// What it is about: `order/CODE/STEP`, `service/NAME/REASON`, `late/WORKFLOW`, `contradicted/WORKFLOW`,
    /// `approval/WORKFLOW`, `schedule/NAME` or `dead-letter/OUTCOME`.
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
    pub count: u64,
    /// Whether there may be more of them.
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
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "CauseAlert"))]
#[serde(rename_all = "PascalCase")]
struct Data<'a> {
    /// `order/CODE/STEP`, `service/NAME/REASON`, `late/WORKFLOW`, `contradicted/WORKFLOW`, `approval/WORKFLOW`,
    /// `schedule/NAME` or `dead-letter/OUTCOME`.
    cause: &'a str,
    /// What happened, in words.
    text: &'a str,
    /// The operator's remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_do: Option<&'a str>,
    /// When it began.
    since: Timestamp,
    /// Orders that waited because of it at the last look; 0 if it is not about orders.
    count: u64,
    /// Whether there may be more.
    at_least: bool,
    /// One of the orders.
    #[serde(rename = "OrderID", skip_serializing_if = "Option::is_none")]
    order_id: Option<OrderId>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
}

/// The schema of the data of an event about an alert.
#[cfg(feature = "contract")]
pub fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<Data<'_>>()
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
