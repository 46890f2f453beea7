//! Functions: ready, of one build, told the same things, and with a role of the stack.

use std::collections::{BTreeMap, BTreeSet};

use super::queues::DEPLOY;
use super::shapes::{Function, Role};
use crate::commands::doctor::finding::Finding;

/// What each function is told for itself; everything else is told to all alike.
const OWN: [&str; 8] = [
    "AGENT",
    "AGENT_MEMO",
    "INVENTORY_URL",
    "PAYMENT_URL",
    "SHIPPING_URL",
    "DEAD_LETTER_QUEUES",
    "STANDINS_TABLE",
    "STANDINS_TOKEN",
];

/// A finding for each function, and one for what they have in common.
pub(super) fn judge(functions: &[Function]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = functions.iter().map(ready).collect();
    findings.push(alike(functions));
    findings.push(one_build(functions));
    findings
}

fn ready(function: &Function) -> Finding {
    let check = format!("function {}", function.function_name);
    // One that nobody called for long is Inactive, and comes back at the next call.
    let state = function.state.as_deref().unwrap_or("Active");
    if !matches!(state, "Active" | "Inactive") {
        let why = function.state_reason.as_deref().unwrap_or("no reason given");
        return Finding::wrong(check, format!("it is {state}: {why}"), "deploy again once the cause is gone");
    }
    match function.last_update_status.as_deref() {
        Some("Failed") => Finding::wrong(check, "its last update failed, so it runs older code", "deploy again"),
        Some("InProgress") => Finding::warning(check, "it is being updated", "look again in a minute"),
        Some(_) | None => Finding::ok(check, format!("{state}, {} s at most", function.timeout)),
    }
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

/// The agents are one program under three names.
fn one_build(functions: &[Function]) -> Finding {
    const CHECK: &str = "one build";
    let agents = functions.iter().filter(|function| function.environment.variables.contains_key("AGENT"));
    let builds: BTreeSet<&str> = agents.map(|function| &*function.code_sha256).collect();
    if builds.len() <= 1 {
        return Finding::ok(CHECK, "all agents are of one build");
    }
    Finding::wrong(CHECK, format!("the agents are of {} builds", builds.len()), "`sam build`, then `sam deploy`")
}

/// A finding for the roles: each function has one of the stack, and it is there. `roles` are those that were found.
pub(super) fn judge_roles(functions: &[Function], roles: &[Role]) -> Finding {
    const CHECK: &str = "roles";
    let strangers: Vec<String> = functions
        .iter()
        .filter(|function| !roles.iter().any(|role| role.arn == function.role))
        .map(|function| format!("{} has {}, which is none of the stack's", function.function_name, function.role))
        .collect();
    if strangers.is_empty() {
        return Finding::ok(CHECK, format!("each of {} functions has its own", functions.len()));
    }
    Finding::wrong(CHECK, strangers.join("; "), DEPLOY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn function(name: &str) -> Function {
        serde_json::from_value(json!({
            "FunctionName": name, "FunctionArn": format!("arn:{name}"), "Role": format!("arn:role/{name}"), "Timeout": 30,
            "State": "Active", "LastUpdateStatus": "Successful", "CodeSha256": "abc",
            "Environment": {"Variables": {"TASKS_TABLE": "t", "AGENT": name}},
        }))
        .unwrap()
    }

    fn three() -> Vec<Function> {
        ["s-inventory", "s-payment", "s-shipping"].map(function).to_vec()
    }

    /// Spoils a function; what that is to come to, and words of it.
    type Fault = (fn(&mut Function), State, &'static str);

    fn worst(functions: &[Function]) -> Finding {
        judge(functions).into_iter().max_by_key(|finding| finding.state).unwrap()
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
        let spoilt: [Fault; 5] = [
            (|one| one.state = Some("Failed".to_owned()), State::Wrong, "it is Failed"),
            (|one| one.last_update_status = Some("Failed".to_owned()), State::Wrong, "last update failed"),
            (|one| one.last_update_status = Some("InProgress".to_owned()), State::Warning, "being updated"),
            (|one| one.code_sha256 = "old".to_owned(), State::Wrong, "of 2 builds"),
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
    }
}
