//! The stored form of a history, one for all stores: a list with an entry for each line.
//!
//! ```text
//! [["S",1795195603007,"shop"],[{"C":0},12,"scheduler-1f3a9c2e"],[{"P":0},2500,"~99b01d7c"],[{"C":1}],
//!  [{"X":[1,2]},7219,"supervisor-1","attempt 2 expired, failure 2 of 3"]]
//! ```
//!
//! An entry has what happened, the milliseconds since the line before, who, why, the command, and the bulk job. What
//! is as in the line before, or missing, is left out at the end, and else `0` or `null`. A store writes all lines at
//! each commit, so `~` stands for the name before up to its last hyphen, and each kind has one letter.

use std::sync::Arc;

use serde::ser::{SerializeSeq, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Attempt, Transition, What};
use crate::id::CommandId;
use crate::state::Direction;
use crate::time::Timestamp;

/// An attempt: the index of its step alone if it is the first one forward, which most are.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Short {
    First(usize),
    Forward(usize, u32),
    Other(usize, u32, Direction),
}

impl From<Attempt> for Short {
    fn from(Attempt { step, direction, number }: Attempt) -> Self {
        match (direction, number) {
            (Direction::Forward, 1) => Self::First(step),
            (Direction::Forward, _) => Self::Forward(step, number),
            (Direction::Undo, _) => Self::Other(step, number, direction),
        }
    }
}

impl From<Short> for Attempt {
    fn from(short: Short) -> Self {
        let (step, number, direction) = match short {
            Short::First(step) => (step, 1, Direction::Forward),
            Short::Forward(step, number) => (step, number, Direction::Forward),
            Short::Other(step, number, direction) => (step, number, direction),
        };
        Self { step, direction, number }
    }
}

/// A line, and the line before it.
struct Entry<'a>(&'a Transition, Option<&'a Transition>);

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Transition { at, who, what, why, command_id, bulk }, before) = self;
        let before_ms = before.map_or(0, |before| before.at.epoch_ms());
        let after_ms = at.epoch_ms().wrapping_sub(before_ms);
        let who = Who { who, before: before.map(|before| &*before.who) };
        let is_there = [true, after_ms != 0, !who.is_same(), why.is_some(), command_id.is_some(), bulk.is_some()];
        let length = is_there.iter().rposition(|is_there| *is_there).map_or(1, |last| last + 1);
        let mut entry = serializer.serialize_tuple(length)?;
        entry.serialize_element(what)?;
        for place in 1..length {
            match place {
                1 => entry.serialize_element(&after_ms),
                2 => entry.serialize_element(&who),
                3 => entry.serialize_element(why),
                4 => entry.serialize_element(command_id),
                _ => entry.serialize_element(bulk),
            }?;
        }
        entry.end()
    }
}

/// A name, and the one before it.
struct Who<'a> {
    who: &'a str,
    before: Option<&'a str>,
}

impl Who<'_> {
    fn is_same(&self) -> bool {
        self.before == Some(self.who)
    }
}

impl Serialize for Who<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_same() {
            return serializer.serialize_none();
        }
        let own = self.before.and_then(family).and_then(|family| self.who.strip_prefix(family));
        match own.filter(|own| !own.starts_with('~')) {
            Some(own) => serializer.collect_str(&format_args!("~{own}")),
            None if self.who.starts_with('~') => serializer.collect_str(&format_args!("~{}", self.who)),
            None => serializer.serialize_str(self.who),
        }
    }
}

/// A name up to its last hyphen.
fn family(who: &str) -> Option<&str> {
    who.rfind('-').map(|hyphen| &who[..=hyphen])
}

#[derive(Deserialize)]
#[serde(expecting = "a line of history")]
struct Read {
    what: What,
    #[serde(default)]
    after_ms: i64,
    #[serde(default)]
    who: Option<Arc<str>>,
    #[serde(default)]
    why: Option<Arc<str>>,
    #[serde(default)]
    command_id: Option<CommandId>,
    #[serde(default)]
    bulk: Option<Arc<str>>,
}

/// Writes a history.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(history: &[Transition], serializer: S) -> Result<S::Ok, S::Error> {
    let mut lines = serializer.serialize_seq(Some(history.len()))?;
    let before = std::iter::once(None).chain(history.iter().map(Some));
    for (line, before) in history.iter().zip(before) {
        lines.serialize_element(&Entry(line, before))?;
    }
    lines.end()
}

/// Reads a history.
///
/// # Errors
/// Those of the deserializer, and a line that continues none.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Transition>, D::Error> {
    let lines = Vec::<Read>::deserialize(deserializer)?;
    let mut history: Vec<Transition> = Vec::with_capacity(lines.len());
    for Read { what, after_ms, who, why, command_id, bulk } in lines {
        let before = history.last();
        let at = Timestamp::from_epoch_ms(before.map_or(0, |before| before.at.epoch_ms()).wrapping_add(after_ms));
        let before = before.map(|before| &before.who);
        let who = match who.as_deref().map(|who| who.strip_prefix('~')) {
            None => before.cloned(),
            Some(None) => who,
            Some(Some(own)) if own.starts_with('~') => Some(own.into()),
            Some(Some(own)) => before.and_then(|before| family(before)).map(|family| [family, own].concat().into()),
        };
        let who = who.ok_or_else(|| de::Error::custom("a line of history continues another, and there is none"))?;
        history.push(Transition { at, who, what, why, command_id, bulk });
    }
    Ok(history)
}
