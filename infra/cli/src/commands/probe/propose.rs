//! What a probe proposes: settings that `check` accepts, and what a rehearsal is told of the services.

use std::collections::BTreeSet;

use agent::Rate;
use agents::Answer;
use config::{AgentSettings, DEPLOYMENT_FILE, Folder, Meaning, Operations};
use domain::json::Json;
use domain::keys::time_text;
use rehearsal::description::Service;
use serde_json::Value as Body;
use toml::{Table, Value};

use super::caller::Said;
use super::caller::Seen;
use super::judge::{Assumption, Finding, Verdict, is_done_anew};
use super::series::Observed;

/// The longest body that is kept as a sample.
const SAMPLE_BYTES_MAX: usize = 4_096;
/// Where the code of a rejection may stand.
const CODES: [&str; 5] = ["/error/code", "/error/Code", "/code", "/Code", "/errors/0/code"];
/// Statuses that say by themselves that there is nothing to undo.
const GONE: [u16; 2] = [404, 410];

/// One change of an agent's table.
enum Change {
    Set(&'static str, Value),
    /// The meaning of an answer, to this operation.
    Means(&'static str, Meaning, u16, Option<String>),
}

/// What is known of one service.
pub(super) struct Known<'a> {
    pub(super) agent: &'a str,
    pub(super) settings: &'a AgentSettings,
    /// Whether a step of it waits for later results, for which no memo can be had.
    pub(super) waits: bool,
    pub(super) observed: &'a Observed,
    pub(super) findings: &'a [Finding],
    pub(super) said: &'a Said,
}

impl Known<'_> {
    /// The lines for the agent's table, each a whole key. All of them together are accepted in these files.
    pub(super) fn lines(&self, files: &[(String, String)]) -> Vec<String> {
        let text = files.iter().find(|(name, _)| name == DEPLOYMENT_FILE).map_or("", |(_, text)| text);
        let Ok(mut root) = text.parse::<Table>() else { return Vec::new() };
        let mut changed = BTreeSet::new();
        for change in self.changes() {
            let mut changing = root.clone();
            let Some(key) = change.apply(&mut changing, self.agent) else { continue };
            if is_accepted(files, &changing) {
                changed.insert(key);
                root = changing;
            }
        }
        let table = root.get("agents").and_then(|agents| agents.get(self.agent));
        let line = |key: &&str| Some(format!("{key} = {}", table?.get(key)?));
        changed.iter().filter_map(line).collect()
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = self.times();
        changes.extend(self.rate());
        let fails = |assumption| self.failed(assumption).is_some();
        let is_of_memo = [Assumption::Repeat, Assumption::AtOnce, Assumption::ForwardAfterUndo].into_iter().any(fails);
        if is_of_memo && self.settings.policy.memo.is_none() && !self.waits {
            changes.push(Change::Set("memo", Value::Boolean(true)));
        }
        let observed = self.observed;
        if let (Some(_), Ok(both)) = (self.failed(Assumption::AtOnce), &observed.at_once) {
            changes.extend(both.iter().filter_map(|told| means("forward", Meaning::Conflict, &told.last)));
        }
        if let (Some(_), Some(seen)) = (self.failed(Assumption::WrongToken), &observed.wrong_token) {
            changes.extend(means("forward", Meaning::Misconfigured, seen));
        }
        if let (Some(_), Some(seen)) = (self.failed(Assumption::UndoOfNothing), self.undo_of_nothing()) {
            changes.extend(means("undo", Meaning::Done, seen));
        }
        if let (Some(_), Some(Ok([first, second]))) = (self.failed(Assumption::UndoTwice), &observed.undo_twice)
            && first.is_done()
        {
            changes.extend(means("undo", Meaning::Done, second));
        }
        changes
    }

    fn failed(&self, assumption: Assumption) -> Option<&Finding> {
        let is_failed = |it: &&Finding| it.assumption == assumption && it.verdict == Verdict::DoesNotHold;
        self.findings.iter().find(is_failed)
    }

    /// The time-outs, if what was measured comes near them.
    fn times(&self) -> Vec<Change> {
        let time = |key, ms| Change::Set(key, Value::String(time_text(ms)));
        let thrice = |ms: u64| (3 * ms).div_ceil(1_000) * 1_000;
        let longest_ms = self.said.times_ms.last().copied().unwrap_or(0);
        let [timeout_ms, settles_ms] = [self.settings.policy.call_timeout_ms, self.settings.settles_within_ms];
        let new_timeout_ms = if longest_ms * 2 > timeout_ms { thrice(longest_ms) } else { timeout_ms };
        let needed_ms = thrice(self.settled_ms().unwrap_or(0).max(longest_ms)).max(new_timeout_ms + 1_000);
        let mut changes = Vec::new();
        // In this order each of them is accepted.
        if needed_ms > settles_ms {
            changes.push(time("settles_within", needed_ms));
        }
        if new_timeout_ms != timeout_ms {
            changes.push(time("call_timeout", new_timeout_ms));
        }
        changes
    }

    /// The rate, if the service refused calls, and a slower one is not given.
    fn rate(&self) -> Option<Change> {
        let rate = self.said.limit.rate?;
        let per_s = |rate: Rate| f64::from(rate.calls) / (rate.per_ms as f64 / 1_000.0);
        if self.settings.policy.health.rate.is_some_and(|given| per_s(given) <= per_s(rate)) {
            return None;
        }
        let per = Value::String(time_text(rate.per_ms));
        Some(Change::Set(
            "rate",
            match rate.per_ms {
                1_000 => Value::from(rate.calls),
                _ => Value::Table(Table::from_iter([("calls".to_owned(), rate.calls.into()), ("per".to_owned(), per)])),
            },
        ))
    }

    /// Where no undo was done, its path may be wrong: then nothing is known of the undo of nothing.
    fn undo_of_nothing(&self) -> Option<&Seen> {
        let is_known = self.observed.undos.iter().any(Seen::is_done);
        self.observed.undo_of_nothing.as_ref().filter(|_| is_known)?.as_ref().ok()
    }

    /// How long the service was seen at work on a call whose caller had left.
    fn settled_ms(&self) -> Option<u64> {
        let Observed { firsts, repeat, at_once, hung_up, .. } = self.observed;
        let left = hung_up.as_ref().ok().filter(|(told, ..)| told.last.is_done() && self.observed.is_busy(told));
        let told = firsts.iter().chain([repeat]).chain(at_once.iter().flatten());
        // Its time-out was over before the answer came.
        let timed_out = told.filter(|told| told.first.is_silent() && told.last.is_done()).map(|told| told.took_ms);
        timed_out.chain(left.map(|(_, _, since_ms)| *since_ms)).max()
    }

    /// What a rehearsal is told of the service.
    pub(super) fn described(&self) -> Service {
        let mut service = Service::default();
        let times_ms = &self.said.times_ms;
        if let (Some(last), len) = (times_ms.last(), times_ms.len()) {
            // A few calls to an idle service say nothing of its slowest.
            let [_, most_ms, longest_ms] = service.latency_ms;
            service.latency_ms = [times_ms[len / 2], most_ms.max(*last), longest_ms.max(*last)];
        }
        let observed = self.observed;
        if let Some(ms) = self.settled_ms() {
            service.effect_after_caller_left_ms = service.effect_after_caller_left_ms.max(ms);
        }
        service.limit = self.said.limit.rate.map(|rate| {
            let per_s = (u64::from(rate.calls) * 1_000).div_ceil(rate.per_ms);
            u32::try_from(per_s).unwrap_or(u32::MAX)
        });
        let told = observed.at_once.as_ref().ok().and_then(|both| both.iter().find(|told| observed.is_busy(told)));
        if let Some(busy) = told.and_then(|told| told.first.status()) {
            service.busy = busy;
        }
        if is_done_anew(observed) {
            service.forgets_keys_after_ms = Some(1);
        }
        service.refuses_forward_after_undo = self.failed(Assumption::ForwardAfterUndo).is_none();
        if let Some(seen) = self.undo_of_nothing() {
            service.undo_of_nothing = seen.status().unwrap_or(service.undo_of_nothing);
        }
        let Operations { forward, undo } = self.settings.operations(Operations::usual(self.agent));
        for (operation, seen) in
            [(forward, Some(observed.first_answer())), (undo, observed.undos.iter().find(|seen| seen.is_done()))]
        {
            let body = seen.and_then(|seen| Json::parse(seen.body().as_bytes(), SAMPLE_BYTES_MAX).ok());
            if let Some(body) = body.filter(|body| body.text().trim_start().starts_with('{')) {
                service.sample(operation, &body);
            }
        }
        service
    }
}

impl Change {
    /// Makes the change; the key of the agent's table that it is in.
    fn apply(self, root: &mut Table, agent: &str) -> Option<&'static str> {
        let empty = || Value::Table(Table::new());
        let agents = root.entry("agents").or_insert_with(empty).as_table_mut()?;
        let table = agents.entry(agent).or_insert_with(empty).as_table_mut()?;
        match self {
            Self::Set(key, value) => {
                table.insert(key.to_owned(), value);
                Some(key)
            }
            Self::Means(key, meaning, status, when) => {
                let operation = table.entry(key).or_insert_with(empty);
                if operation.is_str() {
                    *operation = Value::Table(Table::from_iter([("operation".to_owned(), operation.clone())]));
                }
                let operation = operation.as_table_mut()?;
                let means = Value::from(meaning.word());
                match when {
                    None => {
                        let statuses = operation.entry("status").or_insert_with(empty).as_table_mut()?;
                        statuses.insert(status.to_string(), means);
                    }
                    Some(when) => {
                        let conditions = operation.entry("answers").or_insert_with(|| Value::Array(Vec::new()));
                        let condition =
                            [("status", Value::from(i64::from(status))), ("when", when.into()), ("means", means)];
                        let condition =
                            Value::Table(condition.map(|(key, value)| (key.to_owned(), value)).into_iter().collect());
                        let conditions = conditions.as_array_mut()?;
                        if !conditions.contains(&condition) {
                            conditions.insert(0, condition);
                        }
                    }
                }
                Some(key)
            }
        }
    }
}

/// The meaning for an answer that names its reason, or whose status is reason enough.
fn means(operation: &'static str, meaning: Meaning, seen: &Seen) -> Option<Change> {
    let is_meant = matches!(seen.answer, Answer::Fail(_) | Answer::Misconfigured { .. } | Answer::UnderWay { .. });
    let status = seen.status().filter(|status| is_meant && (400..500).contains(status))?;
    let body: Option<Body> = serde_json::from_str(seen.body()).ok();
    let code = CODES.into_iter().find_map(|at| Some((at, body.as_ref()?.pointer(at)?.as_str()?)));
    let is_plain =
        |code: &str| !code.is_empty() && !code.contains(|sign: char| "\"'\\".contains(sign) || sign.is_control());
    match code.filter(|(_, code)| is_plain(code)) {
        Some((at, code)) => Some(Change::Means(operation, meaning, status, Some(format!("{at} == \"{code}\"")))),
        None => (meaning == Meaning::Done && GONE.contains(&status))
            .then_some(Change::Means(operation, meaning, status, None)),
    }
}

/// Whether the folder is without a fault with this in the place of `stepwarden.toml`.
fn is_accepted(files: &[(String, String)], root: &Table) -> bool {
    let others = files.iter().filter(|(name, _)| name != DEPLOYMENT_FILE).cloned();
    let files: Vec<_> = others.chain([(DEPLOYMENT_FILE.to_owned(), root.to_string())]).collect();
    Folder::check(&files).is_ok()
}
