//! What two numbers of a folder and its services say against each other, whether a world shows it or not.

use domain::workflow::StepRule;

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
