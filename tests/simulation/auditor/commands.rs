//! Operators' commands: rule 12.

use domain::id::OrderId;

use super::dossier::Past;
use super::seen::{OrderState, SettledStep, StepState};
use super::{Auditor, Finding, Invariant, must};

impl Auditor {
    /// A command is on the scheduler queue.
    pub(super) fn wished(&mut self, order: OrderId, action: &'static str, settled: Option<&SettledStep>) {
        let dossier = self.dossier(order);
        dossier.commands.insert(action);
        if let Some(SettledStep { step, way, output }) = settled {
            dossier.settled.insert((*step, *way));
            dossier.outputs.extend(output.map(|output| (*step, output)));
        }
    }

    /// An accepted command is on the scheduler queue, or was.
    pub(super) fn promised(&mut self, order: OrderId, action: &'static str) -> Finding {
        must(self.dossier(order).commands.contains(action), Invariant::Operator, || {
            format!("the {action} is accepted, and was never queued")
        })
    }

    /// A deleted command was carried out, or the order's state no longer allows it. `settles` is the step of a settle and
    /// the handler's clock.
    pub(super) fn granted(
        &mut self,
        order: OrderId,
        action: &'static str,
        looked_at: u64,
        settles: Option<(usize, i64)>,
    ) -> Finding {
        let dossier = self.dossier(order);
        let Some(last) = &dossier.last else { return Ok(()) };
        // An order stays in `Error` while another of its steps is. By a clock that is behind, a call may still run.
        let is_settled = settles.is_some_and(|(step, clock_ms)| {
            let step = &last.steps[step];
            step.state != StepState::Error || step.runs_until_ms.is_some_and(|until_ms| until_ms > clock_ms)
        });
        let is_met = is_settled || dossier.past.range(looked_at..).any(|(_, past)| past.meets(action, looked_at));
        must(is_met, Invariant::Operator, || {
            format!("the {action} of who saw v{looked_at} is let go, and nothing came of it: {last}")
        })
    }
}

impl Past {
    /// Whether an order in this state satisfies the command for the seen version, or can no longer satisfy it. A newer
    /// error is not the one that the operator saw.
    fn meets(self, action: &str, looked_at: u64) -> bool {
        let has_ended = matches!(self.state, OrderState::Processed | OrderState::Compensated);
        let is_in_error = self.state == OrderState::Error;
        let is_other_error = is_in_error && self.since > looked_at;
        match action {
            "Cancel" => has_ended || is_other_error || self.state == OrderState::Compensating,
            "Resubmit" | "Settle" => !is_in_error || is_other_error,
            "Pause" => has_ended || is_in_error || self.paused,
            _ => has_ended || is_in_error || !self.paused,
        }
    }
}
