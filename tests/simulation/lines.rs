//! Steps that go through the array of the order: drawn for some versions, written into their text, and told to the auditor.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use domain::workflow::{Encoding, Method};
use rehearsal::rng::Rng;

use super::auditor::lines::{Each, Most, singles};
use super::auditor::mappings::{Mapped, Sent, Source};
use super::auditor::ways::{Condition, Ways};

/// The most steps of a version that go through the array.
const STEPS_MAX: usize = 3;

/// Draws the steps of a graph that go through the array. People decide on none of them.
pub fn draw(rng: &mut Rng, graph: &[Vec<usize>], ways: &[Ways]) -> Vec<Option<Each>> {
    let mut each = vec![None; graph.len()];
    let mut open: Vec<usize> = (0..graph.len()).filter(|place| !ways[*place].approval).collect();
    let is_named = rng.chance(5_000);
    for nth in 0..STEPS_MAX {
        if open.is_empty() || (nth > 0 && !rng.chance(6_000)) {
            break;
        }
        // Most follow one another.
        let is_next = |place: &usize| {
            let before = |earlier: &usize| each[*earlier].is_some();
            graph[*place].iter().any(before)
                || (0..graph.len()).any(|later| before(&later) && graph[later].contains(place))
        };
        let next: Vec<usize> = open.iter().copied().filter(is_next).collect();
        let place = if next.is_empty() || rng.chance(1_000) {
            open[rng.place(open.len())]
        } else {
            next[rng.place(next.len())]
        };
        open.retain(|other| *other != place);
        let drops = [rng.chance(7_000), rng.chance(6_000)];
        each[place] = Some(Each {
            is_named,
            after_all: rng.chance(2_000),
            drops_rejected: drops[0],
            drops_exhausted: drops[1],
            drop_max: match rng.below(5) {
                0 => Some(Most::Lines(usize::try_from(rng.below(4)).unwrap_or(0))),
                1 => Some(Most::Percent(rng.pick(&[1, 25, 34, 50, 100]))),
                _ => None,
            },
            drop: rng.chance(5_000).then(Sent::default),
        });
    }
    forbid(graph, ways, &mut each);
    each
}

/// What comes before each step, on whatever path.
fn all_before(graph: &[Vec<usize>], place: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![place];
    while let Some(place) = open.pop() {
        open.extend(graph[place].iter().filter(|earlier| found.insert(**earlier)));
    }
    found
}

/// Takes the drops away that a workflow may not have: where a pivot of the line, or a step that waits for all lines, does not
/// come after.
fn forbid(graph: &[Vec<usize>], ways: &[Ways], each: &mut [Option<Each>]) {
    let singles = singles(graph, each);
    let waits_for_all = |place: usize, before: &BTreeSet<usize>| {
        before.iter().any(|earlier| each[*earlier].is_some() && !singles[place].contains(earlier))
    };
    let may_drop = |place: usize| {
        let is_beside = |other: usize| {
            let before = all_before(graph, other);
            let is_pivot = other != place && ways[other].pivot && each[other].is_some();
            (is_pivot || waits_for_all(other, &before)) && !before.contains(&place)
        };
        !(0..graph.len()).any(is_beside)
    };
    let may: Vec<bool> = (0..graph.len()).map(may_drop).collect();
    for (each, _) in each.iter_mut().zip(may).filter(|(_, may)| !may) {
        if let Some(each) = each {
            (each.drops_rejected, each.drops_exhausted) = (false, false);
        }
    }
}

/// What a step with lines has of its own, and what reads of them the output of all.
pub fn map(rng: &mut Rng, each: &mut [Option<Each>], place: usize, (ways, maps): (&mut Ways, &mut Mapped), name: &str) {
    let reads_all = |sent: &Sent| {
        let is_array = |source: &Source| matches!(source, Source::Output(step) if each[*step].is_some());
        sent.members.as_ref().is_some_and(|members| members.values().any(is_array))
    };
    // A form has lost which array it is.
    if [&maps.forward, &maps.undo].into_iter().any(|sent| reads_all(sent) && sent.encode == Encoding::Form) {
        (maps.forward.encode, maps.undo.encode) = (Encoding::Json, Encoding::Json);
    }
    let Some(own) = &mut each[place] else { return };
    if rng.chance(2_500) {
        ways.when.push(Condition::IsAbove(rng.below(3), rng.chance(7_000)));
    }
    for (sent, name) in [(&mut maps.forward, name.to_owned()), (&mut maps.undo, format!("{name}-undo"))] {
        sent.encode = Encoding::Json;
        let text = || BTreeMap::from([("From".into(), Source::Text(name.as_str().into()))]);
        let members = sent.members.get_or_insert_with(text);
        members.extend(item(rng));
    }
    if let Some(sent) = &mut own.drop {
        let members = BTreeMap::from([("Part".into(), Source::Text(format!("{name}-drop").into()))]);
        let path = rng.chance(3_000).then(|| format!("{name}-drop").into());
        let method = rng.pick(&[Method::Post, Method::Put]);
        *sent = Sent { path, method, members: Some(members), ..Sent::default() };
        sent.members.iter_mut().for_each(|members| members.extend(item(rng)));
    }
}

/// What a call says of its element.
fn item(rng: &mut Rng) -> Vec<(std::sync::Arc<str>, Source)> {
    let all = [("Item", Source::Item), ("Name", Source::ItemName), ("Many", Source::ItemNumber)];
    all.into_iter().filter(|_| rng.chance(6_000)).map(|(name, source)| (name.into(), source)).collect()
}

/// Writes the keys of a step but for its calls. The first two are the remedies that stand where it drops nothing.
pub fn write(text: &mut String, each: &Each) {
    let _ = writeln!(text, "for_each = \"/Order/Lines\"");
    if each.is_named {
        let _ = writeln!(text, "item_id = \"/SKU\"");
    }
    if each.after_all {
        let _ = writeln!(text, "after_all = true");
    }
    match each.drop_max {
        Some(Most::Lines(lines)) => _ = writeln!(text, "drop_max = {lines}"),
        Some(Most::Percent(percent)) => _ = writeln!(text, "drop_max = \"{percent}%\""),
        None => {}
    }
}
