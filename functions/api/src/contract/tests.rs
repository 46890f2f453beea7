use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn the_operations_of_a_path_are_those_of_its_route() {
    let mut described: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let calls = calls::calls();
    for call in &calls {
        let method = if call.verb == Verb::Post { "POST" } else { "GET" };
        assert!(described.entry(call.path).or_default().insert(method), "{method} {} is there twice", call.path);
    }
    for call in &calls {
        let allowed = call.route().allow().split(", ").filter(|method| *method != "HEAD");
        assert_eq!(described[call.path], allowed.collect(), "{}", call.path);
    }
}

#[test]
fn every_problem_is_an_example_of_an_answer_that_an_operation_gives_or_any_may_give() {
    let shown = components()["responses"].to_string();
    for kind in Kind::ALL {
        assert!(shown.contains(&kind.uri()), "{} has no example", kind.name());
    }
}
