//! From TOML to a checked [`Workflow`]. All faults of a file are found at once, each with its place.

#[cfg(test)]
mod tests;
mod ways;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::ways::{Draft, Undo, Ways};
use super::approval::DECIDED_WITHIN_MS;
use super::mapping::{Output, Parts, Refuse};
use super::{Approval, Deadline, LongerWait, Mapping, PEOPLE, Remedy, Retain, StepRule, Supervision, Waits, Workflow};
use crate::backoff::BackoffPolicy;
use crate::index::Index;
use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, COMPLETE_WITHIN_MS_MIN, FAILURES_MAX, HORIZON_MS_DEFAULT, HORIZON_MS_MAX, NAME_CHARS_MAX,
    SETTLES_WITHIN_MS_DEFAULT, STEPS_MAX,
};
use crate::located::{Entry, Faults, Home, Reader, Table, known_names, time_text};
use crate::priority::Priority;

const COMPLETE_WITHIN_MS_DEFAULT: u64 = 30_000;
const MAX_FAILURES_DEFAULT: u32 = 3;

/// Where the keys belong.
const HOMES: [Home; 2] = [
    (
        &["version", "priority", "refuse", "index", "on_late"],
        "write it at the top of the file, above the first [[step]]",
    ),
    (
        &[
            "kind",
            "role",
            "not_by",
            "agent",
            "after",
            "complete_within",
            "horizon",
            "when",
            "optional",
            "pivot",
            "max_failures",
            "on_rejected",
            "on_exhausted",
            "send",
            "path",
            "encode",
            "keep",
            "wait",
            "not_before",
            "wait_within",
        ],
        "it belongs to a step. Write it below its [[step]], and above [step.undo]",
    ),
];

/// The agents that a step may name.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// These.
    Agents(&'a [&'a str]),
    /// Any with a valid name.
    Any,
}

impl Known<'_> {
    /// The output of a step. A workflow that was checked before may use what its version of the checks allowed.
    fn output<'s>(self, step: &'s StepRule) -> Output<'s> {
        let keep = match self {
            Self::Agents(_) => step.keep.as_ref(),
            Self::Any => None,
        };
        Output { step: &step.name, keep }
    }
}

impl Workflow {
    /// Reads a workflow from TOML and checks it against the known agents.
    ///
    /// # Errors
    /// All faults of the text, each with its line, its column and advice.
    pub fn parse(text: &str, agents: &[&str]) -> Result<Self, Faults> {
        Self::of(text, Known::Agents(agents))
    }

    /// Reads a workflow that was checked before, such as a stored one. Its steps may name any agent.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn read(text: &str) -> Result<Self, Faults> {
        Self::of(text, Known::Any)
    }

    fn of(text: &str, known: Known<'_>) -> Result<Self, Faults> {
        let (mut reader, mut root) = Reader::new(text);
        reader.set_homes(&HOMES);
        let workflow = workflow_of(&mut reader, &mut root, known);
        reader.end(root);
        reader.finish(workflow)
    }
}

fn workflow_of(reader: &mut Reader<'_>, root: &mut Table<'_>, known: Known<'_>) -> Workflow {
    let name = reader.required(root, "name");
    let name = name_of(reader, name).unwrap_or_default();
    let version = reader.required(root, "version");
    let version = reader.number(version, 1..=u32::MAX).unwrap_or(1);
    let priority = root.take("priority");
    let priority =
        reader.word(priority, &Priority::ALL.map(|priority| (priority.name(), priority))).unwrap_or_default();
    let supervision = root.take("supervision");
    let supervision = reader.table(supervision).map(|table| supervision_of(reader, table)).unwrap_or_default();
    let refuse = root.take("refuse").map(|entry| Refuse::read(reader, entry)).unwrap_or_default();
    let index = root.take("index").map(|entry| Index::read(reader, entry)).unwrap_or_default();
    let deadline = Deadline::take(reader, root);
    let retain = Retain::take(reader, root);
    let steps = root.take("step");
    // A misspelt key is a fault already.
    if steps.is_none() && !root.has_like("step") {
        reader.blame(0, "the workflow has no steps: add a [[step]] with a name and an agent");
    }
    let steps = steps.map(|entry| steps_of(reader, entry, known)).unwrap_or_default();
    Workflow { name, version, steps, priority, refuse, index, deadline, retain, supervision }
}

fn steps_of(reader: &mut Reader<'_>, entry: Entry<'_>, known: Known<'_>) -> Vec<StepRule> {
    let at = entry.at;
    if entry.value.is_table() {
        // Two of them are a key twice, which is not TOML.
        reader.blame_only(
            reader.place_of_line("[step]").unwrap_or(at),
            "a step begins with two brackets: write [[step]], not [step]",
        );
        return Vec::new();
    }
    let Some(elements) = entry.elements() else {
        reader.blame(at, "step must be an array of tables: begin each step with [[step]]");
        return Vec::new();
    };
    if elements.len() == 0 {
        reader.blame(at, "step is empty: a workflow has at least one");
    }
    if elements.len() > STEPS_MAX {
        let count = elements.len();
        reader.blame(at, format!("the workflow has {count} steps, the limit is {STEPS_MAX}"));
        return Vec::new();
    }
    let mut drafts: Vec<Draft<'_>> = Vec::with_capacity(elements.len());
    for (index, element) in elements.enumerate() {
        if let Some(draft) = step(reader, element, index, known) {
            // A name that is missing is blamed already.
            let has_name = !draft.rule.name.is_empty();
            if has_name && drafts.iter().any(|other| other.rule.name == draft.rule.name) {
                reader.blame(draft.at, format!("step {:?}: the name is used twice", draft.rule.name));
            }
            drafts.push(draft);
        }
    }
    connect(reader, &mut drafts);
    let mut steps: Vec<StepRule> = drafts.iter().map(|draft| draft.rule.clone()).collect();
    let mut in_cycles = BTreeSet::new();
    for (index, draft) in drafts.iter().enumerate() {
        match ancestors(&steps, index) {
            Ok(ancestors) => {
                let before: Vec<Output<'_>> = ancestors.iter().map(|&earlier| known.output(&steps[earlier])).collect();
                draft.rule.forward.check(reader, &draft.forward, &before, None);
                draft.rule.undo.check(reader, &draft.undo, &before, Some(known.output(&draft.rule)));
                let rules = ancestors.iter().map(|&earlier| &steps[earlier]);
                ways::check(reader, draft, &rules.zip(before).collect::<Vec<_>>());
                steps[index].ancestors = ancestors;
            }
            // A cycle is a fault once, and not at each of its steps.
            Err(way) => {
                if !way.iter().any(|step| in_cycles.contains(step)) {
                    let names: Vec<&str> = way.iter().map(|&index| &*steps[index].name).collect();
                    let (name, way) = (&draft.rule.name, names.join(" after "));
                    reader.blame(draft.after_at, format!("step {name:?}: it comes after itself: {way}"));
                }
                in_cycles.extend(way);
            }
        }
    }
    ways::hold_after_pivots(reader, &drafts, &mut steps);
    for index in 0..steps.len() {
        for earlier in steps[index].after.clone() {
            steps[earlier].before.push(index);
        }
    }
    steps
}

/// Sets the indexes of the steps that each step comes after.
fn connect(reader: &mut Reader<'_>, drafts: &mut [Draft<'_>]) {
    let names: Vec<Arc<str>> = drafts.iter().map(|draft| draft.rule.name.clone()).collect();
    for Draft { rule, after, .. } in drafts {
        for entry in std::mem::take(after) {
            let Some((name, entry)) = reader.exact_text(Some(entry)) else { continue };
            let step = &rule.name;
            match names.iter().position(|other| **other == *name) {
                None => {
                    let names: Vec<&str> = names.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect();
                    let steps = known_names(&name, "Steps", &names);
                    reader.blame(entry.at, format!("step {step:?}: `after` names the unknown step {name:?}{steps}"));
                }
                Some(index) if rule.after.contains(&index) => {
                    reader.blame(entry.at, format!("step {step:?}: `after` names the step {name:?} twice"));
                }
                Some(index) => rule.after.push(index),
            }
        }
    }
}

/// One step by itself.
fn step<'e>(reader: &mut Reader<'_>, element: Entry<'e>, index: usize, known: Known<'_>) -> Option<Draft<'e>> {
    let name = element.value.get("name").and_then(|name| name.get_ref().as_str());
    let title = name.map_or_else(|| format!("step {}", index + 1), |name| format!("step {name:?}"));
    let mut table = reader.titled_table(Some(element), &title)?;
    let name = reader.required(&mut table, "name");
    let at = name.as_ref().map_or(table.at, |entry| entry.at);
    let name = name_of(reader, name).unwrap_or_default();
    let approval = Approval::take(reader, &mut table);
    let agent = if approval.is_some() {
        PEOPLE.into()
    } else {
        let agent = reader.required(&mut table, "agent");
        agent_of(reader, agent, &title, known).unwrap_or_default()
    };
    let after = table.take("after");
    let after_at = after.as_ref().map_or(table.at, |entry| entry.at);
    let after = after.map(|entry| after_of(reader, entry)).unwrap_or_default();
    let mut waits = Waits::take(reader, &mut table);
    let max_failures = table.take("max_failures");
    let max_failures = reader.number(max_failures, 1..=FAILURES_MAX).unwrap_or(MAX_FAILURES_DEFAULT);
    let max_failures = if approval.is_some() { 1 } else { max_failures };
    let (longer, on_exhausted) = LongerWait::take(reader, &mut table);
    if approval.is_some() {
        if longer.is_some() {
            reader.blame(
                table.at,
                format!("{}.on_exhausted must be \"compensate\" or \"hold\" in an approval", table.path),
            );
        }
        waits.within_ms.get_or_insert(DECIDED_WITHIN_MS);
    }
    let is_stored = matches!(known, Known::Any);
    let more = Longer { within_ms: waits.within_ms, max_failures, longer };
    let (complete_within_ms, horizon_ms) = match approval {
        // No service has to recognise a key.
        Some(_) => (COMPLETE_WITHIN_MS_DEFAULT, HORIZON_MS_MAX),
        None => times(reader, &mut table, more, is_stored),
    };
    let ways = Ways::take(reader, &mut table, on_exhausted);
    let forward = Parts::take(&mut table);
    let keep = table.take("keep").and_then(|entry| super::mapping::template(reader, &entry));
    let undo = table.take("undo");
    let Undo { parts: undo, is_none: no_undo } = ways::undo(reader, undo);
    // Otherwise the whole order would go out in the other direction.
    let missing = match (&forward.send, &undo.send) {
        (Some(_), None) if no_undo => None,
        (Some(entry), None) => {
            Some((entry.at, "undo.send", "its undo sends, below [step.undo] at the end of the step"))
        }
        (None, Some(entry)) => Some((entry.at, "send", "it sends itself, above [step.undo]")),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some((at, key, what)) = missing {
        let example = "such as send = { order = \"/OrderID\" }";
        reader.blame(at, format!("{title}: {key} is missing: say what {what}, {example}"));
    }
    let (forward_mapping, encode) = Mapping::read(reader, &forward, None);
    let (undo_mapping, _) = Mapping::read(reader, &undo, encode);
    reader.end(table);
    // Nothing is done that could be undone.
    let no_undo = no_undo || approval.is_some();
    let mut rule = StepRule {
        name,
        agent,
        approval,
        after: Vec::new(),
        before: Vec::new(),
        ancestors: Vec::new(),
        complete_within_ms,
        horizon_ms,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        waits,
        max_failures,
        when: Vec::new(),
        optional: false,
        pivot: false,
        no_undo,
        on_rejected: Remedy::Compensate,
        longer,
        on_exhausted: Remedy::Hold,
        forward: forward_mapping,
        undo: undo_mapping,
        keep,
    };
    ways.apply(reader, &mut rule);
    Some(Draft { rule, at, after, after_at, forward, undo, ways })
}

fn name_of(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Arc<str>> {
    let (name, entry) = reader.exact_text(entry)?;
    if !is_name(&name) {
        let fault = format_args!("{name:?} is not valid: use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'");
        reader.blame_value(&entry, fault);
    }
    Some(name.into())
}

fn agent_of(reader: &mut Reader<'_>, entry: Option<Entry<'_>>, title: &str, known: Known<'_>) -> Option<Arc<str>> {
    match known {
        Known::Any => name_of(reader, entry),
        Known::Agents(agents) => {
            let (agent, entry) = reader.exact_text(entry)?;
            if !agents.contains(&&*agent) {
                let agents = known_names(&agent, "Agents", agents);
                let advice = format!("A new one needs a table [agents.{agent}] in stepwarden.toml");
                reader.blame(entry.at, format!("{title}: unknown agent {agent:?}{agents}. {advice}"));
            }
            Some(agent.into())
        }
    }
}

fn after_of<'e>(reader: &mut Reader<'_>, entry: Entry<'e>) -> Vec<Entry<'e>> {
    let (at, path) = (entry.at, entry.path.clone());
    let elements = entry.elements().map(Iterator::collect);
    elements.unwrap_or_else(|| {
        reader.blame(at, format!("{path} must be an array of names of steps, such as [\"pay\"]"));
        Vec::new()
    })
}

/// What makes the default horizon longer.
#[derive(Clone, Copy)]
struct Longer {
    within_ms: Option<u64>,
    max_failures: u32,
    longer: Option<LongerWait>,
}

/// The time of one attempt, and of all. A lost result must be asked for within the horizon, and so must a call after a
/// longer wait. So the horizon is longer by these waits unless it is given. A definition that is stored may have a shorter
/// one.
fn times(reader: &mut Reader<'_>, table: &mut Table<'_>, more: Longer, is_stored: bool) -> (u64, u64) {
    let complete_within = table.take("complete_within");
    let given_ms = reader.time_ms(complete_within, COMPLETE_WITHIN_MS_MIN..=COMPLETE_WITHIN_MS_MAX);
    let complete_within_ms = given_ms.unwrap_or(COMPLETE_WITHIN_MS_DEFAULT);
    let horizon = table.take("horizon");
    let at = horizon.as_ref().map(|entry| (entry.at, entry.path.clone()));
    let horizon_ms = reader.time_ms(horizon, 1..=HORIZON_MS_MAX);
    if let (Some((at, path)), Some(horizon_ms)) = (&at, horizon_ms)
        && horizon_ms < complete_within_ms
    {
        let [horizon, complete_within] = [horizon_ms, complete_within_ms].map(time_text);
        let fault = format!(
            "{path} is \"{horizon}\" and must be at least complete_within, \"{complete_within}\": it is the time for \
             all attempts"
        );
        reader.blame(*at, fault);
    } else if let (Some((at, path)), Some(horizon_ms)) = (at, horizon_ms)
        && !is_stored
    {
        let mut must_exceed = |ms: u64, what: &str, why: &str| {
            if horizon_ms <= ms {
                let [horizon, ms] = [horizon_ms, ms].map(time_text);
                let fault = format!("{path} is \"{horizon}\" and must be longer than {what}, \"{ms}\": {why}");
                reader.blame(at, fault);
            }
        };
        if let Some(ms) = more.within_ms {
            must_exceed(ms, "wait_within", "a result that was lost is asked for within it");
        }
        if let Some(longer) = more.longer {
            must_exceed(longer.all_ms(), "all waits of on_exhausted", "no call is made after it");
        }
    } else if let Some(longer) = more.longer
        && longer.all_ms() >= HORIZON_MS_MAX
        && !is_stored
    {
        let most = time_text(HORIZON_MS_MAX);
        reader.blame(
            table.at,
            format!("{}.on_exhausted: all its waits together must be shorter than {most}", table.path),
        );
    }
    let failures = more.max_failures.saturating_add(more.longer.map_or(0, |longer| longer.times));
    let results_ms = more.within_ms.unwrap_or(0).saturating_mul(failures.into());
    // Each longer wait is followed by an attempt.
    let attempts_ms = more.longer.map_or(0, |longer| complete_within_ms.saturating_mul(longer.times.into()));
    let waits_ms = more.longer.map_or(0, LongerWait::all_ms).saturating_add(attempts_ms).saturating_add(results_ms);
    let default_ms = HORIZON_MS_DEFAULT.max(complete_within_ms).saturating_add(waits_ms).min(HORIZON_MS_MAX);
    (complete_within_ms, horizon_ms.unwrap_or(default_ms))
}

fn supervision_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> Supervision {
    const MS_MAX: u64 = 24 * 60 * 60 * 1_000;
    const CEILING_MAX: u32 = 16;
    let mut patience = Supervision::default();
    let mut time_ms = |key| {
        let entry = table.take(key);
        reader.time_ms(entry, 1..=MS_MAX)
    };
    patience.grace_ms = time_ms("grace").unwrap_or(patience.grace_ms);
    patience.doubt_after_ms = time_ms("doubt_after");
    patience.wake_lost_after_ms = time_ms("wake_lost_after").unwrap_or(patience.wake_lost_after_ms);
    patience.resend_after_ms = time_ms("resend_after").unwrap_or(patience.resend_after_ms);
    let (slot, ceiling) = (table.take("backoff_slot"), table.take("backoff_ceiling"));
    let at = ceiling.as_ref().or(slot.as_ref()).map(|entry| entry.at);
    let slot_time_ms = reader.time_ms(slot, 1..=MS_MAX).unwrap_or(patience.backoff.slot_time_ms);
    let ceiling = reader.number(ceiling, 0..=CEILING_MAX).unwrap_or(patience.backoff.ceiling);
    let stay = table.take("backoff_stay_at_ceiling");
    let stay_at_ceiling = reader.flag(stay).unwrap_or(patience.backoff.stay_at_ceiling);
    patience.backoff = BackoffPolicy { slot_time_ms, ceiling, stay_at_ceiling };
    let longest_ms = patience.backoff.wait_ms_max();
    if let Some(at) = at
        && longest_ms > MS_MAX
    {
        let (path, hours) = (&table.path, longest_ms / 3_600_000);
        let fault = format!("{path}.backoff_ceiling is {ceiling}: waits of up to {hours} h, the limit is 24 h");
        reader.blame(at, fault);
    }
    reader.end(table);
    patience
}

/// Whether a text can name a workflow, a step or an agent: letters, digits, `-` and `_`, which are safe in queue names,
/// keys and URLs.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// All steps on any path to `index`, in workflow order.
///
/// # Errors
/// The path from `index` back to itself, if there is one.
fn ancestors(steps: &[StepRule], index: usize) -> Result<Vec<usize>, Vec<usize>> {
    let mut seen = vec![false; steps.len()];
    // The steps to visit, each with the step that led to it, so that a cycle can be shown.
    let mut came_from = vec![index; steps.len()];
    let mut open = steps[index].after.clone();
    while let Some(earlier) = open.pop() {
        if earlier == index {
            return Err(vec![index, index]);
        }
        if std::mem::replace(&mut seen[earlier], true) {
            continue;
        }
        for &further in &steps[earlier].after {
            if further == index {
                let mut way = vec![index, earlier];
                let mut at = earlier;
                while came_from[at] != index {
                    at = came_from[at];
                    way.push(at);
                }
                way.push(index);
                way.reverse();
                return Err(way);
            }
            if !seen[further] {
                came_from[further] = earlier;
                open.push(further);
            }
        }
    }
    Ok((0..steps.len()).filter(|&earlier| seen[earlier]).collect())
}
