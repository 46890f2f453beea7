//! The mappings of the simulated workflows: drawn for each version, written into its text, and told to the auditor.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use domain::workflow::{Encoding, Method};

use rehearsal::observe::KEPT_MEMBER;

use super::auditor::mappings::{Mapped, Sent, Source};
use rehearsal::rng::Rng;

const METHODS: [Method; 6] = [Method::Put, Method::Post, Method::Delete, Method::Post, Method::Patch, Method::Post];

/// Draws the mappings of a step. Its texts name the version and the step, so that no two versions map alike.
pub fn draw(rng: &mut Rng, version: u32, place: usize, after: &[usize]) -> Mapped {
    let name = format!("v{version}-s{place}");
    let is_sent = rng.chance(4_000);
    let encode = if is_sent && rng.chance(2_000) { Encoding::Form } else { Encoding::Json };
    // No draw of its own: the worlds stay those that they were.
    let encode = if !is_sent && (version as usize * 3 + place) % 8 == 5 { Encoding::Empty } else { encode };
    let mut sent = |name: String, outputs: &[usize]| Sent {
        path: rng.chance(3_000).then(|| name.as_str().into()),
        members: is_sent.then(|| members(rng, &name, outputs)),
        encode,
        // Nor has this one.
        method: METHODS[(version as usize * 7 + name.len() + place) % METHODS.len()],
        has_headers: (version as usize + place).is_multiple_of(3),
        is_in_query: (version as usize * 5 + place) % 4 == 1,
    };
    let forward = sent(name.clone(), after);
    let with_own: Vec<usize> = after.iter().copied().chain([place]).collect();
    let undo = sent(format!("{name}-undo"), &with_own);
    Mapped { forward, undo, keep: rng.chance(3_000).then(|| name.into()) }
}

fn members(rng: &mut Rng, name: &str, outputs: &[usize]) -> BTreeMap<Arc<str>, Source> {
    let mut members: BTreeMap<Arc<str>, Source> = [("From".into(), Source::Text(name.into()))].into();
    if rng.chance(7_000) {
        members.insert("ID".into(), Source::OrderId);
    }
    if rng.chance(5_000) {
        members.insert("All".into(), Source::Document);
    }
    for step in outputs.iter().filter(|_| rng.chance(6_000)) {
        members.insert(format!("Of{step}").into(), Source::Output(*step));
        // An undo with outputs also names what is known without them.
        members.insert("ID".into(), Source::OrderId);
    }
    members
}

/// Writes the mappings of a step at the end of its table.
pub fn write(text: &mut String, mapped: &Mapped, no_undo: bool, drop: Option<&Sent>) {
    if let Some(name) = &mapped.keep {
        let _ = writeln!(text, "keep = {{ {KEPT_MEMBER} = '\\{name}', Number = \"/Number\" }}");
    }
    write_sent(text, &mapped.forward);
    if no_undo {
        let _ = writeln!(text, "undo = \"none\"");
    } else {
        let _ = writeln!(text, "[step.undo]");
        write_sent(text, &mapped.undo);
    }
    if let Some(sent) = drop {
        let _ = writeln!(text, "[step.drop]");
        write_sent(text, sent);
    }
}

fn write_sent(text: &mut String, sent: &Sent) {
    if let Some(path) = &sent.path {
        let place = if sent.is_in_query { format!("?from={path}&of=") } else { format!("{path}/") };
        let _ = writeln!(text, "path = \"{place}{{/OrderID}}\"");
    }
    let _ = writeln!(text, "method = \"{}\"", sent.method.name());
    if sent.has_headers {
        let _ = writeln!(text, "headers = {{ X-Key = \"/IdempotencyKey\", X-Order = \"/OrderID\" }}");
    }
    if sent.encode != Encoding::Json {
        let _ = writeln!(text, "encode = \"{}\"", sent.encode.name());
    }
    let Some(members) = &sent.members else { return };
    let value = |source: &Source| match source {
        Source::Text(text) => text.to_string(),
        Source::OrderId => "/OrderID".to_owned(),
        Source::Document => "/Order".to_owned(),
        // An output of its own, or of a step that was skipped, is missing.
        Source::Output(step) => format!("/Outputs/s{step}?"),
        Source::Item => "/Item".to_owned(),
        Source::ItemName => "/Item/SKU".to_owned(),
        Source::ItemNumber => "/Item/N".to_owned(),
    };
    let members: Vec<String> = members.iter().map(|(name, source)| format!("{name} = \"{}\"", value(source))).collect();
    let _ = writeln!(text, "send = {{ {} }}", members.join(", "));
}
