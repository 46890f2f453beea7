//! The history as short lines, one for all that one instance did at one time:
//!
//! ```text
//! 1795195603007 shop submitted
//! +12 scheduler-1f3a9c2e 1 claimed
//! +2512 ~99b01d7c 1 processed; 2 claimed
//! +9731 = Error because "no answer from payment"
//! ```
//!
//! The time, in milliseconds since the epoch and then since the first line; who, where `=` is the one before and `~` stands
//! for that one's name up to the last hyphen; and what, where a number in front is the step of that place, and no `#` at
//! the end of such a line is `#1`. A text that would not be read as it was written stands in quotes, as JSON.

use std::fmt::Write;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::task::{Step, Transition};
use domain::time::Timestamp;

use super::{Unreadable, text};

/// What comes between a what and its why.
const BECAUSE: &str = " because ";

/// A history as stored, of a task with these steps.
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

/// Time and who.
fn begin(line: &mut String, first_at: Timestamp, before: Option<&Transition>, one: &Transition) {
    let written = match before {
        None => write!(line, "{} ", one.at.epoch_ms()),
        // Wider than a time, so that no difference overflows.
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
    let plain = [short(&one.what, steps), Some(one.what.to_string())].into_iter().flatten();
    match plain.into_iter().find(|plain| long(plain, steps).as_deref() == Some(&*one.what)) {
        Some(plain) => line.push_str(&plain),
        None => quote(line, &one.what),
    }
    if let Some(why) = &one.why {
        line.push_str(BECAUSE);
        quote(line, why);
    }
}

/// Whether its end can be told from what comes after it.
fn is_plain(what: &str) -> bool {
    let in_words = what.chars().all(|c| c.is_ascii_alphanumeric() || " #._-".contains(c));
    in_words && !what.is_empty() && what.trim() == what && !what.contains(BECAUSE.trim())
}

const UNDO_OF: &str = "undo of ";

/// With the step's number for its name, and without `#1`.
fn short(what: &str, steps: &[Step]) -> Option<String> {
    let (undo_of, what) = what.strip_prefix(UNDO_OF).map_or(("", what), |what| (UNDO_OF, what));
    let tail_of = |step: &Step| what.strip_prefix(&*step.name).and_then(|tail| tail.strip_prefix(' '));
    let (place, tail) = steps.iter().enumerate().find_map(|(place, step)| Some((place, tail_of(step)?)))?;
    Some(format!("{undo_of}{} {}", place + 1, tail.strip_suffix(" #1").unwrap_or(tail)))
}

/// The what that a plain text stands for. `None`: it is not plain, or there is no such step.
fn long(plain: &str, steps: &[Step]) -> Option<String> {
    let (undo_of, what) = plain.strip_prefix(UNDO_OF).map_or(("", plain), |what| (UNDO_OF, what));
    if !is_plain(plain) {
        return None;
    }
    let Some((number, tail)) = what.split_once(' ').filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()))
    else {
        return Some(plain.to_owned());
    };
    let place = number.parse::<usize>().ok()?.checked_sub(1)?;
    let attempt = if tail.contains('#') { "" } else { " #1" };
    Some(format!("{undo_of}{} {tail}{attempt}", steps.get(place)?.name))
}

fn quote(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

/// The history of stored lines, of a task with these steps.
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
        let (what, after) = match rest.starts_with('"') {
            true => quoted(rest)?,
            false => {
                let end = rest.find([';', '"']).unwrap_or(rest.len());
                let plain = rest[..end].strip_suffix(BECAUSE).unwrap_or(&rest[..end]);
                (long(plain, steps)?, &rest[plain.len()..])
            }
        };
        let (why, after) = match after.strip_prefix(BECAUSE) {
            Some(why) => quoted(why).map(|(why, after)| (Some(why.into()), after))?,
            None => (None, after),
        };
        history.push(Transition { at, who: who.clone(), what: what.into(), why });
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

/// The quoted text that something begins with, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = values.next()?.ok()?;
    let after = values.byte_offset();
    Some((value, &text[after..]))
}
