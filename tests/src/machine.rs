//! All of Stepwarden as in `stepwarden serve`, in this process, with its own data directory.

#![expect(clippy::disallowed_methods, reason = "a test looks again after a while")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use embedded::{Engine, Options, Stats};
use local::serve::{self, RemoteSettings, Remotes, Running, Setup};
use local::stand_ins::{KEYS_UNLIMITED, StandIns};
use rusqlite::{Connection, OpenFlags};
use standins::Effects;
use tempfile::TempDir;

use crate::socket::{self, Answer};

/// The pause between two runs of the supervisor.
const SUPERVISE_EVERY: Duration = Duration::from_millis(50);
/// The number of polls and their period in milliseconds: 20 s in all.
const LOOKS_MAX: u32 = 60_000;
const LOOK_AGAIN_MS: u64 = 10;

/// A running machine. Without a call of [`Machine::stop`] it ends with the test.
#[derive(Debug)]
pub struct Machine {
    running: Running,
    engine: Engine,
    directory: TempDir,
}

/// The stored and in-flight data: equal before and after an action without effects.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    /// Id, version and state of every task.
    tasks: Vec<(String, u64, String)>,
    events: i64,
    effects: Effects,
}

impl Machine {
    /// Starts with stand-ins for all services.
    pub async fn start() -> Self {
        Self::start_with(&RemoteSettings::default()).await
    }

    /// Starts with these services, and stand-ins for the others.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_with(services: &RemoteSettings) -> Self {
        Self::start_as(tempfile::tempdir().expect("a directory"), services, Options::default()).await
    }

    /// Starts on the data that is in a directory, with these options of the engine.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_as(directory: TempDir, services: &RemoteSettings, options: Options) -> Self {
        let engine = Engine::open(directory.path(), options).expect("an engine");
        engine.recover().await.expect("recovered data");
        let setup = Setup { supervise_every: SUPERVISE_EVERY, ..Setup::default() };
        let remotes = Remotes::start(services, KEYS_UNLIMITED).await.expect("services");
        let listener = serve::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.expect("a port");
        let running = serve::start(listener, &engine, remotes, setup).expect("a running machine");
        Self { running, engine, directory }
    }

    /// Stops it as a signal would.
    ///
    /// # Panics
    /// When the engine does not close.
    pub async fn stop(self) {
        self.running.stop().await;
        self.engine.close().await.expect("closed");
    }

    /// Sends one request on its own connection.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        socket::ask(self.running.address(), method, path, headers, body).await
    }

    /// A connection for several requests.
    ///
    /// # Panics
    /// When there is none.
    pub async fn connect(&self) -> socket::Connection {
        socket::Connection::open(self.running.address()).await.expect("a connection")
    }

    /// `POST /orders`.
    pub async fn post(&self, headers: &[(&str, &str)], document: &str) -> Answer {
        self.ask("POST", "/orders", headers, document).await
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    /// Posts an order and waits until it is settled; returns it with its ID.
    ///
    /// # Panics
    /// When it is not accepted.
    pub async fn settled(&self, document: &str) -> (String, Answer) {
        const WAIT: [(&str, &str); 1] = [("prefer", "wait=20")];
        let mut answer = self.post(&WAIT, document).await;
        let id = answer.text_of("OrderID");
        // The host may be slow, so that no wait of one call says anything.
        for _ in 0..30 {
            if answer.status != 202 {
                break;
            }
            answer = self.ask("GET", &format!("/orders/{id}"), &WAIT, "").await;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        (id, answer)
    }

    /// Waits until the order meets a condition.
    ///
    /// # Panics
    /// If the condition does not hold within ten minutes.
    pub async fn until(&self, order_id: &str, is: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let mut last = serde_json::Value::Null;
        for _ in 0..LOOKS_MAX {
            last = self.get(&format!("/orders/{order_id}")).await.json();
            if is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(LOOK_AGAIN_MS)).await;
        }
        panic!("it did not come to that: {last:#}");
    }

    /// The stand-ins.
    ///
    /// # Panics
    /// If every service has a URL of its own.
    #[must_use]
    pub const fn stand_ins(&self) -> &StandIns {
        self.running.stand_ins().expect("stand-ins")
    }

    /// The effects of the stand-ins.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.running.stand_ins().map(|stand_ins| stand_ins.effects()).unwrap_or_default()
    }

    /// The database file, opened by a second reader.
    ///
    /// # Panics
    /// When it cannot be opened.
    #[must_use]
    pub fn database(&self) -> Connection {
        let file = self.directory.path().join("stepwarden.db");
        Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database")
    }

    /// The data, as soon as no message is in flight.
    ///
    /// # Panics
    /// If messages never end.
    pub async fn trace(&self) -> Trace {
        for _ in 0..LOOKS_MAX {
            let Stats { submissions, scheduler, requests, .. } = self.engine.stats();
            if submissions + scheduler + requests == 0 {
                let events = self.database().query_row("SELECT count(*) FROM events", [], |row| row.get(0));
                let (tasks, events) = (self.tasks().expect("tasks"), events.expect("events"));
                return Trace { tasks, events, effects: self.effects() };
            }
            tokio::time::sleep(Duration::from_millis(LOOK_AGAIN_MS)).await;
        }
        panic!("messages are still under way: {:?}", self.engine.stats());
    }

    fn tasks(&self) -> rusqlite::Result<Vec<(String, u64, String)>> {
        let database = self.database();
        let mut tasks = database.prepare(
            "SELECT order_id, max(version, coalesce((SELECT max(version) FROM changes WHERE seq = tasks.seq), 0)), \
             process_state FROM tasks ORDER BY seq",
        )?;
        tasks.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs(), row.get(2)?)))?.collect()
    }
}
