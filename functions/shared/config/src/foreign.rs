//! Texts that another language would fill. Here they would be sent, or kept, as they are.

mod answer;
mod code;
mod expression;
mod path;
mod setting;

pub(crate) use answer::{in_condition, in_kept};
pub(crate) use code::names_an_output;
pub(crate) use expression::{in_expression, in_when};
pub(crate) use path::{in_path, in_poll_path};
pub(crate) use setting::{
    in_event, in_event_pointer, in_header_text, in_mailbox, in_plain_setting, in_reference, in_step_header, in_url,
};

pub(crate) const ALONE: &str = "would be sent as this text: a value is a pointer by itself, such as \"/Order/Total\", or computed, such as \
                     \"= /Order/Total * 100\"";
const MORE: &str = "is more than a pointer: a value is a pointer by itself, such as \"/Order/Total\", or computed, such as \"= \
                    /Order/Total * 100\"";
const INDEX: &str = "is not how an element is named: write its number behind a slash, such as \"/Order/Lines/0/Price\"";
const SEVERAL: &str = "names several values, and a pointer finds one: send the whole array, such as \"/Order/Lines\"";
const OPTIONAL: &str =
    "has ? before its end: where a value may be missing, write it at the end, such as \"/Order/Note?\"";
const BLANK: &str = "ends with a blank: leave it out";
const NO_NAME: &str = "has no name between two slashes, or behind the last one";
const SECRET: &str = "would be sent as this text: a secret stands in the settings of the agent, such as \
                      headers.x-api-key.secret";

/// What a mapping begins its pointers with.
const ROOTS: [&str; 5] = ["OrderID", "Order", "IdempotencyKey", "SubmittedAt", "Outputs"];
/// What begins a value in templates of other languages, anywhere in a text.
const MARKS: [&str; 9] = ["{{", "{%", "${", "$(", "#{", "<%", "@{", "%{", "<<Order"];
/// How values of other languages begin.
const BEGINNINGS: [&str; 9] =
    [".[", ".Order", ".Outputs", "States.", "Fn::", "!Ref ", "!Sub ", "!GetAtt ", "workflow.input."];

/// Whether a text is a place of a mapping.
pub(crate) fn is_place(text: &str) -> bool {
    let is_below = |root: &str| {
        let rest = text.strip_prefix('/').and_then(|text| text.strip_prefix(root));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ROOTS.iter().any(|root| is_below(root))
}

/// What is wrong with the name of a member that is sent or kept.
pub(crate) fn in_name(name: &str) -> Option<&'static str> {
    let is_foreign = name.ends_with(".$") || name.starts_with("Fn::") || MARKS.iter().any(|mark| name.contains(mark));
    is_foreign.then_some("would be sent as this name: a value is a pointer by itself, such as \"/Order/Total\"")
}

fn is_reference(text: &str) -> bool {
    text.strip_prefix("env:").is_some_and(|name| !name.is_empty() && name.bytes().all(is_variable))
}

/// What to write instead of this text. `None`: it may well mean itself.
pub(crate) fn advice(text: &str) -> Option<&'static str> {
    if text.starts_with('/') {
        return in_pointer(text);
    }
    // An expression, which was read.
    if text.starts_with('=') {
        return None;
    }
    let whole = text.trim();
    if is_reference(whole) {
        return Some(SECRET);
    }
    is_foreign(text).then_some(ALONE)
}

/// Whether a text is a value in another language, or a place of the order without its slash.
fn is_foreign(text: &str) -> bool {
    let whole = text.trim();
    code::is_code(whole)
        || MARKS.iter().any(|mark| whole.contains(mark))
        || BEGINNINGS.iter().any(|beginning| whole.starts_with(beginning))
        || is_variable_or_function(whole)
        || is_call(whole)
        || names_a_root(text)
        || (whole.len() > 2 && whole.starts_with('`') && whole.ends_with('`'))
        || (whole.starts_with("steps.") && whole.contains(".output"))
}

const fn is_variable(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

fn is_letter(sign: Option<char>) -> bool {
    sign.is_some_and(|sign| sign.is_alphabetic() || sign == '_')
}

/// `$name`, `$.a`, `@.a`, `@name(`, `%NAME%`.
fn is_variable_or_function(text: &str) -> bool {
    let is_path = |mark: char| {
        text.match_indices(mark).any(|(at, _)| {
            let (before, mut after) = (text[..at].chars().next_back(), text[at + 1..].chars());
            let is_place = after.next() == Some('.') && is_letter(after.next());
            is_place && !before.is_some_and(char::is_alphanumeric)
        })
    };
    let begins = |mark: char| text.strip_prefix(mark).map(str::chars);
    let is_dollar = begins('$').is_some_and(|mut rest| is_letter(rest.next()));
    let is_at = begins('@').is_some_and(|mut rest| is_letter(rest.next())) && text.contains('(');
    let inner = text.strip_prefix('%').and_then(|text| text.strip_suffix('%'));
    let is_percent = inner.is_some_and(|name| is_letter(name.chars().next()) && !name.contains(char::is_whitespace));
    is_path('$') || is_path('@') || text.starts_with("$$") || text.starts_with("$[") || is_dollar || is_at || is_percent
}

/// `now()`, or `sum(/Order/Lines)`, `round(Order.Total)`, `upper(input.name)`.
fn is_call(text: &str) -> bool {
    let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else { return false };
    let is_name =
        is_letter(name.chars().next()) && name.chars().all(|sign| sign.is_alphanumeric() || "_.".contains(sign));
    is_name
        && (inner.is_empty()
            || names_a_root(inner)
            || ["/Order", "$", "input.", "order."].iter().any(|root| inner.contains(root)))
}

/// A root without its slash, or one that does not begin the text.
fn names_a_root(text: &str) -> bool {
    let computes = text.contains(|sign| "+*/|?()".contains(sign));
    let is_named = |root: &str| {
        text.match_indices(root).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let mut after = text[at + root.len()..].chars();
            let sign = after.next();
            let goes_on = matches!(sign, Some('.' | '/' | '['))
                && after.next().is_some_and(|next| is_letter(Some(next)) || "[\"'".contains(next));
            match before {
                None => goes_on || (sign.is_none() && root == "OrderID"),
                // A pointer within a text.
                Some('/') => {
                    let earlier = text[..at - 1].chars().next_back();
                    let is_apart = earlier.is_none_or(|sign| sign.is_whitespace() || "(,+-*|\"'=:{[<".contains(sign));
                    is_apart && (goes_on || sign.is_none_or(|sign| !sign.is_alphanumeric()))
                }
                Some('{' | '[') => goes_on || sign == Some('}'),
                Some(before) => goes_on && computes && !before.is_alphanumeric() && !"./".contains(before),
            }
        })
    };
    ROOTS.iter().any(|root| is_named(root))
}

/// What is wrong with a text that begins with a slash.
pub(crate) fn in_pointer(text: &str) -> Option<&'static str> {
    const OPERATORS: [&str; 15] = ["*", "+", "-", "/", "%", "==", "!=", "<=", ">=", "<", ">", "??", "?", "and", "or"];
    let is_value = |text: &str| {
        let first = text.trim_start().chars().next();
        first.is_some_and(|sign| sign.is_ascii_digit() || "/\"'".contains(sign))
    };
    let has_operator =
        |operator: &&str| text.split_once(&format!(" {operator} ")).is_some_and(|(_, behind)| is_value(behind));
    let is_joined = |mark: &str| text.split_once(mark).is_some_and(|(_, behind)| is_value(behind));
    let mut names = text.split('/').skip(1);
    let is_index = |name: &str| {
        let inner = name.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inner, _)| inner);
        inner.is_some_and(|inner| {
            inner.is_empty() || inner.starts_with(|sign: char| sign.is_ascii_digit() || "*?'\":-".contains(sign))
        })
    };
    if text.trim_end_matches('?').ends_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        Some(BLANK)
    } else if names
        .clone()
        .any(|name| ["*", "**", "#", "-"].contains(&name) || name.ends_with("[*]") || name.ends_with("[]"))
    {
        Some(SEVERAL)
    } else if names.clone().any(is_index) {
        Some(INDEX)
    } else if OPERATORS.iter().any(has_operator)
        || text.contains(|sign| "{}|".contains(sign))
        || text.contains("??")
        || text.contains("()")
        || [" exists", " missing"].iter().any(|word| text.ends_with(word))
        || text.ends_with([';', ',', '!'])
        || ["*", "+", "==", "!=", "<=", ">=", "<", ">", "=", "?"].into_iter().any(is_joined)
        || names.clone().any(|name| name.starts_with(':'))
    {
        Some(MORE)
    } else if text.contains("?/") {
        Some(OPTIONAL)
    } else {
        (text.len() > 1 && names.any(str::is_empty)).then_some(NO_NAME)
    }
}
