//! The auditor sees calls that are too early, and tokens that are fetched twice.

use rehearsal::seen::Seen;
use tests::simulation::auditor::Invariant;

use super::auditor::{complains, is_good};
use super::histories::{History, step_of};

/// The service asks the agent to wait for this time, in milliseconds.
fn asked(for_ms: i64) -> History {
    let mut history = History::claimed();
    history.call(step_of(0, 1), "key");
    let until_ms = history.now_ms + for_ms;
    history.see(Seen::AskedToWait { of: step_of(0, 1), by: "agent".into(), until_ms });
    history
}

#[test]
fn rule_17_a_call_is_repeated_before_its_service_asked_for() {
    complains(Invariant::Asked, asked(100), |history| history.call(step_of(0, 1), "key"));
    let mut history = asked(1);
    history.call(step_of(0, 1), "key");
    is_good(&history);
    // Its request is delivered anew.
    let mut history = asked(100);
    history.hand(step_of(0, 1), false, false);
    history.call(step_of(0, 1), "key");
    is_good(&history);
}

#[test]
fn an_instance_fetches_a_token_while_it_fetches_one() {
    let fetches = |twins| Seen::FetchesToken { by: "agent".into(), twins };
    let mut history = History::claimed();
    history.see(fetches(0));
    is_good(&history);
    complains(Invariant::OneToken, history, |history| history.see(fetches(1)));
}
