//! A task without personal data (rule 46).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ProcessState, Reason, Task, Transition, What};
use crate::order::ERASED;
use crate::time::Timestamp;

/// A call that its agent gave up may end this much later than its order, in milliseconds.
const LATE_MS: u64 = 60 * 60 * 1_000;

/// Where records that are not about one order may quote an order: the time in which, and the bulk jobs that acted on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    from: Timestamp,
    until: Timestamp,
    jobs: BTreeSet<Arc<str>>,
}

impl Quoted {
    /// Whether a text of this time may quote the order. Without an end it is still there.
    #[must_use]
    pub fn covers(&self, since: Timestamp, until: Option<Timestamp>) -> bool {
        since <= self.until && until.is_none_or(|until| self.from <= until)
    }

    /// The bulk jobs that acted on the order.
    #[must_use]
    pub const fn jobs(&self) -> &BTreeSet<Arc<str>> {
        &self.jobs
    }
}

impl Task {
    /// Where records of others may quote this order. It is asked before the order is erased.
    #[must_use]
    pub fn quoted(&self) -> Quoted {
        let (first, last) = (self.history.first(), self.history.last());
        let jobs = self.history.iter().filter_map(|line| line.bulk.clone());
        Quoted {
            from: first.map_or(Timestamp::from_epoch_ms(0), |line| line.at),
            until: last.map_or(Timestamp::from_epoch_ms(i64::MAX), |line| line.at.plus_ms(LATE_MS)),
            jobs: jobs.chain(self.jobs.iter().cloned()).collect(),
        }
    }

    /// Removes all that a person or a service wrote: texts, outputs, and the names of people. Ids, states, times, codes,
    /// attempts and the submitter stay.
    pub fn erase(&mut self) {
        if let Some(reason) = &mut self.reason {
            erase_reason(reason);
        }
        for step in &mut self.steps {
            (step.output, step.poll) = (None, None);
            if let Some(error) = &mut step.last_error {
                error.message = ERASED.into();
            }
            if let Some(approval) = &mut step.approval {
                approval.not_by = None;
            }
        }
        if let Some(pause) = &mut self.paused {
            (pause.by, pause.reason) = (ERASED.into(), ERASED.into());
        }
        if let Some(taken) = &mut self.taken {
            taken.by = ERASED.into();
        }
        self.history.iter_mut().for_each(erase_line);
    }
}

fn erase_reason(reason: &mut Reason) {
    reason.message = ERASED.into();
    if let Some(earlier) = &mut reason.earlier {
        erase_reason(earlier);
    }
}

fn erase_line(line: &mut Transition) {
    if !line.what.is_by_an_instance() {
        line.who = ERASED.into();
    }
    // A client may choose any id for its command.
    (line.why, line.command_id) = (None, None);
    if let What::Other(value) = &mut line.what {
        **value = "other".into();
    }
}

impl What {
    /// Whether only the system itself writes such a line. The submitter is the account that posts orders.
    const fn is_by_an_instance(&self) -> bool {
        match self {
            Self::Submitted
            | Self::Claimed(_)
            | Self::Processed(_)
            | Self::Deferred(_)
            | Self::Expired(_)
            | Self::GivenUp(_)
            | Self::Waiting(_)
            | Self::Accepted(_)
            | Self::Contradicted(_)
            | Self::Late => true,
            Self::Entered(state) => !matches!(state, ProcessState::Closed),
            Self::Skipped(_)
            | Self::Dropped(_)
            | Self::Rejected(_)
            | Self::Settled(_)
            | Self::Approved(_)
            | Self::Resubmitted
            | Self::Cancelled
            | Self::Paused
            | Self::Resumed
            | Self::Noted(_)
            | Self::Erased
            | Self::Other(_) => false,
        }
    }
}
