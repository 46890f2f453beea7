//! The auditor reports an order that begins with a version of its workflow that it must not have (rule 22).

use std::sync::Arc;

use rehearsal::seen::{Choices, Pinned, Seen};
use tests::simulation::auditor::Invariant;

use super::auditor::{complains, is_good};
use super::histories::{History, posted};

/// New orders begin with these versions; orders without a name begin with those of `shop`.
fn choices(shop: &[u32], back: &[u32]) -> Choices {
    let of = |versions: &[u32]| versions.iter().copied().collect();
    [("".into(), of(shop)), ("shop".into(), of(shop)), ("back".into(), of(back))].into()
}

fn pinned(named: Option<&str>, version: u32, since_ms: i64) -> Seen {
    posted(None, Some(Pinned { version, named: named.map(Arc::from), since_ms }))
}

/// Version 1 at first, and version 2, or 12 for a return, since 1,000 ms.
fn applied() -> History {
    let mut history = History::new();
    history.see(Seen::Applied { choices: choices(&[1], &[11]) });
    history.now_ms = 1_000;
    history.see(Seen::Applied { choices: choices(&[2, 3], &[12]) });
    history
}

#[test]
fn an_order_may_begin_with_any_version_that_its_api_may_know_of() {
    let known = [(None, 2), (None, 3), (Some("shop"), 3), (Some("back"), 12)];
    for (named, version) in known {
        let mut history = applied();
        history.see(pinned(named, version, 1_500));
        is_good(&history);
    }
    for (named, version) in [(None, 1), (Some("back"), 11)] {
        let mut history = applied();
        history.see(pinned(named, version, 900));
        is_good(&history);
    }
}

#[test]
fn an_order_that_begins_with_an_old_or_foreign_version_is_complained_of() {
    for (named, version, since_ms) in [(None, 1, 1_500), (Some("back"), 11, 1_500), (Some("back"), 2, 0), (None, 4, 0)]
    {
        complains(Invariant::Version, applied(), |history| history.see(pinned(named, version, since_ms)));
    }
}

#[test]
fn an_order_is_stored_with_a_version_to_which_it_is_pinned() {
    let ready = |versions: &[u32]| {
        let mut history = applied();
        versions.iter().for_each(|version| history.see(pinned(None, *version, 0)));
        history
    };
    // A post that was repeated after a new version was applied.
    for versions in [&[1][..], &[2, 1], &[1, 2]] {
        let mut history = ready(versions);
        history.insert();
        is_good(&history);
    }
    complains(Invariant::Version, ready(&[2, 3]), History::insert);
}
