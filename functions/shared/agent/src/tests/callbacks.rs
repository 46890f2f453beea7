//! The addresses for results that come later (rule 38).

use domain::callback::{Awaited, CallbackKey, read};
use domain::message::Request;
use domain::task::Direction;

use crate::testing::{Act, World, delivery, done, request};
use crate::{Answer, MemoPolicy};

fn key() -> CallbackKey {
    CallbackKey::first([1, 2, 3, 4])
}

fn patient(direction: Direction) -> Request {
    Request { wait_within_ms: Some(86_400_000), direction, ..request() }
}

/// The address that the service got.
fn url_in(world: &World, request: Request) -> Option<String> {
    world.play([Act::Answer(done())]);
    assert!(world.handle(vec![delivery("m", request)]).is_empty());
    world.seen().pop().unwrap().callback_url
}

#[test]
fn rule_38_a_call_whose_result_may_come_later_has_an_address_for_it() {
    for direction in [Direction::Forward, Direction::Undo] {
        let world = World::new([]).called_back_at("https://orders.example.com/", vec![key()]);
        let url = url_in(&world, patient(direction)).unwrap();
        let token = url.strip_prefix("https://orders.example.com/callbacks/").unwrap();
        let Request { order_id, step, .. } = request();
        assert_eq!(read(&[key()], token), Some(Awaited { order_id, step, direction, agent: None }));
    }
}

#[test]
fn rule_38_all_other_calls_have_none() {
    let at = |keys| World::new([]).called_back_at("https://orders.example.com", keys);
    assert_eq!(url_in(&at(vec![key()]), request()), None, "it must answer at once");
    let with_memo = at(vec![key()]).with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    assert_eq!(url_in(&with_memo, patient(Direction::Forward)), None, "rule 36");
    assert_eq!(url_in(&at(Vec::new()), patient(Direction::Forward)), None, "there is no key");
    assert_eq!(url_in(&World::new([]), patient(Direction::Forward)), None, "no API is known");
}

#[test]
fn rule_38_no_call_is_made_while_its_address_cannot_be_known() {
    let world = World::new([]).called_back_at("https://orders.example.com", vec![key()]);
    world.ports.is_down("definitions.deployment");
    assert_eq!(world.handle(vec![delivery("m", patient(Direction::Forward))]).len(), 1, "delivered again");
    assert!(world.seen().is_empty());
    world.ports.is_up("definitions.deployment");
    world.play([Act::Answer(Answer::under_way())]);
    assert!(world.handle(vec![delivery("m", patient(Direction::Forward))]).is_empty());
}
