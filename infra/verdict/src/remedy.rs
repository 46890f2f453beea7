//! The keys that may be to blame for a violation, the likeliest first. What is said of the services is held against the
//! settings; a world decides which key it was.

mod patience;
mod pointers;

use std::sync::Arc;

use config::{AgentSettings, Meaning, StatusTable};
use domain::keys::time_text;
use domain::search::Pointer;
use domain::workflow::{Remedy, StepRule, Workflow};
use http::StatusCode;
use rehearsal::description::Service;
use toml::{Table, Value};

use crate::edit::Edit;
use crate::folder::Folder;
use crate::judge::{Kind, Violation};
use crate::wishes::wishes;

/// The failures after which a breaker opens, if nothing is said.
const BREAKER_FAILURES: i64 = 5;
/// How far clocks may differ beside what is said of a service, in milliseconds.
const MARGIN_MS: u64 = 2_000;

/// What a service did, and should not have.
const WRONG_BOOKS: [Kind; 3] = [Kind::ChargedTwice, Kind::StillCharged, Kind::DroppedStillCharged];

/// What may be said of a folder: a fact about a service, and the key that does not fit it.
struct Blame<'a> {
    folder: &'a Folder,
    kind: Kind,
    workflow: Option<&'a Workflow>,
    rule: Option<&'a StepRule>,
    agent: Option<Agent<'a>>,
    /// Of a step that could not be sent: whether it is its undo, and why.
    unsent: Option<&'a (bool, Arc<str>)>,
    longest_ms: Option<u64>,
}

#[derive(Clone, Copy)]
struct Agent<'a> {
    name: &'a Arc<str>,
    service: &'a Service,
    settings: &'a AgentSettings,
}

/// The changes that may help against a violation. `longest_ms` is the longest time that an order took on a day on which
/// nothing failed.
#[must_use]
pub fn candidates(folder: &Folder, violation: &Violation, longest_ms: Option<u64>) -> Vec<Edit> {
    let pin = violation.workflow.as_ref();
    let workflow = pin.and_then(|pin| folder.shape.versions().find(|workflow| workflow.pin() == *pin));
    let workflow = workflow.map(|workflow| &**workflow);
    let rule = workflow
        .zip(violation.step.as_ref())
        .and_then(|(workflow, step)| workflow.steps.iter().find(|rule| rule.name == *step));
    let settings = violation.agent.as_ref().map(|agent| folder.settings_of(agent));
    let service = violation.agent.as_ref().and_then(|agent| folder.service_of(agent));
    let agent = violation.agent.as_ref().zip(service).zip(settings.as_ref());
    let agent = agent.map(|((name, service), settings)| Agent { name, service, settings });
    let unsent = violation.unsent.as_ref();
    let blame = Blame { folder, kind: violation.kind, workflow, rule, agent, unsent, longest_ms };
    if violation.kind == Kind::Unsendable {
        return blame.of_sent();
    }
    // What is said against the settings goes first, what may only be so last.
    let mut edits = blame.of_keep();
    edits.extend(agent.into_iter().flat_map(|agent| blame.of_agent(agent)));
    edits.extend(blame.of_step());
    edits.extend(blame.of_workflow());
    // A step of another agent may be what cannot be taken back.
    edits.extend(blame.of_others());
    edits.extend(agent.and_then(|agent| blame.of_a_gateway(agent)));
    let mut known: Vec<Edit> = Vec::new();
    edits.retain(|edit| {
        let is_new = !known.contains(edit);
        known.push(edit.clone());
        is_new
    });
    edits
}

impl Blame<'_> {
    fn is(&self, kinds: &[Kind]) -> bool {
        kinds.contains(&self.kind)
    }

    fn of_agent(&self, agent: Agent<'_>) -> Vec<Edit> {
        let Agent { name, service, settings } = agent;
        let mut edits = Vec::new();
        if self.is(&[Kind::TooFast]) {
            edits.extend(service.limit.map(|limit| Edit::of_agent(name, &["rate"], Value::from(i64::from(limit)))));
            return edits;
        }
        if self.is(&[Kind::NotBraked]) {
            return vec![Edit::of_agent(name, &["breaker", "failures"], Value::from(BREAKER_FAILURES))];
        }
        if self.is(&[Kind::WaitedTooShort]) {
            return edits;
        }
        edits.extend(self.of_memo(name, settings));
        edits.extend(self.meanings(agent));
        let effect_ms = service.effect_after_caller_left_ms.max(service.latency_ms[2]);
        if settings.settles_within_ms < effect_ms + MARGIN_MS {
            let time = longer(effect_ms + MARGIN_MS);
            edits.push(Edit::of_agent(name, &["settles_within"], Value::from(time)));
        }
        // A later result may come after the undo, if the service does not stop its work at the undo.
        let later_ms = service.later.within_ms + MARGIN_MS;
        let has_later = self.rule.is_some_and(|rule| rule.waits.within_ms.is_some()) && service.later.share > 0;
        if has_later && !service.refuses_forward_after_undo && settings.settles_within_ms < later_ms {
            edits.push(Edit::of_agent(name, &["settles_within"], Value::from(longer(later_ms))));
        }
        if service.forgets_keys_after_ms.is_some() && settings.policy.memo.is_none() {
            // Within one attempt nothing else helps. A memo knows of no later results.
            let attempt_ms = self.rule.map(|rule| rule.complete_within_ms);
            let is_awaited = self.rule.is_some_and(|rule| rule.waits.within_ms.is_some());
            if service.forgets_keys_after_ms < attempt_ms && !is_awaited {
                edits.push(Edit::of_agent(name, &["memo"], Value::from(true)));
            }
        }
        edits.extend(self.of_waits(name, &settings.policy));
        if !settings.policy.fallback.is_empty() && self.is(&WRONG_BOOKS) {
            edits.push(Edit::of_agent(name, &["fallback"], None));
        }
        edits
    }

    /// A memo that is over while a step is still tried: then nothing says that the service was called, and another is asked
    /// in its place, or an undo makes no call.
    fn of_memo(&self, name: &Arc<str>, settings: &AgentSettings) -> Option<Edit> {
        let retention_ms = settings.policy.memo.as_ref()?.retention_ms;
        let horizon_ms = self.rule.map_or(0, |rule| rule.horizon_ms);
        if retention_ms >= horizon_ms || !self.is(&WRONG_BOOKS) {
            return None;
        }
        // In both directions.
        Some(Edit::of_agent(name, &["memo", "retention"], Value::from(longer(2 * horizon_ms + 86_400_000))))
    }

    /// Statuses of the service that the settings take for something else.
    fn meanings(&self, agent: Agent<'_>) -> Vec<Edit> {
        let Agent { name, service, settings } = agent;
        let mut edits = Vec::new();
        let said = [service.busy, service.outage.answers, 429, 503, 504, 202, 200, 201, service.rejects.status];
        let tables = [("forward", settings.forward_statuses()), ("undo", settings.undo_statuses())];
        for (operation, table) in tables {
            let own = table
                .statuses
                .iter()
                .filter(|(status, _)| said.contains(status) || **status == service.undo_of_nothing);
            for (status, means) in own {
                if *means != usual(*status) {
                    edits.push(Edit::of_agent(name, &[operation, "status", &status.to_string()], None));
                }
            }
        }
        let rejects = &service.rejects;
        let forward = settings.forward_statuses();
        let mut means = |status: u16, means: Meaning| {
            edits.push(Edit::of_agent(name, &["forward", "status", &status.to_string()], Value::from(means.word())));
        };
        if !matches!(forward.meaning(code(service.busy)), Meaning::Conflict | Meaning::UnderWay) {
            means(service.busy, Meaning::Conflict);
        }
        if rejects.status >= 300 && !matches!(forward.meaning(code(rejects.status)), Meaning::No | Meaning::Conflict) {
            means(rejects.status, Meaning::No);
        }
        if rejects.status < 300
            && self.is(&[Kind::NotShipped, Kind::Stuck, Kind::StillCharged, Kind::DroppedStillCharged])
        {
            edits.push(self.condition(name, rejects.status, &rejects.code));
        }
        let nothing = service.undo_of_nothing;
        if nothing >= 300 && settings.undo_statuses().meaning(code(nothing)) != Meaning::Done {
            let status = nothing.to_string();
            edits.push(Edit::of_agent(name, &["undo", "status", &status], Value::from(Meaning::Done.word())));
        }
        edits
    }

    /// What stands before a service may say that it is away while the service is at work.
    fn of_a_gateway(&self, agent: Agent<'_>) -> Option<Edit> {
        let Agent { name, service, settings } = agent;
        let status = service.outage.answers;
        let is_known = settings.forward_statuses().meaning(code(status)) == Meaning::Unknown;
        let means = Value::from(Meaning::Unknown.word());
        (!is_known && !self.is(&[Kind::TooFast, Kind::WaitedTooShort, Kind::NotBraked]))
            .then(|| Edit::of_agent(name, &["forward", "status", &status.to_string()], means))
    }

    /// A condition that tells a rejection from a success, before those that are there.
    fn condition(&self, name: &Arc<str>, status: u16, code: &str) -> Edit {
        let agents: Option<Table> = self.folder.checked.deployment_text.parse().ok();
        let there = agents.as_ref().and_then(|root| root.get("agents")?.get(&**name)?.get("forward")?.get("answers"));
        let mut answers = there.and_then(Value::as_array).cloned().unwrap_or_default();
        let when = format!("{} == {}", self.place_of_state(name, status), in_quotes(code));
        let condition = [
            ("status".to_owned(), Value::from(i64::from(status))),
            ("when".to_owned(), Value::from(when)),
            ("means".to_owned(), Value::from(Meaning::No.word())),
        ];
        answers.insert(0, Value::Table(Table::from_iter(condition)));
        Edit::of_agent(name, &["forward", "answers"], Value::Array(answers))
    }

    /// Where the body of a success says that it is none: where a condition looks already, or a sample has its state.
    fn place_of_state(&self, name: &Arc<str>, status: u16) -> String {
        let settings = self.folder.settings_of(name);
        let looked_at = settings.forward_statuses().conditions.iter().filter(|condition| condition.status == status);
        let first = looked_at.flat_map(|condition| wishes(condition.when.text())).next();
        if let Some(wish) = first {
            return format!("/{}", wish.names.join("/"));
        }
        let service = self.folder.service_of(name);
        let samples = service.iter().flat_map(|service| service.answers.values());
        let has = |member: &&str| samples.clone().any(|sample| sample.member(member).is_some());
        ["status", "state"]
            .iter()
            .find(|member| has(member))
            .map_or_else(|| "/code".to_owned(), |member| format!("/{member}"))
    }

    fn of_step(&self) -> Vec<Edit> {
        let (Some(rule), Some(workflow)) = (self.rule, self.workflow) else { return Vec::new() };
        let Some(file) = self.folder.file_of(&workflow.pin()) else { return Vec::new() };
        let edit = |names: &[&str], value: Option<Value>| Edit::of_workflow(file, Some(&rule.name), names, value);
        let mut edits = Vec::new();
        if let (Some(_), Some(within_ms)) = (&rule.child, rule.waits.within_ms) {
            edits.extend([4, 30].map(|times| edit(&["wait_within"], Some(longer(within_ms * times).into()))));
            return edits;
        }
        edits.extend(self.undos_of(file, rule));
        if let Some(Agent { service, .. }) = self.agent {
            if service.later.share > 0 && rule.waits.within_ms.is_none_or(|ms| ms < service.later.within_ms) {
                edits.push(edit(&["wait_within"], Some(longer(service.later.within_ms * 5 / 4).into())));
            }
            if let Some(forgets_ms) = service.forgets_keys_after_ms
                && forgets_ms <= rule.horizon_ms
                && self.is(&WRONG_BOOKS)
            {
                edits.push(edit(&["horizon"], Some(shorter(forgets_ms * 4 / 5).into())));
            }
        }
        edits.extend(self.of_patience(file, rule));
        edits.extend(self.of_lines(file, rule));
        edits
    }

    /// An undo for a step without one.
    fn undos_of(&self, file: &Arc<str>, rule: &StepRule) -> Vec<Edit> {
        if !rule.no_undo || !self.is(&[Kind::StillCharged, Kind::DroppedStillCharged]) {
            return Vec::new();
        }
        let edit = |key: &str, value: Option<Value>| Edit::of_workflow(file, Some(&rule.name), &[key], value);
        if rule.forward.send.is_none() {
            return vec![edit("undo", None)];
        }
        let mut send = Table::from_iter([("order".to_owned(), Value::from("/OrderID"))]);
        if let Some(each) = &rule.for_each {
            let item = each.item_id.as_ref().map_or_else(String::new, Pointer::text);
            send.insert("item".to_owned(), Value::from(format!("/Item{item}")));
        }
        let call = Value::Table(Table::from_iter([("send".to_owned(), Value::Table(send))]));
        let mut edits = vec![edit("undo", Some(call.clone()))];
        if self.is(&[Kind::DroppedStillCharged]) {
            edits.push(edit("drop", Some(call)));
            // Past a pivot nothing but a line is taken back.
            let is_past_pivot = |rules: &[StepRule]| rule.ancestors.iter().any(|&earlier| rules[earlier].pivot);
            if self.workflow.is_some_and(|workflow| is_past_pivot(&workflow.steps)) {
                edits.reverse();
            }
        }
        edits
    }

    /// Of a step with lines: whether one that fails stops the others.
    fn of_lines(&self, file: &Arc<str>, rule: &StepRule) -> Vec<Edit> {
        let Some(each) = &rule.for_each else { return Vec::new() };
        if !self.is(&[Kind::StoppedByLine, Kind::StillCharged, Kind::Stuck]) {
            return Vec::new();
        }
        let edit = |key: &str, value: Option<Value>| Edit::of_workflow(file, Some(&rule.name), &[key], value);
        let drops = rule.on_rejected == Remedy::Drop;
        let drop = (!drops).then(|| edit("on_rejected", Some(Remedy::Drop.name().into())));
        let all = each.drop_max.filter(|_| drops).map(|_| edit("drop_max", None));
        drop.into_iter().chain(all).collect()
    }

    fn of_workflow(&self) -> Vec<Edit> {
        let Some(workflow) = self.workflow else { return Vec::new() };
        let Some(file) = self.folder.file_of(&workflow.pin()) else { return Vec::new() };
        let mut edits = Vec::new();
        if self.is(&[Kind::Late]) {
            let of_step = |rule: &StepRule| {
                let service = rule.service().and_then(|agent| self.folder.service_of(agent));
                let answer_ms = service.map_or(0, |service| match rule.waits.within_ms {
                    Some(_) => service.later.within_ms.max(service.latency_ms[2]),
                    None => service.latency_ms[2],
                });
                answer_ms + rule.waits.before_ms.unwrap_or(0)
            };
            let chain_ms: u64 = workflow.steps.iter().map(of_step).sum();
            let enough_ms = (chain_ms + chain_ms / 2).max(self.longest_ms.map_or(0, |ms| ms + ms / 2)) + 1_000;
            // Many lines wait for each other at a service with a rate.
            let rated_ms = |rule: &StepRule| {
                let rate =
                    self.folder.settings_of(rule.service()?).policy.health.rate.filter(|_| rule.for_each.is_some())?;
                Some(self.folder.lines_max[1] as u64 * rate.per_ms / u64::from(rate.calls.max(1)))
            };
            let lines_ms: u64 = workflow.steps.iter().filter_map(rated_ms).sum();
            let mut times = vec![longer(enough_ms), longer(enough_ms + lines_ms + lines_ms / 2)];
            times.dedup();
            let edit = |time: String| Edit::of_workflow(file, None, &["complete_within"], Value::from(time));
            edits.extend(times.into_iter().map(edit));
        }
        edits.extend(self.of_supervision(file, workflow));
        // A deadline waits for all services.
        if self.is(&[Kind::Late]) {
            let agents = workflow.steps.iter().filter_map(StepRule::service);
            edits.extend(agents.flat_map(|name| self.of_waits(name, &self.folder.settings_of(name).policy)));
        }
        if self.is(&[Kind::Stuck]) {
            let pivots = workflow.steps.iter().filter(|rule| rule.pivot);
            edits.extend(pivots.map(|rule| Edit::of_workflow(file, Some(&rule.name), &["pivot"], None)));
        }
        edits
    }

    /// Of the other agents of the workflow, what does not fit their services.
    fn of_others(&self) -> Vec<Edit> {
        let Some(workflow) = self.workflow else { return Vec::new() };
        let own = self.agent.map(|agent| agent.name);
        let others = workflow.steps.iter().filter_map(StepRule::service).filter(|agent| Some(*agent) != own);
        let mut edits = Vec::new();
        for name in others {
            let Some(service) = self.folder.service_of(name) else { continue };
            let settings = self.folder.settings_of(name);
            edits.extend(self.meanings(Agent { name, service, settings: &settings }));
        }
        edits
    }
}

/// The meaning of a status without a table.
fn usual(status: u16) -> Meaning {
    StatusTable::default().meaning(code(status))
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

/// A text of an expression.
fn in_quotes(text: &str) -> String {
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}

/// The steps of times that people write, in milliseconds.
fn steps_of(ms: u64) -> u64 {
    match ms {
        ..10_000 => 1_000,
        10_000..60_000 => 5_000,
        60_000..600_000 => 30_000,
        600_000..3_600_000 => 300_000,
        3_600_000..86_400_000 => 1_800_000,
        _ => 43_200_000,
    }
}

/// A round time that is not shorter.
#[must_use]
pub fn longer(ms: u64) -> String {
    time_text(ms.next_multiple_of(steps_of(ms))).replace(' ', "")
}

/// A round time that is not longer, if there is one.
#[must_use]
pub fn shorter(ms: u64) -> String {
    let step = steps_of(ms);
    let round = ms - ms % step;
    time_text(if round == 0 { ms.max(1) } else { round }).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposed_times_are_round_and_on_the_safe_side() {
        let times = [1_200, 41_000, 45_000, 61_000, 3_700_000, 9_000_000].map(longer);
        assert_eq!(times, ["2s", "45s", "45s", "1m30s", "1h30m", "2h30m"]);
        assert_eq!([2_880_000, 700].map(shorter), ["45m", "700ms"]);
    }
}
