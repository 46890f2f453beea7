//! What `stepwarden probe` prints.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use domain::id::OrderId;
use serde_json::{Value, json};

use super::caller::{CALLBACK_URL, Said};
use super::judge::{Finding, Verdict};
use super::plan::Counts;

/// One service that is called.
pub(super) struct Called {
    pub(super) agent: Arc<str>,
    pub(super) url: String,
    /// Where its tokens come from.
    pub(super) token_url: Option<String>,
    pub(super) counts: Counts,
    /// Whether calls of it carry an address for later results.
    pub(super) is_told_later: bool,
    /// The probed steps of it, and those that come before a probed one.
    pub(super) steps: [Vec<Arc<str>>; 2],
}

/// What was found out about one service.
pub(super) struct Probed {
    pub(super) agent: Arc<str>,
    pub(super) step: Arc<str>,
    /// Why the series did not begin.
    pub(super) unseen: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) orders: Vec<OrderId>,
    pub(super) said: Said,
    /// The lines for its table of settings.
    pub(super) settings: Vec<String>,
}

/// The announcement.
pub(super) fn announced(called: &[Called]) -> String {
    let mut text = String::from("Real calls, with keys that no order has:\n");
    for Called { agent, url, token_url, counts, is_told_later, steps: [probed, before] } in called {
        let Counts { forward, undo, effects, undone } = counts;
        let calls = forward + undo;
        let _ = writeln!(text, "\n{agent}  {url}");
        for (steps, words) in [(probed, "probed"), (before, "before a probed one")] {
            if !steps.is_empty() {
                let _ = writeln!(text, "  steps {words}: {}", steps.join(", "));
            }
        }
        let _ = writeln!(text, "  at most {calls} calls: {forward} forward, {undo} undo");
        let _ = writeln!(
            text,
            "  {effects} effects if it keeps the rules, of which {undone} are undone at the end; {forward} if it keeps none"
        );
        if let Some(token_url) = token_url {
            let _ = writeln!(text, "  and tokens of {token_url}");
        }
        if *is_told_later {
            let _ = writeln!(text, "  later results are not awaited: Callback-Url is {CALLBACK_URL}");
        }
    }
    let all: u32 = called.iter().map(|called| called.counts.forward + called.counts.undo).sum();
    let _ = writeln!(text, "\nAt most {all} calls in all. Nothing is written to a store of orders.");
    text
}

/// The report, with what a rehearsal is told.
pub(super) fn text(probed: &[Probed], rehearsal: &str) -> String {
    let mut text = String::new();
    for one in probed {
        let _ = writeln!(text, "{}, by step {}", one.agent, one.step);
        if let Some(unseen) = &one.unseen {
            let _ = writeln!(text, "  not probed: {unseen}");
        }
        let mut said = "";
        for Finding { assumption, verdict, why, answer, covered } in &one.findings {
            let [words, look_up] = assumption.words();
            let _ = writeln!(text, "  {:14}{words}", verdict.words());
            if why == said && answer.is_none() {
                continue;
            }
            said = why;
            let why = covered.map_or_else(|| why.clone(), |covered| format!("{why}; {covered}"));
            let _ = writeln!(text, "                {why}");
            if let Some(answer) = answer {
                let _ = writeln!(text, "                {answer}");
            }
            if *verdict == Verdict::CannotTell {
                let _ = writeln!(text, "                {look_up}");
            }
        }
        let Said { times_ms, silent, limit } = &one.said;
        if let Some(longest) = times_ms.last() {
            let half = times_ms[times_ms.len() / 2];
            let _ = writeln!(text, "  {} answers: half within {half}ms, the longest {longest}ms", times_ms.len());
        }
        if *silent > 0 {
            let _ = writeln!(text, "  calls without an answer: {silent}");
        }
        if limit.refusals > 0 {
            let _ = writeln!(text, "  calls refused with 429: {}", limit.refusals);
        }
        let orders: Vec<String> = one.orders.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  orders: {}", orders.join(" "));
        if one.is_broken() && one.settings.is_empty() {
            text.push_str("  no setting mends this: the service itself has to change\n");
        }
        if !one.settings.is_empty() {
            let _ = writeln!(text, "\nFor stepwarden.toml, in the place of these keys:\n\n[agents.{}]", one.agent);
            let _ = writeln!(text, "{}", one.settings.join("\n"));
        }
        text.push('\n');
    }
    if !rehearsal.is_empty() {
        let _ = writeln!(text, "For rehearsal.toml (--write):\n\n{}", rehearsal.trim_end());
    }
    text
}

/// The same for programs.
pub(super) fn json(probed: &[Probed], called: &[Called], rehearsal: &str) -> String {
    let finding = |it: &Finding| {
        json!({
            "Assumption": it.assumption,
            "Verdict": it.verdict,
            "Why": it.why,
            "Answer": it.answer,
            "Covered": it.covered.is_some(),
        })
    };
    let agent = |it: &Probed| {
        let Said { times_ms, silent, limit } = &it.said;
        let half = times_ms.get(times_ms.len() / 2);
        json!({
            "Agent": &*it.agent,
            "Step": &*it.step,
            "NotProbed": it.unseen,
            "Findings": it.findings.iter().map(finding).collect::<Vec<Value>>(),
            "Times": {"Answers": times_ms.len(), "P50Ms": half, "MaxMs": times_ms.last()},
            "Unanswered": silent,
            "Limited": limit.refusals,
            "Orders": it.orders,
            "Settings": it.settings.join("\n"),
        })
    };
    let calls: BTreeMap<&str, Value> = called
        .iter()
        .map(|it| (&*it.agent, json!({"URL": it.url, "Forward": it.counts.forward, "Undo": it.counts.undo, "Effects": it.counts.effects})))
        .collect();
    let agents: Vec<Value> = probed.iter().map(agent).collect();
    json!({"CallsMax": calls, "Agents": agents, "Rehearsal": rehearsal}).to_string() + "\n"
}

impl Probed {
    /// Whether something does not hold on which orders depend.
    pub(super) fn is_broken(&self) -> bool {
        self.findings.iter().any(|it| it.verdict == Verdict::DoesNotHold && it.covered.is_none())
    }
}
