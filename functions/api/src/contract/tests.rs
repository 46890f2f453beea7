use std::collections::BTreeSet;

use super::*;
use crate::route::Route;

#[test]
fn every_operation_is_of_its_route_and_every_route_has_one_for_each_of_its_methods() {
    for route in calls::routes() {
        let path = call::path(route).replace("/problems/{name}", &Kind::UnknownRoute.uri());
        assert_eq!(Route::of(&path), Some(route), "{path}");
        let described: BTreeSet<&str> =
            calls::calls(route).iter().map(|call| if call.verb == Verb::Post { "POST" } else { "GET" }).collect();
        let taken = route.allow().split(", ").filter(|method| *method != "HEAD");
        assert_eq!(described, taken.collect(), "{path}");
    }
}

#[test]
fn every_problem_is_an_example_of_an_answer_that_an_operation_gives_or_any_may_give() {
    let shown = components()["responses"].to_string();
    for kind in Kind::ALL {
        assert!(shown.contains(&kind.uri()), "{} has no example", kind.name());
    }
}
