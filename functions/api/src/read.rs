//! What can be asked: an order, a list of orders, the health of this process.

use bytes::Bytes;
use domain::id::OrderId;
use domain::ports::ListError;
use domain::task::ProcessState;
use http::{HeaderMap, Response, StatusCode};
use serde::Serialize;

use crate::problem::Problem;
use crate::view::TaskView;
use crate::{ApiPorts, cursor, etag, prefer::Wait, query, reply};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct OrderList<'a> {
    orders: Vec<TaskView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Health {
    status: &'static str,
}

/// `GET /orders/{id}`: the task with its steps. With `Prefer: wait` it waits until the task is settled, and shows it as it
/// is at the end.
pub(crate) async fn order(ports: &impl ApiPorts, id: &str, headers: &HeaderMap) -> Result<Response<Bytes>, Problem> {
    let wait = Wait::asked(headers)?;
    // An id that no order can have names none.
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let task = match wait {
        Some(wait) => ports.settled(order_id, wait.ms()).await,
        None => ports.task(order_id).await,
    };
    let task = task.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    let response = reply::json(StatusCode::OK, &TaskView::whole(&task));
    let response = etag::unless_known(response, headers, task.version)?;
    Ok(match wait {
        Some(wait) => wait.applied(response),
        None => response,
    })
}

/// `GET /orders?state=&limit=&cursor=`: a page of orders, newest first.
pub(crate) async fn orders(ports: &impl ApiPorts, query: &str) -> Result<Response<Bytes>, Problem> {
    let [state, limit, cursor] = query::parameters(query, ["state", "limit", "cursor"])?;
    let state = state.map(|name| name.parse::<ProcessState>()).transpose();
    let state = state.map_err(|error| Problem::parameter("state", format!("is {error}")))?;
    let limit = query::page_limit(limit.as_deref())?;
    // A cursor belongs to the list of one state.
    let list = state.map_or("", ProcessState::name);
    let after = cursor.map(|cursor| cursor::open(list, &cursor)).transpose()?;
    let page = ports.list(state, after.as_deref(), limit).await.map_err(|error| match error {
        ListError::Cursor => cursor::made_up(),
        ListError::Port(error) => Problem::unread(error),
    })?;
    let list = OrderList {
        orders: page.tasks.iter().map(TaskView::in_list).collect(),
        next_cursor: page.next.map(|next| cursor::seal(list, &next)),
    };
    Ok(reply::json(StatusCode::OK, &list))
}

/// `GET /health`: this process answers. Whether the ports do is seen elsewhere, so that an outage of the store does not
/// make a platform restart what is well.
pub(crate) fn health() -> Response<Bytes> {
    reply::json(StatusCode::OK, &Health { status: "ok" })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    fn an_order_is_shown_with_its_steps() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Processing));
        let answer = fake.get(&format!("/orders/{order_id}"));
        assert_eq!((answer.status, answer.header("preference-applied")), (200, None));
        assert_eq!(answer.body["OrderID"], order_id.to_string());
        assert_eq!(answer.body["ProcessState"], "Processing");
        assert_eq!(answer.body["Steps"][0]["LockedBy"], Value::Null);
        assert!(answer.body.get("Nonce").is_none() && answer.body.get("Unsent").is_none());
        assert!(fake.waits().is_empty());
    }

    #[test]
    fn an_order_that_is_not_there_or_cannot_be_is_404() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Pending)).to_string();
        let unknown = OrderId::from_idempotency_key("shop", "never").to_string();
        for id in [unknown, order_id.to_uppercase(), order_id.replace('-', ""), format!("%{order_id}"), "x".to_owned()]
        {
            fake.get(&format!("/orders/{id}")).is_problem(404, "order-not-found");
        }
    }

    #[test]
    fn a_reader_may_wait_and_sees_the_order_as_it_is_at_the_end() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Processing));
        let path = format!("/orders/{order_id}");
        let answer = fake.call("GET", &path, &[("Prefer", "wait=7")], "");
        assert_eq!((answer.status, answer.header("preference-applied")), (200, Some("wait=7")));
        assert_eq!(answer.body["ProcessState"], "Processing");
        fake.settles_as(ProcessState::Processed);
        let answer = fake.call("GET", &path, &[("Prefer", "wait=8")], "");
        assert_eq!(answer.body["ProcessState"], "Processed");
        assert_eq!(fake.waits(), [7_000, 8_000]);
        fake.call("GET", &path, &[("Prefer", "wait=999")], "").names(400, "invalid-header", "Prefer");
        assert_eq!(fake.waits().len(), 2);
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

    #[test]
    fn a_store_that_is_down_is_503_with_when_to_ask_again() {
        let fake = five_orders();
        fake.all_down();
        let order_id = task_in("a", ProcessState::Error).order_id;
        for path in ["/orders".to_owned(), format!("/orders/{order_id}"), "/services".to_owned()] {
            let answer = fake.get(&path);
            answer.is_problem(503, "unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
    }
}
