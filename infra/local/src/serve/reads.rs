//! The threads of reads that cost much: searches, lists, documents and counts.
//!
//! Orders are carried out on other threads, and so is `/health`. A read waits for its turn here, and too many reads are
//! refused; orders go on meanwhile. Searches, tries of an order and the other reads have turns of their own, so that
//! neither a search nor a try holds up the overview.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::shares::Shares;
use crate::problem::{problem, typed};

/// The most threads for them; with few cores, one for two of them.
const THREADS_MAX: usize = 4;
/// Searches that wait for their turn.
const SEARCHES_WAITING_MAX: usize = 32;
/// Other reads at the same time.
const VIEWS_AT_ONCE: usize = 4;
/// Other reads that wait for their turn.
const VIEWS_WAITING_MAX: usize = 64;

/// Tries that wait for their turn. One at a time is carried out: its work is all computing.
const TRIES_WAITING_MAX: usize = 8;

/// The threads, and the turns.
#[derive(Debug)]
pub(super) struct Reads {
    /// `None` only when it ends.
    runtime: Option<Runtime>,
    searches: Turns,
    tries: Turns,
    views: Turns,
}

/// The turns of one kind of reads.
#[derive(Debug)]
struct Turns {
    at_once: Semaphore,
    /// Those that have a turn or wait for one.
    present: Arc<Shares<Arc<str>>>,
}

/// What a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    Little,
    View,
    Search,
    Try,
}

/// Work that ends when its caller is gone.
struct Attended<T>(JoinHandle<T>);

impl Reads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start() -> std::io::Result<Self> {
        let threads = (available_parallelism().map_or(1, NonZero::get) / 2).clamp(1, THREADS_MAX);
        // One more for the try: it computes for long without a pause.
        let runtime =
            Builder::new_multi_thread().worker_threads(threads + 1).thread_name("reads").enable_time().build()?;
        Ok(Self {
            runtime: Some(runtime),
            searches: Turns::new(threads, SEARCHES_WAITING_MAX),
            tries: Turns::new(1, TRIES_WAITING_MAX),
            views: Turns::new(VIEWS_AT_ONCE, VIEWS_WAITING_MAX),
        })
    }

    /// Answers a request: here if it costs little, otherwise on the threads for that, when it is its turn.
    /// No known caller has more than half of the places, so that some are left for others.
    pub(super) async fn answer<Answering>(
        &self,
        caller: Option<Arc<str>>,
        request: Request<Bytes>,
        answer: impl FnOnce(Request<Bytes>) -> Answering,
    ) -> Response<Bytes>
    where
        Answering: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let turns = match Cost::of(request.method(), request.uri().path()) {
            Cost::Little => return answer(request).await,
            Cost::View => &self.views,
            Cost::Search => &self.searches,
            Cost::Try => &self.tries,
        };
        let Some(_present) = turns.present.take(caller) else { return too_many() };
        let (Ok(_turn), Some(runtime)) = (turns.at_once.acquire().await, &self.runtime) else { return too_many() };
        let mut answering = Attended(runtime.spawn(answer(request)));
        (&mut answering.0).await.unwrap_or_else(|error| {
            tracing::error!("a read failed: {error}");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the request was not handled to its end")
        })
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime must not be awaited within another one.
            runtime.shutdown_background();
        }
    }
}

impl Turns {
    fn new(at_once: usize, waiting_max: usize) -> Self {
        let places = at_once + waiting_max;
        Self { at_once: Semaphore::new(at_once), present: Shares::new(places, (places / 2).max(1)) }
    }
}

impl Cost {
    fn of(method: &Method, path: &str) -> Self {
        let mut segments = path.split('/').skip(1);
        let [first, _, third] = [segments.next(), segments.next(), segments.next()];
        match (first, third) {
            (Some("configuration"), _) => Self::View,
            (Some("workflows"), _) if path.ends_with("/try") => Self::Try,
            _ if !matches!(*method, Method::GET | Method::HEAD) => Self::Little,
            (Some("orders"), Some("document")) => Self::Search,
            (Some("orders"), _) if path == "/orders" => Self::Search,
            // An order is read by its id, and a wait for it must not hold a turn.
            (Some("" | "orders" | "health" | "ready" | "console" | "console.css" | "problems"), _) => Self::Little,
            _ => Self::View,
        }
    }
}

impl<T> Drop for Attended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn too_many() -> Response<Bytes> {
    let detail = "too many reads wait for their turn; orders go on";
    let mut response = typed(StatusCode::SERVICE_UNAVAILABLE, "/problems/unavailable", "Service Unavailable", detail);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::thread;

    use super::*;

    fn get(path: &str) -> Request<Bytes> {
        Request::get(path).body(Bytes::new()).unwrap()
    }

    #[test]
    fn what_carries_orders_out_or_waits_for_one_stays_where_it_is() {
        for (method, path) in [
            (Method::GET, "/health"),
            (Method::GET, "/ready"),
            (Method::GET, "/"),
            (Method::GET, "/console/main.js"),
            (Method::GET, "/orders/0193-x"),
            (Method::POST, "/orders"),
            (Method::POST, "/orders/0193-x/cancel"),
            (Method::POST, "/callbacks/t"),
        ] {
            assert_eq!(Cost::of(&method, path), Cost::Little, "{method} {path}");
        }
        for path in ["/orders", "/orders/0193-x/document"] {
            assert_eq!(Cost::of(&Method::HEAD, path), Cost::Search, "{path}");
        }
        for path in ["/overview", "/metrics", "/bulk/j1", "/openapi.json", "/configuration", "/nowhere"] {
            assert_eq!(Cost::of(&Method::GET, path), Cost::View, "{path}");
        }
        assert_eq!(Cost::of(&Method::POST, "/configuration"), Cost::View);
        assert_eq!(Cost::of(&Method::POST, "/workflows/shop/2/try"), Cost::Try);
    }

    #[tokio::test]
    async fn a_read_that_costs_much_is_on_another_thread() {
        let reads = Reads::start().unwrap();
        let name = |path| {
            reads.answer(None, get(path), |_| async {
                Response::new(thread::current().name().unwrap_or_default().to_owned().into())
            })
        };
        assert_eq!(name("/overview").await.body(), "reads");
        assert_eq!(name("/orders").await.body(), "reads");
        assert_ne!(name("/health").await.body(), "reads");
    }

    #[tokio::test]
    async fn too_many_searches_are_refused_and_other_reads_go_on() {
        let reads = Reads::start().unwrap();
        let present = reads.searches.present.all_max;
        let mut waiting: Vec<_> =
            (0..present).map(|_| Box::pin(reads.answer(None, get("/orders?value=x"), |_| pending()))).collect();
        for search in &mut waiting {
            assert!(futures_util::poll!(search).is_pending());
        }
        let ok = |_| async { Response::new(Bytes::new()) };
        let refused = reads.answer(None, get("/orders?value=x"), ok).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()[RETRY_AFTER]), (503, &HeaderValue::from(1)));
        assert_eq!(reads.answer(None, get("/overview"), ok).await.status(), 200);
        drop(waiting);
        assert_eq!(
            reads.answer(None, get("/orders?value=x"), ok).await.status(),
            200,
            "who leaves gives the turn back"
        );
    }

    #[tokio::test]
    async fn one_try_at_a_time_holds_up_no_other_read() {
        let reads = Reads::start().unwrap();
        let (first, begun) = tokio::sync::oneshot::channel();
        let (held, holds) = std::sync::mpsc::channel::<()>();
        // It computes until the test is over.
        let computes = |_| async move {
            first.send(()).unwrap();
            holds.recv().unwrap_err();
            Response::new(Bytes::new())
        };
        let path = "/workflows/shop/2/try";
        let mut trying = Box::pin(reads.answer(None, get(path), computes));
        assert!(futures_util::poll!(&mut trying).is_pending());
        begun.await.unwrap();
        let ok = |_| async { Response::new(Bytes::new()) };
        let mut second = Box::pin(reads.answer(None, get(path), ok));
        assert!(futures_util::poll!(&mut second).is_pending(), "it waits for its turn");
        for path in ["/overview", "/orders?value=x"] {
            assert_eq!(reads.answer(None, get(path), ok).await.status(), 200, "{path}");
        }
        drop(held);
        assert_eq!((trying.await.status(), second.await.status()), (StatusCode::OK, StatusCode::OK));
    }

    #[tokio::test]
    async fn one_caller_leaves_half_of_the_places_to_others() {
        let reads = Reads::start().unwrap();
        let half = reads.searches.present.all_max / 2;
        let ask = |name: &str| reads.answer(Some(name.into()), get("/orders?value=x"), |_| pending());
        let mut waiting: Vec<_> = (0..half).map(|_| Box::pin(ask("shop"))).collect();
        for search in &mut waiting {
            assert!(futures_util::poll!(search).is_pending());
        }
        assert_eq!(ask("shop").await.status(), 503);
        let mut other = Box::pin(ask("ada"));
        assert!(futures_util::poll!(&mut other).is_pending(), "it waits for its turn");
        drop((waiting, other));
        assert!(reads.searches.present.is_free());
    }

    #[tokio::test]
    async fn a_panic_of_a_read_is_answered_500() {
        let reads = Reads::start().unwrap();
        let answer = reads.answer(None, get("/overview"), |_| async { panic!("this panic is part of the test") }).await;
        assert_eq!(answer.status(), 500);
    }
}
