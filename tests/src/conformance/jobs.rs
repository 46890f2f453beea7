//! [`Records`] of jobs: two writes at once, the list, and the limit of kept jobs.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::sync::Arc;

use domain::bulk::Job;
use domain::ports::{Commit, HasRecords, Records, Seen};
use futures_util::future::join;

use super::StoreWorld;
use super::samples::{NOON, job};

async fn planned(jobs: &impl Records, id: &str, planned_after_ms: u64) -> Job {
    let job = job(id, planned_after_ms);
    assert_eq!(jobs.put(Seen::version(0, NOON), &job).await.unwrap(), Commit::Committed);
    job
}

async fn ids(jobs: &impl Records) -> Vec<Arc<str>> {
    jobs.list::<Job>(usize::MAX).await.unwrap().iter().map(|job| job.id.clone()).collect()
}

pub async fn of_two_writes_of_a_job_at_once_one_wins(world: &impl StoreWorld) {
    let jobs = world.ports().records();
    let first = planned(jobs, "j", 0).await;
    let started = first.start("ann", "go", NOON).unwrap();
    let cancelled = first.cancel("somebody", "not now", NOON).unwrap();
    let both = join(jobs.put(Seen::version(1, NOON), &started), jobs.put(Seen::version(1, NOON), &cancelled)).await;
    let winner = match (both.0.unwrap(), both.1.unwrap()) {
        (Commit::Committed, Commit::Conflict) => started,
        (Commit::Conflict, Commit::Committed) => cancelled,
        both => panic!("{both:?}"),
    };
    assert_eq!(jobs.get::<Job>("j").await.unwrap(), Some(winner));
}

pub async fn jobs_are_listed_newest_first(world: &impl StoreWorld) {
    let jobs = world.ports().records();
    for (id, after_ms) in [("b", 20), ("c", 30), ("a", 10), ("d", 5)] {
        planned(jobs, id, after_ms).await;
    }
    // A later write does not change the age of a job.
    let oldest = jobs.get::<Job>("d").await.unwrap().unwrap();
    jobs.put(Seen::version(1, NOON), &oldest.start("ann", "go", NOON.plus_ms(99)).unwrap()).await.unwrap();
    assert_eq!(ids(jobs).await, ["c", "b", "a", "d"].map(Arc::from));
}

pub async fn all_jobs_that_are_not_ended_are_kept_and_the_newest_hundred_of_the_others(world: &impl StoreWorld) {
    let jobs = world.ports().records();
    for n in 0..3 {
        planned(jobs, &format!("open-{n}"), n).await;
    }
    for n in 0..120 {
        let first = planned(jobs, &format!("ended-{n}"), 100 + n).await;
        let ended = first.cancel("somebody", "enough", NOON).unwrap();
        assert_eq!(jobs.put(Seen::version(1, NOON), &ended).await.unwrap(), Commit::Committed);
    }
    let kept = ids(jobs).await;
    let newest = (20..120).rev().map(|n| format!("ended-{n}"));
    assert!(newest.zip(&kept).all(|(expected, id)| *expected == **id), "{kept:?}");
    assert_eq!(kept[kept.len() - 3..], ["open-2", "open-1", "open-0"].map(Arc::from));
}
