//! An order's way: four durable points, and a call between each two.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::disk::Disk;
use crate::task::{STEPS, Task};

/// The services, and the file.
pub(crate) struct Floor {
    services: Vec<Service>,
    pub(crate) disk: Disk,
}

/// A service, and the connections to it that are free.
struct Service {
    address: SocketAddr,
    free: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Floor {
    pub(crate) fn new(services: &[SocketAddr], disk: Disk) -> Self {
        let service = |address: &SocketAddr| Service { address: *address, free: Mutex::default() };
        Self { services: services.iter().map(service).collect(), disk }
    }

    /// Carries an order to its end. Gives its task.
    pub(crate) async fn carry(&self, key: &str, document: &[u8]) -> io::Result<Bytes> {
        let mut task = Task::new(key);
        task.claim(0);
        let place = self.disk.insert(task.json()?, Bytes::copy_from_slice(document)).await?;
        for (step, service) in self.services.iter().enumerate() {
            if step > 0 {
                task.claim(step);
                self.disk.update(place, task.json()?).await?;
            }
            let output = service.call(&task.order_id, step, document).await?;
            task.done(step, &output)?;
        }
        task.end();
        let ended = task.json()?;
        self.disk.update(place, ended.clone()).await?;
        Ok(ended)
    }
}

impl Service {
    async fn call(&self, order_id: &str, step: usize, document: &[u8]) -> io::Result<Bytes> {
        let (name, path) = STEPS[step];
        let mut body = Vec::with_capacity(document.len() + 64);
        body.extend_from_slice(br#"{"OrderID":""#);
        body.extend_from_slice(order_id.as_bytes());
        body.extend_from_slice(br#"","Order":"#);
        body.extend_from_slice(document);
        body.push(b'}');
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", format!("{order_id}/{name}"))
            .body(Full::new(body.into()))
            .map_err(io::Error::other)?;
        let free = self.free.lock().map_err(|_| io::Error::other("a panic"))?.pop();
        let mut connection = match free {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answer = connection.send_request(request).await.map_err(io::Error::other)?;
        let is_done = answer.status().is_success();
        let output = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        self.free.lock().map_err(|_| io::Error::other("a panic"))?.push(connection);
        if is_done { Ok(output) } else { Err(io::Error::other("the service did not say done")) }
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(driver);
        Ok(connection)
    }
}
