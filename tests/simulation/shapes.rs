//! The workflows of the worlds: a pool of shapes with small parameters, parsed once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use domain::workflow::{OnLate, Remedy, StepRule, Workflow, Workflows};
use rehearsal::shape::{Shape, Version};

use super::auditor::Flow;
use super::auditor::late::Deadline;
use super::auditor::lines::{Each, Lines};
use super::auditor::mappings::Mapped;
use super::auditor::ways::Ways;
use super::{lines, mappings, ways};
use rehearsal::rng::Rng;

/// The agents that a workflow may name.
pub const AGENTS: [&str; 3] = ["stock", "money", "truck"];
/// Workflows in the pool.
const POOL: u64 = 512;
/// The workflow that is compiled in.
pub const ORDER: &str = "order";
/// The workflow that is only applied.
pub const BACK: &str = "back";
/// The largest random graph.
const STEPS_MAX: u64 = 12;

/// A shape, and what was drawn for it.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The shape.
    pub shape: Arc<Shape>,
    /// By version.
    drawn: BTreeMap<u32, Vec<OfStep>>,
}

/// What was drawn for a step: its mappings, its ways, and the array that it goes through.
type OfStep = (Mapped, Ways, Option<Each>);

impl Drawn {
    /// One of the pool.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> &'static Self {
        static SHAPES: OnceLock<Vec<Drawn>> = OnceLock::new();
        let pool = SHAPES.get_or_init(|| (0..POOL).map(make).collect());
        &pool[rng.place(pool.len())]
    }

    /// The auditor's rules, by version.
    #[must_use]
    pub fn flows(&self) -> BTreeMap<u32, Flow> {
        let drawn = |workflow: &Workflow| self.drawn.get(&workflow.version).cloned().unwrap_or_default();
        self.shape.versions().map(|workflow| (workflow.version, flow(workflow, drawn(workflow)))).collect()
    }
}

/// The auditor's rules of a workflow.
fn flow(workflow: &Workflow, drawn: Vec<OfStep>) -> Flow {
    let (mapped, (ways, each)) = drawn.into_iter().map(|(mapped, ways, each)| (mapped, (ways, each))).unzip();
    let after = workflow.steps.iter().map(|rule| rule.after.clone()).collect();
    let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let horizons_ms = workflow.steps.iter().map(|rule| ms(rule.horizon_ms)).collect();
    let holds =
        |remedy: fn(&StepRule) -> Remedy| workflow.steps.iter().map(|rule| remedy(rule) == Remedy::Hold).collect();
    Flow {
        after,
        horizons_ms,
        within_ms: workflow.steps.iter().map(|rule| ms(rule.complete_within_ms)).collect(),
        max_failures: workflow.steps.iter().map(StepRule::failures_to_give_up).collect(),
        longer: workflow.steps.iter().map(|rule| Some((rule.max_failures, ms(rule.longer?.wait_ms)))).collect(),
        holds_rejected: holds(|rule| rule.on_rejected),
        holds_exhausted: holds(|rule| rule.on_exhausted),
        mapped,
        ways,
        each,
        lines: Lines::default(),
        bases: Vec::new(),
        deadline: Deadline {
            within_ms: workflow.deadline.within_ms.map(ms),
            turns: workflow.deadline.on_late == OnLate::Compensate,
            holds: workflow.deadline.on_late == OnLate::Hold,
        },
        grace_ms: ms(workflow.supervision.grace_ms),
        awaited_ms: workflow.steps.iter().map(|rule| ms(rule.awaited_ms())).collect(),
        waits_ms: workflow.steps.iter().map(|rule| ms(rule.waits.before_ms.unwrap_or(0))).collect(),
    }
}

/// One workflow, in one version.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn shape_of(text: &str) -> Shape {
    let first = Workflows::parse(&[text], ORDER, &AGENTS).unwrap_or_else(|error| panic!("{error}"));
    let one = first.current().clone();
    let (both, two) = (first.clone(), one.clone());
    Shape { agents: agents(), steps: steps(), first, both, one, two, applied: Vec::new(), short_horizon: false }
}

fn agents() -> Vec<Arc<str>> {
    AGENTS.map(Arc::from).to_vec()
}

/// The name of a step is its index.
fn steps() -> Vec<Arc<str>> {
    (0..STEPS_MAX).map(|place| format!("s{place}").into()).collect()
}

fn make(seed: u64) -> Drawn {
    // A stream of its own: the graphs stay as they were.
    let (rng, of_ways) = (&mut Rng::new(seed), &mut Rng::new(seed.rotate_left(16) + 1));
    let mut of_lines = seed.is_multiple_of(3).then(|| Rng::new(seed.rotate_left(32) + 2));
    let short_horizon = rng.chance(2_500);
    let mut drawn = BTreeMap::new();
    let [one, two] =
        [1, 2].map(|version| text([rng, of_ways], of_lines.as_mut(), (ORDER, version), short_horizon, &mut drawn));
    let parse = |texts: &[&str]| Workflows::parse(texts, ORDER, &AGENTS).unwrap_or_else(|error| panic!("{error}"));
    let (first, both) = (parse(&[&one]), parse(&[&one, &two]));
    let (one, two) = (first.current().clone(), both.current().clone());
    let applied = [(ORDER, 3), (BACK, 11), (BACK, 12)].map(|(name, version)| {
        let text = text([rng, of_ways], of_lines.as_mut(), (name, version), short_horizon, &mut drawn);
        let workflow = Workflow::read(&text).unwrap_or_else(|error| panic!("{error}"));
        Version { text: text.into(), workflow: Arc::new(workflow) }
    });
    let (agents, steps, applied) = (agents(), steps(), applied.into());
    Drawn { shape: Arc::new(Shape { agents, steps, first, both, one, two, applied, short_horizon }), drawn }
}

/// For each step the indexes of its predecessors: one of the usual graphs, or a random one.
fn graph(rng: &mut Rng) -> Vec<Vec<usize>> {
    match rng.below(14) {
        0 => vec![vec![]],
        1 => vec![vec![], vec![0]],
        2 | 3 => vec![vec![], vec![0], vec![1]],
        4 => vec![vec![], vec![0], vec![0], vec![1, 2]],
        5 => vec![vec![]; 6],
        6 => vec![vec![], vec![0], vec![0], vec![0], vec![0], vec![0]],
        7 => vec![vec![], vec![], vec![0, 1], vec![2], vec![1]],
        _ => random_graph(rng),
    }
}

/// Any acyclic graph, from a chain to all steps side by side. A step may stand before its predecessors in the text.
fn random_graph(rng: &mut Rng) -> Vec<Vec<usize>> {
    let size = usize::try_from(rng.between(2, STEPS_MAX)).unwrap_or(2);
    let mut places: Vec<usize> = (0..size).collect();
    for last in (1..size).rev() {
        places.swap(last, rng.place(last + 1));
    }
    let density = rng.pick(&[500, 1_500, 3_000, 7_000]);
    // A graph with one chain at least is as deep as it can be.
    let is_deep = rng.chance(2_500);
    let mut graph = vec![Vec::new(); size];
    for later in 1..size {
        for earlier in 0..later {
            if rng.chance(density) || (is_deep && earlier + 1 == later) {
                graph[places[later]].push(places[earlier]);
            }
        }
    }
    graph
}

/// The place of a drawn time among all of them, from the shortest.
fn rank(time: &str) -> Option<usize> {
    ["2s", "5s", "20s", "2m", "10m", "20m", "3h"].iter().position(|other| *other == time)
}

fn text(
    [rng, of_ways]: [&mut Rng; 2],
    mut of_lines: Option<&mut Rng>,
    (name, version): (&str, u32),
    short_horizon: bool,
    drawn: &mut BTreeMap<u32, Vec<OfStep>>,
) -> String {
    let mut text = format!("name = \"{name}\"\nversion = {version}\n");
    // A stream of its own: everything else of a shape stays as it was.
    let mut late = Rng::new(rng.clone().below(u64::MAX).rotate_left(8));
    let mut deadline = None;
    if late.chance(3_000) {
        let (within, on_late) = (late.pick(&["2s", "20s", "2m", "20m"]), late.pick(&["alert", "compensate", "hold"]));
        let _ = writeln!(text, "complete_within = \"{within}\"\non_late = \"{on_late}\"");
        deadline = rank(within);
    }
    let priority = rng.pick(&["normal", "normal", "high"]);
    let _ = writeln!(text, "priority = \"{priority}\"\n[supervision]");
    let patience = [
        ("grace", rng.pick(&["200ms", "1s", "2s", "5s"])),
        ("wake_lost_after", rng.pick(&["3s", "10s", "30s"])),
        ("resend_after", rng.pick(&["2s", "10s", "30s"])),
        ("backoff_slot", rng.pick(&["50ms", "500ms", "1s"])),
    ];
    for (key, value) in patience {
        let _ = writeln!(text, "{key} = \"{value}\"");
    }
    let _ = writeln!(text, "backoff_ceiling = {}", rng.between(0, 5));
    if rng.chance(3_000) {
        let _ = writeln!(text, "doubt_after = \"{}\"", rng.pick(&["20s", "90s"]));
    }
    // Workflows with long or short limits; a few have both.
    let times: &[(u32, &str)] = match rng.below(4) {
        0 => &[(400, "ms"), (1, "s"), (2, "s")],
        1 => &[(2, "s"), (5, "s"), (10, "s")],
        2 => &[(10, "s"), (30, "s"), (2, "m")],
        _ => &[(1, "s"), (10, "s"), (5, "m")],
    };
    // The waits are drawn apart, so that they change nothing else of a shape.
    let mut waits = Rng::new(rng.clone().below(u64::MAX));
    let mut longer = Rng::new(waits.clone().below(u64::MAX));
    let mut polls = Rng::new(waits.clone().below(u64::MAX).rotate_left(40));
    let is_patient = waits.chance(3_000);
    let graph = graph(rng);
    let mut step_ways = ways::draw(of_ways, &graph);
    // A stream of its own, as above.
    let mut people = Rng::new(waits.clone().below(u64::MAX).rotate_left(24));
    ways::ask_people(&mut people, &mut step_ways);
    let no_lines = || vec![None; graph.len()];
    let mut each = of_lines.as_mut().map_or_else(no_lines, |rng| lines::draw(rng, &graph, &step_ways));
    for (place, before) in graph.iter().enumerate() {
        let after: Vec<String> = before.iter().map(|earlier| format!("\"s{earlier}\"")).collect();
        let own = &step_ways[place];
        let agent = rng.pick(&AGENTS);
        let _ = writeln!(text, "[[step]]\nname = \"s{place}\"\nafter = [{}]", after.join(", "));
        let (number, unit) = rng.pick(times);
        let failures = rng.between(1, 4);
        if own.approval {
            let within = people.pick(&["20s", "5m", "3h"]);
            let _ = writeln!(text, "kind = \"approval\"\nrole = \"manager\"\nwait_within = \"{within}\"");
        } else {
            let _ = writeln!(text, "agent = \"{agent}\"\ncomplete_within = \"{number}{unit}\"");
            let _ = writeln!(text, "max_failures = {failures}");
        }
        let is_past_pivot = ways::is_past_pivot(&graph, &step_ways, place);
        for key in ["on_rejected", "on_exhausted"] {
            let remedy = rng.pick(&["compensate", "hold"]);
            let is_longer = key == "on_exhausted" && is_patient && longer.chance(4_000);
            // All waits must lie within the horizon.
            let wait = longer.pick(&["5s", "10m", "3h"]);
            let longer = (is_longer && !short_horizon && !own.approval).then_some((wait, 1 + place % 2));
            let drops = each[place].as_ref().is_some_and(|each| each.drops(key));
            ways::write_remedy(&mut text, own, is_past_pivot, (key, if drops { "drop" } else { remedy }), longer);
        }
        if short_horizon {
            let horizon = number * rng.pick(&[1, 2, 5, 20]);
            if !own.approval {
                let _ = writeln!(text, "horizon = \"{horizon}{unit}\"");
            }
        }
        if is_patient && waits.chance(4_000) {
            let within = waits.pick(&["20s", "5m", "3h"]);
            // A result must be asked for within the horizon.
            if !short_horizon && !own.approval {
                let _ = writeln!(text, "wait_within = \"{within}\"");
                if polls.chance(6_000) {
                    let every = polls.pick(&["1s", "20s", "5m", "1h"]);
                    // None is longer than the wait.
                    let every = match (every, within) {
                        ("5m" | "1h", "20s") | ("1h", "5m") => within,
                        _ => every,
                    };
                    let _ = writeln!(text, "poll.path = \"calls/{{/id}}\"\npoll.every = \"{every}\"");
                    let _ =
                        writeln!(text, "poll.answers = [{{ status = 200, when = '/done == true', means = \"done\" }}]");
                }
            }
        }
        if is_patient && waits.chance(1_500) {
            let wait = waits.pick(&["5s", "10m", "3h"]);
            // A workflow waits no longer than its deadline.
            if deadline.is_none() || rank(wait) < deadline {
                let _ = writeln!(text, "wait = \"{wait}\"");
            }
        }
        let maps = mappings::draw(rng, version, place, before);
        let mut maps = if own.approval { Mapped::default() } else { maps };
        let mut own = own.clone();
        if let Some(rng) = &mut of_lines {
            lines::map(rng, &mut each, place, (&mut own, &mut maps), &format!("v{version}-s{place}"));
        }
        ways::write(&mut text, &own);
        each[place].iter().for_each(|each| lines::write(&mut text, each));
        if !own.approval {
            let drop = each[place].as_ref().and_then(|each| each.drop.as_ref());
            mappings::write(&mut text, &maps, own.no_undo, drop);
        }
        drawn.entry(version).or_default().push((maps, own, each[place].clone()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Vec<Drawn> {
        (0..POOL).map(make).collect()
    }

    #[test]
    fn the_pool_has_graphs_of_every_size_and_steps_of_both_kinds() {
        let shapes = pool();
        let lengths: Vec<usize> = shapes.iter().map(|drawn| drawn.shape.one.steps.len()).collect();
        assert!((1..=12).all(|length| lengths.contains(&length)), "{lengths:?}");
        assert!(
            shapes.iter().any(|drawn| drawn.shape.short_horizon)
                && shapes.iter().all(|drawn| drawn.shape.two.version == 2)
        );
        let flow = &shapes[0].flows()[&1];
        assert_eq!(
            (flow.after.len(), flow.mapped.len()),
            (shapes[0].shape.one.steps.len(), shapes[0].shape.one.steps.len())
        );
    }

    #[test]
    fn the_pool_has_steps_that_do_not_apply_or_may_be_missed_and_pivots() {
        let shapes = pool();
        let steps: Vec<&StepRule> =
            shapes.iter().flat_map(|drawn| drawn.shape.versions()).flat_map(|workflow| &workflow.steps).collect();
        let is_tested = |key: fn(&StepRule) -> bool| steps.iter().filter(|step| key(step)).count() > 100;
        assert!(is_tested(|step| !step.when.is_empty()) && is_tested(|step| step.optional));
        assert!(is_tested(|step| step.pivot) && is_tested(|step| step.no_undo));
        assert!(is_tested(|step| step.approval.is_some()));
    }

    #[test]
    fn the_pool_has_deadlines_of_each_kind() {
        let shapes = pool();
        let of = |on_late| {
            let workflows = shapes.iter().flat_map(|drawn| drawn.shape.versions()).map(|workflow| workflow.deadline);
            workflows.filter(|deadline| deadline.within_ms.is_some() && deadline.on_late == on_late).count()
        };
        assert!([OnLate::Alert, OnLate::Compensate, OnLate::Hold].into_iter().all(|on_late| of(on_late) > 100));
    }

    #[test]
    fn the_pool_has_deep_and_wide_graphs_and_steps_that_stand_before_their_predecessors() {
        let depth = |workflow: &Workflow| workflow.steps.iter().map(|step| step.ancestors.len()).max().unwrap_or(0);
        let starts = |workflow: &Workflow| workflow.steps.iter().filter(|step| step.after.is_empty()).count();
        let shapes = pool();
        let workflows: Vec<&Workflow> =
            shapes.iter().flat_map(|drawn| drawn.shape.versions()).map(|one| &**one).collect();
        assert!(workflows.iter().any(|workflow| depth(workflow) >= 11));
        assert!(workflows.iter().any(|workflow| starts(workflow) >= 7));
        let is_turned = |(place, step): (usize, &StepRule)| step.after.iter().any(|earlier| *earlier > place);
        assert!(workflows.iter().any(|workflow| workflow.steps.iter().enumerate().any(is_turned)));
    }
}
