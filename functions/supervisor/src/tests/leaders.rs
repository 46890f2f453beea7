//! Several supervisors, and supervisors that die.

use futures_util::future::join;
use memory::faulty::Faulty;

use super::{EXPIRED_MS, TERM_OVER_MS, claimed, settings};
use crate::handle;
use crate::testing::{instance, ports, run, run_for};

fn all_counted_once(ports: &Faulty) -> bool {
    ports.tasks().iter().all(|task| task.steps[0].failure_count == 1)
}

#[test]
fn two_supervisors_share_the_shards() {
    let ports = ports();
    claimed(&ports, 0..200);
    ports.advance(EXPIRED_MS);
    let (one, other, settings) = (instance("one"), instance("other"), settings());
    let (one, other) = run(join(handle(&ports, &one, &settings), handle(&ports, &other, &settings)));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.taken > 0 && other.taken > 0, "{one:?} {other:?}");
    assert!(one.shards_held_by_others + other.shards_held_by_others > 0, "{one:?} {other:?}");
    assert_eq!((one.taken + other.taken, one.due + other.due), (200, 200), "no shard is swept twice");
    assert!(all_counted_once(&ports));
}

#[test]
fn when_a_supervisor_dies_another_takes_over_after_the_term() {
    let ports = ports();
    claimed(&ports, 0..200);
    ports.advance(EXPIRED_MS);
    assert!(run_for(handle(&ports, &instance("dies"), &settings()), 20).is_none());
    let before = run(handle(&ports, &instance("heir"), &settings())).unwrap();
    assert_eq!(
        (before.shards_held_by_others, before.shards_swept),
        (4, 12),
        "its shards stay leased until the term is over"
    );
    assert!(!all_counted_once(&ports));
    ports.advance(TERM_OVER_MS);
    let after = run(handle(&ports, &instance("heir"), &settings())).unwrap();
    assert_eq!((after.shards_held_by_others, after.shards_swept), (0, 16));
    assert!(all_counted_once(&ports));
}

#[test]
fn f35_two_leaders_count_each_attempt_once() {
    let ports = ports();
    claimed(&ports, 0..200);
    ports.advance(EXPIRED_MS);
    ports.break_leases();
    let (one, other, settings) = (instance("one"), instance("other"), settings());
    let (one, other) = run(join(handle(&ports, &one, &settings), handle(&ports, &other, &settings)));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.shards_swept, other.shards_swept), (16, 16), "the leases are broken");
    assert!(one.due + other.due > 200, "both looked at the same orders: {one:?} {other:?}");
    assert_eq!(one.taken + other.taken, 200);
    assert!(all_counted_once(&ports));
}

#[test]
fn f35_a_leader_paused_past_its_lease_at_any_point_stops_and_nothing_is_counted_twice() {
    let mut stopped = 0;
    for polls in 0..200 {
        let ports = ports();
        claimed(&ports, 0..12);
        ports.advance(EXPIRED_MS);
        let (paused, settings) = (instance("paused"), settings());
        let mut sweeping = Box::pin(handle(&ports, &paused, &settings));
        if run_for(&mut sweeping, polls).is_some() {
            break;
        }
        ports.advance(TERM_OVER_MS);
        let commits = ports.record().tasks.len();
        run(handle(&ports, &instance("heir"), &settings)).unwrap();
        assert!(ports.record().tasks.len() > commits || all_counted_once(&ports));
        let report = run(sweeping).unwrap();
        stopped += report.shards_cut_short;
        assert!(all_counted_once(&ports), "paused after {polls} polls");
    }
    assert!(stopped > 0, "some shard was being swept when its leader was paused");
}

#[test]
fn f40_killed_in_the_middle_of_a_page_the_next_run_finds_the_rest() {
    for polls in (0..).step_by(3) {
        let ports = ports();
        claimed(&ports, 0..40);
        ports.advance(EXPIRED_MS);
        if run_for(handle(&ports, &instance("killed"), &settings()), polls).is_some() {
            assert!(polls > 30, "the run was killed at many points before it got through");
            return;
        }
        ports.advance(TERM_OVER_MS);
        run(handle(&ports, &instance("next"), &settings())).unwrap();
        assert!(all_counted_once(&ports), "killed after {polls} polls");
    }
}

#[test]
fn f40_no_shard_starves_although_every_run_is_killed() {
    let ports = ports();
    claimed(&ports, 0..120);
    ports.advance(EXPIRED_MS);
    let counted = |ports: &Faulty| ports.tasks().iter().filter(|task| task.steps[0].failure_count > 0).count();
    let mut runs = 0;
    while counted(&ports) < 120 {
        assert!(run_for(handle(&ports, &instance("killed"), &settings()), 50).is_none());
        ports.advance(TERM_OVER_MS);
        runs += 1;
        assert!(runs < 200, "somebody starves");
    }
    assert!(all_counted_once(&ports));
}
