//! The history of a task: each event is one typed value. The words of an event are made here, and its reason where it
//! arises.
//!
//! A stored line holds the value as a text, in the notation of [`What::stored`]. [`What::read`] keeps a text that it does
//! not know: another version wrote it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::author;
use crate::order::AgainOf;
use crate::state::{Direction, ProcessState};
use crate::time::Timestamp;

/// One attempt of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The step's name.
    pub step: Arc<str>,
    /// Carry out, or undo.
    pub direction: Direction,
    /// The fencing token of its claim.
    pub number: u32,
}

/// Something that happened to a task. `Display` gives the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The order was accepted.
    Submitted,
    /// An attempt began.
    Claimed(Attempt),
    /// The step is done in its direction.
    Processed(Attempt),
    /// The attempt was given back, and no failure is counted.
    Deferred(Attempt),
    /// The attempt had no answer in time, and another follows.
    Expired(Attempt),
    /// The step is given up. The order is compensated, or an operator must act.
    GivenUp(Attempt),
    /// The order came into a state.
    Entered {
        /// This state.
        state: ProcessState,
    },
    /// An operator resubmitted the order.
    Resubmitted {
        /// The bulk job that did it.
        bulk: Option<Arc<str>>,
    },
    /// An operator cancelled the order.
    Cancelled,
    /// An operator paused the order.
    Paused,
    /// The pause ended.
    Resumed,
    /// An operator said that the step is done in its direction (rule 27).
    Settled(Attempt),
    /// A person approved the step (rule 40).
    Approved(Attempt),
    /// The step waits before its first claim (rule 35).
    Waiting(Attempt),
    /// The service took the call of the attempt on, and tells the result later (rule 36).
    Accepted(Attempt),
    /// The step needs no call: it does not apply, is optional and was rejected, or has no undo (rule 33).
    Skipped(Attempt),
    /// A result came against the end of the step or of its order (rule 5).
    Contradicted(Attempt),
    /// The order was not finished at its deadline (rule 37).
    Late,
    /// An operator wrote a note (rule 30).
    Noted {
        /// Whether the operator took the order on with it, or let it go.
        take: Option<bool>,
    },
    /// The personal data of the order were erased (rule 46).
    Erased,
    /// A stored text that matches none of these.
    Other {
        /// As it was stored.
        text: Arc<str>,
    },
    /// The attempt had no answer in time, and none follows. For metrics: the history has [`What::GivenUp`].
    ExpiredLast(Attempt),
    /// The step had no answer too often or for too long. For metrics: the history has [`What::GivenUp`].
    Exhausted(Attempt),
    /// The service rejected the step for good.
    Rejected(Attempt),
    /// A supervisor found the attempt so late that it doubted its own clock. For metrics.
    Doubted(Attempt),
}

/// One line of a task's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// An instance, an operator, or the submitter of the order.
    pub who: Arc<str>,
    /// What happened.
    pub what: What,
    /// The reason, where one was given.
    pub why: Option<Arc<str>>,
}

const UNDO_OF: &str = "undo of ";
const EXPIRED: &str = "re-pended";
const WAITS: &str = "waits";
/// Makes an event from its attempt.
type OfAttempt = fn(Attempt) -> What;
/// The kinds of a stored line about a step, each with its verb.
const VERBS: [(&str, OfAttempt); 12] = [
    ("claimed", What::Claimed),
    ("processed", What::Processed),
    ("put off", What::Deferred),
    (EXPIRED, What::Expired),
    ("given up", What::GivenUp),
    ("rejected", What::Rejected),
    ("settled", What::Settled),
    ("approved", What::Approved),
    (WAITS, What::Waiting),
    ("accepted", What::Accepted),
    ("skipped", What::Skipped),
    ("contradicted", What::Contradicted),
];

impl What {
    /// Its name for programs, its words or verb, and the attempt that it is about.
    const fn parts(&self) -> (&'static str, &str, Option<&Attempt>) {
        match self {
            Self::Submitted => ("Submitted", "submitted", None),
            Self::Claimed(attempt) => ("Claimed", "claimed", Some(attempt)),
            Self::Processed(attempt) => ("Processed", "processed", Some(attempt)),
            Self::Deferred(attempt) => ("Deferred", "put off", Some(attempt)),
            Self::Expired(attempt) => ("Expired", EXPIRED, Some(attempt)),
            Self::GivenUp(attempt) => ("GivenUp", "given up", Some(attempt)),
            Self::Entered { state } => ("Entered", state.name(), None),
            Self::Resubmitted { .. } => ("Resubmitted", "resubmitted", None),
            Self::Cancelled => ("Cancelled", "cancelled", None),
            Self::Paused => ("Paused", "paused", None),
            Self::Resumed => ("Resumed", "resumed", None),
            Self::Settled(attempt) => ("Settled", "settled", Some(attempt)),
            Self::Approved(attempt) => ("Approved", "approved", Some(attempt)),
            Self::Waiting(attempt) => ("Waiting", WAITS, Some(attempt)),
            Self::Accepted(attempt) => ("Accepted", "accepted", Some(attempt)),
            Self::Skipped(attempt) => ("Skipped", "skipped", Some(attempt)),
            Self::Contradicted(attempt) => ("Contradicted", "contradicted", Some(attempt)),
            Self::Late => ("Late", "late", None),
            Self::Noted { take: None } => ("Noted", "noted", None),
            Self::Noted { take: Some(true) } => ("Noted", "taken on", None),
            Self::Noted { take: Some(false) } => ("Noted", "let go", None),
            Self::Erased => ("Erased", "erased", None),
            Self::Other { .. } => ("Other", "", None),
            Self::ExpiredLast(attempt) => ("ExpiredLast", "expired", Some(attempt)),
            Self::Exhausted(attempt) => ("Exhausted", "exhausted", Some(attempt)),
            Self::Rejected(attempt) => ("Rejected", "rejected", Some(attempt)),
            Self::Doubted(attempt) => ("Doubted", "doubted", Some(attempt)),
        }
    }

    /// The attempt of this line, and the verb for its outcome.
    #[must_use]
    pub const fn of_step(&self) -> Option<(&Attempt, &str)> {
        match self.parts() {
            (_, verb, Some(attempt)) => Some((attempt, verb)),
            (_, _, None) => None,
        }
    }

    /// Whether it is a note.
    #[must_use]
    pub const fn is_note(&self) -> bool {
        matches!(self, Self::Noted { .. })
    }

    /// Whether the history keeps the line: notes, and the first line. Without it, nobody knows when an order with an
    /// idempotency key was accepted, and its duration is not counted (rule 26).
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Submitted | Self::Noted { .. })
    }

    /// The reverse, for the verbs of stored lines.
    #[must_use]
    pub fn with_verb(verb: &str, attempt: Attempt) -> Option<Self> {
        VERBS.iter().find(|(known, _)| *known == verb).map(|(_, kind)| kind(attempt))
    }

    /// The words for people.
    #[must_use]
    pub fn words(&self) -> Cow<'_, str> {
        // These words omit direction and attempt; the reason in the same line names the attempt.
        if let Self::Expired(Attempt { step, .. }) = self {
            return Cow::Owned(format!("{step} {EXPIRED}"));
        }
        // It is before the first attempt.
        if let Self::Waiting(Attempt { step, .. }) = self {
            return Cow::Owned(format!("{step} {WAITS}"));
        }
        self.stored()
    }

    /// The name of the kind, for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.parts().0
    }

    /// The stored text: the words, always with direction and attempt.
    #[must_use]
    pub fn stored(&self) -> Cow<'_, str> {
        match self.parts() {
            (_, verb, Some(attempt)) => Cow::Owned(joined(attempt, verb)),
            (_, words, None) => Cow::Borrowed(if let Self::Other { text } = self { text } else { words }),
        }
    }

    /// The value of a stored text. `why` is the reason in the same line.
    #[must_use]
    pub fn read(text: &str, why: Option<&str>) -> Self {
        match text {
            "submitted" => Self::Submitted,
            "resubmitted" => Self::Resubmitted { bulk: why.and_then(bulk_of).map(Into::into) },
            "cancelled" => Self::Cancelled,
            "paused" => Self::Paused,
            "resumed" => Self::Resumed,
            "late" => Self::Late,
            "noted" => Self::Noted { take: None },
            "taken on" => Self::Noted { take: Some(true) },
            "let go" => Self::Noted { take: Some(false) },
            "erased" => Self::Erased,
            _ => {
                let state = || text.parse().ok().map(|state| Self::Entered { state });
                read_step(text).or_else(state).unwrap_or_else(|| Self::Other { text: text.into() })
            }
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())
    }
}

/// The text for the outcome of an attempt.
fn joined(Attempt { step, direction, number }: &Attempt, verb: &str) -> String {
    let undo_of = match direction {
        Direction::Forward => "",
        Direction::Undo => UNDO_OF,
    };
    // A store writes every line of a task at each commit, so the parts are joined without the cost of `format!`.
    let mut words = String::with_capacity(undo_of.len() + step.len() + verb.len() + 13);
    for part in [undo_of, step, " ", verb, " #"] {
        words.push_str(part);
    }
    // A `String` takes all that is written.
    let _ = write!(words, "{number}");
    words
}

/// The value of a stored text about a step. A name contains no space, so each text has at most one reading.
fn read_step(text: &str) -> Option<What> {
    let (rest, digits) = text.rsplit_once(" #")?;
    let number = digits.parse().ok().filter(|n: &u32| n.to_string() == digits)?;
    let (direction, rest) = match rest.strip_prefix(UNDO_OF) {
        Some(rest) => (Direction::Undo, rest),
        None => (Direction::Forward, rest),
    };
    let (step, verb) = rest.split_once(' ')?;
    let is_name = !step.is_empty() && !step.contains(char::is_whitespace);
    is_name.then(|| What::with_verb(verb, Attempt { step: step.into(), direction, number }))?
}

/// The beginning of the reason in the history line of an order that a bulk job resubmitted. A job's orders are recognised
/// by it.
#[must_use]
pub fn bulk_mark(job_id: &str) -> String {
    format!("bulk {job_id}: ")
}

/// The bulk job that a reason names at its beginning. Only the form of a job's id counts, since an operator may begin
/// a reason with the same word.
fn bulk_of(reason: &str) -> Option<&str> {
    let (id, _) = reason.strip_prefix("bulk ")?.split_once(": ")?;
    let (time, random) = id.split_once('-')?;
    let is_hex = |digits: &str| digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    (time.len() == 12 && random.len() == 16 && is_hex(time) && is_hex(random)).then_some(id)
}

impl Transition {
    /// The bulk job that resubmitted the order, or posted it again as this one.
    #[must_use]
    pub fn bulk(&self) -> Option<&str> {
        if let What::Resubmitted { bulk } = &self.what {
            return bulk.as_deref();
        }
        let words = self.why.as_deref().filter(|_| self.what == What::Submitted)?;
        let by_and_reason = AgainOf::by_and_reason(words)?;
        // The name of an operator may have a colon.
        by_and_reason.match_indices(": ").find_map(|(at, colon)| bulk_of(&by_and_reason[at + colon.len()..]))
    }

    /// The bulk job that acted on the order.
    pub(super) fn job(&self) -> Option<&str> {
        self.bulk().or_else(|| bulk_of(self.why.as_deref()?))
    }
}

impl Serialize for Transition {
    /// Writes the stored form.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { at, who, what, why } = self;
        let mut line = serializer.serialize_struct("Transition", 3 + usize::from(why.is_some()))?;
        line.serialize_field("At", at)?;
        line.serialize_field("Who", who)?;
        line.serialize_field("What", &*what.stored())?;
        if let Some(why) = why {
            line.serialize_field("Why", why)?;
        }
        line.end()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StoredLine<'a> {
    at: Timestamp,
    who: Arc<str>,
    #[serde(borrow)]
    what: Cow<'a, str>,
    #[serde(default)]
    why: Option<Arc<str>>,
}

impl<'de> Deserialize<'de> for Transition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredLine { at, who, what, why } = StoredLine::deserialize(deserializer)?;
        let what = What::read(&what, why.as_deref());
        Ok(Self { at, who, what, why })
    }
}

/// A line for display: words, and the typed members beside them.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "HistoryLine"))]
#[serde(rename_all = "PascalCase")]
pub struct Line<'a> {
    /// When.
    pub at: Timestamp,
    /// An instance, an operator, or the submitter of the order.
    pub who: &'a str,
    /// The authenticated caller of that operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<&'a str>,
    /// What happened, in words.
    pub what: Cow<'a, str>,
    /// The reason, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'a str>,
    /// The kind of change, for programs. More kinds may be added.
    pub kind: &'static str,
    /// The step of this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'a str>,
    /// The direction of that step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The number of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The state that the order entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ProcessState>,
    /// The bulk job that resubmitted the order, or posted it again as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk: Option<&'a str>,
}

impl<'a> From<&'a Transition> for Line<'a> {
    fn from(line: &'a Transition) -> Self {
        let Transition { at, who, what, why } = line;
        let attempt = what.of_step().map(|(attempt, _)| attempt);
        let (who, caller) = author::parts(who);
        let state = if let What::Entered { state } = what { Some(*state) } else { None };
        Self {
            at: *at,
            who,
            caller,
            what: what.words(),
            why: why.as_deref(),
            kind: what.kind(),
            step: attempt.map(|attempt| &*attempt.step),
            direction: attempt.map(|attempt| attempt.direction),
            attempt: attempt.map(|attempt| attempt.number),
            state,
            bulk: line.bulk(),
        }
    }
}

#[cfg(test)]
mod tests;
