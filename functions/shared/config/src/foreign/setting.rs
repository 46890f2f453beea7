//! The texts of settings: nothing fills them. No advice repeats a text, which may be a secret.

use super::answer::names_a_dotted_member;
use super::{MARKS, ROOTS, in_pointer, is_letter, is_reference};
use crate::reference::{Reference, SecretSource};

const FILLED: &str = "is sent as it is, and nothing fills it: write the text itself";
const SECRET: &str = "would be sent as this text: write { secret = \"env:NAME\" }, or { secret = \"file:PATH\" }, in place of it. With \
                      more before it, such as Bearer, use auth.bearer, or put the whole value into the secret";
const OF_STEP: &str =
    "would be sent as this text: a secret stands in the settings of the agent, such as headers.x-key.secret";
const PLACE: &str = "would be sent as this text with each order: a header of an agent has no place to fill";
const URL: &str = "is called as it is, and nothing fills it: write the whole URL";
const REFERENCE: &str = "is a reference that no shell fills: write the name alone, without a blank or $, such as \"env:PAYMENT_TOKEN\", or a \
                         whole path, such as \"file:/run/secrets/payment\"";
const MAILBOX: &str = "is an address that nothing fills: write it whole, such as \"ops@example.com\"";
const EVENT: &str = "is the whole name of an event, and * stands for itself: write each event";
const POINTER: &str = "is a pointer to one value in the body of the event: each member and number stands behind a slash, such as \
                       \"/data/items/0/key\"";

/// Why a header, which is the same for each order, is not what its author means. A text has no other way to be sent in a
/// header, so only what is surely meant otherwise is refused.
pub(crate) fn in_header_text(text: &str) -> Option<&'static str> {
    let names_a_secret = |word: &str| {
        let is_file = word.starts_with("file:/") || word.starts_with("ssm:") || word.starts_with("secretsmanager:");
        is_file || is_reference(word) || word.strip_prefix("secret:").is_some_and(is_variable_name)
    };
    if text.split_whitespace().any(names_a_secret) {
        Some(SECRET)
    } else {
        let root = text.strip_prefix('/').and_then(|text| text.split('/').next());
        let is_place = root.is_some_and(|root| ROOTS.contains(&root));
        (is_place || is_filled(text) || text.starts_with("$.")).then_some(PLACE)
    }
}

/// The same in a step, where a pointer or an expression is filled.
pub(crate) fn in_step_header(text: &str) -> Option<&'static str> {
    in_header_text(text)
        .filter(|_| !text.starts_with(['/', '=']))
        .map(|advice| if advice == SECRET { OF_STEP } else { super::ALONE })
}

/// What is wrong with a text such as the name of a user.
pub(crate) fn in_plain_setting(text: &str) -> Option<&'static str> {
    let is_secret = Reference::parse(text).is_some() && (is_reference(text) || !text.starts_with("env:"));
    (is_secret || is_filled(text)).then_some(FILLED)
}

/// What is wrong with a URL, or a reference to one.
pub(crate) fn in_url(text: &str) -> Option<&'static str> {
    let Some((_, rest)) = text.split_once("://") else { return in_reference(text) };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_pattern = |name: &str| {
        let is_parameter = name.strip_prefix(':').is_some_and(|name| is_letter(name.chars().next()));
        is_parameter
            || ["*", "**"].contains(&name)
            || (name.len() > 4 && name.starts_with("__") && name.ends_with("__"))
    };
    let is_wrong = host.contains(['$', '*']) || host.starts_with("__") || is_filled(rest);
    (is_wrong || path.split(['/', '?', '&', '=']).any(is_pattern)).then_some(URL)
}

/// What is wrong with a reference. Any other text is none.
pub(crate) fn in_reference(text: &str) -> Option<&'static str> {
    let Reference { source, name, .. } = Reference::parse(text.trim())?;
    let is_wrong = match source {
        SecretSource::Environment => name.contains(['$', '{', '}']) || name.contains(char::is_whitespace),
        SecretSource::File => name.starts_with(['~', ' ']) || name.contains('$'),
        SecretSource::Parameter | SecretSource::SecretsManager => name.starts_with(' ') || name.contains('$'),
    };
    is_wrong.then_some(REFERENCE)
}

/// What is wrong with an address of e-mail.
pub(crate) fn in_mailbox(text: &str) -> Option<&'static str> {
    (text.starts_with('$') || text.contains(['{', '}'])).then_some(MAILBOX)
}

/// What is wrong with the name of an event.
pub(crate) fn in_event(text: &str) -> Option<&'static str> {
    text.contains('*').then_some(EVENT)
}

/// What is wrong with a pointer into an event.
pub(crate) fn in_event_pointer(text: &str) -> Option<&'static str> {
    (in_pointer(text).is_some() || names_a_dotted_member(text)).then_some(POINTER)
}

/// Whether a text has a place of a template, `{name}`, or a variable of a shell, `$NAME`.
fn is_filled(text: &str) -> bool {
    let mut braces = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let is_name = |name: &str| {
        is_letter(name.chars().next()) && name.chars().all(|sign| sign.is_ascii_alphanumeric() || "_.".contains(sign))
    };
    let mut dollars = text
        .split('$')
        .skip(1)
        .filter_map(|rest| rest.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').next());
    MARKS.iter().any(|mark| text.contains(mark))
        || braces.any(|(name, _)| is_name(name))
        || dollars.any(is_variable_name)
}

/// `NAME`, of two signs at least.
fn is_variable_name(name: &str) -> bool {
    name.len() > 1 && is_letter(name.chars().next()) && name.bytes().all(super::is_variable)
}
