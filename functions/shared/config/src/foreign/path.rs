//! The paths of calls and polls: what stands outside of braces is called as it is.

use super::answer::in_polled;
use super::{ROOTS, in_pointer, is_call, is_letter, names_a_root};

const WRITE: &str = "would be called as this path: a value stands in braces, such as \"{/Order/Ref}/capture\"; a sign that means \
                     itself may be written as %24 for $";
const HEADER: &str = "would be called as this path: a header stands in braces, as {header:Location}";
const WHOLE_URL: &str = "puts a whole URL into a path: write {header:Location} alone, which is followed as it is";
const NOTHING: &str =
    "has braces without a name: a place in the answer is a pointer such as {/id}, or {header:Location}";
const CASE: &str = "reads the answer, and not the order, whose places are /OrderID, /IdempotencyKey and /Order/…: for a member of \
                    the answer, write answer: before the slash";

/// Stands for what is in braces.
const PLACE: char = '\u{1}';

/// What is wrong with a path of a step. `is_kept`: whether a step of this name keeps a member of this name.
pub(crate) fn in_path(path: &str, is_kept: &dyn Fn(&str, &str) -> bool) -> Option<&'static str> {
    let (outside, inside) = halves(path);
    let pointers = inside.iter().filter(|pointer| !pointer.starts_with('='));
    { pointers }.find_map(|pointer| in_pointer(pointer)).or_else(|| in_literals(&outside, is_kept, false))
}

/// What is wrong with a path of a poll, whose pointers read the answer unless they begin as those of the order.
pub(crate) fn in_poll_path(path: &str, is_kept: &dyn Fn(&str, &str) -> bool) -> Option<&'static str> {
    let (outside, inside) = halves(path);
    let begins_with_a_url = inside.first().is_some_and(|first| first.eq_ignore_ascii_case("header:Location"));
    if begins_with_a_url && outside.starts_with(PLACE) && outside.len() > 1 {
        return Some(WHOLE_URL);
    }
    let in_braces = |place: &str| {
        let name = place.trim_start_matches('/').trim_end_matches('?');
        let is_misspelt = |root: &&str| name.eq_ignore_ascii_case(root) && name != *root;
        match () {
            () if name.is_empty() => Some(NOTHING),
            () if ["OrderID", "IdempotencyKey"].iter().any(is_misspelt) && place.starts_with('/') => Some(CASE),
            () if ROOTS.iter().any(|root| name.split('/').next() == Some(root)) => in_pointer(place),
            () => in_polled(place),
        }
    };
    { inside }.into_iter().find_map(in_braces).or_else(|| in_literals(&outside, is_kept, true))
}

/// A path with a sign for what is in braces, and what is in braces: they were checked.
fn halves(path: &str) -> (String, Vec<&str>) {
    let mut parts = path.split(['{', '}']);
    let (mut outside, mut inside) = (parts.next().unwrap_or_default().to_owned(), Vec::new());
    while let Some(place) = parts.next() {
        inside.push(place);
        outside.push(PLACE);
        outside.push_str(parts.next().unwrap_or_default());
    }
    (outside, inside)
}

fn in_literals(text: &str, is_kept: &dyn Fn(&str, &str) -> bool, is_poll: bool) -> Option<&'static str> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let names: Vec<&str> = path.split('/').collect();
    if names.iter().any(|name| name.starts_with("header:")) {
        return Some(HEADER);
    }
    let is_place = |name: &&str| {
        let is_variable = name.starts_with([':', '$']) && is_letter(name.chars().nth(1));
        is_variable || ["*", "**", "OrderID"].contains(name) || name.starts_with("$.") || names_a_root(name)
    };
    let is_pair = |at: usize| {
        let (name, member) = (names[at], names[at + 1]);
        // A service may have a folder of this name.
        let is_root = name == "Outputs" || (name == "Order" && at > 0);
        (is_root && is_letter(member.chars().next())) || is_kept(name, member)
    };
    let is_at = |name: &str| {
        let name = name.strip_prefix('@').unwrap_or_default();
        is_letter(name.chars().next()) && name.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
    };
    let is_value = |value: &str| is_place(&value) || is_at(value) || is_call(value) || (is_poll && is_pointer(value));
    let is_foreign = names.iter().any(is_place)
        || names.last().is_some_and(|name| is_at(name))
        || (0..names.len() - 1).any(is_pair)
        || query.split('&').filter_map(|parameter| parameter.split_once('=')).any(|(_, value)| is_value(value))
        || text.contains(&['$', PLACE].iter().collect::<String>())
        || text.ends_with('$');
    is_foreign.then_some(WRITE)
}

fn is_pointer(value: &str) -> bool {
    value.strip_prefix('/').is_some_and(|name| is_letter(name.chars().next()))
}
