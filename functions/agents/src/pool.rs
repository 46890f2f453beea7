//! Pooled connections with an age: the name of a server may move to another address, and a connection in use never
//! notices.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// How long an unused connection is kept: below the 60 s after which common load balancers drop one silently.
const IDLE: Duration = Duration::from_secs(45);
/// Unused connections kept for each host.
const IDLE_MAX: usize = 256;
/// The age from which on no request uses a connection.
const AGE_MAX: Duration = Duration::from_secs(60);

/// Connections to servers. A clone shares them.
pub struct Pool<C>(Arc<Inner<C>>);

struct Inner<C> {
    connector: C,
    /// Unused connections kept for each host.
    idle_max: usize,
    /// The present client, and when it was made. The connections of the one before end with their requests.
    present: Mutex<(Client<C, Full<Bytes>>, Instant)>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Pool<C> {
    /// No connection is made yet.
    #[must_use]
    pub fn new(connector: C) -> Self {
        Self::of(connector, IDLE_MAX)
    }

    /// The same, for this number of requests at once over all hosts. A host keeps at most an eighth of them unused.
    #[must_use]
    pub fn for_requests(connector: C, requests_max: usize) -> Self {
        Self::of(connector, IDLE_MAX.min(requests_max / 8))
    }

    fn of(connector: C, idle_max: usize) -> Self {
        let present = Mutex::new((client(&connector, idle_max), now()));
        Self(Arc::new(Inner { connector, idle_max, present }))
    }

    /// Another pool with the same connector.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::of(self.0.connector.clone(), self.0.idle_max)
    }

    /// From now on no request uses a connection from before.
    pub fn renew(&self) {
        let present = (client(&self.0.connector, self.0.idle_max), now());
        *self.0.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
    }

    /// # Errors
    /// If no response came: no connection, or a broken one.
    pub async fn request(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        self.at(now()).request(request).await
    }

    fn at(&self, now: Instant) -> Client<C, Full<Bytes>> {
        let mut present = self.0.present.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(present.1) >= AGE_MAX {
            *present = (client(&self.0.connector, self.0.idle_max), now);
        }
        present.0.clone()
    }
}

fn client<C: Connect + Clone>(connector: &C, idle_max: usize) -> Client<C, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(idle_max)
        .pool_timer(TokioTimer::new())
        .build(connector.clone())
}

#[expect(clippy::disallowed_methods, reason = "the age of a connection, not a time of the protocol")]
fn now() -> Instant {
    Instant::now()
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use http_body_util::BodyExt;
    use hyper_util::client::legacy::connect::HttpConnector;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_in_use_is_replaced_at_its_age_and_when_the_service_failed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Relaxed);
                tokio::spawn(async move {
                    let mut read = [0; 1_024];
                    while stream.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    }
                });
            }
        });
        let pool = Pool::new(HttpConnector::new());
        let start = pool.0.present.lock().unwrap().1;
        let request_at = async |at: Instant| {
            let response = pool.at(at).request(Request::get(&url).body(Full::default()).unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap();
            // The connection is back in its pool.
            tokio::task::yield_now().await;
            connections.load(Relaxed)
        };
        let almost = start + AGE_MAX - Duration::from_millis(1);
        assert_eq!((request_at(start).await, request_at(almost).await), (1, 1));
        assert_eq!((request_at(start + AGE_MAX).await, request_at(start + AGE_MAX).await), (2, 2));
        pool.renew();
        assert_eq!(request_at(start + AGE_MAX).await, 3);
    }
}
