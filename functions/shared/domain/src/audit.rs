//! The audit stream (rule 43): each transition and each operator's command, in the order in which they were committed.
//!
//! Each entry has a hash over itself and the hash before it. So nobody can change, add or remove an entry without a
//! change of all the hashes after it. The text of an entry goes into the hash by its digest: once a person is
//! forgotten, the digest stays in place of the text.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::{CommandId, OrderId};
use crate::message::{Action, Command, Settled};
use crate::task::{Line, ProcessState, Task};
use crate::time::Timestamp;

/// What is recorded.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Entry<'a> {
    /// A version of a task was written.
    Transition(Moved<'a>),
    /// An order was deleted.
    Deleted(Gone),
    /// An operator's command was queued.
    Command(Asked<'a>),
    /// A record was written that operators write.
    Record(Kept<'a>),
}

/// A version of a task, and the lines that it added to the history.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Moved<'a> {
    at: Timestamp,
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    version: u64,
    state: ProcessState,
    lines: Vec<Line<'a>>,
    /// Of an erase: the entries whose digest took the place of their text.
    #[serde(skip_serializing_if = "<[i64]>::is_empty")]
    erased_entries: &'a [i64],
}

/// An order that was deleted after its time (rule 44).
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Gone {
    at: Timestamp,
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    last_version: u64,
    /// When its time was over. `null`: it had none, and somebody else deleted it.
    expired_at: Option<Timestamp>,
}

/// A command, without the output that a settle may bring.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Asked<'a> {
    at: Timestamp,
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    command: Action,
    by: &'a str,
    reason: &'a str,
    #[serde(rename = "CommandID")]
    command_id: &'a CommandId,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Settled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    take: Option<bool>,
}

/// A record. The text of a long one is left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Kept<'a> {
    at: Timestamp,
    record: &'static str,
    key: &'a str,
    version: u64,
    digest: Hash,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

/// The member in which the entry of an erase names others. A text within an entry cannot have it: its quotes are escaped.
pub const ERASED_ENTRIES: &str = r#""ErasedEntries":["#;

/// A longer record has only its digest in the stream.
const RECORD_BYTES_MAX: usize = 4_096;

impl<'a> Entry<'a> {
    /// A version of a task was written after this one.
    #[must_use]
    pub fn transition(at: Timestamp, before: Option<&Task>, task: &'a Task) -> Self {
        Self::moved(at, before, task, &[])
    }

    /// The version of a task that is erased. The texts of these entries became digests.
    #[must_use]
    pub fn erased(at: Timestamp, before: &Task, task: &'a Task, entries: &'a [i64]) -> Self {
        Self::moved(at, Some(before), task, entries)
    }

    fn moved(at: Timestamp, before: Option<&Task>, task: &'a Task, erased_entries: &'a [i64]) -> Self {
        let Task { order_id, version, process_state, .. } = task;
        let lines = task.added_since(before).iter().map(|line| Line::typed(line, &task.steps)).collect();
        Self::Transition(Moved {
            at,
            order_id: *order_id,
            version: *version,
            state: *process_state,
            lines,
            erased_entries,
        })
    }

    /// The order of this task was deleted: this was its last version.
    #[must_use]
    pub const fn deleted(at: Timestamp, task: &Task) -> Self {
        Self::Deleted(Gone { at, order_id: task.order_id, last_version: task.version, expired_at: task.expires_at })
    }

    /// A command was queued.
    #[must_use]
    pub fn command(at: Timestamp, command: &'a Command) -> Self {
        let Command { order_id, action, by, reason, command_id, settle, take, step, .. } = command;
        let settled = settle.as_ref().map(|settle| &*settle.step);
        Self::Command(Asked {
            at,
            order_id: *order_id,
            command: *action,
            by,
            reason,
            command_id,
            step: settled.or(step.as_deref()),
            outcome: settle.as_ref().map(|settle| settle.outcome),
            take: *take,
        })
    }

    /// A record of this kind was written.
    #[must_use]
    pub fn record(at: Timestamp, record: &'static str, key: &'a str, version: u64, body: &'a str) -> Self {
        let is_short = body.len() <= RECORD_BYTES_MAX;
        Self::Record(Kept { at, record, key, version, digest: Hash::of(body), body: is_short.then_some(body) })
    }
}

/// The hash of an entry and of all before it, or the digest of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// The text is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct NoHash;

impl Hash {
    /// Before the first entry.
    pub const START: Self = Self([0; 32]);

    /// The digest of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// After the next entry, which has this digest.
    #[must_use]
    pub fn then(self, digest: Self) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(digest.0).finalize().into())
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Hash {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Self, NoHash> {
        let digits = text.as_bytes().as_chunks::<2>().0;
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(NoHash);
        }
        for (byte, digits) in bytes.iter_mut().zip(digits) {
            let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
            *byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(NoHash)?;
        }
        Ok(Self(bytes))
    }
}

/// Compares entries with their hashes, in their order.
#[derive(Debug, Default)]
pub struct Verifier {
    last: Option<(i64, Hash)>,
    /// Entries without their text, until the entry of an erase names them.
    unnamed: BTreeSet<i64>,
    erased: u64,
}

/// What an entry says about others.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Names {
    #[serde(default)]
    erased_entries: Vec<i64>,
}

/// Where the stream is not as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Altered {
    /// An entry, or its hash.
    #[error("entry {0} is not as it was written, or an entry beside it")]
    Entry(i64),
    /// Entries are missing.
    #[error("entries are missing after {0}: the next one is {1}")]
    Missing(i64, i64),
    /// A text is missing.
    #[error("the text of entry {0} is gone, and no erase names it")]
    Blank(i64),
}

impl Verifier {
    /// The next entry: its number, its hash, and its text, or the digest of the text once it is erased. Of a stream
    /// that begins later than with 1, the first entry is taken as it is: the hash before it is gone.
    ///
    /// # Errors
    /// [`Altered`] if the entry does not follow the one before it.
    pub fn next(&mut self, seq: i64, hash: Hash, body: Result<&str, Hash>) -> Result<(), Altered> {
        let digest = body.map_or_else(|digest| digest, Hash::of);
        let expected = match self.last {
            Some((last, _)) if last.checked_add(1) != Some(seq) => return Err(Altered::Missing(last, seq)),
            Some((_, last)) => Some(last.then(digest)),
            None if seq == 1 => Some(Hash::START.then(digest)),
            None => None,
        };
        if expected.is_some_and(|expected| expected != hash) {
            return Err(Altered::Entry(seq));
        }
        self.last = Some((seq, hash));
        match body {
            Ok(body) if body.contains(ERASED_ENTRIES) => self.named(body),
            Ok(_) => {}
            Err(_) => self.erased += u64::from(self.unnamed.insert(seq)),
        }
        Ok(())
    }

    fn named(&mut self, body: &str) {
        let names = serde_json::from_str(body).unwrap_or(Names { erased_entries: Vec::new() });
        for seq in names.erased_entries {
            self.unnamed.remove(&seq);
        }
    }

    /// How many entries were erased so far.
    #[must_use]
    pub const fn erased(&self) -> u64 {
        self.erased
    }

    /// The last entry, at the end of the stream.
    ///
    /// # Errors
    /// [`Altered::Blank`] if a text is gone that no erase removed.
    pub fn end(&self) -> Result<Option<(i64, Hash)>, Altered> {
        self.unnamed.first().map_or(Ok(self.last), |seq| Err(Altered::Blank(*seq)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::machine::testing::Case;

    #[test]
    fn a_hash_depends_on_the_entry_and_on_all_before_it() {
        let chain = |texts: &[&str]| texts.iter().fold(Hash::START, |hash, text| hash.then(Hash::of(text)));
        let hash = chain(&["a", "b"]);
        for other in [&["a"][..], &["b", "a"], &["a", "c"], &["a", "b", ""], &["ab"]] {
            assert_ne!(chain(other), hash, "{other:?}");
        }
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for text in ["", "00", &"g".repeat(64), &"+f".repeat(32), &"é".repeat(32)] {
            assert_eq!(text.parse::<Hash>(), Err(NoHash), "{text}");
        }
    }

    #[test]
    fn an_entry_that_was_changed_added_or_removed_is_found() {
        let mut hash = Hash::START;
        let stream: Vec<(i64, Hash, Hash)> = (1..6)
            .map(|seq| {
                let digest = Hash::of(&seq.to_string());
                hash = hash.then(digest);
                (seq, hash, digest)
            })
            .collect();
        let verified = |stream: &[(i64, Hash, Hash)]| {
            let mut verifier = Verifier::default();
            stream.iter().try_for_each(|(seq, hash, digest)| verifier.next(*seq, *hash, Err(*digest)))?;
            Ok(verifier.last)
        };
        assert_eq!(verified(&stream), Ok(Some((5, hash))));
        assert_eq!(verified(&stream[2..]), Ok(Some((5, hash))), "older entries may be gone");
        assert_eq!(verified(&[]), Ok(None));
        for at in 0..5 {
            let mut changed = stream.clone();
            changed[at].2 = Hash::of("x");
            assert_eq!(verified(&changed), Err(Altered::Entry(changed[at].0)));
            let mut changed = stream.clone();
            changed[at].1 = Hash::of("x");
            assert_eq!(verified(&changed), Err(Altered::Entry(changed[at].0)));
        }
        let mut shorter = stream;
        shorter.remove(2);
        assert_eq!(verified(&shorter), Err(Altered::Missing(2, 4)));
        let mut renumbered = shorter;
        renumbered.iter_mut().zip(1..).for_each(|(entry, seq)| entry.0 = seq);
        assert_eq!(verified(&renumbered), Err(Altered::Entry(3)));
    }

    #[test]
    fn a_text_is_gone_only_if_an_erase_names_it() {
        let erase = r#"{"Version":3,"ErasedEntries":[1,2]}"#;
        // A reason that a person typed names nothing.
        let reason = r#"{"Reason":"\"ErasedEntries\":[1,2]"}"#;
        for (texts, blank, expected) in [
            ([r#"{"a":1}"#, r#"{"b":1}"#, erase], &[1, 2][..], Ok(2)),
            ([r#"{"a":1}"#, r#"{"b":1}"#, reason], &[1, 2], Err(Altered::Blank(1))),
            ([r#"{"a":1}"#, r#"{"b":1}"#, erase], &[1, 3], Err(Altered::Blank(1))),
            ([r#"{"a":1}"#, r#"{"b":1}"#, erase], &[], Ok(0)),
        ] {
            let (mut verifier, mut hash) = (Verifier::default(), Hash::START);
            for (seq, text) in (1..).zip(texts) {
                hash = hash.then(Hash::of(text));
                let body = if blank.contains(&seq) { Err(Hash::of(text)) } else { Ok(text) };
                verifier.next(seq, hash, body).unwrap();
            }
            assert_eq!(verifier.end().map(|_| verifier.erased()), expected, "{texts:?} without {blank:?}");
        }
    }

    #[test]
    fn a_transition_has_the_lines_that_it_added_also_where_older_ones_were_dropped() {
        let mut case = Case::new(&[("a", &[], "")], false);
        let mut seen = Vec::new();
        let mut before = None;
        for _ in 0..crate::limits::HISTORY_MAX {
            seen.extend(case.task.added_since(before.as_ref()).to_vec());
            before = Some(case.task.clone());
            let action = if case.task.paused.is_some() { Action::Resume } else { Action::Pause };
            let command = case.command(action, None);
            case.apply(crate::machine::Event::Command { command: &command, redelivered: false });
        }
        seen.extend(case.task.added_since(before.as_ref()).to_vec());
        assert!(seen.len() > case.task.history.len(), "lines were dropped");
        assert_eq!(seen[seen.len() - 20..], case.task.history[case.task.history.len() - 20..]);
        let times = seen.iter().filter(|line| line.what.kind() == "Paused" || line.what.kind() == "Resumed").count();
        assert_eq!(times, crate::limits::HISTORY_MAX, "each line once");
    }

    #[test]
    fn an_entry_says_who_did_what_and_to_which_order() {
        let case = Case::new(&[("a", &[], "")], false);
        let command = Command { by: "ada [desk]".into(), ..case.command(Action::Cancel, None) };
        let entry = serde_json::to_value(Entry::command(case.now, &command)).unwrap();
        let expected = json!({"At": case.now, "OrderID": case.task.order_id, "Command": "Cancel", "By": "ada [desk]",
            "Reason": &*command.reason, "CommandID": command.command_id});
        assert_eq!(entry, expected);
        let entry = serde_json::to_value(Entry::transition(case.now, None, &case.task)).unwrap();
        assert_eq!((&entry["Version"], &entry["Lines"][0]["Kind"]), (&json!(case.task.version), &json!("Submitted")));
        for (bytes, is_there) in [(RECORD_BYTES_MAX, true), (RECORD_BYTES_MAX + 1, false)] {
            let body = "x".repeat(bytes);
            let entry = serde_json::to_value(Entry::record(case.now, "job", "j", 2, &body)).unwrap();
            assert_eq!((entry.get("Body").is_some(), &entry["Digest"]), (is_there, &json!(Hash::of(&body))));
        }
    }
}
