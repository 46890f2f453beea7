//! One writer, which puts all writes that wait into one sync.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use clap::ValueEnum;
use rusqlite::Connection;
use tokio::sync::oneshot;

/// What the file is.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Log,
    Sqlite,
}

/// The file, by way of its writer.
pub(crate) struct Disk {
    writes: Sender<Write>,
    places: AtomicI64,
    syncs: Arc<AtomicU64>,
}

struct Write {
    place: i64,
    task: Bytes,
    /// Of a new order.
    document: Option<Bytes>,
    written: oneshot::Sender<()>,
}

enum Store {
    Log(File),
    Sqlite(Connection),
}

impl Disk {
    pub(crate) fn open(folder: &Path, kind: Kind) -> io::Result<Self> {
        let store = match kind {
            Kind::Log => Store::Log(File::create(folder.join("log"))?),
            Kind::Sqlite => Store::Sqlite(opened(&folder.join("orders.db")).map_err(io::Error::other)?),
        };
        let (writes, received) = channel();
        let syncs = Arc::new(AtomicU64::new(0));
        let counted = syncs.clone();
        std::thread::spawn(move || write_all(store, &received, &counted));
        Ok(Self { writes, places: AtomicI64::new(1), syncs })
    }

    /// Writes a new order. Gives its place.
    pub(crate) async fn insert(&self, task: Bytes, document: Bytes) -> io::Result<i64> {
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        self.write(place, task, Some(document)).await?;
        Ok(place)
    }

    /// Writes the next version of a task.
    pub(crate) async fn update(&self, place: i64, task: Bytes) -> io::Result<()> {
        self.write(place, task, None).await
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    async fn write(&self, place: i64, task: Bytes, document: Option<Bytes>) -> io::Result<()> {
        let (written, waits) = oneshot::channel();
        let gone = || io::Error::other("the writer has ended");
        self.writes.send(Write { place, task, document, written }).map_err(|_| gone())?;
        waits.await.map_err(|_| gone())
    }
}

fn opened(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE orders (place INTEGER PRIMARY KEY, document BLOB NOT NULL, task BLOB NOT NULL)",
    )?;
    Ok(connection)
}

/// Ends with the last sender, or at the first fault: the orders of the batch are then told that it has ended.
fn write_all(mut store: Store, writes: &Receiver<Write>, syncs: &AtomicU64) {
    while let Ok(first) = writes.recv() {
        let batch: Vec<Write> = std::iter::once(first).chain(writes.try_iter()).collect();
        if let Err(error) = store.write(&batch) {
            return eprintln!("the file cannot be written: {error}");
        }
        syncs.fetch_add(1, Ordering::Relaxed);
        for Write { written, .. } in batch {
            // An order whose connection broke waits no longer.
            let _ = written.send(());
        }
    }
}

impl Store {
    /// All of it is on the disk when this returns.
    fn write(&mut self, batch: &[Write]) -> io::Result<()> {
        match self {
            Self::Log(file) => {
                let mut bytes = Vec::with_capacity(batch.len() * 2_048);
                for Write { place, task, document, .. } in batch {
                    bytes.extend_from_slice(&place.to_le_bytes());
                    bytes.extend_from_slice(document.as_deref().unwrap_or_default());
                    bytes.extend_from_slice(task);
                    bytes.push(b'\n');
                }
                file.write_all(&bytes)?;
                file.sync_data()
            }
            Self::Sqlite(connection) => rows(connection, batch).map_err(io::Error::other),
        }
    }
}

fn rows(connection: &mut Connection, batch: &[Write]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for Write { place, task, document, .. } in batch {
        match document {
            Some(document) => transaction
                .prepare_cached("INSERT INTO orders (place, document, task) VALUES (?1, ?2, ?3)")?
                .execute((place, document.as_ref(), task.as_ref()))?,
            None => transaction
                .prepare_cached("UPDATE orders SET task = ?2 WHERE place = ?1")?
                .execute((place, task.as_ref()))?,
        };
    }
    transaction.commit()
}
