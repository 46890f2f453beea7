//! What happens on purpose in a world: one call of a step that is lost, late or refused, with the time for which its service is
//! away then, and lines that fail.

use domain::id::OrderId;
use domain::task::Step;
use domain::workflow::{LINE, step_of};

use crate::event::Event;
use crate::seen::Way;
use crate::setup::{CallEnds, LineEnds, Outage};
use crate::state::State;
use crate::state::books::Made;

/// Somebody cancels the order within this time, in milliseconds.
const CANCELLED_WITHIN_MS: u64 = 20_000;

impl State {
    /// Whether this is the call to which something happens. If so, it begins.
    pub(crate) fn begin_mishap(&mut self, call: &Made) -> Option<CallEnds> {
        let mishap = self.setup.mishap?;
        if self.setup.shape.index_of(&self.step_name(call.of)?) != Some(mishap.step) {
            return None;
        }
        let is_undo = call.of.way == Way::Undo;
        if is_undo != mishap.is_of_undo {
            // There is an undo once somebody cancels.
            if self.remotes.mishap.is_none() && self.remotes.is_turned_for.is_none() {
                self.remotes.is_turned_for = Some(call.of.order);
                self.cancel_soon(call.of.order);
            }
            return None;
        }
        if self.remotes.mishap.is_some() {
            return None;
        }
        self.remotes.mishap = Some((self.now_ms, call.agent));
        if mishap.is_cancelled && !is_undo {
            self.cancel_soon(call.of.order);
        }
        self.tell("from now on something goes wrong with this step");
        Some(mishap.call)
    }

    fn cancel_soon(&mut self, order: OrderId) {
        let ms = self.rng.below(CANCELLED_WITHIN_MS);
        self.after(ms, Event::Cancel(order));
    }

    /// Whether the service of an agent is away since then.
    pub(crate) fn is_out_by_mishap(&self, agent: usize) -> bool {
        self.mishap_outage().is_some_and(|outage| {
            outage.agent == agent && self.now_ms < outage.at_ms.saturating_add_unsigned(outage.lasts_ms)
        })
    }

    /// Whether the service is away still, or does not answer a line. An operator waits for its return.
    pub(crate) fn is_waited_for(&self) -> bool {
        let lasts_ms = self.setup.failing_lines.map_or(0, |lines| lines.lasts_ms);
        let mut lines = self.remotes.unanswered_ms.values();
        lines.any(|at_ms| self.now_ms < at_ms.saturating_add_unsigned(lasts_ms))
            || self.remotes.mishap.is_some_and(|(_, agent)| self.is_out_by_mishap(agent))
    }

    /// Whether it is the call of a line that fails so on purpose.
    pub(crate) fn fails_on_purpose(&mut self, call: &Made, ends: LineEnds) -> bool {
        let of = call.of;
        let lines = self.setup.failing_lines.filter(|lines| lines.ends == ends && of.way == Way::Forward);
        let (Some(lines), Some(task)) = (lines, self.tables.task(of.order)) else { return false };
        let Some(name) = self.setup.shape.steps.get(lines.step) else { return false };
        let is_its = |step: &&Step| step.name.contains(LINE) && *step_of(&step.name) == **name;
        let place = task.steps[..of.step.min(task.steps.len())].iter().filter(is_its).count();
        let all = task.steps.iter().filter(is_its).count();
        if !task.steps.get(of.step).as_ref().is_some_and(is_its) || !lines.which.is(place, all) {
            return false;
        }
        let now_ms = self.now_ms;
        match ends {
            LineEnds::Rejected => true,
            LineEnds::Unanswered => {
                let since_ms = *self.remotes.unanswered_ms.entry((of.order, of.step)).or_insert(now_ms);
                now_ms < since_ms.saturating_add_unsigned(lines.lasts_ms)
            }
        }
    }

    /// The outage that began with a call, if it did.
    #[must_use]
    pub fn mishap_outage(&self) -> Option<Outage> {
        let (at_ms, agent) = self.remotes.mishap?;
        let lasts_ms = self.setup.mishap?.lasts_ms;
        (lasts_ms > 0).then_some(Outage { agent, at_ms, lasts_ms })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::described::{Described, Pace};
    use crate::description::Service;
    use crate::seen::Try;
    use crate::setup::{Mishap, Which};
    use crate::testing;

    #[test]
    fn it_begins_with_the_first_call_of_its_step_and_ends_in_time() {
        let mut setup = testing::setup();
        let described = Described { service: Service::default(), pace: Pace::Usual, words: Arc::default() };
        setup.services[0].described = Some(Arc::new(described));
        let mishap =
            Mishap { step: 0, is_of_undo: false, call: CallEnds::Unheard, lasts_ms: 5_000, is_cancelled: false };
        setup.mishap = Some(mishap);
        let mut state = testing::state(setup);
        let call = |step: usize| Made {
            id: 1,
            of: Try { order: OrderId::from_idempotency_key("test", "mishap"), step, way: Way::Forward, attempt: 1 },
            agent: 0,
            key: "key".into(),
            timeout_ms: 1_000,
            started_ms: 0,
            callback: None,
            authorization: None,
            is_polled: false,
        };
        assert_eq!(state.begin_mishap(&call(1)), None);
        assert_eq!(state.begin_mishap(&call(0)), Some(CallEnds::Unheard));
        assert_eq!(state.begin_mishap(&call(0)), None, "once");
        assert!(state.is_out_by_mishap(0) && !state.is_out_by_mishap(1) && state.is_waited_for());
        state.now_ms = 5_000;
        assert!(!state.is_out_by_mishap(0) && !state.is_waited_for());
    }

    #[test]
    fn lines_fail_one_by_one_and_together() {
        use domain::workflow::DropMax;
        let of = |which: Which, all: usize| (0..all).filter(|place| which.is(*place, all)).collect::<Vec<_>>();
        assert_eq!([of(Which::One(1), 3), of(Which::One(4), 3)], [[1], [1]]);
        assert_eq!([of(Which::AllButOne, 3), of(Which::Beyond(DropMax::Lines(1)), 3)], [[0, 1], [0, 1]]);
        assert_eq!(of(Which::Beyond(DropMax::Percent(50)), 4), [0, 1, 2], "half of them, and one more");
        assert_eq!(of(Which::Beyond(DropMax::Lines(0)), 3), [0]);
        assert_eq!(of(Which::All, 2), [0, 1]);
    }
}
