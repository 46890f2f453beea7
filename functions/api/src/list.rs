//! `GET /orders`: orders, newest first, a page at a time: all orders, those of one state, or those of a search.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use domain::id::OrderId;
use domain::index::Index;
use domain::ports::Store;
use domain::task::{ProcessState, Task};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Response, StatusCode};
use wire::OrderList;

use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::search::{self, DOCUMENTS_BYTES_MAX, Found, ORDERS_AT_ONCE, Search};
use crate::view::{TaskView, listed};
use crate::{cursor, query, reply};

/// `GET /orders`: a page of orders. A page of a search, or of an application's own orders, may be short, or empty, and
/// still not be the last.
pub(crate) async fn orders(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    query: &str,
) -> Result<Response<Bytes>, Problem> {
    let [
        state,
        limit,
        cursor,
        with,
        reason,
        step,
        since,
        until,
        correlation,
        field,
        value,
        workflow,
        service,
        late,
        approval,
        contradicted,
    ] = query::parameters(
        query,
        [
            "state",
            "limit",
            "cursor",
            "with",
            "reason",
            "step",
            "since",
            "until",
            "correlation",
            "field",
            "value",
            "workflow",
            "service",
            "late",
            "approval",
            "contradicted",
        ],
    )?;
    let state = state.map(|name| name.parse::<ProcessState>()).transpose();
    let state = state.map_err(|error| Problem::parameter("state", format!("is {error}")))?;
    let limit = query::page_limit(limit.as_deref())?;
    let is_with_index = match with.as_deref() {
        None => false,
        Some("index") => true,
        Some(_) => return Err(Problem::parameter("with", "must be index")),
    };
    let given =
        [reason, step, since, until, correlation, field, value, workflow, service, late, approval, contradicted];
    let search = Search::read(given, config.redaction(), caller.alone())?;
    // A cursor belongs to the list of one state, and to one search.
    let list = format!("{}{}", state.map_or("", ProcessState::name), search.as_ref().map_or("", Search::name));
    let after = cursor.map(|cursor| cursor::open(&list, &cursor)).transpose()?;
    let seal = |next: String| cursor::seal(&list, &next);
    // What others have posted must not show in how far a search came.
    let is_search = search.is_some() && caller.alone().is_none();
    let ask = async |limit: usize| -> Result<Found, Problem> {
        Ok(match &search {
            Some(search) => search::page(ports, config, state, search, after.clone(), limit).await?,
            None => cursor::page(ports, state, after.as_deref(), limit).await?.into(),
        })
    };
    let mut found = ask(limit).await?;
    let mut indexes = HashMap::new();
    if is_with_index {
        indexes = self::indexes(ports, config, &found.tasks).await?;
        if indexes.len() < found.tasks.len() {
            // Only the store has the cursor that the next page begins at.
            found = ask(indexes.len()).await?;
        }
    }
    let mut orders: Vec<TaskView<'_>> = found.tasks.iter().map(|task| listed(task)).collect();
    orders.iter_mut().for_each(|order| order.index = indexes.remove(&order.order_id));
    let list = OrderList {
        orders,
        next_cursor: found.next.map(seal),
        examined: is_search.then_some(found.examined),
        searched_back_to: found.searched_back_to.filter(|_| is_search),
        from_index: found.from_index,
    };
    Ok(reply::json(StatusCode::OK, &list))
}

/// The texts by which the first of these orders are found (rule 28): of as many as one call reads documents of.
async fn indexes(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    tasks: &[Arc<Task>],
) -> Result<HashMap<OrderId, BTreeMap<String, String>>, Problem> {
    let reads = tasks.iter().map(|task| index(ports, config, task)).collect::<Vec<_>>();
    let mut reads = stream::iter(reads).buffered(ORDERS_AT_ONCE);
    let (mut indexes, mut bytes) = (HashMap::new(), 0);
    while let Some((order_id, texts, document_bytes)) = reads.try_next().await? {
        indexes.insert(order_id, texts);
        bytes += document_bytes;
        if bytes >= DOCUMENTS_BYTES_MAX {
            break;
        }
    }
    Ok(indexes)
}

/// An order with the texts by which it is found, and the bytes of its document.
async fn index(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    task: &Task,
) -> Result<(OrderId, BTreeMap<String, String>, usize), Problem> {
    let workflow = match config.catalogue() {
        Some(catalogue) => catalogue.workflow(ports, &task.pin()).await.map_err(Problem::unread)?,
        None => None,
    };
    let order = ports.store().order(task.order_id).await.map_err(Problem::unread)?;
    let none = Index::default();
    let index = workflow.as_ref().map_or(&none, |workflow| &workflow.index);
    let Some(order) = order else { return Ok((task.order_id, BTreeMap::new(), 0)) };
    let texts = index.texts(order.correlation_id.as_deref(), &order.document, config.redaction());
    Ok((task.order_id, texts, order.document.text().len()))
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
