//! How an order begins: the API pins it to a version, and the submission stores it with its task.

use super::bounds::STEPS;
use super::decision::{Asked, Decided, Question};
use super::message::Message;
use super::protocol::Protocol;
use super::state::{Cause, State};
use super::task::Late;
use super::versions::View;

impl Protocol {
    /// The API pins an order and puts it on the submission queue.
    pub(super) fn post(&self, state: &mut State, order: u8, view: View) -> Option<()> {
        let version = self.decider.versions.chosen_by_api(view, order)?;
        let order = &mut state.orders[usize::from(order)];
        order.pinned = Some(version);
        order.messages.add(Message::Submission).then_some(())
    }

    /// Stores an order, with its first claims, and sends what follows. A message that comes again finds its order stored, and
    /// sends again what its earlier delivery may not have sent. A killed function sends nothing, or does not acknowledge its
    /// message.
    pub(super) fn store(
        &self,
        state: &mut State,
        order: u8,
        view: View,
        sends: bool,
        acknowledges: bool,
    ) -> Option<()> {
        let stored = state.orders[usize::from(order)].task;
        let task = match stored {
            Some(task) => task,
            None => {
                let pinned = state.orders[usize::from(order)].pinned?;
                self.decider.new_task(self.decider.versions.stored(view, pinned)?)
            }
        };
        let event = Asked::Cause(Cause::Message(Message::Wake));
        let (redelivered, late) = (stored.is_some(), Late([false; STEPS]));
        let Decided { after, messages, alert, breach } =
            self.decider.ask(Question { task, event, view, redelivered, late });
        state.breach = state.breach.or(breach);
        if stored.is_some() && after.is_some() {
            state.outdate(order, None);
        }
        let order = &mut state.orders[usize::from(order)];
        order.task = Some(after.unwrap_or(task));
        if acknowledges {
            order.messages.remove(Message::Submission);
        }
        if !sends {
            return Some(());
        }
        order.told = order.told.max(alert.unwrap_or(0));
        messages.iter().all(|message| order.messages.add(message)).then_some(())
    }
}
