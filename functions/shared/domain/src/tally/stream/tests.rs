use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::machine::testing::Case;
use crate::task::ProcessState;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn shard(number: usize) -> Arc<str> {
    format!("shard-{number}").into()
}

/// The versions of an order of three steps, a quarter of an hour apart.
fn versions() -> Vec<(Timestamp, Task)> {
    let mut case = Case::chain();
    let mut versions = vec![(case.now, case.task.clone())];
    case.wake();
    for name in ["a", "b", "c"] {
        versions.push((case.now, case.task.clone()));
        case.pass_ms(HOUR_MS / 4);
        case.done(name);
    }
    versions.push((case.now, case.task.clone()));
    versions
}

/// The changes of orders that begin one minute after the other, in the shard of each order.
fn changes(orders: u64, shards: usize) -> Vec<Batch> {
    let mut all = Vec::new();
    for order in 0..orders {
        let mut before = None;
        for (at, task) in versions() {
            let place = usize::try_from(order).unwrap() % shards;
            all.push((at.plus_ms(order * MINUTE_MS), place, before.replace(task.clone()), task));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    let mut batches: Vec<Batch> =
        (0..shards).map(|place| Batch { stream: "s".into(), shard: shard(place), changes: Vec::new() }).collect();
    for (number, (at, place, before, after)) in all.into_iter().enumerate() {
        let sequence = Sequence::from(&*format!("{}", 95 + number));
        batches[place].changes.push(Change { sequence, at, before, after: Some(after) });
    }
    batches
}

/// What is stored.
#[derive(Default)]
struct Stored(BTreeMap<Part, Count>);

impl Stored {
    /// Takes a part of a batch; `parts`: how many of its parts are written before the consumer is killed.
    fn take(&mut self, batch: &Batch, parts: usize) {
        let now = batch.changes.last().map_or_else(Timestamp::default, |change| change.at);
        for part in batch.parts().into_iter().take(parts) {
            let begun = || if part == Part::Total { Count::begun(&batch.stream, true) } else { Count::default() };
            let mut count = self.0.remove(&part).unwrap_or_else(begun);
            count.add(part, batch, now);
            // It is read back as it was written.
            let text = serde_json::to_string(&count).unwrap();
            self.0.insert(part, serde_json::from_str(&text).unwrap());
        }
    }

    fn total(&self) -> &Count {
        &self.0[&Part::Total]
    }

    fn sum(&self, grain: Grain) -> Tally {
        let mut sum = Tally::default();
        let of = |part: &Part| matches!(part, Part::Span(other, _) if *other == grain);
        self.0.iter().filter(|(part, _)| of(part)).for_each(|(_, count)| sum.add(&count.tally));
        sum
    }
}

fn slice(batch: &Batch, from: usize, to: usize) -> Batch {
    Batch { changes: batch.changes[from..to].to_vec(), ..batch.clone() }
}

/// The same, counted in one pass as each change is written.
fn plain(batches: &[Batch]) -> (Tally, States) {
    let (mut tally, mut states) = (Tally::default(), States::default());
    for Change { before, after, .. } in batches.iter().flat_map(|batch| &batch.changes) {
        let after = after.as_ref().unwrap();
        tally.count(before.as_ref(), after);
        states.moved(before.as_ref().map(|task| task.process_state), after.process_state);
    }
    (tally, states)
}

proptest! {
    /// Deliveries of any size, cut short after any number of writes and then repeated, with repeats of what was long
    /// counted, and with shards in any order.
    #[test]
    fn each_change_is_counted_once_however_it_is_delivered(
        deliveries in vec((0_usize..3, 1_usize..9, 0_usize..12, 0_usize..30), 0..60),
    ) {
        let batches = changes(7, 3);
        let (mut stored, mut places) = (Stored::default(), [0; 3]);
        for (shard, size, parts, back) in deliveries {
            let batch = &batches[shard];
            let from = places[shard];
            let to = (from + size).min(batch.changes.len());
            stored.take(&slice(batch, from, to), parts);
            if parts > 6 {
                stored.take(&slice(batch, from, to), usize::MAX);
                places[shard] = to;
            }
            let again = places[shard].saturating_sub(back);
            stored.take(&slice(batch, again, places[shard]), usize::MAX);
        }
        for (batch, place) in batches.iter().zip(places) {
            stored.take(&slice(batch, place, batch.changes.len()), usize::MAX);
        }
        let (tally, states) = plain(&batches);
        prop_assert_eq!(&stored.total().tally, &tally);
        prop_assert_eq!(&stored.sum(Grain::Minute), &tally);
        prop_assert_eq!(&stored.sum(Grain::Hour), &tally);
        prop_assert_eq!(stored.total().states, Some(states));
        prop_assert_eq!((states.of(ProcessState::Processed), states.of(ProcessState::Processing)), (7, 0));
        let first = batches.iter().map(|batch| batch.changes[0].at).min();
        prop_assert_eq!(stored.total().since, first.map(|at| Grain::Minute.of(at)));
    }
}

#[test]
fn places_are_compared_as_numbers_of_any_length() {
    let nines = "9".repeat(40);
    let places = ["0", "9", "10", "000011", "99", "100", "4421584500000000017450439091", &nines];
    let places: Vec<Sequence> = places.into_iter().map(Sequence::from).collect();
    assert!(places.is_sorted() && places[1] < places[2] && Sequence::from("007") == Sequence::from("7"));
}

#[test]
fn the_states_of_a_count_that_may_lack_a_change_are_unknown() {
    let [batch] = &changes(1, 1)[..] else { panic!("one shard") };
    let now = batch.changes[0].at;
    let states = |begun: Count, batch: &Batch, now| {
        let mut count = begun;
        assert!(count.add(Part::Total, batch, now));
        count.states.map(|states| states.of(ProcessState::Processed))
    };
    assert_eq!(states(Count::begun(&batch.stream, true), batch, now), Some(1));
    assert_eq!(states(Count::begun(&batch.stream, false), batch, now), None, "orders from before the stream");
    assert_eq!(states(Count::begun(&batch.stream, true), batch, now.plus_ms(LATE_MS - 1)), Some(1));
    assert_eq!(states(Count::begun(&batch.stream, true), batch, now.plus_ms(LATE_MS)), None, "others are dropped");
    let turned_on_again = Count::begun(&"before".into(), true);
    assert_eq!(states(turned_on_again, batch, now), None, "changes between the two streams");
}

#[test]
fn an_order_that_is_removed_leaves_its_state() {
    let [batch] = &mut changes(1, 1)[..] else { panic!("one shard") };
    let last = batch.changes.last().unwrap().clone();
    let gone = Change { sequence: "1000".into(), at: last.at, before: last.after, after: None };
    batch.changes.push(gone);
    let mut stored = Stored::default();
    stored.take(batch, usize::MAX);
    assert_eq!(stored.total().states, Some(States::default()));
    assert_eq!(stored.total().tally.orders().processed, 1);
}

#[test]
fn the_cursor_of_a_shard_that_has_ended_is_dropped_after_the_stream_has_dropped_its_changes() {
    let [batch] = &changes(1, 1)[..] else { panic!("one shard") };
    let mut count = Count::begun(&batch.stream, true);
    let later = |ms: u64, number: usize| {
        let change = |change: &Change| Change { at: change.at.plus_ms(ms), ..change.clone() };
        Batch { shard: shard(number), changes: batch.changes.iter().map(change).collect(), ..batch.clone() }
    };
    for (ms, number) in [(0, 0), (CURSOR_KEPT_MS - 1, 1), (CURSOR_KEPT_MS, 2)] {
        let batch = later(ms, number);
        count.add(Part::Total, &batch, batch.changes[0].at);
    }
    assert_eq!(count.cursors.keys().cloned().collect::<Vec<_>>(), [shard(1), shard(2)]);
}

#[test]
fn a_span_is_stored_longer_than_it_is_shown() {
    let begin = Timestamp::from_epoch_ms(1_795_176_000_000);
    let days = |part: Part| part.expires_at().map(|at| begin.ms_until(at) / HOUR_MS);
    assert_eq!(days(Part::Span(Grain::Minute, begin)), Some(26));
    assert_eq!(days(Part::Span(Grain::Hour, begin)), Some(31 * 24 + 1));
    assert_eq!(days(Part::Total), None);
}
