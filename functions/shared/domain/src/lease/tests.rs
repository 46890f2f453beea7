use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::task::{Context, Waker};

use futures_util::future::pending;

use super::*;
use crate::ports::{Listed, MemoryRecords, Record};

const TERM: Term = Term { term_ms: 9_000, margin_ms: 1_000 };

/// The store's answer to a renewal, and its duration.
#[derive(Clone, Copy)]
enum Answer {
    Yes { after_ms: u64 },
    No,
    Error,
    Never,
}

/// The records in memory, with answers that take their time, and a clock that only the test moves.
struct SlowRecords {
    now: AtomicI64,
    acquire_ms: u64,
    unreachable: bool,
    /// Timers do not fire, although the clock moves on: the instance was frozen.
    timers_late: AtomicBool,
    renewals: Mutex<VecDeque<Answer>>,
    stored: Mutex<MemoryRecords>,
    /// The writes, with their times.
    log: Mutex<Vec<String>>,
}

impl SlowRecords {
    fn new(renewals: &[Answer]) -> Self {
        Self {
            now: AtomicI64::new(0),
            acquire_ms: 0,
            unreachable: false,
            timers_late: AtomicBool::new(false),
            renewals: Mutex::new(renewals.iter().copied().collect()),
            stored: Mutex::default(),
            log: Mutex::default(),
        }
    }

    fn log(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.now.load(Ordering::Relaxed)));
    }

    fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn pass_ms(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
    }

    fn stored(&self) -> Lease {
        self.stored.lock().unwrap().get("sweep").unwrap().unwrap()
    }
}

impl Environment for SlowRecords {
    fn now(&self) -> Timestamp {
        Timestamp::from_epoch_ms(self.now.load(Ordering::Relaxed))
    }

    async fn sleep(&self, ms: u64) {
        let until = self.now().plus_ms(ms);
        poll_fn(|_| {
            let fires = self.now() >= until && !self.timers_late.load(Ordering::Relaxed);
            if fires { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn random(&self) -> u64 {
        panic!("a lease leaves nothing to chance")
    }
}

impl Records for SlowRecords {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        if self.unreachable {
            return Err(PortError::unavailable("leases.lease", "down"));
        }
        self.stored.lock().unwrap().get(key)
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let lease: Lease = serde_json::from_value(serde_json::to_value(record).unwrap()).unwrap();
        let health = lease.health.map(|health| format!(" {health}")).unwrap_or_default();
        if seen.version == 0 {
            self.log("acquire");
            self.sleep(self.acquire_ms).await;
        } else if lease.held_until.is_none() {
            self.log(&format!("release{health}"));
        } else {
            self.log(&format!("renew{health}"));
            let answer = self.renewals.lock().unwrap().pop_front().unwrap_or(Answer::Yes { after_ms: 0 });
            match answer {
                Answer::Yes { after_ms } => self.sleep(after_ms).await,
                Answer::No => return Ok(Commit::Conflict),
                Answer::Error => return Err(PortError::unavailable("leases.set_lease", "down")),
                Answer::Never => pending().await,
            }
        }
        self.stored.lock().unwrap().put(seen, record)
    }

    async fn list<R: Listed>(&self, _: usize) -> Result<Vec<R>, PortError> {
        panic!("a holder looks at its own lease only")
    }
}

/// A work that takes time, counts its looks at the clock, and notes when it is dropped.
struct Work<'a> {
    leases: &'a SlowRecords,
    until_ms: i64,
    polls: &'a AtomicU32,
}

impl Future for Work<'_> {
    type Output = &'static str;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<&'static str> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        if self.leases.now().epoch_ms() >= self.until_ms { Poll::Ready("done") } else { Poll::Pending }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.leases.log("dropped");
    }
}

/// Runs a work of `work_ms` in steps of 100 ms until it ends, and returns its result and the log.
fn hold_for(leases: &SlowRecords, work_ms: i64) -> (Result<Held<&'static str>, PortError>, Vec<String>) {
    let polls = AtomicU32::new(0);
    let work = Work { leases, until_ms: work_ms, polls: &polls };
    let health = || format!("fine at {}", leases.now().epoch_ms());
    let mut holding = pin!(hold(leases, "sweep", "me", TERM, health, work));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(held) = holding.as_mut().poll(&mut context) {
            return (held, leases.logged());
        }
        leases.pass_ms(100);
    }
    panic!("it does not end: {:?}", leases.logged());
}

#[test]
fn a_short_work_is_done_and_the_lease_is_given_back_with_a_last_note() {
    let leases = SlowRecords::new(&[]);
    let (held, log) = hold_for(&leases, 1_000);
    assert_eq!(held.unwrap(), Held::Done("done"));
    assert_eq!(log, ["0 acquire", "1000 dropped", "1000 release fine at 1000"]);
}

#[test]
fn a_long_work_renews_at_each_third_of_the_term() {
    let leases = SlowRecords::new(&[]);
    let (held, log) = hold_for(&leases, 10_000);
    assert_eq!(held.unwrap(), Held::Done("done"));
    let writes: Vec<_> = log.iter().filter(|line| line.contains("fine")).collect();
    assert_eq!(
        writes,
        [
            "3000 renew fine at 3000",
            "6000 renew fine at 6000",
            "9000 renew fine at 9000",
            "10000 release fine at 10000"
        ]
    );
}

#[test]
fn without_the_lease_the_work_is_not_begun() {
    let taken = SlowRecords::new(&[]);
    let of_other = acquired(None, "sweep", "other", taken.now(), TERM.term_ms).unwrap();
    taken.stored.lock().unwrap().put(Seen::nothing(taken.now()), &of_other).unwrap();
    let (held, log) = hold_for(&taken, 0);
    assert_eq!(held.unwrap(), Held::NotAcquired);
    assert_eq!(log, ["0 dropped"]);
    let unreachable = SlowRecords { unreachable: true, ..SlowRecords::new(&[]) };
    let (held, log) = hold_for(&unreachable, 0);
    assert!(held.is_err());
    assert_eq!(log, ["0 dropped"]);
}

#[test]
fn a_lease_that_comes_after_its_own_trust_is_over_is_not_used() {
    // Acquired just in time, but the request was long ago: the first poll of the work would come too late.
    let leases = SlowRecords { acquire_ms: 20_000, ..SlowRecords::new(&[]) };
    let (held, log) = hold_for(&leases, 0);
    assert_eq!(held.unwrap(), Held::NotAcquired);
    assert_eq!(log.last().unwrap(), "8000 dropped");
}

#[test]
fn trust_counts_from_the_start_of_the_attempt_and_not_from_its_answer() {
    // The answer comes after 5 s, and the next renewal never. The work ends 8 s after the attempt was begun.
    let leases = SlowRecords { acquire_ms: 5_000, ..SlowRecords::new(&[Answer::Never]) };
    let (held, log) = hold_for(&leases, 60_000);
    assert_eq!(held.unwrap(), Held::Lost(Loss::TooLate));
    assert!(log.contains(&"8000 dropped".to_owned()), "{log:?}");
    // The renewal of 3000 is answered at 6000 and trusted until 3000 + 8000; the one of 9000 is never answered.
    let leases = SlowRecords::new(&[Answer::Yes { after_ms: 3_000 }, Answer::Never]);
    let (held, log) = hold_for(&leases, 60_000);
    assert_eq!(held.unwrap(), Held::Lost(Loss::TooLate));
    assert_eq!(log[2..], ["9000 renew fine at 9000", "11000 dropped", "11000 release fine at 11000"]);
}

#[test]
fn a_renewal_that_is_refused_cancels_the_work_and_leaves_the_lease_to_its_new_holder() {
    let leases = SlowRecords::new(&[Answer::Yes { after_ms: 0 }, Answer::No]);
    let (held, log) = hold_for(&leases, 60_000);
    assert_eq!(held.unwrap(), Held::Lost(Loss::Taken));
    assert_eq!(log[1..], ["3000 renew fine at 3000", "6000 renew fine at 6000", "6000 dropped"]);
}

#[test]
fn a_renewal_that_fails_cancels_the_work_and_gives_the_lease_back() {
    let leases = SlowRecords::new(&[Answer::Error]);
    let (held, log) = hold_for(&leases, 60_000);
    assert_eq!(held.unwrap(), Held::Lost(Loss::NotRenewed));
    assert_eq!(log[1..], ["3000 renew fine at 3000", "3000 dropped", "3000 release fine at 3000"]);
}

#[test]
fn a_renewal_that_succeeds_too_late_cancels_the_work_in_time() {
    let leases = SlowRecords::new(&[Answer::Yes { after_ms: 6_000 }]);
    let (held, log) = hold_for(&leases, 60_000);
    assert_eq!(held.unwrap(), Held::Lost(Loss::TooLate));
    assert_eq!(log[2..], ["8000 dropped", "8000 release fine at 8000"]);
}

#[test]
fn a_renewal_that_succeeds_at_the_very_end_of_its_trust_or_after_it_does_not_count() {
    // Asked at 3000, and trusted until 8000 at that time: an answer at 7900 counts, one at 8000 does not. It comes too
    // late, although the renewed lease would last longer.
    for (after_ms, expected) in [(4_900, Held::Done("done")), (5_000, Held::Lost(Loss::TooLate))] {
        let leases = SlowRecords::new(&[Answer::Yes { after_ms }]);
        assert_eq!(hold_for(&leases, 10_000).0.unwrap(), expected, "{after_ms}");
    }
    // A frozen instance: when it wakes up, the answer is there, and its trust is over.
    let (leases, polls) = (SlowRecords::new(&[Answer::Yes { after_ms: 1_000 }]), AtomicU32::new(0));
    let work = Work { leases: &leases, until_ms: 1_000_000, polls: &polls };
    let mut holding = pin!(hold(&leases, "sweep", "me", TERM, String::new, work));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..=3 {
        assert!(holding.as_mut().poll(&mut context).is_pending());
        leases.pass_ms(1_000);
    }
    let before = polls.load(Ordering::Relaxed);
    leases.pass_ms(60_000);
    let held = holding.as_mut().poll(&mut context).map(Result::unwrap);
    assert_eq!((held, polls.load(Ordering::Relaxed)), (Poll::Ready(Held::Lost(Loss::TooLate)), before));
}

#[test]
fn a_renewal_whose_answer_never_came_is_found_and_the_lease_is_free_all_the_same() {
    // The holder knows of no renewal, or one arrives between its last look and its release.
    let leases = SlowRecords::new(&[]);
    let next = |_: Option<&Lease>| acquired(None, "sweep", "me", leases.now(), TERM.term_ms);
    let lease = change(&leases, "sweep", leases.now(), next).now_or_never().unwrap().unwrap().unwrap();
    assert!(renew(&leases, &lease, leases.now(), TERM, "fine").now_or_never().unwrap().unwrap().is_some());
    assert_eq!(renew(&leases, &lease, leases.now(), TERM, "late").now_or_never().unwrap().unwrap(), None);
    release(&leases, &lease, "").now_or_never().unwrap().unwrap();
    let stored = leases.stored();
    assert_eq!((stored.held_until, stored.health.as_deref()), (None, Some("fine")));
    release(&leases, &lease, "again").now_or_never().unwrap().unwrap();
    assert_eq!(leases.stored(), stored, "a lease that is free is left alone");
}

#[test]
fn a_holder_that_was_frozen_past_its_trust_does_not_touch_the_work_again() {
    let (leases, polls) = (SlowRecords::new(&[]), AtomicU32::new(0));
    let work = Work { leases: &leases, until_ms: 1_000, polls: &polls };
    let mut holding = pin!(hold(&leases, "sweep", "me", TERM, String::new, work));
    let mut context = Context::from_waker(Waker::noop());
    assert!(holding.as_mut().poll(&mut context).is_pending());
    assert_eq!(polls.load(Ordering::Relaxed), 1);
    leases.pass_ms(8_000);
    leases.timers_late.store(true, Ordering::Relaxed);
    let held = holding.as_mut().poll(&mut context).map(Result::unwrap);
    assert_eq!(held, Poll::Ready(Held::Lost(Loss::TooLate)), "the clock is asked although no timer fired");
    assert_eq!(polls.load(Ordering::Relaxed), 1, "the work was ready, and is not asked");
}

#[test]
fn a_work_that_fails_gives_the_lease_back() {
    let leases = SlowRecords::new(&[]);
    let holding = hold(&leases, "sweep", "me", TERM, String::new, async { Err::<(), _>("failed") });
    assert_eq!(holding.now_or_never().unwrap().unwrap(), Held::Done(Err("failed")));
    assert_eq!(leases.logged(), ["0 acquire", "0 release"]);
}

#[test]
fn a_work_that_panics_gives_the_lease_back_and_goes_on_panicking() {
    let leases = SlowRecords::new(&[]);
    let holding = hold(&leases, "sweep", "me", TERM, String::new, async { panic!("a bug") });
    let panic = AssertUnwindSafe(holding).catch_unwind().now_or_never().unwrap().map(|_: Result<Held<()>, _>| ());
    assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "a bug");
    assert_eq!(leases.logged(), ["0 acquire", "0 release"]);
}
