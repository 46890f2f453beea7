//! The history as short lines. One line holds all events of one instance at one time:
//!
//! ```text
//! 1795195603007 shop submitted
//! +12 scheduler-1f3a9c2e 1 claimed
//! +2512 ~99b01d7c 1 processed; 2 claimed
//! +9731 = Error because "no answer from payment"
//! ```
//!
//! A line has three parts:
//!
//! - the time, in milliseconds: first since the epoch, then since the first line;
//! - the instance: `=` is the previous one, and `~` stands for its name up to the last hyphen;
//! - the events: a number in front is the step at that place, and such an event without `#` at its end means `#1`.
//!
//! A text that would read back differently is quoted as JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::task::{Attempt, Direction, Step, Transition, What};
use domain::time::Timestamp;

use super::{Unreadable, text};

/// The separator between an event and its reason.
const BECAUSE: &str = " because ";

/// The stored form of a history, for a task with these steps.
pub(super) fn history_value(history: &[Transition], steps: &[Step]) -> AttributeValue {
    let mut lines: Vec<AttributeValue> = Vec::with_capacity(history.len());
    let mut before: Option<&Transition> = None;
    let mut line = String::new();
    for one in history {
        match before {
            Some(last) if (last.at, &last.who) == (one.at, &one.who) => line.push_str("; "),
            _ => {
                if before.is_some() {
                    lines.push(text(std::mem::take(&mut line)));
                }
                begin(&mut line, history[0].at, before, one);
            }
        }
        write_what(&mut line, one, steps);
        before = Some(one);
    }
    if before.is_some() {
        lines.push(text(line));
    }
    AttributeValue::L(lines)
}

/// Writes the time and the instance.
fn begin(line: &mut String, first_at: Timestamp, before: Option<&Transition>, one: &Transition) {
    let written = match before {
        None => write!(line, "{} ", one.at.epoch_ms()),
        // The type is wider than a time, so that no difference overflows.
        Some(_) => write!(line, "{:+} ", i128::from(one.at.epoch_ms()) - i128::from(first_at.epoch_ms())),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    match before.map(|before| &*before.who) {
        Some(last) if *last == *one.who => line.push('='),
        last => match last.and_then(family).and_then(|family| one.who.strip_prefix(family)) {
            Some(own) if is_token(own) => {
                line.push('~');
                line.push_str(own);
            }
            _ if is_token(&one.who) && !one.who.starts_with(['=', '~']) => line.push_str(&one.who),
            _ => quote(line, &one.who),
        },
    }
    line.push(' ');
}

/// A name up to its last hyphen.
fn family(who: &str) -> Option<&str> {
    who.rfind('-').map(|hyphen| &who[..=hyphen])
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"')
}

fn write_what(line: &mut String, one: &Transition, steps: &[Step]) {
    if !write_numbered(line, &one.what, steps) {
        let what = one.what.stored();
        match is_plain(&what) && read_numbered(&what, steps).is_none() {
            true => line.push_str(&what),
            false => quote(line, &what),
        }
    }
    if let Some(why) = &one.why {
        line.push_str(BECAUSE);
        quote(line, why);
    }
}

/// Writes an event of a step, with the step's number for its name and without `#1`. Returns `false` if there is no such
/// step.
fn write_numbered(line: &mut String, what: &What, steps: &[Step]) -> bool {
    let Some((Attempt { step: name, direction, number }, verb)) = what.of_step() else { return false };
    let Some(index) = steps.iter().position(|step| step.name == *name) else { return false };
    let undo_of = if *direction == Direction::Undo { UNDO_OF } else { "" };
    let written = match number {
        1 => write!(line, "{undo_of}{} {verb}", index + 1),
        _ => write!(line, "{undo_of}{} {verb} #{number}", index + 1),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    true
}

/// The event of a text with a step's number; `None` if the number or the verb is unknown.
fn read_numbered(plain: &str, steps: &[Step]) -> Option<What> {
    let (direction, rest) = match plain.strip_prefix(UNDO_OF) {
        Some(rest) => (Direction::Undo, rest),
        None => (Direction::Forward, plain),
    };
    let (place, tail) = rest.split_once(' ')?;
    let (verb, number) = match tail.split_once(" #") {
        Some((verb, number)) => (verb, number.parse().ok()?),
        None => (tail, 1),
    };
    let step = steps.get(place.parse::<usize>().ok()?.checked_sub(1)?)?;
    What::with_verb(verb, Attempt { step: step.name.clone(), direction, number })
}

/// Whether a reader can find the end of the text.
fn is_plain(what: &str) -> bool {
    let in_words = what.chars().all(|c| c.is_ascii_alphanumeric() || " #._-".contains(c));
    in_words && !what.is_empty() && what.trim() == what && !what.contains(BECAUSE.trim())
}

const UNDO_OF: &str = "undo of ";

fn quote(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

/// The history of stored lines, for a task with these steps.
pub(super) fn history(lines: Vec<(String, AttributeValue)>, steps: &[Step]) -> Result<Vec<Transition>, Unreadable> {
    let mut history: Vec<Transition> = Vec::with_capacity(lines.len() * 2);
    for (place, line) in lines {
        let AttributeValue::S(line) = line else {
            return Err(Unreadable::new(place, "expected text"));
        };
        read_line(&line, steps, &mut history)
            .ok_or_else(|| Unreadable::new(place, format!("{line:?} is not a line of history")))?;
    }
    Ok(history)
}

fn read_line(line: &str, steps: &[Step], history: &mut Vec<Transition>) -> Option<()> {
    let (when, rest) = line.split_once(' ')?;
    let when: i128 = when.parse().ok()?;
    let first_ms = history.first().map_or(0, |first| first.at.epoch_ms());
    let at = Timestamp::from_epoch_ms((i128::from(first_ms) + when).try_into().ok()?);
    let (who, mut rest) = read_who(rest, history.last().map(|last| &last.who))?;
    loop {
        let (typed, text, after) = match rest.starts_with('"') {
            true => quoted(rest).map(|(text, after)| (None, Cow::Owned(text), after))?,
            false => {
                let end = rest.find([';', '"']).unwrap_or(rest.len());
                let plain = rest[..end].strip_suffix(BECAUSE).unwrap_or(&rest[..end]);
                is_plain(plain).then(|| (read_numbered(plain, steps), Cow::Borrowed(plain), &rest[plain.len()..]))?
            }
        };
        let (why, after) = match after.strip_prefix(BECAUSE) {
            Some(why) => quoted(why).map(|(why, after)| (Some(Arc::<str>::from(why)), after))?,
            None => (None, after),
        };
        let what = typed.unwrap_or_else(|| What::read(&text, why.as_deref()));
        history.push(Transition { at, who: who.clone(), what, why });
        if after.is_empty() {
            return Some(());
        }
        rest = after.strip_prefix("; ")?;
    }
}

fn read_who<'a>(rest: &'a str, last: Option<&Arc<str>>) -> Option<(Arc<str>, &'a str)> {
    if rest.starts_with('"') {
        let (who, after) = quoted(rest)?;
        return Some((who.into(), after.strip_prefix(' ')?));
    }
    let (who, after) = rest.split_once(' ')?;
    let who = match who.strip_prefix('~') {
        Some(own) => format!("{}{own}", family(last?)?).into(),
        None if who == "=" => last?.clone(),
        None => who.into(),
    };
    Some((who, after))
}

/// The quoted text at the beginning of `text`, and the rest after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = values.next()?.ok()?;
    let after = values.byte_offset();
    Some((value, &text[after..]))
}
