//! Tables: there, with their indexes, and forgetting what they are to forget.

use super::queues::DEPLOY;
use super::shapes::{Table, TimeToLive};
use crate::commands::doctor::finding::Finding;

/// What the template gives a table: its name there, its indexes, and whether its items have an end.
struct Plan {
    logical_id: &'static str,
    indexes: &'static [&'static str],
    has_end: bool,
}

const PLANS: [Plan; 11] = [
    Plan { logical_id: "OrdersTable", indexes: &["recent"], has_end: false },
    Plan { logical_id: "TasksTable", indexes: &["watch", "failed"], has_end: true },
    Plan { logical_id: "LeasesTable", indexes: &[], has_end: true },
    Plan { logical_id: "ServicesTable", indexes: &[], has_end: false },
    Plan { logical_id: "MemosTable", indexes: &[], has_end: true },
    Plan { logical_id: "JobsTable", indexes: &[], has_end: false },
    Plan { logical_id: "DefinitionsTable", indexes: &[], has_end: false },
    Plan { logical_id: "DeadLettersTable", indexes: &["settled"], has_end: true },
    Plan { logical_id: "IndexTable", indexes: &[], has_end: false },
    Plan { logical_id: "NumbersTable", indexes: &[], has_end: true },
    Plan { logical_id: "StandInsTable", indexes: &[], has_end: true },
];

/// Tables without which nothing goes.
pub(super) fn needed() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|plan| plan.logical_id).filter(|id| *id != "StandInsTable")
}

/// A finding for a table of this name in the template. How items end may not be known.
pub(super) fn judge(logical_id: &str, table: &Table, end: Option<&TimeToLive>) -> Finding {
    let mut faults = Vec::new();
    if !matches!(table.table_status.as_str(), "ACTIVE" | "UPDATING") {
        faults.push(format!("it is {}", table.table_status));
    }
    let Some(plan) = PLANS.iter().find(|plan| plan.logical_id == logical_id) else {
        return Finding::skipped(format!("table {}", table.table_name), "this program does not know it");
    };
    for name in plan.indexes {
        match table.global_secondary_indexes.iter().find(|index| index.index_name == *name) {
            None => faults.push(format!("the index {name} is not there")),
            Some(index) => match index.index_status.as_deref() {
                Some(status) if status != "ACTIVE" => faults.push(format!("the index {name} is {status}")),
                Some(_) | None => {}
            },
        }
    }
    let ends = end.is_none_or(|end| matches!(end.time_to_live_status.as_str(), "ENABLED" | "ENABLING"));
    if plan.has_end && !ends {
        faults.push("its time to live is off, so it only grows".to_owned());
    }
    let check = format!("table {}", table.table_name);
    if faults.is_empty() { Finding::ok(check, "active") } else { Finding::wrong(check, faults.join("; "), DEPLOY) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn table(indexes: &[(&str, &str)]) -> Table {
        let indexes: Vec<_> =
            indexes.iter().map(|(name, status)| json!({"IndexName": name, "IndexStatus": status})).collect();
        let table = json!({"TableName": "t", "TableStatus": "ACTIVE", "GlobalSecondaryIndexes": indexes});
        serde_json::from_value(table).unwrap()
    }

    fn end(status: &str) -> TimeToLive {
        TimeToLive { time_to_live_status: status.to_owned() }
    }

    #[test]
    fn tables_as_the_template_makes_them_are_well() {
        let tasks = table(&[("watch", "ACTIVE"), ("failed", "ACTIVE")]);
        assert_eq!(judge("TasksTable", &tasks, Some(&end("ENABLED"))).state, State::Ok);
        assert_eq!(judge("LeasesTable", &table(&[]), Some(&end("ENABLED"))).state, State::Ok);
        assert_eq!(judge("LeasesTable", &table(&[]), None).state, State::Ok, "nobody could tell");
    }

    #[test]
    fn each_fault_of_a_table_is_told() {
        let gone = Table { table_status: "DELETING".to_owned(), ..table(&[("recent", "ACTIVE")]) };
        for (id, table, end, words) in [
            ("OrdersTable", gone, end("DISABLED"), "it is DELETING"),
            ("TasksTable", table(&[("watch", "ACTIVE")]), end("DISABLED"), "the index failed is not there"),
            ("DeadLettersTable", table(&[("settled", "CREATING")]), end("ENABLED"), "settled is CREATING"),
            ("MemosTable", table(&[]), end("DISABLED"), "time to live is off"),
        ] {
            let finding = judge(id, &table, Some(&end));
            assert!(finding.state == State::Wrong && finding.found.contains(words), "{words}: {finding:?}");
        }
    }

    #[test]
    fn the_plan_is_that_of_the_template() {
        let template = include_str!("../../../../../../template.yaml");
        assert_eq!(template.matches("\n      KeySchema:").count(), PLANS.len());
        for plan in &PLANS {
            let begin = template.find(&format!("\n  {}:\n", plan.logical_id)).expect(plan.logical_id);
            let text = &template[begin + 1..];
            let text = text.split("\n\n").next().unwrap();
            assert_eq!(text.matches("IndexName:").count(), plan.indexes.len(), "{}", plan.logical_id);
            for index in plan.indexes {
                assert!(text.contains(&format!("IndexName: {index}")), "{index}");
            }
            assert_eq!(text.contains("TimeToLiveSpecification"), plan.has_end, "{}", plan.logical_id);
        }
    }
}
