//! More requests than calls (F31): a request that is queued too long is given back, and no failure is counted.

use domain::message::{Deferral, Delivery, Outcome, Request};

use crate::testing::{Act, World, delivery, done, request};

fn world(acts: impl IntoIterator<Item = Act>) -> World {
    World::new(acts).with_policy(|policy| policy.queued_percent_max = 50)
}

#[test]
fn f31_a_request_that_waited_half_its_time_is_given_back_without_a_call() {
    for (queued_ms, calls) in [(5_000, 1), (5_001, 0)] {
        let world = world([Act::Answer(done())]).drawing([3_000]);
        world.pass_ms(queued_ms);
        assert!(world.handle(vec![delivery("m", request())]).is_empty(), "the message is let go");
        assert_eq!(world.seen().len(), calls, "after {queued_ms} ms");
        if calls == 0 {
            assert_eq!(world.outcomes(), [Outcome::Deferred(Deferral::after(3_000))]);
        }
    }
}

#[test]
fn the_wait_of_a_queued_request_grows_with_each_attempt_and_not_for_ever() {
    let third = Request { attempt: 3, ..request() };
    let queued = world([]).drawing([29_999]);
    queued.pass_ms(6_000);
    queued.handle(vec![delivery("m", third)]);
    assert_eq!(queued.outcomes(), [Outcome::Deferred(Deferral::after(29_999))], "up to three times the budget");
    let eleventh = Request { attempt: 11, ..request() };
    let called = world([Act::Answer(done())]);
    called.pass_ms(6_000);
    called.handle(vec![delivery("m", eleventh)]);
    assert_eq!(called.seen().len(), 1, "a clock that is ahead must not send it away for ever");
}

#[test]
fn a_request_that_was_taken_up_before_is_not_sent_back() {
    let world = world([Act::Answer(done())]);
    world.pass_ms(8_000);
    world.handle(vec![Delivery { receive_count: 2, ..delivery("m", request()) }]);
    assert_eq!(world.seen().len(), 1);
}
