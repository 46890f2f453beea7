//! Stepwarden's API: takes orders, shows them, turns operators' actions into messages.
//!
//! [`handle`] answers one HTTP request over the ports, for any host: API Gateway, or the one-machine engine. An order
//! is answered 202 only once the submission queue has it, or the store; from then on it cannot be lost. An invalid request is
//! answered with a problem document (RFC 9457) before anything is queued, so it leaves no trace.
//!
//! What must never be here: a write to order or task. An operator's action is a message to the scheduler. A bulk job is
//! written here, and advanced by the supervisor. A page of another site must not be able to post here through a browser,
//! nor to make this API search.

mod accept;
mod again;
mod alerts;
#[cfg(test)]
mod answers;
mod body;
mod bulk;
mod callbacks;
mod caller;
mod config;
mod configuration;
mod console;
#[cfg(feature = "contract")]
pub mod contract;
mod cursor;
mod dead_letters;
mod etag;
mod gateway;
mod job_view;
mod key;
mod leases;
mod list;
mod members;
mod metrics;
mod numbers;
mod openapi;
mod operator;
mod orders;
mod overview;
mod ports;
mod prefer;
mod preview;
mod problem;
mod problem_kind;
mod query;
mod read;
mod reply;
mod route;
mod schedules;
mod search;
mod services;
mod site;
#[cfg(test)]
mod testing;
mod traced;
mod tried;
mod view;
mod walk;
mod workflows;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};

pub use crate::caller::{Caller, NotARole, Role};
pub use crate::config::{ApiConfig, BODY_BYTES_MAX};
pub use crate::gateway::{Gateway, IamRolesError};
pub use crate::ports::ApiPorts;
pub use crate::preview::{EXAMPLE, preview};
use crate::problem::Problem;
use crate::route::{Route, Verb};
pub use crate::workflows::workflow_steps;

/// Answers one request of `caller`, as the host authenticated it. Idempotency keys are per caller. The host has read the
/// body, up to one byte more than [`BODY_BYTES_MAX`].
///
/// Every failure is an answer too: a problem document with a stable `type`.
pub async fn handle(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    request: Request<Bytes>,
) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let verb = Verb::of(&parts.method);
    let response = match answer(ports, config, caller, verb, &parts, &body).await {
        Ok(response) => response,
        Err(problem) => {
            problem.log(caller.name(), callbacks::without_token(parts.uri.path()));
            problem.response()
        }
    };
    if verb == Verb::Head { reply::without_body(response) } else { response }
}

/// The answer to a request that `caller` may not make: nothing is read for it. `None` if the caller may.
#[must_use]
pub fn refused(caller: &Caller, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let (path, verb) = (request.uri().path(), Verb::of(request.method()));
    let problem = caller.check(Route::of(path)?, verb).err()?;
    problem.log(caller.name(), callbacks::without_token(path));
    let response = problem.response();
    Some(if verb == Verb::Head { reply::without_body(response) } else { response })
}

/// Whether a request posts an order.
#[must_use]
pub fn is_new_order(request: &Request<Bytes>) -> bool {
    Verb::of(request.method()) == Verb::Post && Route::of(request.uri().path()) == Some(Route::Orders)
}

/// The answer to a caller who posts more orders than the host takes of one.
#[must_use]
pub fn too_many_orders() -> Response<Bytes> {
    Problem::TooManyOrders.response()
}

/// The answer to a request that goes to another name than those of the host.
#[must_use]
pub fn misdirected() -> Response<Bytes> {
    Problem::Misdirected.response()
}

async fn answer(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    who: &Caller,
    verb: Verb,
    parts: &Parts,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let (headers, query) = (&parts.headers, parts.uri.query().unwrap_or_default());
    if verb == Verb::Post {
        site::check(headers, parts.uri.authority())?;
    }
    let route = Route::of(parts.uri.path()).ok_or(Problem::UnknownRoute)?;
    if matches!(verb, Verb::Get | Verb::Head) && !route.is_cheap() && !(route.is_page() && site::is_opened(headers)) {
        site::check(headers, parts.uri.authority())?;
    }
    who.check(route, verb)?;
    let caller = &**who.name();
    match (route, verb) {
        (Route::Orders, Verb::Post) => orders::post(ports, config, who, headers, body).await,
        (Route::Orders, Verb::Get | Verb::Head) => list::orders(ports, config, who, query).await,
        (Route::Order(id), Verb::Get | Verb::Head) => read::order(ports, config, who, id, headers).await,
        (Route::Document(id), Verb::Get | Verb::Head) => read::document(ports, config, who, id).await,
        (Route::Command(id, action), Verb::Post) => operator::post(ports, caller, id, action, headers, body).await,
        (Route::Again(id), Verb::Post) => again::post(ports, config, caller, id, headers, body).await,
        (Route::Callback(token), Verb::Post) => callbacks::result(ports, config, token, headers, body).await,
        (Route::Heartbeat(token), Verb::Post) => callbacks::heartbeat(ports, config, token).await,
        (Route::Jobs, Verb::Post) => bulk::plan(ports, caller, headers, body).await,
        (Route::Jobs, Verb::Get | Verb::Head) => bulk::jobs(ports, query).await,
        (Route::Job(id), Verb::Get | Verb::Head) => bulk::job(ports, id, headers).await,
        (Route::JobCommand(id, action), Verb::Post) => bulk::command(ports, caller, id, action, headers, body).await,
        (Route::DeadLetters, Verb::Get | Verb::Head) => dead_letters::dead_letters(ports, query).await,
        (Route::Alerts, Verb::Get | Verb::Head) => alerts::alerts(ports).await,
        (Route::Services, Verb::Get | Verb::Head) => services::services(ports, config).await,
        (Route::AcceptRejections(name), Verb::Post) => {
            services::accept_rejections(ports, config, caller, name, headers, body).await
        }
        // Boxed, so that the future of another request stays small.
        (Route::Overview, Verb::Get | Verb::Head) => Box::pin(overview::overview(ports, config)).await,
        (Route::Numbers, Verb::Get | Verb::Head) => numbers::numbers(ports, query).await,
        (Route::Metrics, Verb::Get | Verb::Head) => metrics::metrics(ports, config).await,
        (Route::Leases, Verb::Get | Verb::Head) => leases::leases(ports).await,
        (Route::Schedules, Verb::Get | Verb::Head) => schedules::schedules(ports, config).await,
        (Route::Workflows, Verb::Get | Verb::Head) => workflows::workflows(ports, config).await,
        (Route::Workflow(name, version), Verb::Get | Verb::Head) => {
            workflows::definition(ports, &workflows::pin(name, version)?).await
        }
        (Route::Choose(name), Verb::Post) => configuration::choose(ports, config, caller, name, headers, body).await,
        (Route::Retire(name, version), Verb::Post) => {
            let pin = workflows::pin(name, version)?;
            configuration::retire(ports, config, caller, &pin, headers, body).await
        }
        (Route::Try(name, version), Verb::Post) => {
            let pin = workflows::pin(name, version)?;
            // Boxed, so that the future of another request stays small.
            Box::pin(tried::post(ports, config, who, &pin, headers, body)).await
        }
        (Route::Configuration, Verb::Get | Verb::Head) => configuration::shown(ports, config, who).await,
        (Route::Configuration, Verb::Post) => configuration::configure(ports, config, caller, headers, body).await,
        (Route::Contract, Verb::Get | Verb::Head) => openapi::contract(ports, config).await,
        (Route::Problem(kind), Verb::Get | Verb::Head) => Ok(kind.page()),
        (Route::Health, Verb::Get | Verb::Head) => Ok(read::health(config)),
        (Route::Ready, Verb::Get | Verb::Head) => read::ready(config).await,
        (Route::Console(file), Verb::Get | Verb::Head) => console::answer(file, headers),
        (route @ (Route::Orders | Route::Jobs | Route::Configuration), Verb::Other)
        | (
            route @ (Route::Order(_)
            | Route::Document(_)
            | Route::Job(_)
            | Route::DeadLetters
            | Route::Alerts
            | Route::Services
            | Route::Overview
            | Route::Numbers
            | Route::Metrics
            | Route::Leases
            | Route::Schedules
            | Route::Workflows
            | Route::Workflow(..)
            | Route::Contract
            | Route::Problem(_)
            | Route::Health
            | Route::Ready
            | Route::Console(_)),
            Verb::Post | Verb::Other,
        )
        | (
            route @ (Route::Command(..)
            | Route::Again(_)
            | Route::Callback(_)
            | Route::Heartbeat(_)
            | Route::JobCommand(..)
            | Route::AcceptRejections(_)
            | Route::Choose(_)
            | Route::Retire(..)
            | Route::Try(..)),
            Verb::Get | Verb::Head | Verb::Other,
        ) => Err(Problem::WrongMethod { allow: route.allow() }),
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use domain::ports::PortError;
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::testing::{Fake, ORDER};

    #[test]
    fn health_is_answered_while_every_port_is_down() {
        let fake = Fake::default();
        fake.all_down();
        let answer = fake.get("/health");
        let expected = json!({"Status": "ok", "Version": env!("CARGO_PKG_VERSION")});
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }

    #[test]
    fn health_says_that_stand_ins_play_services_where_they_do() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().with_stand_ins_if(true));
        assert_eq!(fake.get("/health").body["StandIns"], true);
        fake.config(ApiConfig::default().with_stand_ins_if(false));
        assert_eq!(fake.get("/health").body.get("StandIns"), None);
    }

    #[test]
    fn f68_readiness_is_what_the_host_says_and_no_path_where_it_says_nothing() {
        let fake = Fake::default();
        fake.get("/ready").is_problem(404, "unknown-route");
        fake.config(ApiConfig::default().ready_if(|| ready(Ok(()))));
        assert_eq!(fake.get("/ready").body, fake.get("/health").body);
        let full = || ready(Err(PortError::unavailable("engine.ready", "the disk is full")));
        fake.config(ApiConfig::default().ready_if(full));
        let answer = fake.get("/ready");
        answer.is_problem(503, "unavailable");
        assert_eq!(answer.body["detail"], "not ready: the disk is full");
        assert_eq!(fake.get("/health").status, 200);
    }

    #[test]
    fn an_unknown_route_is_404_and_a_trailing_slash_makes_another_route() {
        let fake = Fake::default();
        for path in ["//", "/order", "/orders/", "/health/", "/services/x", "/orders//", "/orders/x/y", "/ORDERS"] {
            fake.get(path).is_problem(404, "unknown-route");
            fake.post(path, &[], ORDER).is_problem(404, "unknown-route");
        }
        fake.queued_nothing();
    }

    #[test]
    fn a_wrong_method_is_405_with_the_methods_that_are_right() {
        let fake = Fake::default();
        let command = "/orders/0193-0/cancel";
        let wrong = [
            ("GET", "/callbacks/t", "POST"),
            ("DELETE", "/orders", "GET, HEAD, POST"),
            ("POST", "/orders/1", "GET, HEAD"),
            ("POST", "/health", "GET, HEAD"),
            ("POST", "/ready", "GET, HEAD"),
            ("PUT", "/services", "GET, HEAD"),
            ("DELETE", "/bulk", "GET, HEAD, POST"),
            ("POST", "/bulk/j1", "GET, HEAD"),
            ("POST", "/dead-letters", "GET, HEAD"),
            ("GET", "/bulk/j1/start", "POST"),
            ("GET", command, "POST"),
            ("HEAD", command, "POST"),
        ];
        for (method, path, allow) in wrong {
            let answer = fake.call(method, path, &[], ORDER);
            assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
        }
        fake.call("PATCH", "/orders", &[], ORDER).is_problem(405, "method-not-allowed");
        fake.queued_nothing();
    }

    #[test]
    fn head_is_get_without_the_body() {
        let fake = Fake::default();
        let get = fake.get("/health");
        let head = fake.call("HEAD", "/health", &[], "");
        assert_eq!((head.status, head.text.as_str()), (get.status, ""));
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert_eq!(head.header("content-length"), Some(get.text.len().to_string().as_str()));
        assert_eq!(fake.call("HEAD", "/nowhere", &[], "").status, 404);
    }

    #[test]
    fn the_answer_can_be_awaited_on_any_thread() {
        fn on_any_thread<T: Send>(future: T) -> T {
            future
        }
        let (fake, config) = (Fake::default(), ApiConfig::default());
        let request = Request::get("/health").body(Bytes::new()).unwrap();
        let response =
            on_any_thread(handle(&fake.ports, &config, &Caller::unrestricted("shop"), request)).now_or_never().unwrap();
        assert_eq!(response.status(), 200);
    }
}
