//! `stepwarden submit`: posts an order, and waits for its end if asked to.
//!
//! Every post has an Idempotency-Key, so that one whose answer was lost can be made again without a second order.

use std::io::Read;
use std::path::Path;

use domain::json::{Json, JsonError};
use domain::limits::{DOCUMENT_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX};
use http::{HeaderName, HeaderValue};
use wire::Accepted;

use super::context::{Context, random};
use super::error::CommandError;
use super::get;
use crate::args::SubmitArgs;
use crate::exit::Exit;
use crate::remote::{Answer, Call};

/// The server's wait for an order with the caller's own key. It reports a conflict with another document under that key.
const SERVER_WAIT_S: u64 = 1;
const STDIN: &str = "-";

pub(super) async fn run(context: &Context, args: &SubmitArgs) -> Result<Exit, CommandError> {
    let (name, text) = read(args.file.as_deref(), context.terminal.stdin)?;
    let document = document(&name, &text, args)?;
    let key = match &args.key {
        Some(key) => key.clone(),
        None => format!("stepwarden-{}", random()?),
    };
    let (accepted, answer) = post(context, &document, &key, args.wait.wait.is_some() && args.key.is_some()).await?;
    let note = || context.note(&format!("accepted as {}, with the key {key}", accepted.order_id));
    if let Some(at_most) = args.wait.wait {
        note();
        return get::wait(context, &accepted.order_id.to_string(), at_most).await;
    }
    if context.is_json() {
        note();
        return context.line(&answer.line());
    }
    let state = context.paint.state(&accepted.process_state);
    let said = context.print(&format!("Order  {}  {}\nKey    {key}\n", accepted.order_id, state.trim_end()));
    // Who has neither order nor key could only post it a second time.
    said.inspect_err(|_| note())
}

async fn post(context: &Context, document: &Json, key: &str, waits: bool) -> Result<(Accepted, Answer), CommandError> {
    let value = Some(key).filter(|key| (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.chars().count()));
    let value = value.and_then(|key| HeaderValue::from_str(key).ok()).ok_or_else(|| {
        CommandError::usage(format!("--key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters, all of them visible ASCII"))
    })?;
    let mut call = Call::post("/orders", document.text().to_owned());
    call = call.with(HeaderName::from_static("idempotency-key"), value);
    if waits {
        call = call.waiting(SERVER_WAIT_S);
    }
    let answer = context.remote.ask(&call).await;
    answer.map_err(|error| match error.may_be_done() {
        true => CommandError::Unknown { key: key.to_owned(), source: error },
        false => CommandError::Remote(error),
    })
}

/// The document's text, and what to call it in messages.
pub(super) fn read(file: Option<&Path>, stdin_is_terminal: bool) -> Result<(String, Vec<u8>), CommandError> {
    let file = match file {
        Some(file) => file,
        None if stdin_is_terminal => {
            return Err(CommandError::usage("no document: give a FILE, or - and type one"));
        }
        None => Path::new(STDIN),
    };
    // One byte over the limit is enough to see that it is too large.
    let most = DOCUMENT_BYTES_MAX as u64 + 1;
    let (mut text, name) = (Vec::new(), file.display().to_string());
    let (name, read) = if file == Path::new(STDIN) {
        ("stdin".to_owned(), std::io::stdin().lock().take(most).read_to_end(&mut text))
    } else {
        (name, std::fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut text)))
    };
    read.map_err(|error| CommandError::usage(format!("{name} cannot be read: {error}")))?;
    Ok((name, text))
}

/// The document with the members that options add. What is in it stays as it is, digit for digit.
fn document(file: &str, text: &[u8], args: &SubmitArgs) -> Result<Json, CommandError> {
    let wrong = |error: JsonError| CommandError::usage(format!("{file} is no order: {error}"));
    let document = Json::document(text).map_err(wrong)?;
    let options = [
        ("--correlation", "CorrelationID", args.correlation.clone()),
        ("--priority", "Priority", args.priority.clone()),
        ("--reply-channel", "ReplyChannel", args.reply_channel.clone()),
    ];
    let mut added = Vec::new();
    for (option, member, value) in options {
        let Some(value) = value else { continue };
        if document.member(member).is_some() {
            return Err(CommandError::usage(format!("the document has a {member} already; leave out {option}")));
        }
        added.push(format!("{:?}:{}", member, Json::of(&value).text()));
    }
    if added.is_empty() {
        return Ok(document);
    }
    // An object: its text begins with a brace, after white space.
    let rest = document.text().trim_start().trim_start_matches('{');
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    Json::document(format!("{{{}{comma}{rest}", added.join(",")).as_bytes()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::WaitArgs;

    fn args() -> SubmitArgs {
        SubmitArgs {
            file: None,
            key: None,
            correlation: None,
            priority: None,
            reply_channel: None,
            wait: WaitArgs { wait: None },
        }
    }

    #[test]
    fn options_add_members_and_leave_the_others_digit_for_digit() {
        let args = SubmitArgs { correlation: Some("c\"7".to_owned()), priority: Some("high".to_owned()), ..args() };
        for (text, posted) in [
            (" {\"Total\": 1.10}", r#"{"CorrelationID":"c\"7","Priority":"high","Total": 1.10}"#),
            ("{ }", r#"{"CorrelationID":"c\"7","Priority":"high" }"#),
            ("{{", ""),
        ] {
            let document = document("o.json", text.as_bytes(), &args);
            assert_eq!(document.map(|document| document.text().to_owned()).unwrap_or_default(), posted);
        }
    }

    #[test]
    fn a_member_that_is_there_already_is_not_overridden() {
        let args = SubmitArgs { reply_channel: Some("shop".to_owned()), ..args() };
        let error = document("o.json", br#"{"ReplyChannel": "x"}"#, &args).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.to_string().contains("leave out --reply-channel"), "{error}");
    }

    #[test]
    fn what_is_no_order_is_told_before_anything_is_posted() {
        for (text, words) in [("[1]", "an array"), ("{", "JSON"), ("", "JSON")] {
            let error = document("o.json", text.as_bytes(), &args()).unwrap_err();
            let said = error.to_string();
            assert!(said.starts_with("o.json is no order") && said.contains(words), "{said}");
            assert_eq!(error.exit(), Exit::Usage);
        }
    }
}
