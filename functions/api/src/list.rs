//! `GET /orders`: orders, newest first, a page at a time: all orders, those of one state, or those of a search.

use bytes::Bytes;
use domain::task::ProcessState;
use http::{Response, StatusCode};
use wire::OrderList;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::search::{self, Search};
use crate::view::listed;
use crate::{cursor, query, reply};

/// `GET /orders?state=&reason=&step=&since=&until=&correlation=&field=&value=&workflow=&limit=&cursor=`: a page of orders. A
/// page of a search may be short, or empty, and still not be the last.
pub(crate) async fn orders(ports: &impl ApiPorts, config: &ApiConfig, query: &str) -> Result<Response<Bytes>, Problem> {
    let [state, limit, cursor, reason, step, since, until, correlation, field, value, workflow] = query::parameters(
        query,
        ["state", "limit", "cursor", "reason", "step", "since", "until", "correlation", "field", "value", "workflow"],
    )?;
    let state = state.map(|name| name.parse::<ProcessState>()).transpose();
    let state = state.map_err(|error| Problem::parameter("state", format!("is {error}")))?;
    let limit = query::page_limit(limit.as_deref())?;
    let search = Search::read([reason, step, since, until, correlation, field, value, workflow], config.redaction())?;
    // A cursor belongs to the list of one state, and to one search.
    let list = format!("{}{}", state.map_or("", ProcessState::name), search.as_ref().map_or("", Search::name));
    let after = cursor.map(|cursor| cursor::open(&list, &cursor)).transpose()?;
    let list = |next: String| cursor::seal(&list, &next);
    let response = if let Some(search) = search {
        let found = search::page(ports, config, state, &search, after, limit).await?;
        let list = OrderList {
            orders: found.tasks.iter().map(|task| listed(task)).collect::<Vec<_>>(),
            next_cursor: found.next.map(list),
            examined: Some(found.examined),
            searched_back_to: found.searched_back_to,
            from_index: found.from_index,
        };
        reply::json(StatusCode::OK, &list)
    } else {
        let page = cursor::page(ports, state, after.as_deref(), limit).await?;
        let list = OrderList {
            orders: page.tasks.iter().map(|task| listed(task)).collect::<Vec<_>>(),
            next_cursor: page.next.map(list),
            examined: None,
            searched_back_to: None,
            from_index: false,
        };
        reply::json(StatusCode::OK, &list)
    };
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Answer, Fake, task_in};

    /// Three orders in `Error` and two `Processed`.
    fn five_orders() -> Fake {
        let fake = Fake::default();
        for name in ["a", "b", "c"] {
            fake.stores(task_in(name, ProcessState::Error));
        }
        for name in ["d", "e"] {
            fake.stores(task_in(name, ProcessState::Processed));
        }
        fake
    }

    fn ids(answer: &Answer) -> Vec<String> {
        let orders = answer.body["Orders"].as_array().unwrap();
        orders.iter().map(|order| order["OrderID"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_list_goes_page_by_page_through_one_state() {
        let fake = five_orders();
        let first = fake.get("/orders?state=Error&limit=2");
        assert_eq!((first.status, ids(&first).len()), (200, 2));
        let cursor = first.body["NextCursor"].as_str().unwrap();
        let second = fake.get(&format!("/orders?state=Error&limit=2&cursor={cursor}"));
        assert_eq!((second.status, second.body.get("NextCursor")), (200, None));
        let mut seen = [ids(&first), ids(&second)].concat();
        seen.sort();
        let mut expected = ["a", "b", "c"].map(|name| task_in(name, ProcessState::Error).order_id.to_string());
        expected.sort();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_list_without_parameters_has_all_states_and_fifty_orders() {
        let fake = five_orders();
        assert_eq!(ids(&fake.get("/orders")).len(), 5);
        for n in 0..100 {
            fake.stores(task_in(&n.to_string(), ProcessState::Pending));
        }
        assert_eq!(ids(&fake.get("/orders")).len(), 50);
        assert_eq!(ids(&fake.get("/orders?limit=100")).len(), 100);
        assert_eq!(Fake::default().get("/orders").body, json!({"Orders": []}));
    }

    #[test]
    fn query_values_are_percent_decoded() {
        assert_eq!(ids(&five_orders().get("/orders?state=%50rocessed&limit=%31")).len(), 1);
    }

    #[test]
    fn a_bad_parameter_is_400_and_named() {
        let fake = five_orders();
        for (query, name) in [
            ("state=Done", "state"),
            ("state=error", "state"),
            ("state=", "state"),
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=-1", "limit"),
            ("limit=%2B5", "limit"),
            ("limit=x", "limit"),
            ("limit=1&limit=1", "limit"),
            ("page=2", "page"),
            ("cursor=made-up", "cursor"),
            ("cursor=", "cursor"),
        ] {
            fake.get(&format!("/orders?{query}")).names(400, "invalid-parameter", name);
        }
    }

    #[test]
    fn a_cursor_of_another_state_is_400_and_so_is_one_that_the_store_does_not_know() {
        let fake = five_orders();
        let cursor = fake.get("/orders?state=Error&limit=1").body["NextCursor"].as_str().unwrap().to_owned();
        for query in [format!("state=Processed&cursor={cursor}"), format!("cursor={cursor}")] {
            fake.get(&format!("/orders?{query}")).names(400, "invalid-parameter", "cursor");
        }
        let unknown_to_the_store = cursor::seal("", "not an id");
        fake.get(&format!("/orders?cursor={unknown_to_the_store}")).names(400, "invalid-parameter", "cursor");
    }
}
