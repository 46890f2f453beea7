//! [`Store`]: orders, tasks, the index and the lists.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::id::OrderId;
use domain::index::Term;
use domain::limits::{RETAIN_MS_MIN, SHARDS};
use domain::order::{AgainOf, Order, Parent};
use domain::ports::{
    Commit, DeadLetterRecord, Due, HasRecords, HasStore, Inserted, ListError, Memo, Records, Seen, Store,
};
use domain::task::{Notice, NoticeKind, ProcessState, Task, Watch};
use domain::time::Timestamp;
use futures_util::future::join;

use super::StoreWorld;
use super::samples::{NOON, committed, dead_letter, memo, next, next_in, order, order_with, stored, task};

/// Longer than any test runs.
pub(super) const LONG_MS: u64 = 60_000;

pub async fn an_order_is_inserted_once(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let changed = committed(store, &first, next_in(&first, ProcessState::Processing)).await;
    // The same content in another spelling, as a client may send it again.
    let again = order_with(1, r#"{"Total":12.50,"Item":"book-1"}"#);
    assert_eq!(store.insert(again.clone().into(), task(&again).into()).await.unwrap(), Inserted::Same);
    assert_eq!(store.order(again.order_id).await.unwrap().unwrap().document, order(1).document);
    assert_eq!(store.task(again.order_id).await.unwrap().unwrap(), changed);
}

pub async fn an_order_of_the_same_id_and_another_document_changes_nothing(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let other = order_with(1, r#"{"Total":13.50}"#);
    let mut others_task = task(&other);
    others_task.nonce += 1;
    assert_eq!(store.insert(other.into(), others_task.into()).await.unwrap(), Inserted::Different);
    assert_eq!(*store.order(first.order_id).await.unwrap().unwrap(), order(1));
    assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), first);
}

pub async fn order_and_task_come_together(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    assert_eq!(*store.order(first.order_id).await.unwrap().unwrap(), order(1));
    assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), first);
}

pub async fn f05_an_insert_that_was_cut_short_shows_no_task_and_is_finished_by_its_repeat(world: &impl StoreWorld) {
    let (store, order) = (world.ports().store(), order(1));
    let task = task(&order);
    world.cut_short(&order, &task).await;
    assert_eq!(store.task(order.order_id).await.unwrap(), None);
    assert_eq!(store.settled(order.order_id, 1).await.unwrap(), None);
    assert_eq!(all_listed(store, None, 10).await, []);
    assert!(store.order(order.order_id).await.unwrap().is_none_or(|stored| *stored == order));
    assert_eq!(store.insert(order.clone().into(), task.clone().into()).await.unwrap(), Inserted::New);
    assert_eq!(*store.order(order.order_id).await.unwrap().unwrap(), order);
    assert_eq!(*store.task(order.order_id).await.unwrap().unwrap(), task);
    assert_eq!(all_listed(store, None, 10).await, [order.order_id]);
    // The answer of this one may have been lost. Another one is a repeat.
    assert_eq!(store.insert(order.clone().into(), task.clone().into()).await.unwrap(), Inserted::New);
    let again = Task { nonce: task.nonce + 1, ..task.clone() };
    assert_eq!(store.insert(order.clone().into(), again.into()).await.unwrap(), Inserted::Same);
    assert_eq!(*store.task(order.order_id).await.unwrap().unwrap(), task);
}

pub async fn an_order_that_was_posted_again_keeps_its_origin(world: &impl StoreWorld) {
    let (store, first) = (world.ports().store(), order(1));
    let again_of =
        AgainOf { order_id: first.order_id, by: "ada".into(), reason: "in \"words\"".into(), bulk: Some("j".into()) };
    let workflow = "return/2".parse().ok();
    let again = Order { order_id: first.order_id.again(), workflow, again_of: Some(again_of), ..first };
    assert_eq!(store.insert(again.clone().into(), task(&again).into()).await.unwrap(), Inserted::New);
    assert_eq!(*store.order(again.order_id).await.unwrap().unwrap(), again);
    // Another operator's repeat is the same order.
    let origin = again.again_of.clone().map(|origin| AgainOf { by: "bob".into(), ..origin });
    let repeat = Order { again_of: origin, ..again.clone() };
    let repeats_task = Task { nonce: 2_000, ..task(&repeat) };
    assert_eq!(store.insert(repeat.into(), repeats_task.into()).await.unwrap(), Inserted::Same);
    assert_eq!(*store.order(again.order_id).await.unwrap().unwrap(), again);
}

pub async fn a_child_keeps_its_parent_and_the_news_that_it_owes(world: &impl StoreWorld) {
    let (store, order) = (world.ports().store(), order(1));
    let parent = Parent { order_id: order.order_id.again(), step: "replace".into(), depth: 5 };
    let first = task(&order).below(Some(parent));
    assert_eq!(store.insert(order.clone().into(), first.clone().into()).await.unwrap(), Inserted::New);
    assert_eq!(*store.task(order.order_id).await.unwrap().unwrap(), first);
    let told = Notice { kind: NoticeKind::ParentTold, version: first.version + 1, resends: 2 };
    let ended = committed(store, &first, next(&first, |task| task.unsent.push(told))).await;
    assert_eq!(store.task(order.order_id).await.unwrap().unwrap(), ended);
}

pub async fn an_order_is_inserted_in_whatever_state_its_task_is(world: &impl StoreWorld) {
    // A dead submission is stored with a task in its second version.
    let (store, order) = (world.ports().store(), order(1));
    let failed = next_in(&task(&order), ProcessState::Error);
    assert_eq!(store.insert(order.clone().into(), (*failed).clone().into()).await.unwrap(), Inserted::New);
    assert_eq!(store.task(order.order_id).await.unwrap().unwrap(), failed);
    assert_eq!(all_listed(store, Some(ProcessState::Error), 10).await, [order.order_id]);
    let resubmitted = committed(store, &failed, next_in(&failed, ProcessState::Processing)).await;
    assert_eq!(store.task(order.order_id).await.unwrap().unwrap(), resubmitted);
}

pub async fn what_was_never_inserted_is_not_there(world: &impl StoreWorld) {
    let store = world.ports().store();
    stored(store, 1).await;
    assert_eq!(store.order(order(2).order_id).await.unwrap(), None);
    assert_eq!(store.task(order(2).order_id).await.unwrap(), None);
}

pub async fn a_commit_replaces_the_version_that_it_saw(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let second = committed(store, &first, next_in(&first, ProcessState::Processing)).await;
    assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), second);
    let third = committed(store, &second, next_in(&second, ProcessState::Processed)).await;
    assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), third);
}

pub async fn a_commit_on_an_older_version_is_a_conflict(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    // Finished or not: a store may keep the two in different tables.
    for state in [ProcessState::Processing, ProcessState::Processed] {
        let before = store.task(first.order_id).await.unwrap().unwrap();
        let now = committed(store, &before, next_in(&before, state)).await;
        let late = next(&before, |task| task.nonce += 100);
        assert_eq!(store.commit(&before, late).await.unwrap(), Commit::Conflict);
        assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), now);
    }
}

pub async fn a_commit_without_an_order_is_a_conflict(world: &impl StoreWorld) {
    let store = world.ports().store();
    let nowhere = task(&order(1));
    assert_eq!(store.commit(&nowhere, next(&nowhere, |_| {})).await.unwrap(), Commit::Conflict);
    assert_eq!(store.task(nowhere.order_id).await.unwrap(), None);
}

pub async fn a_repeated_commit_meets_its_own_nonce(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let mut before = first.clone();
    for state in [ProcessState::Processing, ProcessState::Processed] {
        let after = committed(store, &before, next_in(&before, state)).await;
        assert_eq!(store.commit(&before, after.clone()).await.unwrap(), Commit::Committed);
        assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), after);
        before = after;
    }
}

pub async fn of_two_commits_at_once_one_wins(world: &impl StoreWorld) {
    let store = world.ports().store();
    for n in 0..20 {
        let first = stored(store, n).await;
        let (left, right) = (next(&first, |task| task.nonce += 1), next(&first, |task| task.nonce += 2));
        let (left_won, right_won) = join(store.commit(&first, left.clone()), store.commit(&first, right.clone())).await;
        let winner = match (left_won.unwrap(), right_won.unwrap()) {
            (Commit::Committed, Commit::Conflict) => left,
            (Commit::Conflict, Commit::Committed) => right,
            both => panic!("{both:?}"),
        };
        assert_eq!(store.task(first.order_id).await.unwrap().unwrap(), winner);
    }
}

/// All due entries, in pages of `limit`.
async fn all_due(store: &impl Store, watch: Watch, now: Timestamp, limit: usize) -> Vec<Due> {
    let mut all = Vec::new();
    loop {
        let page = store.due(watch, now, all.last().copied(), limit).await.unwrap();
        assert!(page.len() <= limit);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn sorted(found: &[Due]) -> Vec<(Timestamp, OrderId)> {
    let mut sorted: Vec<_> = found.iter().map(|due| (due.at, due.order_id)).collect();
    sorted.sort();
    sorted
}

/// Numbers of orders in the same shard.
fn of_one_shard() -> impl Iterator<Item = u32> {
    let shard = order(0).order_id.shard(SHARDS);
    (0..).filter(move |&n| order(n).order_id.shard(SHARDS) == shard)
}

pub async fn due_orders_come_longest_due_first_and_page_by_page(world: &impl StoreWorld) {
    let store = world.ports().store();
    let watch = Watch::Due(order(0).order_id.shard(SHARDS));
    let mut expected: Vec<(Timestamp, OrderId)> = Vec::new();
    // Some have the same time: a page may end between them.
    for (n, at_ms) in of_one_shard().zip([50, 10, 30, 30, 30, 40, 20]) {
        let first = stored(store, n).await;
        let at = NOON.plus_ms(at_ms);
        committed(store, &first, next(&first, |task| task.watch_at = Some(at))).await;
        expected.push((at, first.order_id));
    }
    expected.sort();
    for limit in [1, 2, 3, 100] {
        let found = all_due(store, watch, NOON.plus_ms(50), limit).await;
        assert!(found.is_sorted_by_key(|due| due.at), "{limit} a page: {found:?}");
        // Entries with the same time come in any order, each once.
        assert_eq!(sorted(&found), expected, "{limit} a page");
    }
    let early = all_due(store, watch, NOON.plus_ms(29), 2).await;
    assert_eq!(sorted(&early), expected[..2]);
}

pub async fn only_the_priority_of_the_supervisor_and_of_the_shard_is_due(world: &impl StoreWorld) {
    let store = world.ports().store();
    let mine = stored(store, 1).await;
    let operators = stored(store, 2).await;
    let waiting = stored(store, 3).await;
    for (other, watch) in [(&operators, Watch::Error as fn(u8) -> Watch), (&waiting, Watch::Wait)] {
        let watch = Some(watch(other.order_id.shard(SHARDS)));
        committed(store, other, next(other, |task| task.watch = watch)).await;
    }
    for shard in 0..SHARDS {
        for (watch, of) in [(Watch::Due(shard), &mine), (Watch::Wait(shard), &waiting)] {
            let found = all_due(store, watch, NOON.plus_ms(1_000_000), 10).await;
            let expected = if shard == of.order_id.shard(SHARDS) { vec![of.order_id] } else { Vec::new() };
            assert_eq!(found.iter().map(|due| due.order_id).collect::<Vec<_>>(), expected, "{watch}");
        }
    }
}

pub async fn a_watch_that_moved_is_due_at_its_new_time_only(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let (early, late) = (NOON.plus_ms(100), NOON.plus_ms(200));
    let second = committed(store, &first, next(&first, |task| task.watch_at = Some(early))).await;
    // A change of another field does not move the entry.
    let third = committed(store, &second, next(&second, |task| task.notify = true)).await;
    let watch = Watch::Due(first.order_id.shard(SHARDS));
    let at_early = Due { at: early, order_id: first.order_id };
    assert_eq!(store.due(watch, early, None, 10).await.unwrap(), [at_early]);
    committed(store, &third, next(&third, |task| task.watch_at = Some(late))).await;
    assert_eq!(store.due(watch, late.minus_ms(1), None, 10).await.unwrap(), []);
    assert_eq!(store.due(watch, late, None, 10).await.unwrap(), [Due { at: late, ..at_early }]);
}

pub async fn a_finished_order_is_not_due(world: &impl StoreWorld) {
    let store = world.ports().store();
    for (n, state) in [(1, ProcessState::Processed), (2, ProcessState::Compensated)] {
        let first = stored(store, n).await;
        let watch = Watch::Due(first.order_id.shard(SHARDS));
        let far = NOON.plus_ms(1_000_000);
        assert_eq!(store.due(watch, far, None, 10).await.unwrap().len(), 1);
        committed(store, &first, next_in(&first, state)).await;
        assert_eq!(store.due(watch, far, None, 10).await.unwrap(), []);
    }
}

/// A store that does not tell says so.
pub async fn a_look_at_the_whole_index_shows_all_entries_or_says_that_there_are_more(world: &impl StoreWorld) {
    let store = world.ports().store();
    assert!(store.watches(1).await.unwrap().is_none_or(|all| all.is_empty()));
    let mut expected = Vec::new();
    for (n, watch) in [(1, Watch::Due as fn(u8) -> Watch), (2, Watch::Wait), (3, Watch::Error)] {
        let first = stored(store, n).await;
        let watch = watch(first.order_id.shard(SHARDS));
        let at = NOON.plus_ms(u64::from(n) * 1_000);
        committed(store, &first, next(&first, |task| (task.watch, task.watch_at) = (Some(watch), Some(at)))).await;
        expected.push((at, watch));
    }
    let finished = stored(store, 4).await;
    committed(store, &finished, next_in(&finished, ProcessState::Processed)).await;
    if let Some(mut all) = store.watches(100).await.unwrap() {
        all.sort_by_key(|(_, at)| *at);
        assert_eq!(all.into_iter().map(|(watch, at)| (at, watch)).collect::<Vec<_>>(), expected);
    }
    assert_eq!(store.watches(2).await.unwrap(), None);
}

/// All entries of a list, in pages of `limit`.
async fn all_listed(store: &impl Store, state: Option<ProcessState>, limit: usize) -> Vec<OrderId> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = store.list(state, after.as_deref(), limit).await.unwrap();
        assert!(page.tasks.len() <= limit && (page.next.is_none() || !page.tasks.is_empty()));
        assert!(page.tasks.iter().all(|task| state.is_none_or(|state| task.process_state == state)));
        assert!(page.read >= page.tasks.len(), "{} read for {}", page.read, page.tasks.len());
        all.extend(page.tasks.iter().map(|task| task.order_id));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

pub async fn a_list_is_newest_first_and_pages_through_all(world: &impl StoreWorld) {
    let store = world.ports().store();
    assert_eq!(all_listed(store, None, 10).await, []);
    let mut expected = Vec::new();
    for n in 0..7 {
        expected.insert(0, stored(store, n).await.order_id);
    }
    for limit in [1, 2, 3, 7, 100] {
        assert_eq!(all_listed(store, None, limit).await, expected, "{limit} a page");
        assert_eq!(all_listed(store, Some(ProcessState::Pending), limit).await, expected, "{limit} a page");
    }
}

pub async fn a_list_of_a_state_has_no_others(world: &impl StoreWorld) {
    let store = world.ports().store();
    let (mut failed, mut processed) = (Vec::new(), Vec::new());
    for n in 0..9 {
        let first = stored(store, n).await;
        let (state, list) = match n % 3 {
            0 => (ProcessState::Error, &mut failed),
            1 => (ProcessState::Processed, &mut processed),
            _ => continue,
        };
        committed(store, &first, next_in(&first, state)).await;
        list.insert(0, first.order_id);
    }
    assert_eq!(all_listed(store, Some(ProcessState::Error), 2).await, failed);
    assert_eq!(all_listed(store, Some(ProcessState::Processed), 2).await, processed);
    assert_eq!(all_listed(store, Some(ProcessState::Compensated), 2).await, []);
}

/// All orders of a term, in pages of `limit`.
async fn all_found(store: &impl Store, term: &Term, limit: usize) -> BTreeSet<OrderId> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = store.found(term, after.as_deref(), limit).await.unwrap().expect("an index");
        assert!(page.tasks.len() <= limit);
        all.extend(page.tasks.iter().map(|task| task.order_id));
        after = page.next;
        if after.is_none() {
            let set: BTreeSet<OrderId> = all.iter().copied().collect();
            assert_eq!(set.len(), all.len(), "none twice");
            return set;
        }
    }
}

pub async fn an_order_is_found_by_each_of_its_terms_in_any_state(world: &impl StoreWorld) {
    let store = world.ports().store();
    let [even, third, missing] = ["even", "third", "missing"].map(Term::correlation);
    let (mut of_even, mut of_third) = (BTreeSet::new(), BTreeSet::new());
    for n in 0..7 {
        let with = |term: &Term, is_of: bool| is_of.then(|| term.clone());
        let terms: Vec<_> = with(&even, n % 2 == 0).into_iter().chain(with(&third, n % 3 == 0)).collect();
        let order = Order { terms: terms.clone(), ..order(n) };
        let first = task(&order);
        // A repeat, as after a lost answer, changes nothing.
        assert_eq!(store.insert(order.clone().into(), first.clone().into()).await.unwrap(), Inserted::New);
        store.insert(order.clone().into(), first.clone().into()).await.unwrap();
        of_even.extend(terms.contains(&even).then_some(order.order_id));
        of_third.extend(terms.contains(&third).then_some(order.order_id));
        if n % 4 == 0 {
            committed(store, &first, next_in(&first, ProcessState::Processed)).await;
        }
    }
    for limit in [1, 2, 4, 100] {
        assert_eq!(all_found(store, &even, limit).await, of_even, "{limit} a page");
        assert_eq!(all_found(store, &third, limit).await, of_third, "{limit} a page");
    }
    assert_eq!(all_found(store, &missing, 10).await, BTreeSet::new());
    let page = store.found(&third, None, 100).await.unwrap().unwrap();
    let processed = page.tasks.iter().filter(|task| task.process_state == ProcessState::Processed);
    assert_eq!(processed.count(), 1, "the tasks are the present ones");
}

pub async fn a_cursor_that_somebody_made_up_is_refused(world: &impl StoreWorld) {
    let store = world.ports().store();
    stored(store, 1).await;
    let term = Term::correlation("any");
    for made_up in ["", "made-up", "eyJ4IjoxfQ==", "-1", "' OR 1=1 --", "99999999999999999999999"] {
        let answer = store.list(None, Some(made_up), 10).await;
        assert!(matches!(answer, Err(ListError::Cursor)), "{made_up}: {answer:?}");
        let answer = store.found(&term, Some(made_up), 10).await;
        assert!(matches!(answer, Err(ListError::Cursor)), "{made_up}: {answer:?}");
    }
}

pub async fn a_settled_task_is_given_at_once(world: &impl StoreWorld) {
    let store = world.ports().store();
    for (n, state) in [(1, ProcessState::Processed), (2, ProcessState::Compensated), (3, ProcessState::Error)] {
        let first = stored(store, n).await;
        let settled = committed(store, &first, next_in(&first, state)).await;
        assert_eq!(store.settled(first.order_id, LONG_MS).await.unwrap().unwrap().task, settled);
    }
}

pub async fn who_waits_is_told_when_the_task_is_settled(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let work = async {
        let second = committed(store, &first, next_in(&first, ProcessState::Processing)).await;
        committed(store, &second, next_in(&second, ProcessState::Processed)).await
    };
    let (told, last) = join(store.settled(first.order_id, LONG_MS), work).await;
    assert_eq!(told.unwrap().unwrap().task, last);
}

pub async fn who_waits_too_long_gets_the_task_as_it_is(world: &impl StoreWorld) {
    let store = world.ports().store();
    let first = stored(store, 1).await;
    let (told, ()) = join(store.settled(first.order_id, 20), world.pass(20)).await;
    assert_eq!(told.unwrap().unwrap().task, first);
    assert_eq!(store.settled(first.order_id, 0).await.unwrap().unwrap().task, first);
}

/// An ended order that expires, and the term by which it is found.
async fn ended(store: &impl Store, n: u32) -> (Arc<Task>, Term) {
    let term = Term::correlation("cart-7");
    let order = Order { terms: vec![term.clone()], ..order(n) };
    let first = task(&order);
    assert_eq!(store.insert(order.into(), first.clone().into()).await.unwrap(), Inserted::New);
    let mut last = Task::clone(&next_in(&first, ProcessState::Processed));
    last.expires_at = Some(NOON.plus_ms(RETAIN_MS_MIN));
    (committed(store, &first, Arc::new(last)).await, term)
}

pub async fn rule_44_an_expired_order_is_gone_with_its_terms_and_its_id_is_free(world: &impl StoreWorld) {
    let store = world.ports().store();
    let (last, term) = ended(store, 1).await;
    let kept = stored(store, 2).await;
    world.expire(&last).await;
    assert!(store.order(last.order_id).await.unwrap().is_none());
    assert!(store.task(last.order_id).await.unwrap().is_none());
    assert_eq!(all_found(store, &term, 10).await, BTreeSet::new());
    assert_eq!(all_listed(store, None, 10).await, [kept.order_id]);
    assert_eq!(store.commit(&last, next_in(&last, ProcessState::Closed)).await.unwrap(), Commit::Conflict);
    // The same key, with another document.
    let again = order_with(1, r#"{"Total":13.50}"#);
    assert_eq!(store.insert(again.clone().into(), task(&again).into()).await.unwrap(), Inserted::New);
    assert_eq!(*store.order(last.order_id).await.unwrap().unwrap(), again);
    assert_eq!(all_found(store, &term, 10).await, BTreeSet::new());
}

pub async fn rule_44_an_order_is_there_until_it_expires(world: &impl StoreWorld) {
    let store = world.ports().store();
    let (last, term) = ended(store, 1).await;
    let before = NOON.plus_ms(RETAIN_MS_MIN - 1);
    assert_eq!(store.forget_expired(before, 10).await.unwrap(), 0);
    assert_eq!(store.task(last.order_id).await.unwrap().unwrap(), last);
    assert_eq!(all_found(store, &term, 10).await, BTreeSet::from([last.order_id]));
    let again = order(1);
    assert_eq!(store.insert(again.clone().into(), task(&again).into()).await.unwrap(), Inserted::Same);
}

pub async fn rule_46_an_erased_order_is_found_by_nothing_and_a_later_post_meets_it(world: &impl StoreWorld) {
    let (store, records) = (world.ports().store(), world.ports().records());
    let (last, term) = ended(store, 1).await;
    let kept = memo(&format!("{}/charge-payment", last.order_id), 1);
    records.put(Seen { version: 0, at: NOON }, &kept).await.unwrap();
    for letter in [dead_letter(1, 1), dead_letter(2, 2)] {
        records.put(Seen::nothing(NOON), &letter).await.unwrap();
    }
    let erased = next(&last, |task| task.erased_at = Some(NOON));
    store.erase_others(&last).await.unwrap();
    let erased = committed(store, &last, erased).await;
    assert_eq!(store.commit(&last, erased.clone()).await.unwrap(), Commit::Committed, "the answer was lost");
    assert_eq!(store.task(last.order_id).await.unwrap().unwrap(), erased);
    assert_eq!(*store.order(last.order_id).await.unwrap().unwrap(), order(1).erased());
    assert_eq!(all_found(store, &term, 10).await, BTreeSet::new());
    let answered: Memo = records.get(&kept.key).await.unwrap().unwrap();
    assert_eq!(answered, kept.erased(), "a repeat makes no call");
    let letters: Vec<DeadLetterRecord> = records.list(10).await.unwrap();
    assert_eq!(letters, [dead_letter(2, 2)]);
    for document in [r#"{"Total":12.50,"Item":"book-1"}"#, r#"{"Total":13.50}"#] {
        let again = order_with(1, document);
        assert_eq!(
            store.insert(again.clone().into(), task(&again).into()).await.unwrap(),
            Inserted::Same,
            "{document}"
        );
    }
    assert_eq!(*store.order(last.order_id).await.unwrap().unwrap(), order(1).erased());
}
