//! `stepwarden audit`: the audit stream of a data directory (rule 43). Never here: a call of an API.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use domain::audit::{Hash, Verifier};
use embedded::{Entries, Recorded};
use serde::Serialize;
use serde_json::json;

use super::context::body;
use super::error::CommandError;
use crate::args::{AuditArgs, Format, Noted};
use crate::exit::Exit;
use crate::remote::clock;

pub(super) fn run(args: &AuditArgs, output: Format) -> Result<Exit, CommandError> {
    let AuditArgs { data, since, verify, contains } = args;
    let since = since.as_ref().map(|since| since.from(clock::now()));
    let entries = embedded::audit(data, since).map_err(|error| CommandError::usage(error.to_string()))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let exit = if *verify || contains.is_some() {
        let verdict = verdict(entries, contains.as_ref())?;
        let exit = if verdict.is_ok() { Exit::Fine } else { Exit::Otherwise };
        let line = match (output, verdict) {
            (Format::Json, Ok(intact)) => body(&intact),
            (Format::Json, Err(problem)) => json!({"Problem": problem}).to_string(),
            (Format::Table, Ok(Intact { first, last, hash, erased, .. })) => format!(
                "entries {first} to {last} are as they were written; the texts of {erased} of them were erased\n\
                 Keep this in another place, and give it with --contains later: {last}:{hash}"
            ),
            (Format::Table, Err(problem)) => problem,
        };
        writeln!(out, "{line}")?;
        exit
    } else {
        for entry in entries {
            writeln!(out, "{}", line(&entry.map_err(unread)?))?;
        }
        Exit::Fine
    };
    out.flush()?;
    Ok(exit)
}

fn unread(error: impl Display) -> CommandError {
    CommandError::usage(format!("the audit stream cannot be read: {error}"))
}

/// An entry with its number and its hash, as JSON.
fn line(Recorded { seq, at, hash, body }: &Recorded) -> String {
    match body {
        // The text is an object as it was written.
        Ok(body) => format!("{{\"Seq\":{seq},\"Hash\":\"{hash}\",{}", body.strip_prefix('{').unwrap_or(body)),
        Err(digest) => json!({"Seq": seq, "Hash": hash, "At": at, "Erased": digest}).to_string(),
    }
}

/// A stream that is as it was written.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Intact {
    first: i64,
    last: i64,
    hash: Hash,
    entries: u64,
    erased: u64,
}

/// The stream, if it is as it was written and has the entry that was noted. Otherwise what is wrong with it.
fn verdict(entries: Entries, noted: Option<&Noted>) -> Result<Result<Intact, String>, CommandError> {
    let mut verifier = Verifier::default();
    let (mut first, mut count) = (None, 0);
    let mut of_noted = None;
    let altered = |altered| format!("the stream was altered: {altered}");
    for entry in entries {
        let entry = entry.map_err(unread)?;
        if let Err(fault) = verifier.next(entry.seq, entry.hash, entry.text()) {
            return Ok(Err(altered(fault)));
        }
        first.get_or_insert(entry.seq);
        count += 1;
        if noted.is_some_and(|noted| noted.seq == entry.seq) {
            of_noted = Some(entry.hash);
        }
    }
    if let Some(Noted { seq, .. }) = noted.filter(|noted| of_noted != Some(noted.hash)) {
        return Ok(Err(match of_noted.is_some() {
            true => format!(
                "entry {seq} has another hash than the one that was noted: all from some entry before it on was written anew"
            ),
            false => format!("entry {seq} is not there: the stream was cut off, or no longer goes back so far"),
        }));
    }
    let erased = verifier.erased();
    Ok(verifier.end().map_err(altered).and_then(|end| {
        let nothing = || "there is no entry: no order was submitted yet, or the stream was emptied".to_owned();
        let (first, (last, hash)) = first.zip(end).ok_or_else(nothing)?;
        Ok(Intact { first, last, hash, entries: count, erased })
    }))
}
