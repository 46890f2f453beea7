//! The supervisor's schedule.

use super::queues::DEPLOY;
use super::shapes::{Function, Schedule};
use crate::commands::doctor::finding::Finding;

const SUPERVISOR: &str = "-supervisor";

/// A finding for the schedule.
pub(super) fn judge(schedule: &Schedule, functions: &[Function]) -> Finding {
    let check = format!("schedule {}", schedule.name);
    if schedule.state != "ENABLED" {
        let found = format!("it is {}, so nobody looks after what is overdue", schedule.state);
        return Finding::wrong(check, found, "enable it again in EventBridge Scheduler, or deploy again");
    }
    let target = functions.iter().find(|function| function.is_named_by(&schedule.target.arn));
    match target {
        Some(function) if function.function_name.ends_with(SUPERVISOR) => {
            Finding::ok(check, format!("calls {} at {}", function.function_name, schedule.schedule_expression))
        }
        Some(_) | None => Finding::wrong(check, format!("it calls {}", schedule.target.arn), DEPLOY),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn state(state: &str, target: &str) -> State {
        let schedule = json!({
            "Name": "s-supervisor", "State": state, "ScheduleExpression": "rate(1 minute)", "Target": {"Arn": target},
        });
        let functions = ["s-supervisor", "s-api"].map(|name| {
            let function = json!({"FunctionName": name, "FunctionArn": format!("arn:{name}")});
            serde_json::from_value::<Function>(function).unwrap()
        });
        judge(&serde_json::from_value(schedule).unwrap(), &functions).state
    }

    #[test]
    fn a_schedule_is_enabled_and_calls_the_supervisor() {
        assert_eq!(state("ENABLED", "arn:s-supervisor"), State::Ok);
        assert_eq!(state("DISABLED", "arn:s-supervisor"), State::Wrong);
        assert_eq!(state("ENABLED", "arn:s-api"), State::Wrong);
        assert_eq!(state("ENABLED", "arn:other"), State::Wrong);
        assert_eq!(state("ENABLED", "arn:s-supervisor:live"), State::Ok, "an alias of it");
        assert_eq!(state("ENABLED", "arn:s-supervisor-2"), State::Wrong, "another stack's");
    }
}
