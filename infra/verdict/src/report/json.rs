//! The report as JSON.

use serde_json::{Value, json};

use super::Report;
use crate::edit::Edit;
use crate::search::Finding;
use crate::story;
use crate::worlds::Times;

/// One document.
#[must_use]
pub fn document(report: &Report<'_>) -> Value {
    let counts = &report.seen.counts;
    let finding = |finding: &Finding| {
        let violation = &finding.violation;
        let change = |edit: &Edit| {
            json!({
                "File": &*edit.file,
                "Step": edit.step.as_deref(),
                "Key": edit.key(),
                "Line": edit.line(),
                "Value": edit.value.as_ref().map(value_of),
            })
        };
        json!({
            "Kind": violation.kind.name(),
            "Workflow": violation.workflow.as_ref().map(|pin| &*pin.name),
            "Version": violation.workflow.as_ref().map(|pin| pin.version),
            "Step": violation.step.as_deref(),
            "Line": violation.line.as_ref().map(|line| {
                json!({"Number": line.place + 1, "Of": line.of, "Name": line.name.as_ref().map(|(_, name)| &**name)})
            }),
            "Agent": violation.agent.as_deref(),
            "Worlds": finding.worlds,
            "Seed": finding.seed,
            "Orders": finding.orders,
            "OrderID": violation.order.map(|order| order.to_string()),
            "Story": story::sentence(report.folder, finding),
            "Change": finding.edit.as_ref().map(change),
            "AndChange": finding.and.as_ref().map(change),
        })
    };
    let never = report.never_seen();
    json!({
        "Verdict": if report.findings.all.is_empty() { "clean" } else { "violations" },
        "Worlds": counts.worlds,
        "Orders": counts.ends,
        "CompletionMs": {"Calm": times(&counts.calm_ms), "Outage": times(&counts.outage_ms)},
        "Calls": counts.calls,
        "CallsBeyondOnePerStep": counts.calls - counts.first_calls,
        "Alerts": counts.alerts,
        "LongestOutageMs": report.longest_outage_ms(),
        "NeverSeen": never.iter().map(|(workflow, step, what)| json!({"Workflow": workflow, "Step": step, "What": what})).collect::<Vec<_>>(),
        "Refused": report.folder.refused.iter().map(|(document, why)| json!({"Order": &**document, "Why": why})).collect::<Vec<_>>(),
        "Notes": report.notes(),
        "Violations": report.findings.all.iter().map(finding).collect::<Vec<_>>(),
        "WithChanges": report.findings.confirmed.map(|(worlds, bad)| json!({"Worlds": worlds, "WithViolations": bad})),
    })
}

fn times(times: &Times) -> Value {
    let within = |share| times.within(share);
    json!({"Orders": times.count(), "Median": within(500), "P99": within(990), "Worst": within(1_000)})
}

fn value_of(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
