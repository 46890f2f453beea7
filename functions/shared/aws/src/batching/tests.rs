#![expect(clippy::disallowed_methods, reason = "a clock that stands still but for what is waited")]

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::*;
use crate::testing::random;

/// An entry with its name and its length. The name defines its outcome.
type Entry = (&'static str, usize);

/// Records the names of each request, and takes every entry except those with a special name.
#[derive(Default)]
struct Fake {
    requests: Mutex<Vec<Vec<&'static str>>>,
}

impl Carrier for Arc<Fake> {
    type Entry = Entry;
    const OPERATION: &'static str = "fake.send";
    const BYTES_MAX: usize = 100;

    fn bytes(entry: &Entry) -> usize {
        entry.1
    }

    async fn carry(&self, target: &str, entries: &[&Entry]) -> Result<Vec<SendOutcome>, PortError> {
        let mut requests = self.requests.lock().unwrap();
        requests.push(entries.iter().map(|entry| entry.0).collect());
        let is_first = requests.len() == 1;
        if target == "gone" {
            return Err(PortError::refused("fake.send", "no such target"));
        }
        let outcome = |name: &str| match name {
            "bad" => SendOutcome::Refused("bad".to_owned()),
            "busy at first" if is_first => SendOutcome::NotNow("busy".to_owned()),
            "always busy" => SendOutcome::NotNow("busy".to_owned()),
            _ => SendOutcome::Taken,
        };
        Ok(entries.iter().map(|entry| outcome(entry.0)).filter(|_| target != "silent").collect())
    }
}

struct Case {
    fake: Arc<Fake>,
    batcher: Batcher<Arc<Fake>>,
}

impl Case {
    fn new() -> Self {
        let fake = Arc::new(Fake::default());
        Self { batcher: Batcher::new(fake.clone(), random()), fake }
    }

    /// Sends entries at the same time, each from its own record.
    async fn send(&self, target: &str, entries: impl IntoIterator<Item = Entry>) -> Vec<Result<(), String>> {
        let (target, company) = (target.into(), Company::default());
        let sending = entries.into_iter().map(|entry| {
            let scope = Scope { trace_header: None, company: company.clone() };
            scope.run(self.batcher.send(&target, entry))
        });
        join_all(sending).await.into_iter().map(|sent| sent.map_err(|error| error.to_string())).collect()
    }

    fn requests(&self) -> Vec<Vec<&'static str>> {
        self.fake.requests.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_at_the_same_time_goes_in_one_request_without_a_wait() {
    let (case, began) = (Case::new(), Instant::now());
    assert_eq!(case.send("q", [("a", 1), ("b", 1), ("c", 1)]).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(case.requests(), [["a", "b", "c"]]);
    assert_eq!(case.send("q", [("d", 1)]).await, [Ok(())]);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn ten_entries_and_so_many_bytes_are_the_most_for_a_request() {
    let case = Case::new();
    assert!(case.send("q", [("x", 1); 25]).await.iter().all(Result::is_ok));
    assert_eq!(case.requests().iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    let case = Case::new();
    assert!(case.send("q", [("a", 60), ("b", 40), ("c", 100), ("d", 1)]).await.iter().all(Result::is_ok));
    assert_eq!(case.requests(), [vec!["a", "b"], vec!["c"], vec!["d"]]);
}

#[tokio::test]
async fn an_entry_that_is_too_large_is_refused_and_not_sent() {
    let case = Case::new();
    let answers = case.send("q", [("a", 1), ("large", 101)]).await;
    assert_eq!(answers[0], Ok(()));
    assert_eq!(answers[1], Err("fake.send: refused".to_owned()));
    assert_eq!(case.requests(), [["a"]]);
}

#[tokio::test]
async fn other_targets_have_requests_of_their_own() {
    let case = Case::new();
    tokio::join!(case.send("p", [("a", 1)]), case.send("q", [("b", 1)]), case.send("p", [("c", 1)]));
    let mut requests = case.requests();
    requests.sort();
    assert_eq!(requests, [vec!["a", "c"], vec!["b"]]);
}

#[tokio::test(start_paused = true)]
async fn entries_that_were_not_taken_are_sent_again_without_the_others() {
    let case = Case::new();
    let answers = case.send("q", [("a", 1), ("bad", 1), ("busy at first", 1)]).await;
    assert_eq!(answers, [Ok(()), Err("fake.send: refused".to_owned()), Ok(())]);
    assert_eq!(case.requests(), [vec!["a", "bad", "busy at first"], vec!["busy at first"]]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_target_is_not_asked_for_ever() {
    for (target, entry) in [("q", "always busy"), ("silent", "a")] {
        let case = Case::new();
        assert_eq!(case.send(target, [(entry, 1)]).await, [Err("fake.send: unavailable".to_owned())]);
        assert_eq!(case.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_request_that_fails_as_a_whole_fails_for_everybody() {
    let case = Case::new();
    let refused = || Err("fake.send: refused".to_owned());
    assert_eq!(case.send("gone", [("a", 1), ("b", 1)]).await, [refused(), refused()]);
    assert_eq!(case.requests(), [["a", "b"]]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_a_moment_for_those_that_are_still_at_work_and_no_longer() {
    let (case, began) = (Case::new(), Instant::now());
    let company = Company::default();
    let target: Arc<str> = "q".into();
    let after = |ms, name| {
        let scope = Scope { trace_header: None, company: company.clone() };
        let (batcher, target) = (&case.batcher, &target);
        scope.run(async move {
            crate::environment::sleep(ms).await;
            batcher.send(target, (name, 1)).await.unwrap();
            began.elapsed()
        })
    };
    let times = tokio::join!(after(0, "a"), after(1, "b"), after(1_000, "c"));
    assert_eq!(case.requests(), [vec!["a", "b"], vec!["c"]]);
    assert!(times.0 < Duration::from_millis(10) && times.1 < Duration::from_millis(10), "{times:?}");
}

#[tokio::test]
async fn an_entry_goes_its_way_when_nobody_waits_for_its_fate_any_more() {
    let case = Case::new();
    let target = "q".into();
    {
        let sending = case.batcher.send(&target, ("a", 1));
        assert!(futures_util::poll!(std::pin::pin!(sending)).is_pending());
    }
    assert_eq!(case.send("q", [("b", 1)]).await, [Ok(())]);
    assert_eq!(case.requests(), [["a", "b"]]);
}
