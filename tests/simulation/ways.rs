//! Steps that do not apply, optional steps, steps without an undo, and pivots: drawn for each version, written into its
//! text, and told to the auditor.

use std::fmt::Write as _;

use super::auditor::ways::{Condition, Ways};
use rehearsal::rng::Rng;

/// Draws the ways of the steps of a graph. Most versions have none.
pub fn draw(rng: &mut Rng, graph: &[Vec<usize>]) -> Vec<Ways> {
    if rng.chance(6_000) {
        return vec![Ways::default(); graph.len()];
    }
    let step = |before: &Vec<usize>| Ways {
        when: conditions(rng, before),
        optional: rng.chance(2_000),
        pivot: rng.chance(1_000),
        no_undo: rng.chance(2_000),
        approval: false,
    };
    graph.iter().map(step).collect()
}

/// Makes approvals of some steps. Nothing else of them is drawn anew.
pub fn ask_people(rng: &mut Rng, ways: &mut [Ways]) {
    if !rng.chance(2_000) {
        return;
    }
    for own in ways.iter_mut().filter(|_| rng.chance(3_000)) {
        (own.approval, own.no_undo, own.optional, own.pivot) = (true, true, false, false);
    }
}

fn conditions(rng: &mut Rng, before: &[usize]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    if rng.chance(1_500) {
        conditions.push(match rng.chance(5_000) {
            true => Condition::HasChannel(rng.chance(7_000)),
            false => Condition::IsChannel("shop".into(), rng.chance(6_000)),
        });
    }
    if !before.is_empty() && rng.chance(2_000) {
        conditions.push(Condition::HasOutput(before[rng.place(before.len())], rng.chance(7_500)));
    }
    conditions
}

/// Whether a pivot comes before the step.
#[must_use]
pub fn is_past_pivot(graph: &[Vec<usize>], ways: &[Ways], place: usize) -> bool {
    graph[place].iter().any(|&earlier| ways[earlier].pivot || is_past_pivot(graph, ways, earlier))
}

/// Writes a remedy, if the step may have it.
pub fn write_remedy(
    text: &mut String,
    ways: &Ways,
    is_past_pivot: bool,
    (key, remedy): (&str, &str),
    longer: Option<(&str, usize)>,
) {
    let remedy = if is_past_pivot && remedy != "drop" { "hold" } else { remedy };
    if let Some((wait, times)) = longer {
        let _ = writeln!(text, "{key} = {{ wait = \"{wait}\", times = {times}, then = \"{remedy}\" }}");
    } else if !(ways.optional && key == "on_rejected") {
        let _ = writeln!(text, "{key} = \"{remedy}\"");
    }
}

/// Writes the other keys, but for `undo`.
pub fn write(text: &mut String, ways: &Ways) {
    let comparison = |condition: &Condition| match condition {
        Condition::HasChannel(true) => "/Order/ReplyChannel exists".to_owned(),
        Condition::HasChannel(false) => "/Order/ReplyChannel missing".to_owned(),
        Condition::IsChannel(name, is) => {
            format!("/Order/ReplyChannel {} \\\"{name}\\\"", if *is { "==" } else { "!=" })
        }
        Condition::HasOutput(step, true) => format!("/Outputs/s{step} exists"),
        Condition::HasOutput(step, false) => format!("/Outputs/s{step} missing"),
        Condition::IsAbove(number, is) => format!("{}/Item/N > {number}", if *is { "" } else { "not " }),
    };
    let when: Vec<String> = ways.when.iter().map(|condition| format!("\"{}\"", comparison(condition))).collect();
    if !when.is_empty() {
        let _ = writeln!(text, "when = [{}]", when.join(", "));
    }
    for (key, is_set) in [("optional", ways.optional), ("pivot", ways.pivot)] {
        if is_set {
            let _ = writeln!(text, "{key} = true");
        }
    }
}
