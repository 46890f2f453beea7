//! Rule 49: orders that steps of other orders make.

use std::cell::Cell;

use domain::id::OrderId;
use domain::limits::{BATCH_MAX, CHILDREN_DEEP_MAX};
use domain::message::Action;
use domain::ports::{Environment, Source, Store};
use domain::task::{Direction, ProcessState, reason};
use memory::faulty::Fault;
use tests::conformance::samples::order_with;
use tests::world::{End, World, now};

use crate::every_node::children::{CHILD, PARENT, asked};
use crate::every_node::node::command;

/// The output of the step that made a child.
fn output(world: &World, order_id: OrderId) -> String {
    world.step(order_id, "replace").output.expect("an output").text().to_owned()
}

/// The code of the last failure of the step.
fn failure(world: &World, order_id: OrderId) -> String {
    world.step(order_id, "replace").last_error.expect("a failure").code.to_string()
}

#[test]
fn a_child_has_the_submitter_correlation_and_priority_of_its_parent_and_the_parent_its_end() {
    let (world, order_id, child) = asked(PARENT, CHILD);
    world.ends(order_id, End::Processed);
    let [of, order] = [order_id, child].map(|id| now(world.memory.order(id)).unwrap().unwrap());
    assert_eq!((&order.submitter, &order.correlation_id), (&of.submitter, &of.correlation_id));
    assert_eq!(
        (order.document.text(), order.workflow.as_ref().unwrap().to_string()),
        (r#"{"Item":"book-1"}"#, "child/1".to_owned())
    );
    assert_eq!(output(&world, order_id), format!(r#"{{"OrderID":"{child}","ProcessState":"Processed"}}"#));
    let task = world.task(child);
    assert_eq!(task.history[0].why.as_deref(), Some(&*format!("for step replace of order {order_id}")));
    assert_eq!(world.step(order_id, "replace").attempt, 1, "its end came without a second question");
}

#[test]
fn a_child_that_is_compensated_or_closed_rejects_its_step() {
    let (world, order_id, child) = asked(PARENT, CHILD);
    world.remote.declines("charge", Direction::Forward);
    world.end_all(&[(order_id, End::Compensated), (child, End::Compensated)]);
    assert_eq!(failure(&world, order_id), "child-compensated");

    let (world, order_id, child) =
        asked(PARENT, &CHILD.replace("[[step]]\nname = \"ship\"", "on_rejected = \"hold\"\n[[step]]\nname = \"ship\""));
    world.remote.declines("charge", Direction::Forward);
    world.run();
    assert_eq!((world.state(child), world.state(order_id)), (ProcessState::Error, ProcessState::Processing));
    world.tell_scheduler(command(&world, child, Action::Close));
    // Nobody knows what effects it has left.
    world.end_all(&[(order_id, End::Error(reason::COMPENSATION_FAILED)), (child, End::Closed)]);
    assert_eq!(failure(&world, order_id), "child-closed");
}

#[test]
fn the_end_of_a_child_counts_whatever_its_parent_does_then() {
    // Between two attempts: the first one's time was over before the child was made.
    let (world, order_id, child) = asked(&PARENT.replace("send =", "wait_within = \"1s\"\nsend ="), CHILD);
    world.schedule();
    world.memory.advance(5_000);
    world.supervise();
    world.end_all(&[(order_id, End::Processed), (child, End::Processed)]);

    // Paused, and then resumed.
    let (world, order_id, child) = asked(PARENT, CHILD);
    world.schedule();
    world.tell_scheduler(command(&world, order_id, Action::Pause));
    world.to_the_end();
    assert_eq!(world.state(child), ProcessState::Processed);
    world.tell_scheduler(command(&world, order_id, Action::Resume));
    world.end_all(&[(order_id, End::Processed), (child, End::Processed)]);
}

#[test]
fn a_parent_in_error_keeps_the_end_of_its_child_and_goes_on_after_a_resubmit() {
    let beside = "[[step]]\nname = \"thank\"\nagent = \"shipping\"\nafter = [\"reserve\"]\non_rejected = \"hold\"\n";
    let (world, order_id, child) = asked(&format!("{PARENT}{beside}"), CHILD);
    world.remote.declines("thank", Direction::Forward);
    world.to_the_end();
    assert_eq!((world.state(order_id), world.state(child)), (ProcessState::Error, ProcessState::Processed));
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.to_the_end();
    assert!(output(&world, order_id).contains("Processed"));
}

#[test]
fn a_child_past_its_pivot_cannot_be_undone_and_asks_for_an_operator_of_its_parent() {
    let child = CHILD.replace("name = \"charge\"", "name = \"charge\"\npivot = true");
    let (world, order_id, child) = asked(PARENT, &child);
    world.schedule();
    world.tell_scheduler(command(&world, order_id, Action::Cancel));
    world.schedule();
    world.schedule();
    assert_eq!((world.state(order_id), &*failure(&world, order_id)), (ProcessState::Error, "child-past-pivot"));
    world.end_all(&[(order_id, End::Error(reason::COMPENSATION_FAILED)), (child, End::Processed)]);
}

/// The commands that the history of a child shows.
fn cancels(world: &World, child: OrderId) -> usize {
    world.task(child).history.iter().filter(|line| line.command_id.is_some()).count()
}

#[test]
fn a_child_whose_undo_fails_waits_for_its_operator_and_is_cancelled_once() {
    let (world, order_id, child) = asked(&PARENT.replace("send =", "wait_within = \"1h\"\nsend ="), CHILD);
    world.schedule();
    world.serve("payment");
    world.remote.declines("charge", Direction::Undo);
    world.schedule();
    world.tell_scheduler(command(&world, order_id, Action::Cancel));
    for _ in 0..3 {
        world.run();
        world.memory.advance(40 * 60_000);
        world.supervise();
    }
    assert!(world.step(order_id, "replace").attempt > 2, "it was asked again");
    assert_eq!((world.state(order_id), world.state(child)), (ProcessState::Compensating, ProcessState::Error));
    assert_eq!(cancels(&world, child), 1, "{:#?}", world.task(child));
    world.tell_scheduler(command(&world, child, Action::Resubmit));
    world.end_all(&[(order_id, End::Compensated), (child, End::Compensated)]);
}

#[test]
fn a_parent_learns_of_an_end_once_it_is_stored() {
    let (world, order_id, child) = asked(PARENT, CHILD);
    for agent in ["payment", "shipping"] {
        world.schedule();
        world.serve(agent);
    }
    world.ports.next("store.commit", Fault::DiesBefore);
    world.schedule();
    assert_eq!(world.state(child), ProcessState::Processing);
    assert!(world.lose_scheduler_messages().is_empty(), "nothing is told");
    world.ends(order_id, End::Processed);
}

#[test]
fn a_child_asked_for_late_is_stored_as_cancelled_and_a_request_that_is_later_still_makes_none() {
    let (world, order_id, child) = asked(PARENT, CHILD);
    // The request is read and found wanted, and then its instance is stopped for a while.
    let batch = now(world.memory.scheduler().receive(BATCH_MAX));
    let instance = world.instance("stopped");
    world.ports.next("store.insert", Fault::Waits);
    let stopped = scheduler::handle(&world.ports, &instance, batch);
    world.meanwhile(stopped, || {
        world.tell_scheduler(command(&world, order_id, Action::Cancel));
        world.run();
        assert_eq!(world.state(order_id), ProcessState::Compensated);
    });
    world.end_all(&[(order_id, End::Compensated), (child, End::Compensated)]);
    assert!(world.remote.calls("charge").is_empty());
}

#[test]
fn a_child_that_was_taken_once_is_stored_as_cancelled_though_its_workflow_refuses_it_now() {
    let parent = PARENT.replace("\"/Order/Item\" }", "\"/Order/Item\", CompleteBy = \"/Order/By\" }");
    let mut world = World::with_all(&[&parent, CHILD]);
    world.shards = 1;
    let by = world.memory.now().plus_ms(60_000);
    let order_id = world.post_order(order_with(1, &format!("{{\"Item\":\"book-1\",\"By\":\"{by}\"}}")));
    world.submit();
    world.serve("inventory");
    world.schedule();
    let batch = now(world.memory.scheduler().receive(BATCH_MAX));
    let instance = world.instance("stopped");
    world.ports.next("store.insert", Fault::Waits);
    let stopped = scheduler::handle(&world.ports, &instance, batch);
    world.meanwhile(stopped, || {
        // Its deadline is over: a child would be refused from now on.
        world.memory.advance(61_000);
        world.tell_scheduler(command(&world, order_id, Action::Cancel));
        world.run();
        assert_eq!(world.state(order_id), ProcessState::Compensated);
    });
    world.end_all(&[(order_id, End::Compensated), (order_id.child("replace"), End::Compensated)]);
    assert!(world.remote.calls("charge").is_empty());
}

/// A workflow whose last step makes an order of the next one.
fn link(name: &str, next: Option<&str>) -> String {
    let step = match next {
        Some(next) => format!("kind = \"order\"\nworkflow = \"{next}\"\nsend = {{ Item = \"/Order/Item\" }}"),
        None => "agent = \"payment\"\nwait = \"1h\"".to_owned(),
    };
    format!("name = \"{name}\"\nversion = 1\n[[step]]\nname = \"replace\"\n{step}\n")
}

/// The orders of a chain of this length below one that is posted, each with its children.
fn chain(length: u8) -> (World, Vec<OrderId>) {
    let name = |depth: u8| if depth == 0 { "order".to_owned() } else { format!("w{depth}") };
    let next = |depth: u8| (depth < length).then(|| name(depth + 1));
    let texts: Vec<String> = (0..=length).map(|depth| link(&name(depth), next(depth).as_deref())).collect();
    let world = World::with_all(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut ids = vec![world.post(1)];
    for _ in 0..length {
        ids.push(ids[ids.len() - 1].child("replace"));
    }
    (world, ids)
}

#[test]
fn a_chain_of_five_is_processed_and_a_sixth_below_is_refused() {
    let (world, ids) = chain(CHILDREN_DEEP_MAX);
    world.end_all(&ids.iter().map(|id| (*id, End::Processed)).collect::<Vec<_>>());
    let depths = ids.iter().map(|id| world.task(*id).parent.as_ref().map_or(0, |parent| parent.depth));
    assert_eq!(depths.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);

    let (world, mut ids) = chain(CHILDREN_DEEP_MAX + 1);
    let deepest = ids.pop().unwrap();
    world.end_all(&ids.iter().map(|id| (*id, End::Compensated)).collect::<Vec<_>>());
    assert_eq!(failure(&world, *ids.last().unwrap()), "orders-too-deep");
    assert!(world.tasks().iter().all(|task| task.order_id != deepest));
}

#[test]
fn a_cancel_goes_down_a_chain_and_its_end_comes_up_again() {
    let (world, ids) = chain(CHILDREN_DEEP_MAX);
    for _ in 0..3 {
        world.submit();
        for _ in &ids {
            world.schedule();
        }
    }
    world.tell_scheduler(command(&world, ids[0], Action::Cancel));
    world.end_all(&ids.iter().map(|id| (*id, End::Compensated)).collect::<Vec<_>>());
    for child in &ids[1..] {
        assert_eq!(cancels(&world, *child), 1, "{:#?}", world.task(*child));
    }
}

/// Small random numbers, the same for a seed.
struct Dice(Cell<u64>);

impl Dice {
    fn below(&self, sides: u64) -> u64 {
        let mut bits = self.0.get();
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        self.0.set(bits);
        bits % sides
    }
}

/// Parent and child are killed at random calls, cancelled, paused and refused at random, in whatever order their messages
/// come. Whatever happens, both end, and fit each other (`World::end_all`).
#[test]
fn parent_and_child_killed_and_cancelled_at_random_fit_each_other_in_the_end() {
    let mut ends = [0; 3];
    for seed in 1..=300_u64 {
        let dice = Dice(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let (world, order_id, child) = asked(PARENT, CHILD);
        for step in ["charge", "ship"] {
            if dice.below(6) == 0 {
                world.remote.declines(step, Direction::Forward);
            }
        }
        for _ in 0..dice.below(25) {
            if dice.below(3) == 0 {
                let faults = [Fault::Fails, Fault::AnswerLost, Fault::DiesBefore, Fault::DiesAfter];
                let fault = faults[usize::try_from(dice.below(4)).unwrap()];
                world.ports.after_calls(usize::try_from(dice.below(8)).unwrap(), fault);
            }
            match dice.below(9) {
                0..=2 => drop(world.schedule()),
                3 => drop(world.serve("payment")),
                4 => drop(world.serve("shipping")),
                5 => drop(world.serve("inventory")),
                6 => world.memory.advance(dice.below(40_000)),
                7 if dice.below(3) == 0 => world.until_redelivery(),
                7 | 8 if dice.below(4) == 0 => {
                    let whose = if dice.below(3) == 0 { child } else { order_id };
                    if world.tasks().iter().any(|task| task.order_id == whose) {
                        world.tell_scheduler(command(&world, whose, Action::Cancel));
                    }
                }
                _ => {}
            }
        }
        world.ports.has_struck();
        world.until_redelivery();
        world.to_the_end();
        let state = world.state(order_id);
        let end = match state {
            ProcessState::Processed => (End::Processed, 0),
            ProcessState::Compensated => (End::Compensated, 1),
            ProcessState::Error => (End::Error(reason::COMPENSATION_FAILED), 2),
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating | ProcessState::Closed => {
                panic!("seed {seed}: {:#?}", world.tasks())
            }
        };
        ends[end.1] += 1;
        world.end_all(&[(order_id, end.0)]);
        let children = world.tasks().iter().filter(|task| task.parent.is_some()).count();
        assert!(children <= 1, "seed {seed}: {children} children");
    }
    assert!(ends[0] > 20 && ends[1] > 20, "{ends:?}");
}
