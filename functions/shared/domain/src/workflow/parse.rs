//! From TOML to a checked [`Workflow`].

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::mapping::MappingTable;
use super::{Encoding, Mapping, Refuse, Remedy, StepFault, StepRule, Supervision, Workflow, WorkflowError};
use crate::backoff::BackoffPolicy;
use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, COMPLETE_WITHIN_MS_MIN, FAILURES_MAX, HORIZON_MS_DEFAULT, HORIZON_MS_MAX, NAME_CHARS_MAX,
    SETTLES_WITHIN_MS_DEFAULT, STEPS_MAX,
};
use crate::priority::Priority;
use crate::template::Template;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    version: u32,
    #[serde(default)]
    priority: Priority,
    #[serde(default)]
    supervision: SupervisionTable,
    #[serde(default)]
    refuse: Vec<String>,
    #[serde(default, rename = "step")]
    steps: Vec<StepTable>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SupervisionTable {
    grace: Option<String>,
    doubt_after: Option<String>,
    wake_lost_after: Option<String>,
    resend_after: Option<String>,
    backoff_slot: Option<String>,
    backoff_ceiling: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    name: String,
    agent: String,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default = "complete_within_default")]
    complete_within: String,
    horizon: Option<String>,
    #[serde(default = "max_failures_default")]
    max_failures: i64,
    #[serde(default = "on_rejected_default")]
    on_rejected: Remedy,
    #[serde(default = "on_exhausted_default")]
    on_exhausted: Remedy,
    send: Option<Value>,
    path: Option<String>,
    encode: Option<Encoding>,
    keep: Option<Value>,
    #[serde(default)]
    undo: MappingTable,
}

fn complete_within_default() -> String {
    "30s".to_owned()
}

const fn max_failures_default() -> i64 {
    3
}

const fn on_rejected_default() -> Remedy {
    Remedy::Compensate
}

const fn on_exhausted_default() -> Remedy {
    Remedy::Hold
}

impl Workflow {
    /// Reads a workflow from TOML and checks it against the known agents.
    ///
    /// # Errors
    /// [`WorkflowError`], which names the step at fault.
    pub fn parse(text: &str, agents: &[&str]) -> Result<Self, WorkflowError> {
        let file: File = toml::from_str(text).map_err(|error| WorkflowError::Malformed(error.to_string()))?;
        if !is_name(&file.name) {
            return Err(WorkflowError::Name(file.name));
        }
        if file.version == 0 {
            return Err(WorkflowError::Version(file.name));
        }
        if file.steps.is_empty() {
            return Err(WorkflowError::NoSteps(file.name));
        }
        if file.steps.len() > STEPS_MAX {
            return Err(WorkflowError::TooManySteps { workflow: file.name, steps: file.steps.len() });
        }
        let at = |step: &str, fault| WorkflowError::Step { workflow: file.name.clone(), step: step.to_owned(), fault };

        let mut steps = Vec::with_capacity(file.steps.len());
        for (index, table) in file.steps.iter().enumerate() {
            let rule =
                rule(table, &file.steps[..index], &file.steps, agents).map_err(|fault| at(&table.name, fault))?;
            steps.push(rule);
        }
        for index in 0..steps.len() {
            let ancestors = ancestors(&steps, index).map_err(|way| {
                let way: Vec<&str> = way.iter().map(|&index| &*steps[index].name).collect();
                at(&steps[index].name, StepFault::Cycle(way.join(" after ")))
            })?;
            steps[index].ancestors = ancestors;
            check_pointers(&steps, index).map_err(|fault| at(&steps[index].name, fault))?;
        }
        for index in 0..steps.len() {
            for earlier in steps[index].after.clone() {
                steps[earlier].before.push(index);
            }
        }
        let supervision = supervision(&file.supervision).map_err(|(key, problem)| WorkflowError::Supervision {
            workflow: file.name.clone(),
            key,
            problem,
        })?;
        let refuse = Refuse::parse(file.refuse)
            .map_err(|problem| WorkflowError::Refuse { workflow: file.name.clone(), problem })?;
        Ok(Self { name: file.name.into(), version: file.version, steps, priority: file.priority, refuse, supervision })
    }
}

/// One step by itself; `earlier` holds the tables before it, `all` the whole file.
fn rule(table: &StepTable, earlier: &[StepTable], all: &[StepTable], agents: &[&str]) -> Result<StepRule, StepFault> {
    if !is_name(&table.name) {
        return Err(StepFault::Name);
    }
    if earlier.iter().any(|other| other.name == table.name) {
        return Err(StepFault::DuplicateName);
    }
    if !agents.contains(&table.agent.as_str()) {
        return Err(StepFault::UnknownAgent { agent: table.agent.clone(), known: agents.join(", ") });
    }
    let mut after = Vec::with_capacity(table.after.len());
    for name in &table.after {
        let index = all.iter().position(|other| other.name == *name);
        let index = index.ok_or_else(|| StepFault::UnknownAfter(name.clone()))?;
        if after.contains(&index) {
            return Err(StepFault::DuplicateAfter(name.clone()));
        }
        after.push(index);
    }
    let complete_within_ms = duration_ms(&table.complete_within)
        .map_err(|problem| StepFault::CompleteWithin(format!("{:?} {problem}", table.complete_within)))?;
    if !(COMPLETE_WITHIN_MS_MIN..=COMPLETE_WITHIN_MS_MAX).contains(&complete_within_ms) {
        return Err(StepFault::CompleteWithin(format!("is {:?}", table.complete_within)));
    }
    let horizon_ms = match &table.horizon {
        None => HORIZON_MS_DEFAULT.max(complete_within_ms),
        Some(text) => duration_ms(text).map_err(|problem| StepFault::Horizon(format!("{text:?} {problem}")))?,
    };
    if !(complete_within_ms..=HORIZON_MS_MAX).contains(&horizon_ms) {
        return Err(StepFault::Horizon(format!("is {:?}", table.horizon.as_deref().unwrap_or_default())));
    }
    let (forward, undo, keep) = mappings(table)?;
    let max_failures = u32::try_from(table.max_failures).ok().filter(|count| (1..=FAILURES_MAX).contains(count));
    Ok(StepRule {
        name: Arc::from(&*table.name),
        agent: Arc::from(&*table.agent),
        after,
        before: Vec::new(),
        ancestors: Vec::new(),
        complete_within_ms,
        horizon_ms,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        max_failures: max_failures.ok_or(StepFault::MaxFailures(table.max_failures))?,
        on_rejected: table.on_rejected,
        on_exhausted: table.on_exhausted,
        forward,
        undo,
        keep,
    })
}

/// The calls of a step, and what it keeps of the answer.
fn mappings(table: &StepTable) -> Result<(Mapping, Mapping, Option<Template>), StepFault> {
    let StepTable { send, path, encode, undo, keep, .. } = table;
    let fault = |key: &str, problem: String| StepFault::Mapping { key: key.to_owned(), problem };
    if send.is_some() != undo.send.is_some() {
        // The whole order would go out in the other direction.
        let key = if send.is_some() { "undo.send" } else { "send" };
        return Err(fault(key, "is missing; a step has it in both directions or in none".to_owned()));
    }
    let forward = Mapping::parse(&MappingTable { send: send.clone(), path: path.clone(), encode: *encode }, "")?;
    let undo = MappingTable { encode: undo.encode.or(*encode), send: undo.send.clone(), path: undo.path.clone() };
    let keep = keep.clone().map(Template::parse).transpose();
    Ok((forward, Mapping::parse(&undo, "undo.")?, keep.map_err(|problem| fault("keep", problem.to_string()))?))
}

/// Checks the pointers of a step.
fn check_pointers(steps: &[StepRule], index: usize) -> Result<(), StepFault> {
    let rule = &steps[index];
    let names: Vec<&str> = rule.ancestors.iter().map(|&earlier| &*steps[earlier].name).collect();
    rule.forward.check(&names, None, "")?;
    rule.undo.check(&names, Some(&rule.name), "undo.")
}

fn supervision(table: &SupervisionTable) -> Result<Supervision, (&'static str, String)> {
    const MS_MAX: u64 = 24 * 60 * 60 * 1_000;
    const CEILING_MAX: u32 = 16;
    let mut patience = Supervision::default();
    let set = |key: &'static str, text: &Option<String>, into: &mut u64| {
        let Some(text) = text else { return Ok(()) };
        *into = duration_ms(text).map_err(|problem| (key, format!("{text:?} {problem}")))?;
        if !(1..=MS_MAX).contains(into) {
            return Err((key, format!("is {text:?}: must be between 1 ms and 24 h")));
        }
        Ok(())
    };
    set("grace", &table.grace, &mut patience.grace_ms)?;
    if table.doubt_after.is_some() {
        let mut doubt_after_ms = 0;
        set("doubt_after", &table.doubt_after, &mut doubt_after_ms)?;
        patience.doubt_after_ms = Some(doubt_after_ms);
    }
    set("wake_lost_after", &table.wake_lost_after, &mut patience.wake_lost_after_ms)?;
    set("resend_after", &table.resend_after, &mut patience.resend_after_ms)?;
    let mut slot_time_ms = patience.backoff.slot_time_ms;
    set("backoff_slot", &table.backoff_slot, &mut slot_time_ms)?;
    let ceiling = table.backoff_ceiling.unwrap_or(patience.backoff.ceiling);
    if ceiling > CEILING_MAX {
        return Err(("backoff_ceiling", format!("is {ceiling}: must be at most {CEILING_MAX}")));
    }
    patience.backoff = BackoffPolicy { slot_time_ms, ceiling, ..patience.backoff };
    if patience.backoff.wait_ms_max() > MS_MAX {
        let hours = patience.backoff.wait_ms_max() / 3_600_000;
        return Err(("backoff_ceiling", format!("is {ceiling}: waits of up to {hours} h, the limit is 24 h")));
    }
    Ok(patience)
}

pub(super) fn duration_ms(text: &str) -> Result<u64, String> {
    let duration = humantime::parse_duration(text).map_err(|error| format!("is not a duration ({error})"))?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Letters, digits, `-` and `_`: safe in queue names, keys and URLs.
fn is_name(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: [&str; 2] = ["inventory", "payment"];

    fn parse(steps: &str) -> Result<Workflow, WorkflowError> {
        Workflow::parse(&format!("name = \"w\"\nversion = 1\n{steps}"), &AGENTS)
    }

    fn step(name: &str, more: &str) -> String {
        format!("[[step]]\nname = \"{name}\"\nagent = \"payment\"\n{more}\n")
    }

    /// The error's text, which must name the step.
    fn fault(steps: &str, named: &str) -> String {
        let text = parse(steps).unwrap_err().to_string();
        assert!(text.contains(&format!("step {named:?}")), "{text}");
        text
    }

    #[test]
    fn a_diamond_knows_its_neighbours_and_ancestors() {
        let steps = [
            step("a", ""),
            step("b", "after = [\"a\"]"),
            step("c", "after = [\"a\"]"),
            step("d", "after = [\"b\", \"c\"]"),
        ];
        let workflow = parse(&steps.concat()).unwrap();
        let [a, b, _, d] = workflow.steps.as_slice() else { panic!("four steps") };
        assert_eq!((a.before.as_slice(), b.after.as_slice()), ([1, 2].as_slice(), [0].as_slice()));
        assert_eq!(d.ancestors, [0, 1, 2]);
    }

    #[test]
    fn defaults_are_thirty_seconds_three_failures_compensate_hold() {
        let workflow = parse(&step("a", "")).unwrap();
        let rule = &workflow.steps[0];
        assert_eq!((rule.complete_within_ms, rule.max_failures), (30_000, 3));
        assert_eq!((rule.on_rejected, rule.on_exhausted), (Remedy::Compensate, Remedy::Hold));
    }

    #[test]
    fn an_unknown_agent_is_refused_with_those_known() {
        let text = fault("[[step]]\nname = \"a\"\nagent = \"bank\"\n", "a");
        assert!(text.contains("\"bank\"") && text.contains("inventory, payment"), "{text}");
    }

    #[test]
    fn a_cycle_is_refused_and_shown() {
        let steps = [step("a", "after = [\"c\"]"), step("b", "after = [\"a\"]"), step("c", "after = [\"b\"]")].concat();
        assert!(fault(&steps, "a").contains("a after c after b after a"), "{}", fault(&steps, "a"));
        assert!(fault(&step("a", "after = [\"a\"]"), "a").contains("a after a"));
        let entered_from_outside =
            [step("x", "after = [\"a\"]"), step("a", "after = [\"b\"]"), step("b", "after = [\"a\"]")].concat();
        fault(&entered_from_outside, "a");
    }

    #[test]
    fn an_unknown_or_repeated_step_in_after_is_refused() {
        assert!(fault(&step("a", "after = [\"z\"]"), "a").contains("unknown step \"z\""));
        let twice = [step("a", ""), step("b", "after = [\"a\", \"a\"]")].concat();
        assert!(fault(&twice, "b").contains("twice"));
    }

    #[test]
    fn a_duplicate_or_bad_name_is_refused() {
        assert!(fault(&[step("a", ""), step("a", "")].concat(), "a").contains("used twice"));
        fault(&step("a b", ""), "a b");
        fault(&step("", ""), "");
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        fault(&step(&long, ""), &long);
    }

    #[test]
    fn zero_and_absurd_limits_are_refused() {
        for value in ["0s", "1ms", "13h", "-1s", "soon", ""] {
            assert!(
                fault(&step("a", &format!("complete_within = \"{value}\"")), "a").contains("complete_within"),
                "{value}"
            );
        }
        for value in ["0", "-1", "1001", "9999999999"] {
            assert!(fault(&step("a", &format!("max_failures = {value}")), "a").contains("max_failures"), "{value}");
        }
        assert!(parse(&step("a", "complete_within = \"12h\"\nmax_failures = 1000")).is_ok());
        for value in ["29s", "8d", "soon"] {
            assert!(fault(&step("a", &format!("horizon = \"{value}\"")), "a").contains("horizon"), "{value}");
        }
        let text = parse(&format!("[supervision]\ngrace = \"0s\"\n{}", step("a", ""))).unwrap_err().to_string();
        assert!(text.contains("grace"), "{text}");
    }

    #[test]
    fn no_steps_and_more_than_fifty_are_refused() {
        let steps = |count: usize| (0..count).map(|n| step(&format!("s{n}"), "")).collect::<String>();
        assert_eq!(parse(""), Err(WorkflowError::NoSteps("w".to_owned())));
        assert!(parse(&steps(STEPS_MAX)).is_ok());
        assert!(matches!(parse(&steps(STEPS_MAX + 1)), Err(WorkflowError::TooManySteps { steps: 51, .. })));
    }

    #[test]
    fn unknown_keys_wrong_types_and_bad_heads_are_refused() {
        for text in ["", "name = \"w\"", "name = 1\nversion = 1", "name = \"w\"\nversion = 1\ncolour = \"red\""] {
            assert!(matches!(Workflow::parse(text, &AGENTS), Err(WorkflowError::Malformed(_))), "{text}");
        }
        assert!(matches!(parse(&step("a", "on_rejected = \"shrug\"")), Err(WorkflowError::Malformed(_))));
        assert!(matches!(Workflow::parse("name = \"w\"\nversion = 0", &AGENTS), Err(WorkflowError::Version(_))));
        assert!(matches!(Workflow::parse("name = \"w w\"\nversion = 1", &AGENTS), Err(WorkflowError::Name(_))));
    }

    fn with_supervision(keys: &str) -> Result<Supervision, String> {
        let workflow = parse(&format!("[supervision]\n{keys}\n{}", step("a", "")));
        workflow.map(|workflow| workflow.supervision).map_err(|error| error.to_string())
    }

    #[test]
    fn patience_is_as_the_file_says_and_the_rest_by_default() {
        let patience = with_supervision(
            "grace = \"5s\"\ndoubt_after = \"90s\"\nwake_lost_after = \"24h\"\nresend_after = \"1ms\"\n\
             backoff_slot = \"3s\"\nbackoff_ceiling = 4",
        );
        let expected = Supervision {
            grace_ms: 5_000,
            doubt_after_ms: Some(90_000),
            wake_lost_after_ms: 24 * 60 * 60 * 1_000,
            resend_after_ms: 1,
            backoff: BackoffPolicy { slot_time_ms: 3_000, ceiling: 4, stay_at_ceiling: true },
        };
        assert_eq!(patience, Ok(expected));
        assert_eq!(with_supervision(""), Ok(Supervision::default()));
        assert!(with_supervision("doubt_after = \"25h\"").unwrap_err().contains("doubt_after"));
        assert!(with_supervision("wake_lost_after = \"86400001ms\"").unwrap_err().contains("wake_lost_after"));
    }

    #[test]
    fn a_back_off_waits_a_day_at_most() {
        let ceiling = |slot: &str, ceiling: u32| {
            with_supervision(&format!("backoff_slot = \"{slot}\"\nbackoff_ceiling = {ceiling}"))
        };
        assert!(ceiling("1ms", 16).is_ok());
        assert!(ceiling("1ms", 17).unwrap_err().contains("at most 16"));
        // A ceiling of 1 waits for one slot at most, so the day itself is reached.
        assert!(ceiling("24h", 1).is_ok());
        let too_long = ceiling("24h", 2).unwrap_err();
        assert!(too_long.contains("backoff_ceiling") && too_long.contains("up to 72 h"), "{too_long}");
        assert!(ceiling("30s", 14).unwrap_err().contains("up to 136 h"));
    }
}
