//! The open connections of a server: how many there may be, and which is closed for a new one.
//!
//! A client that waits for nothing, sends half a request or does not take its answer costs a connection. So when there
//! are too many, the one that has been idle for longest is closed, and a new client is not refused. A connection whose
//! request is being handled is never closed for another one.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::bodies::{Bodies, BodyBytes};
use super::limits::Limits;

/// How long connections are short, once the system has no descriptor left.
const SHORT_MS: u64 = 1_000;
/// One connection of so many is closed at once when there are too many, since each time all are looked at.
const CLOSED_AT_ONCE_SHARE: usize = 64;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Nothing, between two requests.
    Idle,
    /// It sends a head.
    Head,
    /// It sends a body.
    Body,
    /// Its request is being handled.
    Handled,
    /// It takes an answer.
    Taking,
}

impl Phase {
    const fn of(number: u8) -> Self {
        match number {
            0 => Self::Idle,
            1 => Self::Head,
            2 => Self::Body,
            3 => Self::Handled,
            _ => Self::Taking,
        }
    }
}

/// All open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) limits: Limits,
    processors: usize,
    started: Instant,
    open: Mutex<Open>,
    untaken_bytes: AtomicUsize,
    bodies: Bodies,
    short_until_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    by_number: HashMap<u64, Arc<Connection>>,
    of_network: HashMap<IpAddr, Network>,
    last_number: u64,
}

/// The connections of one network, and the turns of their requests: one for each processor. So when it sends thousands at
/// once, the requests of others come between them.
#[derive(Debug)]
struct Network {
    count: usize,
    turns: Arc<Semaphore>,
}

/// One open connection. Its own task changes it; the others look at it when there are too many.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    network: IpAddr,
    turns: Arc<Semaphore>,
    all: Arc<Connections>,
    phase: AtomicU8,
    /// The beginning of the phase, in milliseconds from the start of the server.
    since_ms: AtomicU64,
    /// Bytes of the last answer that the client has not taken yet.
    untaken_bytes: AtomicUsize,
    /// Whether something was received since the last write.
    is_asked: AtomicBool,
    /// Its client sends no more.
    gone: Arc<Notify>,
    closed: Notify,
}

/// A connection that counts, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted(pub(super) Arc<Connection>);

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let (open, untaken_bytes) = (Mutex::default(), AtomicUsize::new(0));
        let (bodies, short_until_ms) = (Bodies::default(), AtomicU64::new(0));
        let processors = available_parallelism().map_or(1, NonZero::get);
        Arc::new(Self { limits, processors, started: Instant::now(), open, untaken_bytes, bodies, short_until_ms })
    }

    /// Counts a connection, and closes others for it if there are too many. `None` if none can be closed.
    pub(super) fn admit(self: &Arc<Self>, network: IpAddr) -> Option<Admitted> {
        let mut open = self.open();
        let count = |open: &Open| open.of_network.get(&network).map_or(0, |network| network.count);
        if count(&open) >= self.limits.of_network_max {
            open.close_idle(|connection| connection.network == network, self.limits.connections_max);
        }
        if open.by_number.len() >= self.limits.connections_max {
            // The network with the most connections loses one. So a few networks cannot lock out the others.
            let busiest = open.of_network.iter().max_by_key(|(_, network)| network.count).map(|(network, _)| *network);
            if !open.close_idle(|connection| Some(connection.network) == busiest, self.limits.connections_max) {
                open.close_idle(|_| true, self.limits.connections_max);
            }
        }
        if count(&open) >= self.limits.of_network_max || open.by_number.len() >= self.limits.connections_max {
            return None;
        }
        open.last_number += 1;
        let none = || Network { count: 0, turns: Arc::new(Semaphore::new(self.processors)) };
        let of_network = open.of_network.entry(network).or_insert_with(none);
        of_network.count += 1;
        let turns = of_network.turns.clone();
        let connection = Arc::new(Connection {
            number: open.last_number,
            network,
            turns,
            all: self.clone(),
            phase: AtomicU8::new(Phase::Idle as u8),
            since_ms: AtomicU64::new(self.now_ms()),
            untaken_bytes: AtomicUsize::new(0),
            is_asked: AtomicBool::new(false),
            gone: Arc::default(),
            closed: Notify::new(),
        });
        open.by_number.insert(connection.number, connection.clone());
        Some(Admitted(connection))
    }

    /// The system has no descriptor for another connection: for a moment each one ends with its answer, and one that is
    /// idle for longer than a busy client is closed.
    pub(super) fn make_room(&self) {
        let now_ms = self.now_ms();
        self.short_until_ms.store(now_ms + SHORT_MS, Relaxed);
        let is_idle = |connection: &Connection| {
            matches!(connection.phase(), Phase::Idle | Phase::Head)
                && connection.since_ms.load(Relaxed) + SHORT_MS <= now_ms
        };
        let mut open = self.open();
        if let Some(connection) = open.longest(is_idle).first() {
            open.close(connection);
        }
    }

    /// Whether each connection is to end with its answer.
    pub(super) fn are_short(&self) -> bool {
        self.now_ms() < self.short_until_ms.load(Relaxed)
    }

    /// Closes the clients that took nothing for longest while all answers together have too many bytes.
    fn relieve(&self) {
        let mut excess_bytes = self.untaken_bytes.load(Relaxed).saturating_sub(self.limits.untaken_bytes_max);
        if excess_bytes == 0 {
            return;
        }
        let mut open = self.open();
        for connection in open.longest(|connection| connection.phase() == Phase::Taking) {
            if excess_bytes == 0 {
                break;
            }
            excess_bytes = excess_bytes.saturating_sub(connection.untaken_bytes.load(Relaxed));
            open.close(&connection);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a server does not run for that long")]
    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

impl Open {
    /// Closes some of these connections that have been idle for longest; then, if there are none, of the others that are
    /// not being handled. Returns whether there were any.
    fn close_idle(&mut self, is_meant: impl Fn(&Connection) -> bool, connections_max: usize) -> bool {
        let is_idle = |phase| matches!(phase, Phase::Idle | Phase::Head);
        let mut candidates = self.longest(|connection| is_meant(connection) && is_idle(connection.phase()));
        if candidates.is_empty() {
            candidates = self.longest(|connection| is_meant(connection) && connection.phase() != Phase::Handled);
        }
        for connection in candidates.iter().take((connections_max / CLOSED_AT_ONCE_SHARE).max(1)) {
            self.close(connection);
        }
        !candidates.is_empty()
    }

    /// These connections, the one first that has been in its phase for longest.
    fn longest(&self, is_meant: impl Fn(&Connection) -> bool) -> Vec<Arc<Connection>> {
        let mut meant: Vec<_> = self.by_number.values().filter(|connection| is_meant(connection)).cloned().collect();
        meant.sort_by_cached_key(|connection| (connection.since_ms.load(Relaxed), connection.number));
        meant
    }

    fn close(&mut self, connection: &Connection) {
        self.forget(connection);
        connection.take(usize::MAX);
        connection.closed.notify_one();
    }

    fn forget(&mut self, connection: &Connection) {
        if self.by_number.remove(&connection.number).is_none() {
            return;
        }
        if let Some(network) = self.of_network.get_mut(&connection.network) {
            network.count -= 1;
            if network.count == 0 {
                self.of_network.remove(&connection.network);
            }
        }
    }
}

impl Connection {
    pub(super) const fn network(&self) -> IpAddr {
        self.network
    }

    /// Tells when its client sends no more.
    pub(super) const fn gone(&self) -> &Arc<Notify> {
        &self.gone
    }

    /// A body, of which no byte is here yet.
    pub(super) fn body(&self) -> BodyBytes<'_> {
        self.all.bodies.from(self.network)
    }

    pub(super) fn is_short(&self) -> bool {
        self.all.are_short()
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.all.limits
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Relaxed))
    }

    /// Returns once the connection is to be closed for others.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Bytes were received. Those that come before the answer to a request ask for nothing after it.
    pub(super) fn received(&self) {
        let phase = self.phase();
        if matches!(phase, Phase::Idle | Phase::Head) {
            self.is_asked.store(true, Relaxed);
        }
        if phase == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// A head is complete. Whether it was sent before the answer to the request before it (pipelining).
    pub(super) fn asked(&self) -> bool {
        self.enter(Phase::Body);
        !self.is_asked.swap(false, Relaxed)
    }

    /// The turn of its request among those of its network, to be kept until its handler waits for something.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turns.acquire().await.ok()
    }

    /// A request is complete, and it is its turn.
    pub(super) fn handled(&self) {
        self.enter(Phase::Handled);
    }

    /// The answer of so many bytes is on its way.
    pub(super) fn answered(&self, bytes: usize) {
        self.untaken_bytes.fetch_add(bytes, Relaxed);
        self.all.untaken_bytes.fetch_add(bytes, Relaxed);
        self.enter(if bytes > 0 { Phase::Taking } else { Phase::Idle });
        self.all.relieve();
    }

    /// The system took so many bytes. Those of heads count too, so an answer seems taken a little early.
    pub(super) fn taken(&self, bytes: usize) {
        self.is_asked.store(false, Relaxed);
        let left_bytes = self.take(bytes);
        if self.phase() == Phase::Taking {
            // Whoever takes something has not waited.
            self.enter(if left_bytes == 0 { Phase::Idle } else { Phase::Taking });
        }
    }

    /// So many bytes of its answer are no longer here. Returns how many are left.
    fn take(&self, bytes: usize) -> usize {
        let less = |untaken_bytes: usize| Some(untaken_bytes.saturating_sub(bytes));
        let before = self.untaken_bytes.fetch_update(Relaxed, Relaxed, less).unwrap_or(0);
        let taken_bytes = bytes.min(before);
        self.all.untaken_bytes.fetch_sub(taken_bytes, Relaxed);
        before - taken_bytes
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.since_ms.store(self.all.now_ms(), Relaxed);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.taken(usize::MAX);
        connection.all.open().forget(connection);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::future::join_all;
    use futures_util::{FutureExt, poll};

    use super::super::limits::network;
    use super::*;

    fn connections(connections_max: usize, of_network_max: usize) -> Arc<Connections> {
        Connections::new(Limits { connections_max, of_network_max, untaken_bytes_max: 1_000, ..Limits::default() })
    }

    fn from(connections: &Arc<Connections>, address: &str) -> Option<Admitted> {
        connections.admit(network(address.parse().unwrap()))
    }

    async fn is_closed(Admitted(connection): &Admitted) -> bool {
        tokio::time::timeout(std::time::Duration::from_millis(1), connection.closed()).await.is_ok()
    }

    #[tokio::test]
    async fn the_requests_of_one_network_begin_in_turn_and_leave_out_no_other() {
        let all = connections(100, 80);
        let [flood, known] = ["192.0.2.1", "192.0.2.2"].map(|address| from(&all, address).unwrap());
        let again = from(&all, "192.0.2.1").unwrap();
        let mut taken = join_all((0..all.processors).map(|_| flood.0.turn())).await;
        let mut last = pin!(again.0.turn());
        assert!(poll!(&mut last).is_pending(), "its network has no turn left");
        assert!(known.0.turn().now_or_never().flatten().is_some(), "another network has its own");
        taken.pop();
        assert!(last.now_or_never().flatten().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_idle_for_longest_is_closed_for_a_new_one() {
        let all = connections(3, 3);
        let [first, second, third] = [1, 2, 3].map(|_| from(&all, "192.0.2.1").unwrap());
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        first.0.received();
        let fourth = from(&all, "192.0.2.1").unwrap();
        assert!(is_closed(&second).await && !is_closed(&first).await && !is_closed(&third).await);
        drop(second);
        assert_eq!(all.open().by_number.len(), 3);
        drop((first, third, fourth));
        assert!(all.open().by_number.is_empty() && all.open().of_network.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn no_connection_is_closed_while_its_request_is_handled() {
        let all = connections(2, 2);
        let [first, second] = [1, 2].map(|_| from(&all, "192.0.2.1").unwrap());
        for connection in [&first, &second] {
            connection.0.received();
            assert!(!connection.0.asked());
            connection.0.handled();
        }
        assert!(from(&all, "192.0.2.1").is_none() && !is_closed(&first).await && !is_closed(&second).await);
        second.0.answered(900);
        let third = from(&all, "192.0.2.1").unwrap();
        assert!(is_closed(&second).await, "it takes its answer, and none is idle");
        drop(third);
    }

    #[tokio::test(start_paused = true)]
    async fn f70_without_a_descriptor_connections_end_with_their_answer_and_an_idle_one_is_closed() {
        let all = connections(9, 9);
        let [first, second] = [1, 2].map(|_| from(&all, "192.0.2.1").unwrap());
        first.0.received();
        first.0.asked();
        first.0.handled();
        tokio::time::advance(std::time::Duration::from_millis(SHORT_MS)).await;
        let third = from(&all, "192.0.2.1").unwrap();
        assert!(!first.0.is_short());
        all.make_room();
        assert!(is_closed(&second).await && !is_closed(&first).await, "it is being handled");
        drop(second);
        all.make_room();
        assert!(!is_closed(&third).await, "its client may be about to ask");
        assert!(first.0.is_short());
        tokio::time::advance(std::time::Duration::from_millis(SHORT_MS)).await;
        assert!(!first.0.is_short());
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_leaves_connections_for_others() {
        let all = connections(4, 3);
        let [first, ..] = &[1, 2, 3].map(|_| from(&all, "192.0.2.1").unwrap())[..] else { panic!() };
        let other = from(&all, "192.0.2.2").unwrap();
        let next = from(&all, "192.0.2.1").unwrap();
        assert!(is_closed(first).await && !is_closed(&other).await);
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_not_taken_have_a_bound_together() {
        let all = connections(3, 3);
        let [first, second, third] = [1, 2, 3].map(|_| from(&all, "192.0.2.1").unwrap());
        for connection in [&first, &second] {
            connection.0.answered(400);
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        first.0.taken(100);
        third.0.answered(300);
        assert!(!is_closed(&first).await, "that is exactly as much as is allowed");
        third.0.answered(100);
        assert!(is_closed(&second).await && !is_closed(&first).await, "the first has just taken something");
        drop((first, second, third));
        assert_eq!(all.untaken_bytes.load(Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn two_networks_that_have_most_connections_make_room_for_a_third() {
        let all = connections(4, 3);
        let hostile = [1, 2, 1, 2].map(|last| from(&all, &format!("192.0.2.{last}")).unwrap());
        hostile.iter().for_each(|connection| {
            connection.0.received();
            connection.0.asked();
        });
        let known = from(&all, "192.0.2.3").unwrap();
        let more: Vec<_> = [1, 2, 1, 2].iter().filter_map(|last| from(&all, &format!("192.0.2.{last}"))).collect();
        assert!(!is_closed(&known).await, "it is idle, and its network has one");
        drop((more, hostile));
    }

    #[test]
    fn a_request_that_is_received_before_the_answer_to_the_one_before_it_is_ahead() {
        let all = connections(1, 1);
        let Admitted(connection) = &from(&all, "192.0.2.1").unwrap();
        connection.received();
        assert!(!connection.asked());
        connection.received();
        connection.handled();
        connection.answered(5);
        connection.taken(100);
        assert!(connection.asked());
        connection.handled();
        connection.answered(5);
        connection.taken(100);
        assert_eq!(connection.phase(), Phase::Idle);
        connection.received();
        assert_eq!(connection.phase(), Phase::Head);
        assert!(!connection.asked());
        // The next one is here, and nothing of the answer is taken.
        connection.handled();
        connection.received();
        connection.answered(5);
        connection.received();
        assert!(connection.asked());
    }
}
