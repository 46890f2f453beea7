//! Texts that are code of another language.

use super::{ROOTS, is_letter, names_a_root};

/// Whether a text is a piece of code: a function, a format, or a place of the order with other signs around it.
pub(super) fn is_code(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    is_marked_pointer(text) || is_formatted(text) || is_function(text) || is_joined(text)
}

/// `./Order/Total`, `#/Order/Total`, and a pointer behind an invisible sign.
fn is_marked_pointer(text: &str) -> bool {
    let Some((root, inner)) = text.trim_start_matches(['.', '#', '$', '@']).strip_prefix('/').map(halves) else {
        return false;
    };
    ROOTS.contains(&root) && (is_letter(inner.chars().next()) || root != "Order")
}

fn halves(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((text, ""))
}

/// `{ OrderID }`, `%(total)s`, `f"{x}"`.
fn is_formatted(text: &str) -> bool {
    let inner =
        |open: &'static str, close: char| text.split(open).skip(1).filter_map(move |rest| rest.split_once(close));
    let is_root = |name: &str| name.starts_with(' ') && names_a_root(&format!("{{{}}}", name.trim()));
    let is_conversion = |after: &str| {
        let mut signs = after.chars();
        signs.next().is_some_and(|sign| "sdfr".contains(sign)) && !is_letter(signs.next())
    };
    let quoted = text.strip_prefix('f').filter(|rest| {
        let quote = rest.chars().next();
        rest.len() > 2 && rest.ends_with(['"', '\'']) && quote == rest.chars().next_back()
    });
    inner("{", '}').any(|(name, _)| is_root(name))
        || inner("%(", ')').any(|(name, after)| is_identifier(name) && is_conversion(after))
        || quoted.is_some_and(|_| inner("{", '}').any(|(name, _)| is_letter(name.chars().next())))
}

/// `x => x.total`, `lambda x: x`.
fn is_function(text: &str) -> bool {
    let (name, body) = match (text.split_once("=>"), text.strip_prefix("lambda ").and_then(|text| text.split_once(':')))
    {
        (_, Some(function)) | (Some(function), None) => function,
        (None, None) => return false,
    };
    let name = name.trim().trim_matches(['(', ')']);
    is_identifier(name) && body.split(|sign: char| !sign.is_alphanumeric() && sign != '_').any(|word| word == name)
}

/// `"Order " + OrderID`.
fn is_joined(text: &str) -> bool {
    let names = ["OrderID", "IdempotencyKey", "SubmittedAt"];
    text.contains(" + ") && text.split(" + ").any(|part| names.contains(&part.trim()))
}

fn is_identifier(name: &str) -> bool {
    is_letter(name.chars().next()) && name.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
}

/// Whether a text names the output of a step as other languages do: `charge.output.id`, `tasks.charge`, `charge/ID`.
/// `is_kept`: whether a step of this name, which may be any, keeps a member of this name.
pub(crate) fn names_an_output(text: &str, steps: &[&str], is_kept: &dyn Fn(&str, &str) -> bool) -> bool {
    let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    steps.iter().any(|step| {
        let of_step = |text: &str| text.strip_prefix(step).map(str::to_owned);
        let is_output = of_step(text)
            .is_some_and(|rest| rest.strip_prefix(".output").is_some_and(|rest| goes_on(rest.trim_start_matches('s'))));
        let is_task = text.strip_prefix("tasks.").or_else(|| text.strip_prefix("steps.")).and_then(of_step);
        is_output
            || is_task.is_some_and(|rest| goes_on(&rest))
            || text.split_once('/').is_some_and(|(name, member)| name == *step && is_kept(name, member))
    })
}
