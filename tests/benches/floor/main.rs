//! The least that a program must do for an order: the floor under every figure of speed.
//!
//! It takes an order by HTTP, makes three calls one after the other, each with its key, and answers with the ended task.
//! The whole task is on the disk at four points, through one writer that puts many into one sync. It does nothing else: it
//! does not recover, retry, look anything up or check anything. `bench --only floor` starts it beside `stepwarden serve`.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod carry;
mod disk;
mod task;

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use carry::Floor;
use disk::{Disk, Kind};

/// Carries orders through three calls, and does nothing else
#[derive(Debug, Parser)]
struct Args {
    /// Where its file is
    #[arg(long)]
    data: PathBuf,
    /// What the file is: log, to which each task is appended, or sqlite, with one row for each order
    #[arg(long, value_enum)]
    kind: Kind,
    /// The addresses of the services, in the order of the calls
    #[arg(long, num_args = 3)]
    services: Vec<SocketAddr>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Args { data, kind, services } = Args::parse();
    std::fs::create_dir_all(&data)?;
    let disk = Disk::open(&data, kind)?;
    let floor = Arc::new(Floor::new(&services, disk));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    // As `stepwarden serve` says it.
    println!("listening on http://{}, on nothing else", listener.local_addr()?);
    io::stdout().flush()?;
    tokio::select! {
        ended = accept(listener, floor.clone()) => ended?,
        _ = terminated.recv() => eprintln!("transactions={}", floor.disk.syncs()),
    }
    Ok(())
}

async fn accept(listener: TcpListener, floor: Arc<Floor>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let floor = floor.clone();
        tokio::spawn(async move {
            let answers = service_fn(|request| answer(request, &floor));
            // A connection that breaks has been closed by the load generator.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answers).await;
        });
    }
}

async fn answer(request: Request<Incoming>, floor: &Floor) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match carried(request, floor).await {
        Ok(task) => (StatusCode::OK, task),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

async fn carried(request: Request<Incoming>, floor: &Floor) -> io::Result<Bytes> {
    let (parts, body) = request.into_parts();
    let key = parts.headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let key = key.ok_or_else(|| io::Error::other("no Idempotency-Key"))?;
    let document = body.collect().await.map_err(io::Error::other)?.to_bytes();
    floor.carry(key, &document).await
}
