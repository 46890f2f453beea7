//! What two numbers of a folder and its services say against each other, whether a world shows it or not.

use domain::workflow::{StepRule, Workflow};

use crate::folder::Folder;
use crate::story::time;

/// The doubts about a folder.
#[must_use]
pub fn doubts(folder: &Folder) -> Vec<String> {
    let mut doubts = Vec::new();
    for workflow in folder.shape.versions() {
        for rule in &workflow.steps {
            doubts.extend(of_step(folder, rule));
        }
        doubts.extend(of_lines(workflow));
    }
    for agent in &folder.shape.agents {
        let rate = folder.settings_of(agent).policy.health.rate;
        let allowed = rate.map(|rate| u64::from(rate.calls) * 1_000 / rate.per_ms.max(1));
        if let Some(limit) = folder.service_of(agent).and_then(|service| service.limit)
            && allowed.is_none_or(|allowed| allowed > u64::from(limit))
        {
            doubts.push(format!("{agent} takes {limit} calls a second, and agents.{agent}.rate allows more"));
        }
    }
    doubts.sort();
    doubts.dedup();
    doubts
}

/// A step that is carried out for the whole order keeps the part of a line that is dropped later (rule 50).
fn of_lines(workflow: &Workflow) -> Option<String> {
    let steps = &workflow.steps;
    if steps.iter().any(|rule| rule.for_each.as_ref().is_some_and(|each| each.drop.is_some())) {
        return None;
    }
    let is_whole = |rule: &&StepRule| rule.for_each.is_none() && rule.service().is_some() && !rule.no_undo;
    let whole_before = |rule: &StepRule| rule.ancestors.iter().map(|&earlier| &steps[earlier]).find(is_whole);
    let mut drops = steps.iter().filter(|rule| rule.may_drop());
    let (rule, whole) = drops.find_map(|rule| Some((rule, whole_before(rule)?)))?;
    let (whole, step) = (&whole.name, &rule.name);
    Some(format!(
        "{whole} is carried out for the whole order before {step} may drop a line, and no [step.drop] gives a part of it back"
    ))
}

fn of_step(folder: &Folder, rule: &StepRule) -> Vec<String> {
    let Some((agent, service)) = rule.service().and_then(|agent| Some((agent, folder.service_of(agent)?))) else {
        return Vec::new();
    };
    let settings = folder.settings_of(agent);
    let step = &rule.name;
    let mut doubts = Vec::new();
    if let Some(forgets_ms) = service.forgets_keys_after_ms
        && forgets_ms <= rule.horizon_ms
        && (settings.policy.memo.is_none() || forgets_ms >= rule.complete_within_ms)
    {
        let (forgets, horizon) = (time(forgets_ms), time(rule.horizon_ms));
        doubts.push(format!("{agent} forgets keys after {forgets}, and {step} is tried for {horizon} (horizon)"));
    }
    let effect_ms = service.effect_after_caller_left_ms.max(service.latency_ms[2]);
    if settings.settles_within_ms <= effect_ms && !service.refuses_forward_after_undo {
        let (effect, settles) = (time(effect_ms), time(settings.settles_within_ms));
        doubts.push(format!(
            "{agent} may have its effect for {effect}, and the undo of {step} is sent after {settles} (settles_within)"
        ));
    }
    match rule.waits.within_ms {
        Some(within_ms) if within_ms < service.later.within_ms && service.later.share > 0 => {
            let (later, within) = (time(service.later.within_ms), time(within_ms));
            doubts
                .push(format!("a result of {agent} may take {later}, and {step} awaits it for {within} (wait_within)"));
        }
        Some(_) | None => {}
    }
    doubts
}
