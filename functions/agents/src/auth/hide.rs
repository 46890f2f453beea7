//! Secrets that a service repeats in its answer: a reason and the texts of an output are kept without them.

use agent::Answer;
use domain::json::Json;
use domain::limits::ANSWER_BYTES_MAX;
use domain::message::Failure;
use percent_encoding::percent_decode_str;

/// The text in an output in place of one that repeats a secret.
const HIDDEN: &str = "\"[hidden]\"";
/// Shorter values are not looked for in an output: they may be everyday words, and later steps need the output.
const OUTPUT_VALUE_BYTES_MIN: usize = 8;

/// The answer without these values.
pub(super) fn hide(answer: Answer, values: &[&str]) -> Answer {
    match answer {
        Answer::Fail(failure) => Answer::Fail(reason(failure, values)),
        Answer::UnderWay { after_ms, unless_alone, poll } => {
            let repeats = |path: &str| {
                let plain = percent_decode_str(path).decode_utf8_lossy();
                long(values).any(|value| path.contains(value) || plain.contains(value))
            };
            let poll = poll.map(|poll| match poll {
                Ok(path) if repeats(&path) => Err("the path repeats a secret".to_owned()),
                poll => poll,
            });
            Answer::UnderWay { after_ms, unless_alone: unless_alone.map(|failure| reason(failure, values)), poll }
        }
        Answer::Done(output) => Answer::Done(without(output, values)),
        // Of the service these have a type, an encoding or a host at most.
        Answer::Retry { .. } | Answer::Unknown { .. } | Answer::Misconfigured { .. } | Answer::NotCalled { .. } => {
            answer
        }
    }
}

fn reason(failure: Failure, values: &[&str]) -> Failure {
    // The body of an answer may be the message, and JSON may escape a slash.
    let plain = |text: &str| text.replace('\\', "");
    let (code, message) = (plain(&failure.code), plain(&failure.message));
    if values.iter().map(|value| plain(value)).all(|value| !code.contains(&value) && !message.contains(&value)) {
        return failure;
    }
    Failure { code: "rejected".into(), message: "the service gives a reason that repeats a secret".into() }
}

fn long<'v>(values: &'v [&'v str]) -> impl Iterator<Item = &'v str> + Clone {
    values.iter().copied().filter(|value| value.len() >= OUTPUT_VALUE_BYTES_MIN)
}

/// The output, with another text for each text and each name of a member that contains a value.
fn without(output: Json, values: &[&str]) -> Json {
    let values = long(values);
    let is_secret = |literal: &str| {
        let text = serde_json::from_str::<String>(literal);
        // A literal that stands for no text, such as a lone surrogate, is searched as it is.
        let text = text.as_deref().unwrap_or(literal);
        values.clone().any(|value| text.contains(value))
    };
    let text = output.text();
    let (mut kept, mut from) = (String::new(), 0);
    let mut rest = literal_in(text, 0);
    while let Some(literal) = rest {
        if is_secret(&text[literal.clone()]) {
            kept.push_str(&text[from..literal.start]);
            kept.push_str(HIDDEN);
            from = literal.end;
        }
        rest = literal_in(text, literal.end);
    }
    if from == 0 {
        return output;
    }
    kept.push_str(&text[from..]);
    Json::of_any_depth(kept.as_bytes(), ANSWER_BYTES_MAX).unwrap_or_else(|_| Json::empty())
}

/// The next string literal of a JSON text, with its quotes.
fn literal_in(json: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let start = from + json.get(from..)?.find('"')?;
    let mut is_escaped = false;
    let end = json.bytes().enumerate().skip(start + 1).find_map(|(at, byte)| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end.then_some(at + 1)
    })?;
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [&str; 2] = ["token/8846-a", "short"];

    #[track_caller]
    fn output(text: &str, expected: &str) {
        let parse = |text: &str| Json::parse(text.as_bytes(), 1_000).unwrap();
        assert_eq!(hide(Answer::Done(parse(text)), &VALUES), Answer::Done(parse(expected)), "{text}");
    }

    #[test]
    fn an_output_is_kept_digit_for_digit_and_without_secrets() {
        for text in [r#"{"Total": 12.50, "a\"": [1e400, "short", "token", "\\"], "b": "\ud800"}"#, "7", "\"\""] {
            output(text, text);
        }
        output(
            r#"{"Total": 12.50, "Echo": "Bearer token/8846-a!", "n": -0}"#,
            r#"{"Total": 12.50, "Echo": "[hidden]", "n": -0}"#,
        );
        output(
            r#"["token\/8846-a", "\u0074oken/8846-a", "\ud800token/8846-a"]"#,
            r#"["[hidden]", "[hidden]", "[hidden]"]"#,
        );
        output(r#"{"token/8846-a": {"\\\"": "token/8846-a"}}"#, r#"{"[hidden]": {"\\\"": "[hidden]"}}"#);
    }

    #[test]
    fn rule_36_a_path_that_repeats_a_secret_is_not_kept() {
        for (path, is_kept) in [
            ("/t/token/8846-a", false),
            ("/t/token%2F8846-a?x=1", false),
            ("/t/token%2f8846%2Da", false),
            ("/t/%", true),
        ] {
            let poll = Some(Ok(path.into()));
            let hidden = hide(Answer::UnderWay { after_ms: None, unless_alone: None, poll }, &VALUES);
            assert!(matches!(hidden, Answer::UnderWay { poll: Some(poll), .. } if poll.is_ok() == is_kept), "{path}");
        }
    }

    #[test]
    fn a_reason_that_repeats_a_secret_is_not_kept() {
        for (code, message) in
            [("no", "token/8846-a"), ("token/8846-a", "no"), ("no", r#"{"a": "token\/8846-a"}"#), ("no", "too short")]
        {
            let failure = Failure { code: code.into(), message: message.into() };
            for answer in [
                Answer::Fail(failure.clone()),
                Answer::UnderWay { after_ms: None, unless_alone: Some(failure), poll: None },
            ] {
                let hidden = format!("{:?}", hide(answer, &VALUES));
                assert!(hidden.contains("repeats a secret") && !hidden.contains("8846"), "{hidden}");
            }
        }
        let other = Answer::fail("no", "token");
        assert_eq!(hide(other.clone(), &VALUES), other);
    }
}
