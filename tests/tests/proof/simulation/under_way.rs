//! The auditor sees undos that do not wait, rejections that no service gave, and effects that come too late.

use std::sync::Arc;

use rehearsal::seen::{Ending, Heard, Kind, OrderState, Seen, Way};
use tests::simulation::auditor::Invariant;

use super::auditor::{complains, is_good};
use super::histories::{History, NO, SETTLED_MS, finish, free, order, step_of, undo_of};

/// The first attempt of the first step is cancelled after it called its service and, perhaps, ended with a reply.
fn turned(heard: Option<Heard>, copy: Option<&str>, ending: Option<Ending>) -> History {
    let mut history = History::claimed();
    for message in ["m"].into_iter().chain(copy) {
        let (of, until_ms) = (step_of(0, 1), history.complete_by_ms(0));
        history.see(Seen::Handed {
            of,
            to: "agent".into(),
            until_ms,
            budget_ms: 1_000,
            message: message.into(),
            overlaps: false,
            is_copied: false,
            fresh_until_ms: None,
        });
    }
    history.call(step_of(0, 1), "key");
    if let Some(heard) = heard {
        history.hear(step_of(0, 1), heard);
    }
    if let Some(ending) = ending {
        history.reply(step_of(0, 1), ending);
    }
    history.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
    history.write(|record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("cancelled".into(), record.version));
        free(&mut record.steps[0]);
        record.steps[0].way = Way::Undo;
    });
    history
}

#[test]
fn rule_16_an_undo_before_a_call_without_an_answer_has_settled() {
    let undo_after = |mut history: History, ms: i64| {
        history.now_ms += ms;
        history.claim(0);
        history.complaints()
    };
    let deferred = || Some(Ending::Deferred);
    for heard in [None, Some(Heard::Open)] {
        // The last of the attempt's own time is over before.
        assert_eq!(undo_after(turned(heard.clone(), None, deferred()), SETTLED_MS / 2), [Invariant::UnderWay]);
        assert_eq!(undo_after(turned(heard, None, deferred()), SETTLED_MS), []);
    }
    assert_eq!(undo_after(turned(Some(Heard::Settled), None, deferred()), 0), []);
    // The answer of an attempt says nothing about the calls of a copy of its request.
    assert_eq!(undo_after(turned(None, None, Some(Ending::Done)), 0), [Invariant::UnderWay]);
    assert_eq!(undo_after(turned(None, Some("copy"), Some(Ending::Done)), 0), []);
    assert_eq!(undo_after(turned(None, Some("copy"), deferred()), 0), [Invariant::UnderWay]);
}

#[test]
fn rule_17_a_rejection_that_no_service_gave() {
    for heard in [Heard::Settled, Heard::Open, Heard::No("other".into())] {
        complains(Invariant::Rejected, History::claimed(), |history| {
            history.call(step_of(0, 1), "key");
            history.hear(step_of(0, 1), heard);
            history.reply(step_of(0, 1), Ending::Failed);
        });
    }
    complains(Invariant::Rejected, History::compensating(), |history| {
        history.see(Seen::Answered { of: step_of(0, 1), call: 1, heard: Heard::No(NO.into()) });
        history.reply(undo_of(0, 2), Ending::Failed);
    });
    let mut history = History::claimed();
    history.reject(step_of(0, 1));
    is_good(&history);
    // The agent's own: its memo knows of the undo, or its output is too large.
    for code in ["undone", "output-too-large"] {
        let mut history = History::claimed();
        let (of, clock_ms) = (step_of(0, 1), history.now_ms);
        let (by, code) = ("agent".into(), Some(Arc::from(code)));
        history.see(Seen::Replied { of, ending: Ending::Failed, output: None, kept: None, code, by, clock_ms });
        is_good(&history);
    }
}

#[test]
fn invariant_16_books_that_are_not_even_an_hour_after_the_end() {
    let ended = || {
        let mut history = History::processed();
        let version = history.record.version;
        history.see(Seen::Told { order: order(), kind: Kind::Received, version: 1 });
        history.see(Seen::Told { order: order(), kind: Kind::Processed, version });
        history.write(|record| record.unsent.clear());
        // A careless service undoes a step without a request to do so.
        history.see(Seen::Effect { of: undo_of(1, 2) });
        history
    };
    let looks = |history: &mut History| history.see(Seen::EndIsDue { since_ms: 0, bound_ms: i64::MAX });
    let mut early = ended();
    looks(&mut early);
    is_good(&early);
    complains(Invariant::EvenBooks, ended(), |history| {
        history.now_ms += 3_600_000;
        looks(history);
    });
    complains(Invariant::EvenBooks, ended(), |history| history.see(Seen::DrainIsDue { queued: 0 }));
    let mut compensated = History::compensating();
    compensated.succeed(0);
    compensated.write(|record| {
        finish(&mut record.steps[0]);
        record.state = OrderState::Compensated;
    });
    compensated.now_ms += 3_600_000;
    looks(&mut compensated);
    is_good(&compensated);
}
