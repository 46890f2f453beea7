//! The orders that are under way, as of the latest queued write.
//!
//! A conditional write is decided on an entry of this map, so an entry must never be older than the disk. Hence: while
//! an entry is loaded nobody else can load or change it, and an entry goes only when the disk has all that it knows.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Position;
use std::sync::Arc;

use domain::id::OrderId;
use domain::order::Order;
use domain::task::{Task, Watch};
use tokio::sync::oneshot;

use crate::log::{Durable, Log};
use crate::rows::Stored;

/// What is known of one order.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    knowledge: Knowledge,
    /// Order and task; nothing as long as the order is not inserted.
    pub(crate) stored: Option<Stored>,
    /// The write that made the task what it is; 0 when it was read from the disk.
    pub(crate) written: u64,
    /// The write that inserted the order; 0 when it was read from the disk.
    pub(crate) inserted: u64,
    /// A submission message vouches for the insert, so nobody needs to wait until it is durable.
    pub(crate) lazy: bool,
    /// Messages of this order on the submission queue.
    submissions: u32,
    /// Those who wait until the order is inserted.
    arrivals: Vec<oneshot::Sender<()>>,
    /// Those who wait until the task is settled.
    watchers: Vec<oneshot::Sender<Arc<Task>>>,
}

/// How far `stored` can be believed.
#[derive(Debug, Default)]
enum Knowledge {
    /// The disk has to be read first.
    #[default]
    Unknown,
    /// The disk is being read; these want to know when that is over.
    Loading(Vec<oneshot::Sender<()>>),
    /// It is the truth.
    Known,
}

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum Seen<T> {
    /// It is there; to be told once it is durable.
    Stored(T, Durable),
    /// It was accepted and is not stored yet; look again when this ends.
    Arriving(oneshot::Receiver<()>),
    /// There is none.
    Absent,
}

/// What one finds who waits for the task to be settled.
#[derive(Debug)]
pub(crate) enum Settling {
    /// It is, and it is durable.
    Now(Arc<Task>),
    /// This will give it; when it ends without, look again.
    Later(oneshot::Receiver<Arc<Task>>),
    /// There is none.
    Absent,
}

impl Entry {
    /// The order, durable or vouched for by a durable submission.
    pub(crate) fn see_order(&mut self, log: &mut Log) -> Seen<Arc<Order>> {
        match &self.stored {
            Some(stored) if self.lazy => Seen::Stored(stored.order.clone(), Durable::ALREADY),
            Some(stored) => Seen::Stored(stored.order.clone(), log.wait(self.inserted)),
            None => self.see_arriving(),
        }
    }

    /// The task, durable or in its first version and vouched for by a durable submission.
    pub(crate) fn see_task(&mut self, log: &mut Log) -> Seen<Arc<Task>> {
        match &self.stored {
            Some(stored) if self.lazy && self.written == self.inserted => {
                Seen::Stored(stored.task.clone(), Durable::ALREADY)
            }
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

    /// The task if it is settled, or the promise to give it when it is.
    pub(crate) fn see_settled(&mut self, log: &Log) -> Settling {
        match &self.stored {
            Some(Stored { task, .. }) if task.process_state.is_settled() && log.is_durable(self.written) => {
                return Settling::Now(task.clone());
            }
            None if self.submissions == 0 => return Settling::Absent,
            Some(_) | None => {}
        }
        let (sender, receiver) = oneshot::channel();
        self.watchers.retain(|waiting| !waiting.is_closed());
        self.watchers.push(sender);
        Settling::Later(receiver)
    }

    /// A submission message of this order is on the disk, so its insert may be lazy.
    pub(crate) const fn is_vouched_for(&self) -> bool {
        self.submissions > 0
    }

    /// The order was inserted: those who wait for that may look.
    pub(crate) fn arrive(&mut self) {
        self.arrivals.clear();
    }

    /// Nothing is queued for it and nobody waits: the disk knows all of it.
    fn is_idle(&self, log: &Log) -> bool {
        let nobody_waits = self.watchers.iter().all(oneshot::Sender::is_closed)
            && self.arrivals.iter().all(oneshot::Sender::is_closed);
        !matches!(self.knowledge, Knowledge::Loading(_))
            && log.is_durable(self.written)
            && self.submissions == 0
            && nobody_waits
    }

    /// Nothing will happen to it, or not before an operator acts, or there is nothing.
    fn is_over(&self) -> bool {
        self.stored.as_ref().is_none_or(|Stored { task, .. }| matches!(task.watch, None | Some(Watch::Error(_))))
    }
}

/// What a look into the map finds.
#[derive(Debug)]
pub(crate) enum Look {
    /// The entry is the truth.
    Known,
    /// Somebody reads the disk; look again when this ends.
    Loading(oneshot::Receiver<()>),
    /// The disk has to be read.
    Missing,
}

/// The orders that are under way.
#[derive(Debug)]
pub(crate) struct Live {
    entries: HashMap<OrderId, Entry>,
    /// Entries beyond which those go that need not stay.
    entries_max: usize,
    /// Size at which to look for such entries. Above `entries_max` when the last look found few.
    sweep_at: usize,
}

impl Live {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: HashMap::new(), entries_max, sweep_at: entries_max }
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

    /// Takes it upon the caller to read the disk, unless somebody else did or it is known.
    pub(crate) fn begin_load(&mut self, order_id: OrderId, log: &Log) -> bool {
        self.make_room(log);
        let entry = self.entries.entry(order_id).or_default();
        let unknown = matches!(entry.knowledge, Knowledge::Unknown);
        if unknown {
            entry.knowledge = Knowledge::Loading(Vec::new());
        }
        unknown
    }

    /// What the disk says. Those who wait for it look again.
    pub(crate) fn loaded(&mut self, order_id: OrderId, stored: Option<Stored>) {
        let entry = self.entries.entry(order_id).or_default();
        (entry.stored, entry.written, entry.inserted, entry.lazy) = (stored, 0, 0, false);
        entry.knowledge = Knowledge::Known;
    }

    /// The disk could not be read. Those who wait for it try themselves.
    pub(crate) fn not_loaded(&mut self, order_id: OrderId, log: &Log) {
        if let Some(entry) = self.entries.get_mut(&order_id) {
            entry.knowledge = Knowledge::Unknown;
        }
        self.let_go(order_id, log);
    }

    /// Does something to a known entry, and lets it go when nothing is left to do with it.
    pub(crate) fn act<R>(
        &mut self,
        order_id: OrderId,
        log: &mut Log,
        act: impl FnOnce(&mut Entry, &mut Log) -> R,
    ) -> R {
        let result = act(self.entries.entry(order_id).or_default(), log);
        self.let_go(order_id, log);
        result
    }

    /// A submission message of this order was queued.
    pub(crate) fn accepted(&mut self, order_id: OrderId, log: &Log) {
        self.make_room(log);
        self.entries.entry(order_id).or_default().submissions += 1;
    }

    /// The submission message is durable, and the disk had no such order then. As it was held here since before that,
    /// and is still unknown, nobody inserted it in the meantime.
    pub(crate) fn is_new(&mut self, order_id: OrderId) {
        if let Some(entry) = self.entries.get_mut(&order_id)
            && matches!(entry.knowledge, Knowledge::Unknown)
        {
            entry.knowledge = Knowledge::Known;
        }
    }

    /// A submission message of this order is gone.
    pub(crate) fn submission_over(&mut self, order_id: OrderId, log: &Log) {
        let Some(entry) = self.entries.get_mut(&order_id) else {
            return;
        };
        entry.submissions = entry.submissions.saturating_sub(1);
        if entry.submissions == 0 && entry.stored.is_none() {
            // It will never come: whoever waits finds that out by looking again.
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
        if task.process_state.is_settled() {
            for watcher in entry.watchers.drain(..) {
                // Who does not wait any more need not know.
                let _ = watcher.send(task.clone());
            }
        }
        self.let_go(task.order_id, log);
    }

    /// Forgets everything that may be ahead of the disk. Who waits, and which submissions are queued, stays known. An
    /// entry that is being loaded is not ahead: nothing can be queued for it.
    pub(crate) fn forget(&mut self) {
        self.entries.retain(|_, entry| {
            if !matches!(entry.knowledge, Knowledge::Loading(_)) {
                (entry.knowledge, entry.stored, entry.written, entry.inserted) = (Knowledge::Unknown, None, 0, 0);
                entry.lazy = false;
                entry.arrivals.clear();
            }
            matches!(entry.knowledge, Knowledge::Loading(_)) || entry.submissions > 0 || !entry.watchers.is_empty()
        });
    }

    /// Lets an entry go that is over.
    fn let_go(&mut self, order_id: OrderId, log: &Log) {
        if let Position::Occupied(place) = self.entries.entry(order_id)
            && place.get().is_over()
            && place.get().is_idle(log)
        {
            place.remove();
        }
    }

    /// Lets idle entries go when there are too many. A look costs a pass over all, so there is one only after another
    /// eighth has come.
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
