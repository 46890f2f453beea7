//! A task without personal data (rule 46).

use super::{ProcessState, Reason, Task, Transition, What, bulk_mark};
use crate::order::ERASED;

impl Task {
    /// Removes all that a person or a service wrote: texts, outputs, and the names of people. Ids, states, times, codes,
    /// attempts and the submitter stay.
    pub fn erase(&mut self) {
        if let Some(reason) = &mut self.reason {
            erase_reason(reason);
        }
        for step in &mut self.steps {
            step.output = None;
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
    line.why = None;
    // The line is read back with the job only if its reason names it.
    if let What::Resubmitted { bulk: Some(job_id) } = &line.what {
        line.why = Some(format!("{}{ERASED}", bulk_mark(job_id)).into());
    }
    if let What::Other { text } = &mut line.what {
        *text = "other".into();
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
            | Self::ExpiredLast(_)
            | Self::Exhausted(_)
            | Self::Waiting(_)
            | Self::Accepted(_)
            | Self::Doubted(_)
            | Self::Late => true,
            Self::Entered { state } => !matches!(state, ProcessState::Closed),
            Self::Skipped(_)
            | Self::Rejected(_)
            | Self::Settled(_)
            | Self::Approved(_)
            | Self::Resubmitted { .. }
            | Self::Cancelled
            | Self::Paused
            | Self::Resumed
            | Self::Noted { .. }
            | Self::Erased
            | Self::Other { .. } => false,
        }
    }
}
