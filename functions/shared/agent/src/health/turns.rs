//! The times of the calls of a service with a rate, in one instance.

use std::collections::VecDeque;

use domain::limits::DEFERRAL_MS_MAX;
use domain::ports::Environment;
use domain::time::Timestamp;

use crate::health::machine::{Change, Event};
use crate::health::pace::{AHEAD_MS, Asked, Places, micros};
use crate::health::release::{INTERVAL_MS, SPREAD_INTERVALS};
use crate::health::{Rate, SharedHealth};
use crate::ports::AgentPorts;

/// When a request may make its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// After this wait, which is short.
    Call { wait_ms: u64 },
    /// It waits on its queue for this long, and asks again.
    Line { wait_ms: u64 },
}

impl SharedHealth {
    /// The turn of a request, which may wait this long in the invocation. Costs no write if the service has no rate.
    pub(crate) async fn turn(&self, ports: &impl AgentPorts, has_waited: bool, wait_ms_max: u64) -> Turn {
        let Some(rate) = self.policy.rate else { return Turn::Call { wait_ms: 0 } };
        let kind = usize::from(has_waited);
        let asking = Asking::of(self, kind);
        let _turn = self.turns.lock().await;
        let now = ports.environment().now();
        let asked = {
            let mut known = self.known();
            if let Some(turn) = next(&mut known.places[kind], now) {
                return turn;
            }
            Asked { wanted: known.asking[kind], has_waited, ahead_ms: wait_ms_max.min(AHEAD_MS) }
        };
        // With several instances the last read is certainly old, and a write that fails costs more than a read.
        self.read(ports).await;
        let places = self.apply_in_turn(ports, Event::Turns(asked)).await;
        drop(asking);
        let now = ports.environment().now();
        let mut known = self.known();
        if let Some(Change { places: Some(places), .. }) = places {
            known.places[kind].extend(each(places, rate));
        }
        next(&mut known.places[kind], now).unwrap_or_else(|| {
            // Too many instances write at once.
            let spread_ms = ports.environment().random() % (SPREAD_INTERVALS * INTERVAL_MS);
            Turn::Line { wait_ms: INTERVAL_MS + spread_ms }
        })
    }
}

/// A request that asks for a place, until it has one or goes away.
struct Asking<'a>(&'a SharedHealth, usize);

impl<'a> Asking<'a> {
    fn of(health: &'a SharedHealth, kind: usize) -> Self {
        health.known().asking[kind] += 1;
        Self(health, kind)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.known().asking[self.1] -= 1;
    }
}

fn each(places: Places, rate: Rate) -> impl Iterator<Item = (u64, bool)> {
    (0..u64::from(places.count)).map(move |n| (places.first_us + n * rate.interval_us(), places.in_line))
}

/// The first place. One that is long over was taken for a request that went away, and one far ahead before the clock was
/// set back (rule 23).
fn next(places: &mut VecDeque<(u64, bool)>, now: Timestamp) -> Option<Turn> {
    let now_us = micros(now);
    while let Some((at_us, in_line)) = places.pop_front() {
        let wait_ms = at_us.saturating_sub(now_us).div_ceil(1_000);
        if wait_ms > AHEAD_MS + if in_line { DEFERRAL_MS_MAX } else { AHEAD_MS } {
            continue;
        }
        if in_line {
            return Some(Turn::Line { wait_ms: wait_ms.max(1) });
        }
        if at_us + AHEAD_MS * 1_000 >= now_us {
            return Some(Turn::Call { wait_ms });
        }
    }
    None
}
