//! Functions: ready, of one build, told the same things, and with a role of the stack.

use std::collections::BTreeMap;

use super::queues::DEPLOY;
use super::shapes::{AccountLimit, Function, Mapping, Role};
use crate::commands::doctor::finding::Finding;

/// What each function is told for itself; everything else is told to all alike.
const OWN: [&str; 12] = [
    "AGENTS",
    "AGENT_QUEUES",
    "AGENT_MEMO",
    "INVENTORY_URL",
    "PAYMENT_URL",
    "SHIPPING_URL",
    "STAND_INS_URL",
    "API_URL",
    "DEAD_LETTER_QUEUES",
    "DEAD_LETTER_QUEUE_URL",
    "STANDINS_TABLE",
    "STANDINS_TOKEN",
];

/// What is to be said only of functions that were seen.
const NONE: &str = "the stack has no functions";

/// Findings for what all functions have in common.
pub(super) fn judge_all(functions: &[Function]) -> Vec<Finding> {
    if functions.is_empty() {
        return vec![Finding::wrong("functions", NONE, "is this a stack of Stepwarden?")];
    }
    vec![alike(functions)]
}

/// A finding for one function: does it run, and as it was deployed last?
pub(super) fn judge(function: &Function) -> Finding {
    let check = format!("function {}", function.function_name);
    // One that nobody called for long is Inactive, and comes back at the next call.
    let state = function.state.as_deref().unwrap_or("Active");
    if !matches!(state, "Active" | "Inactive") {
        let why = function.state_reason.as_deref().unwrap_or("no reason given");
        return Finding::wrong(check, format!("it is {state}: {why}"), "deploy again once the cause is gone");
    }
    if function.reserved == Some(0) {
        let to_do = "somebody stopped it by hand: take its reserved concurrency away again";
        return Finding::wrong(check, "it may not run at all: its reserved concurrency is 0", to_do);
    }
    match function.last_update_status.as_deref() {
        Some("Failed") => Finding::wrong(check, "its last update failed, so it runs older code", "deploy again"),
        Some("InProgress") => Finding::warning(check, "it is being updated", "look again in a minute"),
        Some(_) | None => called(check, state, function),
    }
}

/// Whether its calls go to what was deployed last.
fn called(check: String, state: &str, function: &Function) -> Finding {
    let Some(live) = &function.live else {
        return Finding::wrong(check, "it has no alias `live`, by which it is called", "deploy the template");
    };
    if live.code_sha256 != function.code_sha256 || live.environment.variables != function.environment.variables {
        let found = format!("its calls go to version {}, which is not what was deployed last", live.version);
        let to_do = "look again when no update is under way; otherwise somebody changed it by hand: deploy again";
        return Finding::warning(check, found, to_do);
    }
    if function.environment.error.is_some() {
        let found = format!("version {}; its variables are encrypted, and cannot be compared", live.version);
        return Finding::warning(check, found, "call the doctor as somebody who may use the key of KmsKeyArns");
    }
    Finding::ok(check, format!("{state}, version {}, {} s at most", live.version, function.timeout))
}

/// All functions are deployed with the same tables, queues and settings; one that was changed by hand works elsewhere.
fn alike(functions: &[Function]) -> Finding {
    const CHECK: &str = "settings of the functions";
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for function in functions {
        for (name, value) in &function.environment.variables {
            if !OWN.contains(&name.as_str()) {
                values.entry(name).or_default().entry(value).or_default().push(&function.function_name);
            }
        }
    }
    let differing: Vec<String> = values
        .iter()
        .filter(|(_, by_value)| by_value.len() > 1)
        .map(|(name, by_value)| {
            let odd = by_value.values().min_by_key(|names| names.len()).map(|names| names.join(", "));
            format!("{name} is another at {}", odd.unwrap_or_default())
        })
        .collect();
    if differing.is_empty() {
        return Finding::ok(CHECK, format!("{} are the same everywhere", values.len()));
    }
    Finding::wrong(CHECK, differing.join("; "), DEPLOY)
}

/// A finding for the roles: each function has one of the stack, and it is there. `roles` are those that were found.
pub(super) fn judge_roles(functions: &[Function], roles: &[Role]) -> Finding {
    const CHECK: &str = "roles";
    let strangers: Vec<String> = functions
        .iter()
        .filter(|function| !roles.iter().any(|role| role.arn == function.role))
        .map(|function| format!("{} has {}, which is none of the stack's", function.function_name, function.role))
        .collect();
    let mut by_role: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for function in functions {
        by_role.entry(&function.role).or_default().push(&function.function_name);
    }
    let shared = by_role.iter().filter(|(_, names)| names.len() > 1);
    let shared = shared.map(|(role, names)| format!("{} share {role}", names.join(" and ")));
    let faults: Vec<String> = strangers.into_iter().chain(shared).collect();
    match (faults.is_empty(), functions.len()) {
        (true, 0) => Finding::skipped(CHECK, NONE),
        (true, count) => Finding::ok(CHECK, format!("each of {count} functions has its own")),
        (false, _) => Finding::wrong(CHECK, faults.join("; "), DEPLOY),
    }
}

/// A finding for the instances that the queues may ask for: the account has as many.
pub(super) fn judge_concurrency(functions: &[Function], mappings: &[Mapping], limit: AccountLimit) -> Finding {
    const CHECK: &str = "concurrency";
    let is_own = |mapping: &&Mapping| functions.iter().any(|function| function.is_named_by(&mapping.function_arn));
    let asked: u64 = mappings.iter().filter(is_own).map(|mapping| mapping.scaling_config.maximum_concurrency).sum();
    let has = limit.unreserved_concurrent_executions;
    let found = format!("the queues may ask for {asked} instances, and the account has {has}");
    if asked < has {
        return Finding::ok(CHECK, found);
    }
    let to_do = "ask for a higher quota of concurrent executions, or deploy with a lower QueueConcurrency or \
                 AgentConcurrency: without an instance the API answers 503";
    Finding::warning(CHECK, found, to_do)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn function(name: &str) -> Function {
        let told = json!({
            "FunctionName": name, "FunctionArn": format!("arn:{name}"), "Role": format!("arn:role/{name}"), "Timeout": 30,
            "State": "Active", "LastUpdateStatus": "Successful", "Version": "7", "CodeSha256": "abc",
            "Environment": {"Variables": {"TASKS_TABLE": "t"}},
        });
        let live = serde_json::from_value(told.clone()).unwrap();
        Function { live: Some(live), ..serde_json::from_value(told).unwrap() }
    }

    fn three() -> Vec<Function> {
        ["s-inventory", "s-payment", "s-shipping"].map(function).to_vec()
    }

    /// Spoils a function; what that is to come to, and words of it.
    type Fault = (fn(&mut Function), State, &'static str);

    fn worst(functions: &[Function]) -> Finding {
        let all = functions.iter().map(judge).chain(judge_all(functions));
        all.max_by_key(|finding| finding.state).unwrap()
    }

    #[test]
    fn functions_as_they_were_deployed_are_well() {
        assert_eq!(worst(&three()).state, State::Ok);
        let mut resting = three();
        resting[0].state = Some("Inactive".to_owned());
        assert_eq!(worst(&resting).state, State::Ok);
    }

    #[test]
    fn each_fault_of_a_function_is_told() {
        let spoilt: [Fault; 8] = [
            (|one| one.environment.error = Some(json!({})), State::Warning, "cannot be compared"),
            (|one| one.live = None, State::Wrong, "no alias `live`"),
            (|one| one.code_sha256 = "def".to_owned(), State::Warning, "its calls go to version 7"),
            (|one| one.reserved = Some(0), State::Wrong, "reserved concurrency is 0"),
            (|one| one.state = Some("Failed".to_owned()), State::Wrong, "it is Failed"),
            (|one| one.last_update_status = Some("Failed".to_owned()), State::Wrong, "last update failed"),
            (|one| one.last_update_status = Some("InProgress".to_owned()), State::Warning, "being updated"),
            (
                |one| drop(one.environment.variables.insert("TASKS_TABLE".to_owned(), "other".to_owned())),
                State::Wrong,
                "TASKS_TABLE is another at s-payment",
            ),
        ];
        for (spoil, state, words) in spoilt {
            let mut functions = three();
            spoil(&mut functions[1]);
            let finding = worst(&functions);
            assert!(finding.state == state && finding.found.contains(words), "{words}: {finding:?}");
        }
    }

    #[test]
    fn a_role_that_is_gone_or_of_another_stack_is_told() {
        let role = |name: &str| Role { arn: format!("arn:role/{name}") };
        let all = ["s-inventory", "s-payment", "s-shipping"].map(role);
        assert_eq!(judge_roles(&three(), &all).state, State::Ok);
        let finding = judge_roles(&three(), &all[..2]);
        assert!(
            finding.state == State::Wrong && finding.found.contains("s-shipping has arn:role/s-shipping"),
            "{finding:?}"
        );
        let mut shared = three();
        shared[2].role = "arn:role/s-inventory".to_owned();
        let finding = judge_roles(&shared, &all);
        let words = "s-inventory and s-shipping share arn:role/s-inventory";
        assert!(finding.state == State::Wrong && finding.found.contains(words), "{finding:?}");
    }

    #[test]
    fn more_instances_than_the_account_has_are_a_warning() {
        let mapping = |function: &str, maximum: u64| {
            let scaling = json!({"MaximumConcurrency": maximum});
            serde_json::from_value(json!({"FunctionArn": function, "ScalingConfig": scaling})).unwrap()
        };
        let mappings: [Mapping; 3] =
            [mapping("arn:s-payment", 600), mapping("arn:s-shipping", 300), mapping("arn:other-shipping", 300)];
        let of = |has| judge_concurrency(&three(), &mappings, AccountLimit { unreserved_concurrent_executions: has });
        assert_eq!(of(1_000).state, State::Ok);
        let finding = of(900);
        assert_eq!(finding.state, State::Warning, "none is left for the API");
        assert_eq!(finding.found, "the queues may ask for 900 instances, and the account has 900");
    }

    #[test]
    fn no_functions_are_not_all_well() {
        assert_eq!(worst(&[]).state, State::Wrong);
        assert_eq!(judge_roles(&[], &[]).state, State::Skipped);
    }
}
