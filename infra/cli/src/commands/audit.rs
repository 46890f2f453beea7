//! `stepwarden audit`: the audit stream of a data directory (rule 43). Never here: a call of an API.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use domain::audit::Verifier;
use embedded::{Entries, Recorded};
use serde_json::json;

use super::error::CommandError;
use crate::args::{AuditArgs, Format, Noted};
use crate::exit::Exit;
use crate::remote::clock;

pub(super) fn run(args: &AuditArgs, output: Format) -> Result<Exit, CommandError> {
    let AuditArgs { data, since, verify, contains } = args;
    let since = since.as_ref().map(|since| since.from(clock::now()));
    let entries = embedded::audit(data, since).map_err(CommandError::usage)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let exit = if *verify || contains.is_some() {
        let (line, exit) = verdict(entries, contains.as_ref(), output)?;
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

/// Whether the stream is as it was written, and has the entry that was noted.
fn verdict(entries: Entries, noted: Option<&Noted>, output: Format) -> Result<(String, Exit), CommandError> {
    let mut verifier = Verifier::default();
    let (mut first, mut count) = (None, 0_u64);
    let mut of_noted = None;
    for entry in entries {
        let entry = entry.map_err(unread)?;
        if let Err(altered) = verifier.next(entry.seq, entry.hash, entry.text()) {
            return Ok((told(&format!("the stream was altered: {altered}"), output), Exit::Otherwise));
        }
        first.get_or_insert(entry.seq);
        count += 1;
        if noted.is_some_and(|noted| noted.seq == entry.seq) {
            of_noted = Some(entry.hash);
        }
    }
    match (noted, of_noted) {
        (Some(noted), Some(hash)) if noted.hash != hash => {
            let words = format!(
                "entry {} has another hash than the one that was noted: all from some entry before it on was written anew",
                noted.seq
            );
            return Ok((told(&words, output), Exit::Otherwise));
        }
        (Some(noted), None) => {
            let words =
                format!("entry {} is not there: the stream was cut off, or no longer goes back so far", noted.seq);
            return Ok((told(&words, output), Exit::Otherwise));
        }
        _ => {}
    }
    let end = match verifier.end() {
        Ok(end) => end,
        Err(altered) => return Ok((told(&format!("the stream was altered: {altered}"), output), Exit::Otherwise)),
    };
    let (Some(first), Some((last, hash))) = (first, end) else {
        return Ok((
            told("there is no entry: no order was submitted yet, or the stream was emptied", output),
            Exit::Otherwise,
        ));
    };
    let erased = verifier.erased();
    let text = match output {
        Format::Json => {
            json!({"First": first, "Last": last, "Hash": hash, "Entries": count, "Erased": erased}).to_string()
        }
        Format::Table => format!(
            "entries {first} to {last} are as they were written; the texts of {erased} of them were erased\n\
             Keep this in another place, and give it with --contains later: {last}:{hash}"
        ),
    };
    Ok((text, Exit::Fine))
}

fn told(words: &str, output: Format) -> String {
    match output {
        Format::Json => json!({"Problem": words}).to_string(),
        Format::Table => words.to_owned(),
    }
}
