//! From TOML to a checked [`Workflow`]. All faults of a file are found at once, each with its place.

mod lines;
#[cfg(test)]
mod tests;
mod ways;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::ways::Draft;
use super::approval::DECIDED_WITHIN_MS;
use super::child::{self, ENDED_WITHIN_MS};
use super::keys::WORKFLOW;
use super::mapping::{Output, template};
use super::{
    Approval, Deadline, Encoding, ForEach, LongerWait, Mapping, Method, ORDERS, PEOPLE, Poll, Refuse, Retain, StepKeys,
    StepRule, Supervision, Waits, Workflow,
};
use crate::backoff::BackoffPolicy;
use crate::index::Index;
use crate::keys::time_text;
use crate::limits::{HORIZON_MS_DEFAULT, HORIZON_MS_MAX, SETTLES_WITHIN_MS_DEFAULT};
use crate::located::{Document, Entry, Faults, Reader, Table, known_names};
use crate::priority::Priority;
use crate::schema::Schema;
use crate::template::Template;

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
        Output { step: &step.name, keep, is_array: false }
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
        let document = Document::new(text);
        let (mut reader, root) = document.read(WORKFLOW);
        let deadline = Deadline::read(&root);
        let workflow = Self {
            name: root.exact_text("name").unwrap_or_default().into(),
            version: root.number("version").unwrap_or(1),
            priority: root.word("priority", &Priority::ALL).unwrap_or_default(),
            supervision: supervision_of(&mut reader, &root.table("supervision")),
            refuse: Refuse::read(&root),
            schema: schema(&mut reader, &root),
            index: Index::read(&mut reader, &root),
            deadline,
            retain: Retain::read(&root.table("retain")),
            steps: steps_of(&mut reader, &root, known, deadline),
        };
        reader.finish(workflow)
    }
}

/// The schema, which the folder's check has put into the text.
fn schema(reader: &mut Reader<'_>, root: &Table<'_>) -> Option<Schema> {
    let entry = root.get("schema")?;
    let text = entry.exact_text()?;
    if !text.starts_with('{') {
        reader.blame_value(&entry, "must be a schema here, and not the name of its file");
    }
    Some(Schema::stored(text))
}

fn steps_of(reader: &mut Reader<'_>, root: &Table<'_>, known: Known<'_>, deadline: Deadline) -> Vec<StepRule> {
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    for table in root.elements("step").into_iter().filter_map(Entry::table) {
        let rule = step(reader, &table, known);
        // A name that is missing is blamed already.
        if !rule.name.is_empty() && drafts.iter().any(|other| other.rule.name == rule.name) {
            reader.blame(table.at("name"), format!("{}: the name is used twice", table.path));
        }
        if let (Known::Agents(_), Some(wait_ms), Some(within_ms)) = (known, rule.waits.before_ms, deadline.within_ms)
            && within_ms <= wait_ms
        {
            let (path, [wait, within]) = (&table.path, [wait_ms, within_ms].map(time_text));
            let why = "no order could be in time";
            let fault = format!(
                "{path}.wait is \"{wait}\" and must be shorter than complete_within of the workflow, \"{within}\": {why}"
            );
            reader.blame(table.at("wait"), fault);
        }
        drafts.push(Draft { rule, table });
    }
    connect(reader, &mut drafts);
    let mut steps: Vec<StepRule> = drafts.iter().map(|draft| draft.rule.clone()).collect();
    let mut in_cycles = BTreeSet::new();
    for (index, draft) in drafts.iter().enumerate() {
        match ancestors(&steps, index) {
            Ok(ancestors) => {
                let in_line = lines::in_line(&steps, index, &ancestors);
                let output = |&earlier: &usize| {
                    let is_array = steps[earlier].for_each.is_some() && !in_line.contains(&earlier);
                    Output { is_array, ..known.output(&steps[earlier]) }
                };
                let before: Vec<Output<'_>> = ancestors.iter().map(output).collect();
                let (undo, has_item) = (draft.table.table("undo"), draft.rule.for_each.is_some());
                draft.rule.forward.check(reader, &draft.table, &before, None, has_item);
                if let Some(poll) = &draft.rule.poll {
                    poll.mapping.check(reader, &draft.table.table("poll"), &before, None, has_item);
                }
                let own = Some(known.output(&draft.rule));
                draft.rule.undo.check(reader, &undo, &before, own, has_item);
                if let Some(drop) = draft.rule.for_each.as_ref().and_then(|each| each.drop.as_ref()) {
                    drop.check(reader, &draft.table.table("drop"), &before, own, has_item);
                }
                let rules = ancestors.iter().map(|&earlier| &steps[earlier]);
                ways::check(reader, draft, &rules.zip(before).collect::<Vec<_>>());
                let is_array = |earlier: &&usize| steps[**earlier].for_each.is_some() && !in_line.contains(earlier);
                steps[index].arrays =
                    ancestors.iter().filter(is_array).map(|&array| steps[array].name.clone()).collect();
                (steps[index].ancestors, steps[index].in_line) = (ancestors, in_line);
            }
            // A cycle is a fault once, and not at each of its steps.
            Err(way) => {
                if !way.iter().any(|step| in_cycles.contains(step)) {
                    let names: Vec<&str> = way.iter().map(|&index| &*steps[index].name).collect();
                    let (name, way) = (&draft.rule.name, names.join(" after "));
                    reader.blame(draft.table.at("after"), format!("step {name:?}: it comes after itself: {way}"));
                }
                in_cycles.extend(way);
            }
        }
    }
    lines::check(reader, &drafts, &steps);
    ways::hold_after_pivots(reader, &drafts, &mut steps);
    steps
}

/// Sets the indexes of the steps that each step comes after.
fn connect(reader: &mut Reader<'_>, drafts: &mut [Draft<'_>]) {
    let names: Vec<Arc<str>> = drafts.iter().map(|draft| draft.rule.name.clone()).collect();
    for Draft { rule, table } in drafts {
        for entry in table.elements("after") {
            let Some(name) = entry.exact_text() else { continue };
            let step = &rule.name;
            match names.iter().position(|other| **other == *name) {
                None => {
                    let names: Vec<&str> = names.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect();
                    let steps = known_names(name, "Steps", &names);
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
fn step(reader: &mut Reader<'_>, table: &Table<'_>, known: Known<'_>) -> StepRule {
    let approval = Approval::read(reader, table);
    let is_approval = approval.is_some();
    let child = child::read(reader, table);
    let agent = match (is_approval, &child) {
        (true, _) => PEOPLE.into(),
        (false, Some(_)) => ORDERS.into(),
        (false, None) => agent_of(reader, table, known).unwrap_or_default(),
    };
    let mut waits = Waits::read(table);
    let max_failures = if is_approval { 1 } else { table.number("max_failures").unwrap_or_default() };
    let longer = LongerWait::read(&table.table("on_exhausted"));
    if is_approval {
        if longer.is_some() {
            let fault = format!("{}.on_exhausted must be \"compensate\" or \"hold\" in an approval", table.path);
            reader.blame(table.at, fault);
        }
        waits.within_ms.get_or_insert(DECIDED_WITHIN_MS);
    }
    if child.is_some() {
        waits.within_ms.get_or_insert(ENDED_WITHIN_MS);
    }
    let more = Longer { within_ms: waits.within_ms, max_failures, longer };
    let (complete_within_ms, horizon_ms) = match is_approval || child.is_some() {
        // No service has to recognise a key.
        true => (table.time_ms("complete_within").unwrap_or_default(), HORIZON_MS_MAX),
        false => times(reader, table, more, matches!(known, Known::Any)),
    };
    let undo = table.table("undo");
    let no_undo = table.exact_text("undo") == Some("none");
    // Otherwise the whole order would go out in the other direction.
    let undo_of = undo;
    let forward = Mapping::read(reader, table, Encoding::default());
    let undo = Mapping::read(reader, &undo_of, forward.encode);
    // What a GET asks for needs no undo.
    let no_undo = no_undo || (forward.method == Method::Get && table.get("undo").is_none());
    let missing = match (table.get("send"), undo_of.get("send")) {
        (Some(entry), None) if !no_undo && undo.sends_all() && child.is_none() => {
            Some((entry.at, "undo.send", "its undo sends, below [step.undo] at the end of the step"))
        }
        (None, Some(entry)) if forward.sends_all() && undo.method != Method::Get => {
            Some((entry.at, "send", "it sends itself, above [step.undo]"))
        }
        (Some(_) | None, Some(_) | None) => None,
    };
    if let Some((at, key, what)) = missing {
        let example = "such as send = { order = \"/OrderID\" }";
        reader.blame(at, format!("{}: {key} is missing: say what {what}, {example}", table.path));
    }
    let keep = keep_of(reader, table, waits.within_ms.is_some());
    let poll = Poll::read(reader, table, forward.method, keep.as_ref(), waits.within_ms).filter(|_| !is_approval);
    let (on_rejected, on_exhausted) = ways::remedies(reader, table);
    let for_each = ForEach::read(reader, table, [&forward, &undo], no_undo);
    let keys = StepKeys {
        agent,
        approval,
        child,
        complete_within_ms,
        horizon_ms,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        waits,
        for_each,
        max_failures,
        when: ways::comparisons(table).into_iter().map(|(_, comparison)| comparison).collect(),
        optional: table.flag("optional"),
        pivot: table.flag("pivot"),
        // Nothing is done that could be undone.
        no_undo: no_undo || is_approval,
        on_rejected,
        longer,
        on_exhausted,
        forward,
        undo,
        keep,
        poll,
    };
    let name = table.exact_text("name").unwrap_or_default().into();
    StepRule {
        name,
        after: Vec::new(),
        ancestors: Vec::new(),
        in_line: Vec::new(),
        arrays: Vec::new(),
        line: None,
        keys: Arc::new(keys),
    }
}

/// What is kept of the answer. A result that comes later is no response.
fn keep_of(reader: &mut Reader<'_>, table: &Table<'_>, may_come_later: bool) -> Option<Template> {
    let entry = table.get("keep")?;
    let keep = template(reader, &entry, Template::parse_keep)?;
    for part in keep.needed_of_response().filter(|_| may_come_later) {
        let at = entry.place_of(|text| text == part);
        let advice = "a result within wait_within comes without it: end it with ?";
        reader.blame(at, format!("{}: {part}: {advice}", entry.path));
    }
    Some(keep)
}

fn agent_of(reader: &mut Reader<'_>, table: &Table<'_>, known: Known<'_>) -> Option<Arc<str>> {
    let title = &table.path;
    let Some(entry) = table.get("agent") else {
        reader.blame(table.at, format!("{title}: agent is missing"));
        return None;
    };
    let agent = entry.exact_text()?;
    if let Known::Agents(agents) = known
        && !agents.contains(&agent)
    {
        let agents = known_names(agent, "Agents", agents);
        let advice = format!("A new one needs a table [agents.{agent}] in stepwarden.toml");
        reader.blame(entry.at, format!("{title}: unknown agent {agent:?}{agents}. {advice}"));
    }
    Some(agent.into())
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
fn times(reader: &mut Reader<'_>, table: &Table<'_>, more: Longer, is_stored: bool) -> (u64, u64) {
    let complete_within_ms = table.time_ms("complete_within").unwrap_or_default();
    let horizon_ms = table.time_ms("horizon");
    let at = table.get("horizon").map(|entry| (entry.at, entry.path));
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

fn supervision_of(reader: &mut Reader<'_>, table: &Table<'_>) -> Supervision {
    const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
    let time_ms = |key| table.time_ms(key).unwrap_or_default();
    let backoff = BackoffPolicy {
        slot_time_ms: time_ms("backoff_slot"),
        ceiling: table.number("backoff_ceiling").unwrap_or_default(),
        stay_at_ceiling: table.flag("backoff_stay_at_ceiling"),
    };
    let longest_ms = backoff.wait_ms_max();
    if longest_ms > WAIT_MS_MAX {
        let (path, ceiling, hours) = (&table.path, backoff.ceiling, longest_ms / 3_600_000);
        let at = table.get("backoff_ceiling").map_or_else(|| table.at("backoff_slot"), |entry| entry.at);
        let fault = format!("{path}.backoff_ceiling is {ceiling}: waits of up to {hours} h, the limit is 24 h");
        reader.blame(at, fault);
    }
    Supervision {
        grace_ms: time_ms("grace"),
        doubt_after_ms: table.time_ms("doubt_after"),
        wake_lost_after_ms: time_ms("wake_lost_after"),
        resend_after_ms: time_ms("resend_after"),
        backoff,
    }
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
