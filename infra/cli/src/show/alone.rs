//! An order whose own calls fail while its service answers others.

use domain::ports::Breaker;
use domain::task::StepError;
use domain::time::Timestamp;
use wire::{Service, Step};

/// Before the problem of the last call, in the words for an attempt that expired.
const LAST_CALL: &str = "; the last call: ";
/// After this time an outage of the service would be known, in milliseconds.
const ALONE_MS: u64 = 5_000;

/// What the last call of an open step failed with, if it did.
pub(super) fn last_call<'a>(step: &'a Step<'_>) -> Option<&'a str> {
    let error = step.last_error.as_ref()?;
    let last = error.message.rsplit_once(LAST_CALL).map(|(_, problem)| problem);
    if *error.code == *StepError::RETRYING { Some(&error.message) } else { last }
}

/// What to do where calls of this order alone fail for long: the service has no failure in a row, so others go through.
pub(super) fn only_this_order(step: &Step<'_>, services: &[Service<'_>], now: Timestamp) -> Option<String> {
    let service = services.iter().find(|service| service.service == step.agent)?;
    let is_well = service.state == Breaker::Closed && service.failures_in_a_row.unwrap_or(0) == 0;
    let since = step.last_error.as_ref()?.at;
    let problem = last_call(step).filter(|_| is_well && since.ms_until(now) >= ALONE_MS)?;
    Some(format!(
        "Only this order fails at {} ({problem}); others go through. Look at what it sends. After max_failures attempts the \
         step is given up.",
        step.agent
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_epoch_ms(1_795_195_663_007)
    }

    fn said(code: &str, message: &str, ago_ms: u64, service: &Value) -> Option<String> {
        let step: Step<'static> = serde_json::from_value(json!({
            "Name": "ship", "Agent": "ship", "ProcessState": "Processing", "Direction": "Forward", "Attempt": 1,
            "FailureCount": 0,
            "LastError": {"Code": code, "Message": message, "Attempt": 1, "At": now().minus_ms(ago_ms)},
        }))
        .unwrap();
        only_this_order(&step, &[serde_json::from_value(service.clone()).unwrap()], now())
    }

    #[test]
    fn calls_that_fail_for_long_at_a_service_without_a_failure_in_a_row_are_this_orders_own() {
        let service =
            |state: &str, failures: u32| json!({"Service": "ship", "State": state, "FailuresInARow": failures});
        let well = service("Closed", 0);
        let words = "Only this order fails at ship (HTTP 404); others go through. Look at what it sends. After \
                     max_failures attempts the step is given up.";
        for (code, message) in
            [("retrying", "HTTP 404"), ("expired", "no success within 30000 ms; the last call: HTTP 404")]
        {
            assert_eq!(said(code, message, 5_000, &well).as_deref(), Some(words));
            assert_eq!(said(code, message, 4_999, &well), None, "it may be the begin of an outage");
            for other in [service("Closed", 1), service("Open", 5)] {
                assert_eq!(said(code, message, 5_000, &other), None);
            }
        }
        for (code, message) in [("expired", "no answer within 30000 ms"), ("sold-out", "none left")] {
            assert_eq!(said(code, message, 5_000, &well), None, "{message}");
        }
    }
}
