//! What one instance knows of the health of a service beyond the record.

use std::collections::VecDeque;

use domain::id::OrderId;
use domain::limits::DEFERRAL_MS_MAX;
use domain::ports::{Answers, OrderAt, ServiceHealth};
use domain::time::Timestamp;

use crate::health::HealthPolicy;
use crate::health::evidence::{
    Lately, add_asked, add_orders, add_own, each_at, failures_to_open, failures_to_report, is_among,
};
use crate::health::machine::Failures;
use crate::health::pace::{self, micros};
use crate::health::pass::{Failed, Pass};

/// The record as last read, and what is not in it yet.
#[derive(Debug)]
pub(super) struct Known {
    /// As last read or written.
    pub(super) record: ServiceHealth,
    pub(super) read_at: Option<Timestamp>,
    /// How many more failures than successes are not in the record yet, all in its era.
    pub(super) failures: i64,
    /// The orders of these failures.
    pub(super) orders: Vec<OrderId>,
    /// Those that the service asked for no call, and until when.
    pub(super) asked: Vec<OrderAt>,
    /// The calls that ended lately, and how many of them are in the record.
    pub(super) lately: Lately,
    pub(super) reported: u32,
    /// Orders whose calls failed while the service answered others, as this instance saw it, and not in the record yet.
    pub(super) own: Vec<OrderAt>,
    /// How long no further order is let in by itself.
    pub(super) lets_in_at: Timestamp,
    /// Released calls that failed since the last permits.
    pub(super) failed_in_release: u32,
    /// Answers to forward calls that are not in the record yet, all in its era.
    pub(super) answers: Vec<Answers>,
    /// When answers were written last.
    pub(super) answers_written_at: Option<Timestamp>,
    /// Permits of this interval and era that were taken and not used yet.
    pub(super) permits: u32,
    pub(super) interval: u32,
    /// Requests that ask for a place now, and places that one of them took for all.
    /// The second of each is for requests that have waited.
    pub(super) asking: [u32; 2],
    pub(super) places: [VecDeque<(u64, bool)>; 2],
}

impl Known {
    /// Nothing but this record.
    pub(super) fn of(record: ServiceHealth) -> Self {
        Self {
            record,
            read_at: None,
            failures: 0,
            orders: Vec::new(),
            asked: Vec::new(),
            lately: Lately::default(),
            reported: 0,
            own: Vec::new(),
            lets_in_at: Timestamp::default(),
            failed_in_release: 0,
            answers: Vec::new(),
            answers_written_at: None,
            permits: 0,
            interval: 0,
            asking: [0; 2],
            places: Default::default(),
        }
    }

    pub(super) fn keep(&mut self, record: ServiceHealth) {
        if record.era != self.record.era {
            (self.failures, self.permits, self.failed_in_release) = (0, 0, 0);
            self.answers.clear();
            self.asked.clear();
            self.orders.clear();
        }
        if record.evidence.calls == 0 {
            self.reported = 0;
        }
        self.record = record;
    }

    /// The calls in the window: those of the reports, and those of this instance that are in none.
    pub(super) fn calls(&self) -> u32 {
        self.record.evidence.calls.saturating_add(self.lately.calls().saturating_sub(self.reported))
    }

    /// Notes an answer to this order, that takes its step on or does not; whether the record has failures that it ends.
    pub(super) fn answered(&mut self, order: OrderId, is_taken: bool, now: Timestamp, policy: &HealthPolicy) -> bool {
        self.lately.count(now);
        // It takes calls, whatever it said to others.
        self.asked.clear();
        self.own.retain(|own| own.order_id != order);
        let in_record = i64::from(self.record.failures_in_a_row);
        let has_many_calls = failures_to_open(self.calls(), policy) > policy.failures_to_open;
        self.failures = if has_many_calls { (self.failures - 1).max(-in_record) } else { -in_record };
        if self.failures > -in_record {
            return false;
        }
        self.failures = 0;
        let failed = std::mem::take(&mut self.orders);
        if is_taken {
            add_own(&mut self.own, &each_at(&failed, order, now));
        }
        in_record > 0
    }

    /// Notes a failure of this order. All that are due to be written, if a write is due.
    pub(super) fn failed<'f>(
        &mut self,
        order: OrderId,
        pass: Pass,
        failed: Failed<'f>,
        now: Timestamp,
        policy: &HealthPolicy,
    ) -> Option<Failures<'f>> {
        self.failures = self.failures.max(-i64::from(self.record.failures_in_a_row)) + 1;
        self.failed_in_release += u32::from(pass.released);
        add_orders(&mut self.orders, &[order]);
        let is_suspect = is_among(&self.own, order) || is_among(&self.record.evidence.own, order);
        if let Some(after_ms) = failed.after_ms.filter(|after_ms| *after_ms > 0 && !is_suspect) {
            add_asked(&mut self.asked, &[OrderAt { order_id: order, at: now.plus_ms(after_ms.min(DEFERRAL_MS_MAX)) }]);
        }
        let (calls, count) = (self.calls(), u32::try_from(self.failures).unwrap_or(0));
        let in_all = self.record.failures_in_a_row.saturating_add(count);
        let is_due = count >= failures_to_report(calls, policy) || in_all >= failures_to_open(calls, policy);
        (pass.probe || pass.other || (is_due && count > 0)).then(|| {
            let calls = self.lately.calls().saturating_sub(self.reported);
            (self.failures, self.reported) = (0, self.lately.calls());
            Failures {
                count,
                calls,
                orders: std::mem::take(&mut self.orders),
                asked: std::mem::take(&mut self.asked),
                own: std::mem::take(&mut self.own),
                reason: failed.reason,
                problem: failed.problem,
            }
        })
    }

    pub(super) fn pass(&self, now: Timestamp) -> Pass {
        // A change that seems to come only later says nothing about the requests of now (rule 23).
        let since = if self.record.since.is_beyond(now, 0) { Timestamp::default() } else { self.record.since };
        Pass { era: self.record.era, probe: false, other: false, since, released: false }
    }

    /// Whether a request may have had to wait at any time since then: the breaker was not closed, or there was a line.
    pub(super) fn held_back_since(&self, at: Timestamp, now: Timestamp) -> bool {
        let line = self.record.pace.map(|pace| pace.line_us).filter(|line_us| !pace::is_beyond_line(*line_us, now));
        self.pass(now).failed_since(at) || line.is_some_and(|line_us| line_us > micros(at))
    }

    /// Uses one of this instance's permits.
    pub(super) fn use_permit(&mut self, interval: u32) -> bool {
        let usable = self.interval == interval && self.permits > 0;
        self.permits -= u32::from(usable);
        usable
    }
}
