//! All nodes, each with every fault, and their table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use domain::ports::RecordKind;
use memory::faulty::Fault;

use super::node::{Node, Play};
use super::{agents, api, bulk, children, dead_letters, lines, scheduler, schedules, submission, supervisor};

/// Each fault of a call.
const FAULTS: [Fault; 6] =
    [Fault::Fails, Fault::AnswerLost, Fault::TriedTwice, Fault::Conflicts, Fault::DiesBefore, Fault::DiesAfter];

/// Calls with a condition that may not hold.
const CONDITIONAL: [&str; 8] = [
    "store.commit",
    "services.set_health",
    "memos.set_memo",
    "jobs.set_job",
    "definitions.set_definition",
    "definitions.set_deployment",
    "leases.set_lease",
    "schedules.set_schedule",
];

/// Scenes in which a handler needs no part of the world.
const NEED_NOTHING: [&str; 2] = ["GET /health", "a request after CompleteBy: silence"];

/// The calls of each handler.
pub(crate) const USES: [(&str, &[&str]); 8] = [
    (
        "api",
        &[
            "alerts.alerts",
            "definitions.definition",
            "definitions.definitions",
            "definitions.deployment",
            "definitions.set_definition",
            "definitions.set_deployment",
            "jobs.job",
            "jobs.jobs",
            "jobs.set_job",
            "leases.leases",
            "letters.letters",
            "queues.submit",
            "queues.to_scheduler",
            "schedules.schedules",
            "services.all_health",
            "store.found",
            "store.list",
            "store.numbers",
            "store.order",
            "store.settled",
            "store.task",
        ],
    ),
    (
        "submission",
        &[
            "definitions.deployment",
            "events.notify",
            "queues.to_agent",
            "queues.to_scheduler",
            "store.commit",
            "store.insert",
            "store.order",
            "store.task",
        ],
    ),
    (
        "scheduler",
        &[
            "definitions.deployment",
            "events.notify",
            "events.publish",
            "queues.to_agent",
            "queues.to_scheduler",
            "store.commit",
            "store.insert",
            "store.order",
            "store.task",
        ],
    ),
    (
        "agents",
        &[
            "memos.memo",
            "memos.set_memo",
            "queues.return_to_agent",
            "queues.to_scheduler",
            "services.health",
            "services.set_health",
            "store.task",
        ],
    ),
    (
        "supervisor",
        &[
            "alerts.alerts",
            "alerts.set_alert",
            "definitions.deployment",
            "events.notify",
            "events.publish",
            "leases.lease",
            "leases.set_lease",
            "letters.letters",
            "queues.to_scheduler",
            "schedules.schedules",
            "services.all_health",
            "store.commit",
            "store.due",
            "store.forget_expired",
            "store.list",
            "store.numbers",
            "store.order",
            "store.task",
            "store.watches",
        ],
    ),
    (
        "dead letters",
        &[
            "definitions.deployment",
            "events.notify",
            "events.publish",
            "letters.set_letter",
            "store.commit",
            "store.insert",
            "store.order",
            "store.task",
        ],
    ),
    (
        "bulk jobs",
        &[
            "definitions.deployment",
            "jobs.job",
            "jobs.jobs",
            "jobs.set_job",
            "leases.lease",
            "leases.set_lease",
            "queues.submit",
            "queues.to_scheduler",
            "store.list",
            "store.order",
            "store.task",
        ],
    ),
    (
        "schedules",
        &[
            "definitions.definition",
            "definitions.deployment",
            "queues.submit",
            "schedules.schedules",
            "schedules.set_schedule",
        ],
    ),
];

/// The results of one handler.
#[derive(Default)]
struct Row {
    scenes: usize,
    calls: usize,
    met: BTreeMap<&'static str, usize>,
    by_fault: BTreeMap<String, usize>,
}

fn all() -> Vec<Node> {
    let handlers = [
        api::nodes(),
        submission::nodes(),
        scheduler::nodes(),
        children::nodes(),
        lines::nodes(),
        agents::nodes(),
        supervisor::nodes(),
        dead_letters::nodes(),
        bulk::nodes(),
        schedules::nodes(),
    ];
    handlers.into_iter().flatten().collect()
}

/// Runs a scene with every fault at every call.
fn fail_everywhere(node: &Node, row: &mut Row) {
    let Node { handler, what, .. } = node;
    let calls = node.play(Play::Well);
    assert!(!calls.is_empty() || NEED_NOTHING.contains(what), "{handler}, {what}: there was nothing to do");
    row.scenes += 1;
    row.calls += calls.len();
    node.play(Play::Twice);
    *row.by_fault.entry("Twice".to_owned()).or_default() += 1;
    for (place, &call) in calls.iter().enumerate() {
        *row.met.entry(call).or_default() += 1;
        for fault in FAULTS.into_iter().filter(|fault| *fault != Fault::Conflicts || CONDITIONAL.contains(&call)) {
            // Printed where the scene fails.
            println!("{handler}, {what}: {fault:?} at call {place}, {call}");
            node.play(Play::Struck(place, fault));
            *row.by_fault.entry(format!("{fault:?}")).or_default() += 1;
        }
    }
}

fn print(rows: &BTreeMap<&str, Row>) {
    let kinds: Vec<String> = FAULTS.iter().map(|fault| format!("{fault:?}")).chain(["Twice".to_owned()]).collect();
    println!(
        "\n{:<13} {:>6} {:>6} {}",
        "handler",
        "scenes",
        "calls",
        kinds.iter().map(|kind| format!("{kind:>11}")).collect::<String>()
    );
    for (handler, row) in rows {
        let counts: String = kinds.iter().map(|kind| format!("{:>11}", row.by_fault.get(kind).unwrap_or(&0))).collect();
        println!("{handler:<13} {:>6} {:>6} {counts}", row.scenes, row.calls);
        for (call, times) in &row.met {
            println!("{:<13} {:>6} {times:>6}  {call}", "", "");
        }
    }
    let sum = |of: &dyn Fn(&Row) -> usize| rows.values().map(of).sum::<usize>();
    let plays = sum(&|row| row.by_fault.values().sum());
    println!("{:<13} {:>6} {:>6} {plays:>11} plays", "in all", sum(&|row| row.scenes), sum(&|row| row.calls));
}

#[test]
fn every_handler_failed_at_every_node_in_every_way_comes_to_the_end_that_it_comes_to_without() {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for node in all() {
        fail_everywhere(&node, rows.entry(node.handler).or_default());
    }
    print(&rows);
    for (handler, uses) in USES {
        let met: Vec<&str> = rows[handler].met.keys().copied().collect();
        assert_eq!(met, uses, "the calls of {handler} are not those that are written down");
    }
}

#[test]
fn every_method_of_every_port_is_called_by_some_handler() {
    let used: BTreeSet<&str> = USES.iter().flat_map(|(_, uses)| *uses).copied().collect();
    let methods = methods_of_ports();
    assert_eq!(used, methods.iter().map(String::as_str).collect());
}

/// Names such as `store.commit`: the calls of ports that can fail, read from their sources. `Environment` cannot fail,
/// and the host owns the receiving end of a queue. A call about records has the name of the record's kind.
fn methods_of_ports() -> BTreeSet<String> {
    let ports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/shared/domain/src/ports");
    let mut methods = BTreeSet::new();
    for entry in fs::read_dir(ports).expect("the ports") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a source");
        let mut port = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("pub trait ").and_then(|rest| rest.strip_suffix(": Send + Sync {")) {
                port = Some(name.to_lowercase()).filter(|name| name != "environment" && name != "source<m>");
            } else if line == "}" {
                port = None;
            } else if let (Some(port), Some(rest)) = (&port, line.strip_prefix("    fn ")) {
                methods.extend(calls(port, rest.split(['(', '<']).next().expect("a name")));
            }
        }
    }
    methods
}

/// The names of a port's method in errors and logs.
fn calls(port: &str, method: &str) -> Vec<String> {
    let names = |name: fn(RecordKind) -> &'static str| RecordKind::ALL.map(|kind| name(kind).to_owned());
    match (port, method) {
        // An alert is read by itself only after a lost write, a dead letter and the mark of a schedule never.
        ("records", "get") => {
            let is_read = |name: &String| !["alerts.alert", "letters.letter", "schedules.schedule"].contains(&&**name);
            names(RecordKind::get).into_iter().filter(is_read).collect()
        }
        ("records", "put") => names(RecordKind::put).into(),
        // The number of memos is too large for a list, and there is one deployment.
        ("records", "list") => {
            let is_listed = |name: &String| name != "memos.memos" && name != "definitions.deployments";
            names(RecordKind::list).into_iter().filter(is_listed).collect()
        }
        // It calls nothing.
        ("queues", "knows_orders") => Vec::new(),
        // The tests of rule 46 fail and end each of its calls.
        ("store", "erase_others") => Vec::new(),
        _ => vec![format!("{port}.{method}")],
    }
}
