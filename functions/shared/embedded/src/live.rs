//! The orders in flight, as of the latest queued write.
//!
//! A conditional write is decided on an entry of this map, so an entry must never be older than the disk. Therefore one
//! caller at a time loads an entry, and no other caller changes it meanwhile. An entry is removed only when the disk
//! has all of its state.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Position;
use std::sync::Arc;

use domain::id::OrderId;
use domain::order::Order;
use domain::task::{Task, Watch};
use tokio::sync::oneshot;

use crate::flight::Flight;
use crate::log::{Durable, Log};
use crate::rows::Stored;
use crate::write::Write;

/// The known state of one order.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    knowledge: Knowledge,
    /// Order and task. `None` until the order is inserted.
    pub(crate) stored: Option<Stored>,
    /// The write that made this version of the task. 0 if the task was read from the disk.
    pub(crate) written: u64,
    /// The write that inserted the order. 0 if the order was read from the disk.
    pub(crate) inserted: u64,
    /// Messages of this order on the submission queue.
    submissions: u32,
    /// Callers that wait until the order is inserted.
    arrivals: Vec<oneshot::Sender<()>>,
    /// Callers that wait until the task is settled.
    watchers: Vec<oneshot::Sender<Stored>>,
}

/// Whether `stored` is known.
#[derive(Debug, Default)]
enum Knowledge {
    /// The disk must be read first.
    #[default]
    Unknown,
    /// One caller reads the disk. These callers wait for the end of the read.
    Loading(Vec<oneshot::Sender<()>>),
    /// `stored` is correct.
    Known,
}

/// The result of a read.
#[derive(Debug)]
pub(crate) enum Seen<T> {
    /// The state exists. The caller may use it once the write is durable.
    Stored(T, Durable),
    /// The order was accepted and is not stored yet. The caller looks again when this wait ends.
    Arriving(oneshot::Receiver<()>),
    /// The order does not exist.
    Absent,
}

/// The result of a wait for a settled task.
#[derive(Debug)]
pub(crate) enum Settling {
    /// The task is settled and durable.
    Now(Stored),
    /// The receiver gets the task. If it ends without a task, the caller looks again.
    Later(oneshot::Receiver<Stored>),
    /// The order does not exist.
    Absent,
}

impl Entry {
    /// The order, once it is durable.
    pub(crate) fn see_order(&mut self, log: &mut Log) -> Seen<Arc<Order>> {
        match &self.stored {
            Some(stored) => Seen::Stored(stored.order.clone(), log.wait(self.inserted)),
            None => self.see_arriving(),
        }
    }

    /// The task, once it is durable.
    pub(crate) fn see_task(&mut self, log: &mut Log) -> Seen<Arc<Task>> {
        match &self.stored {
            Some(stored) => Seen::Stored(stored.task.clone(), log.wait(self.written)),
            None => self.see_arriving(),
        }
    }

    fn see_arriving<T>(&mut self) -> Seen<T> {
        if self.submissions == 0 {
            return Seen::Absent;
        }
        let (sender, receiver) = oneshot::channel();
        self.arrivals.retain(|waiting| !waiting.is_closed());
        self.arrivals.push(sender);
        Seen::Arriving(receiver)
    }

    /// The task if it is settled, or a receiver that gets the task once it is settled.
    pub(crate) fn see_settled(&mut self, log: &Log) -> Settling {
        match &self.stored {
            Some(stored) if stored.task.process_state.is_settled() && log.is_durable(self.written) => {
                return Settling::Now(stored.clone());
            }
            None if self.submissions == 0 => return Settling::Absent,
            Some(_) | None => {}
        }
        let (sender, receiver) = oneshot::channel();
        self.watchers.retain(|waiting| !waiting.is_closed());
        self.watchers.push(sender);
        Settling::Later(receiver)
    }

    /// The order was inserted: wakes the callers that wait for it.
    pub(crate) fn arrive(&mut self) {
        self.arrivals.clear();
    }

    /// No write is queued for it and no caller waits, so the disk has all of its state.
    fn is_idle(&self, log: &Log) -> bool {
        let nobody_waits = self.watchers.iter().all(oneshot::Sender::is_closed)
            && self.arrivals.iter().all(oneshot::Sender::is_closed);
        !matches!(self.knowledge, Knowledge::Loading(_))
            && log.is_durable(self.written)
            && self.submissions == 0
            && nobody_waits
    }

    /// The order does not exist, or does not change before an operator acts or a long wait ends, or does not change at
    /// all.
    fn is_over(&self) -> bool {
        self.stored.as_ref().is_none_or(|Stored { task, .. }| !matches!(task.watch, Some(Watch::Due(_))))
    }
}

/// The result of a lookup in the map.
#[derive(Debug)]
pub(crate) enum Look {
    /// The entry is loaded.
    Known,
    /// Another caller reads the disk. This caller looks again when this wait ends.
    Loading(oneshot::Receiver<()>),
    /// The disk must be read.
    Missing,
}

/// The orders in flight.
#[derive(Debug)]
pub(crate) struct Live {
    entries: HashMap<OrderId, Entry>,
    /// The number of entries above which idle entries are removed.
    entries_max: usize,
    /// The size at which the next removal runs. It is above `entries_max` if the last removal found few entries.
    sweep_at: usize,
    /// Those that are not settled, also if they are not here.
    pub(crate) flight: Flight,
}

impl Live {
    pub(crate) fn new(entries_max: usize, flight: Flight) -> Self {
        Self { entries: HashMap::new(), entries_max, sweep_at: entries_max, flight }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn look(&mut self, order_id: OrderId) -> Look {
        match self.entries.get_mut(&order_id).map(|entry| &mut entry.knowledge) {
            Some(Knowledge::Known) => Look::Known,
            Some(Knowledge::Loading(waiting)) => {
                let (sender, receiver) = oneshot::channel();
                waiting.push(sender);
                Look::Loading(receiver)
            }
            Some(Knowledge::Unknown) | None => Look::Missing,
        }
    }

    /// Assigns the disk read, or an insert that the disk decides, to the caller, unless another caller reads already or the entry is loaded.
    pub(crate) fn begin_load(&mut self, order_id: OrderId, log: &Log) -> bool {
        self.make_room(log);
        let entry = self.entries.entry(order_id).or_default();
        let unknown = matches!(entry.knowledge, Knowledge::Unknown);
        if unknown {
            entry.knowledge = Knowledge::Loading(Vec::new());
        }
        unknown
    }

    /// Stores the result of the disk read, and wakes the waiting callers.
    pub(crate) fn loaded(&mut self, order_id: OrderId, stored: Option<Stored>) {
        let entry = self.entries.entry(order_id).or_default();
        (entry.stored, entry.written, entry.inserted) = (stored, 0, 0);
        entry.knowledge = Knowledge::Known;
    }

    /// The order was unknown, and its insert is durable. Wakes the waiting callers.
    pub(crate) fn inserted(&mut self, order: Arc<Order>, task: &Arc<Task>, log: &Log) {
        self.flight.change(None, Flight::part(&order, task));
        self.loaded(order.order_id, Some(Stored { order, task: task.clone() }));
        self.written(task, log);
    }

    /// The disk could not be read, or must be read. The waiting callers look again, and one of them reads.
    pub(crate) fn not_loaded(&mut self, order_id: OrderId, log: &Log) {
        if let Some(entry) = self.entries.get_mut(&order_id) {
            entry.knowledge = Knowledge::Unknown;
        }
        self.let_go(order_id, log);
    }

    /// A load has ended, with a result or without one.
    pub(crate) fn load_over(&mut self, order_id: OrderId, log: &Log) {
        let entry = self.entries.get(&order_id);
        if entry.is_some_and(|entry| matches!(entry.knowledge, Knowledge::Loading(_))) {
            self.not_loaded(order_id, log);
        }
    }

    /// Calls `act` on a loaded entry, and removes the entry if no more work is left for it.
    pub(crate) fn act<R>(
        &mut self,
        order_id: OrderId,
        log: &mut Log,
        act: impl FnOnce(&mut Entry, &mut Log) -> R,
    ) -> R {
        let entry = self.entries.entry(order_id).or_default();
        let before = Flight::part_of(entry.stored.as_ref());
        let result = act(entry, log);
        self.flight.change(before, Flight::part_of(entry.stored.as_ref()));
        self.let_go(order_id, log);
        result
    }

    /// A submission message of this order was queued.
    pub(crate) fn accepted(&mut self, order_id: OrderId, log: &Log) {
        self.make_room(log);
        self.entries.entry(order_id).or_default().submissions += 1;
    }

    /// The submission message is durable, and the disk had no such order then. The entry was here since before that. It
    /// is still unknown, so the order was not inserted in the meantime.
    pub(crate) fn is_new(&mut self, order_id: OrderId) {
        if let Some(entry) = self.entries.get_mut(&order_id)
            && matches!(entry.knowledge, Knowledge::Unknown)
        {
            entry.knowledge = Knowledge::Known;
        }
    }

    /// A submission message of this order was deleted.
    pub(crate) fn submission_over(&mut self, order_id: OrderId, log: &Log) {
        let Some(entry) = self.entries.get_mut(&order_id) else {
            return;
        };
        entry.submissions = entry.submissions.saturating_sub(1);
        if entry.submissions == 0 && entry.stored.is_none() {
            // The order never comes. A waiting caller learns this when it looks again.
            entry.arrivals.clear();
            entry.watchers.clear();
        }
        self.let_go(order_id, log);
    }

    /// This version of a task is durable.
    pub(crate) fn written(&mut self, task: &Arc<Task>, log: &Log) {
        let Some(entry) = self.entries.get_mut(&task.order_id) else {
            return;
        };
        if task.process_state.is_settled()
            && let Some(Stored { order, .. }) = &entry.stored
        {
            for watcher in entry.watchers.drain(..) {
                // A receiver that no longer waits needs no answer.
                let _ = watcher.send(Stored { order: order.clone(), task: task.clone() });
            }
        }
        self.let_go(task.order_id, log);
    }

    /// An order is gone from the disk.
    pub(crate) fn forgotten(&mut self, order_id: OrderId, log: &Log) {
        self.let_go(order_id, log);
    }

    /// This write is lost: an order that it ended is under way again, and the other way round.
    pub(crate) fn lost(&mut self, write: &Write) {
        let (before, task) = if let Write::Task { before, task, .. } = write {
            (before.as_ref(), task)
        } else if let Write::Erase { before, task, .. } = write {
            (Some(before), task)
        } else {
            return;
        };
        if let Some(Stored { order, .. }) = self.entries.get(&task.order_id).and_then(|entry| entry.stored.as_ref()) {
            self.flight.change(Flight::part(order, task), before.and_then(|before| Flight::part(order, before)));
        }
    }

    /// Discards all state that may be ahead of the disk. Callers that wait for a settled task stay known, and so do
    /// queued submissions. Callers that wait for an insert look again. An entry that is being loaded is not ahead,
    /// since no write can be queued for it.
    pub(crate) fn forget(&mut self) {
        self.entries.retain(|_, entry| {
            if !matches!(entry.knowledge, Knowledge::Loading(_)) {
                (entry.knowledge, entry.stored, entry.written, entry.inserted) = (Knowledge::Unknown, None, 0, 0);
                entry.arrivals.clear();
            }
            matches!(entry.knowledge, Knowledge::Loading(_)) || entry.submissions > 0 || !entry.watchers.is_empty()
        });
    }

    /// Removes an entry that has no more work.
    fn let_go(&mut self, order_id: OrderId, log: &Log) {
        if let Position::Occupied(place) = self.entries.entry(order_id)
            && place.get().is_over()
            && place.get().is_idle(log)
        {
            place.remove();
        }
    }

    /// Removes idle entries if there are too many. A removal costs a pass over all entries. So the next one runs only
    /// after the map grew by an eighth.
    fn make_room(&mut self, log: &Log) {
        if self.entries.len() < self.sweep_at {
            return;
        }
        let eighth = self.entries_max / 8 + 1;
        let mut surplus = (self.entries.len() + eighth).saturating_sub(self.entries_max);
        self.entries.retain(|_, entry| {
            let goes = surplus > 0 && entry.is_idle(log);
            surplus -= usize::from(goes);
            !goes
        });
        self.sweep_at = self.entries_max.max(self.entries.len() + eighth);
    }
}
