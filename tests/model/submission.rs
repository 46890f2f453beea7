//! How an order begins: the API pins it to a version, and the submission stores it with its task.

use super::message::Message;
use super::protocol::Protocol;
use super::state::State;
use super::versions::View;

impl Protocol {
    /// The API pins an order and puts it on the submission queue.
    pub(super) fn post(&self, state: &mut State, order: u8, view: View) -> Option<()> {
        let version = self.decider.versions.chosen_by_api(view, order)?;
        let order = &mut state.orders[usize::from(order)];
        order.pinned = Some(version);
        order.messages.add(Message::Submission).then_some(())
    }

    /// Stores an order, unless it is stored. A killed function wakes no scheduler, or does not acknowledge its message.
    pub(super) fn store(
        &self,
        state: &mut State,
        order: u8,
        view: View,
        wakes: bool,
        acknowledges: bool,
    ) -> Option<()> {
        let order = &mut state.orders[usize::from(order)];
        if order.task.is_none() {
            let version = self.decider.versions.stored(view, order.pinned?)?;
            order.task = Some(self.decider.new_task(version));
        }
        if acknowledges {
            order.messages.remove(Message::Submission);
        }
        (!wakes || order.messages.add(Message::Wake)).then_some(())
    }
}
