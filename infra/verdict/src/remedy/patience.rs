//! What makes an order give up, or late, too early: waits that are too long, attempts and horizons that are too short.

use std::sync::Arc;

use agent::Policy;
use domain::workflow::{Remedy, StepRule, Supervision, Workflow};
use toml::{Table, Value};

use super::{BREAKER_FAILURES, Blame, longer};
use crate::edit::Edit;
use crate::judge::Kind;

/// A wait of a setting that is longer than this is worth a look, in milliseconds.
const LONG_MS: u64 = 120_000;
/// The longer wait that is proposed, and how many of them at most.
const WAIT_MS: u64 = 900_000;
const TIMES_MAX: u64 = 1_000;
/// Calls at once that are proposed.
const AT_ONCE: u32 = 10;

impl Blame<'_> {
    /// Of an agent: how it waits, and how many calls it makes at once.
    pub(super) fn of_waits(&self, name: &Arc<str>, policy: &Policy) -> Vec<Edit> {
        if !self.is(&[Kind::GivenUp, Kind::GivenUpInOutage, Kind::Late, Kind::Stuck]) {
            return Vec::new();
        }
        let mut edits = Vec::new();
        if i64::from(policy.health.failures_to_open) > BREAKER_FAILURES {
            edits.push(Edit::of_agent(name, &["breaker", "failures"], Value::from(BREAKER_FAILURES)));
        }
        let waits = policy.health.backoff;
        if waits.slot_time_ms > LONG_MS / 10 {
            // With a `longest_wait` that would be shorter than it, both.
            edits.push(Edit::of_agent(name, &["breaker", "first_wait"], None));
            edits.push(Edit::of_agent(name, &["breaker"], None));
        } else if waits.wait_ms_max() > LONG_MS {
            edits.push(Edit::of_agent(name, &["breaker", "longest_wait"], None));
        }
        if policy.backoff.wait_ms_max() > LONG_MS || policy.retries_max < Policy::default().retries_max {
            edits.push(Edit::of_agent(name, &["backoff"], None));
        }
        match policy.concurrency {
            Some(calls) if calls < AT_ONCE => {
                edits.push(Edit::of_agent(name, &["concurrency"], Value::from(i64::from(AT_ONCE))));
            }
            Some(_) => edits.push(Edit::of_agent(name, &["concurrency"], None)),
            None => {}
        }
        edits
    }

    /// Of a step: how long and how often it is tried.
    pub(super) fn of_patience(&self, file: &Arc<str>, rule: &StepRule) -> Vec<Edit> {
        if !self.is(&[Kind::GivenUp, Kind::GivenUpInOutage, Kind::WaitedTooShort]) {
            return Vec::new();
        }
        let edit = |names: &[&str], value: Value| Edit::of_workflow(file, Some(&rule.name), names, Some(value));
        let service = rule.service().and_then(|agent| self.folder.service_of(agent));
        let outage_ms = service.map_or(0, |service| service.outage.lasts_ms);
        let later_ms = service.filter(|_| rule.waits.within_ms.is_some()).map_or(0, |service| service.later.within_ms);
        let mut edits = Vec::new();
        if self.kind != Kind::WaitedTooShort {
            let slowest_ms = service.map_or(0, |service| service.latency_ms[2]);
            let longer_attempt = || edit(&["complete_within"], longer(slowest_ms * 3).into());
            let more_failures = || edit(&["max_failures"], 10.into());
            let is_short = slowest_ms * 2 > rule.complete_within_ms;
            // Fewer failures than usual are the user's own choice, so that is looked at first.
            match (rule.max_failures, is_short) {
                (..3, true) => edits.extend([more_failures(), longer_attempt()]),
                (3..10, true) => edits.extend([longer_attempt(), more_failures()]),
                (..10, false) => edits.push(more_failures()),
                (10.., true) => edits.push(longer_attempt()),
                (10.., false) => {}
            }
        }
        // It is tried for longer than its service is away, or its result takes.
        let needed_ms = (4 * later_ms).max(2 * outage_ms);
        if rule.horizon_ms < needed_ms.max(6 * 3_600_000) {
            edits.push(edit(&["horizon"], longer(needed_ms.max(12 * 3_600_000)).into()));
        }
        if self.kind != Kind::WaitedTooShort {
            edits.extend(self.longer_waits(&edit, rule, outage_ms));
        }
        edits
    }

    /// Longer waits in which an outage may end, and no longer ones than that.
    fn longer_waits(&self, edit: &dyn Fn(&[&str], Value) -> Edit, rule: &StepRule, outage_ms: u64) -> Vec<Edit> {
        let enough = |wait_ms: u64| i64::try_from((2 * outage_ms / wait_ms.max(1) + 2).min(TIMES_MAX)).unwrap_or(1);
        match rule.longer {
            Some(longer_wait) => vec![
                edit(&["on_exhausted", "times"], enough(longer_wait.wait_ms).into()),
                edit(&["on_exhausted", "wait"], longer(WAIT_MS.max(outage_ms / 2)).into()),
            ],
            None => {
                let then = if rule.on_exhausted == Remedy::Compensate { "compensate" } else { "hold" };
                let members = [
                    ("wait".to_owned(), Value::from(longer(WAIT_MS))),
                    ("times".to_owned(), Value::from(enough(WAIT_MS))),
                    ("then".to_owned(), Value::from(then)),
                ];
                vec![edit(&["on_exhausted"], Value::Table(Table::from_iter(members)))]
            }
        }
    }

    /// Of a workflow: how its supervisor waits.
    pub(super) fn of_supervision(&self, file: &Arc<str>, workflow: &Workflow) -> Vec<Edit> {
        if !self.is(&[Kind::GivenUp, Kind::GivenUpInOutage, Kind::Late]) {
            return Vec::new();
        }
        let Supervision { grace_ms, doubt_after_ms, wake_lost_after_ms, resend_after_ms: _, backoff } =
            &workflow.supervision;
        let mut keys = Vec::new();
        if *grace_ms > LONG_MS / 4 {
            keys.push("grace");
        }
        if backoff.wait_ms_max() > LONG_MS {
            keys.extend(["backoff_slot", "backoff_ceiling"]);
        }
        if *wake_lost_after_ms > LONG_MS {
            keys.push("wake_lost_after");
        }
        if doubt_after_ms.is_some() {
            keys.push("doubt_after");
        }
        let supervised = self.folder.checked.workflows.iter().find(|one| one.workflow.pin() == workflow.pin());
        let table = supervised.and_then(|one| one.text.parse::<Table>().ok()?.remove("supervision"));
        let is_there = |key: &&str| table.as_ref().is_some_and(|table| table.get(key).is_some());
        let leave_out = |key| Edit::of_workflow(file, None, &["supervision", key], None);
        keys.into_iter().filter(is_there).map(leave_out).collect()
    }
}
