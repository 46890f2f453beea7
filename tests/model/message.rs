//! What is in flight, as far as it decides anything: no order id (a bag belongs to one order), no text, no hops.

use std::fmt;

use domain::task::Direction;

/// One attempt of one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// The step's place.
    pub step: u8,
    /// Whether it takes the step back.
    pub undo: bool,
    /// The fencing token.
    pub number: u8,
}

impl Attempt {
    /// The direction in the words of the domain.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self.undo { Direction::Undo } else { Direction::Forward }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undo = if self.undo { "undo of " } else { "" };
        write!(f, "{undo}step {} #{}", self.step, self.number)
    }
}

/// The outcome in an agent's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// The service carried out the call, now or earlier.
    Done,
    /// The service rejected the call.
    Failed,
    /// The service rejected the call while another one with the same key was at work, and the agent says so.
    FailedUnderWay,
    /// The attempt is deferred, without a call.
    Deferred,
    /// The service took the call on, and tells the result later.
    Accepted,
}

/// The kind of an operator's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CommandKind {
    /// Try the failed step again.
    Resubmit,
    /// Undo the order.
    Cancel,
    /// Start nothing new.
    Pause,
    /// Go on.
    Resume,
    /// Write a note.
    Note,
    /// End the order as it is.
    Close,
    /// A step was carried out, or undone, by hand.
    Settle {
        /// Its place.
        step: u8,
        /// Whether it was undone.
        undo: bool,
    },
}

impl CommandKind {
    /// Those about a whole order, in the order of [`CommandKind::index`].
    pub const ALL: [Self; 6] = [Self::Resubmit, Self::Cancel, Self::Pause, Self::Resume, Self::Note, Self::Close];

    /// Its place in a table of commands.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Resubmit => 0,
            Self::Cancel => 1,
            Self::Pause => 2,
            Self::Resume => 3,
            Self::Settle { .. } => 4,
            Self::Note => 5,
            Self::Close => 6,
        }
    }
}

/// A message of one order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// The accepted order, on the submission queue.
    Submission,
    /// To the scheduler: look.
    Wake,
    /// To an agent: the ticks until its `CompleteBy`, always 0 where clocks show anything; and whether its agent knows that a
    /// call may be under way, since its sender says so or it was delivered before.
    Request(Attempt, u8, bool),
    /// To the scheduler: an agent's answer.
    Reply(Attempt, Answer),
    /// To the scheduler: an operator's command.
    Command(CommandKind),
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submission => f.write_str("the submission"),
            Self::Wake => f.write_str("a wake"),
            Self::Request(attempt, _, false) => write!(f, "the request for {attempt:?}"),
            Self::Request(attempt, _, true) => write!(f, "the request for {attempt:?}, not the first"),
            Self::Reply(attempt, answer) => write!(f, "{answer:?} of {attempt:?}"),
            Self::Command(command) => write!(f, "the command {command:?}"),
        }
    }
}

/// Different messages, at most `N`. A message that is in it stays until it is acknowledged or lost and can be delivered
/// again and again, so nothing is gained by having it twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bag<const N: usize> {
    /// Sorted; nothing after the last.
    items: [Option<Message>; N],
}

impl<const N: usize> Bag<N> {
    /// Nothing in flight.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: [None; N] }
    }

    /// Everything in it, sorted.
    pub fn iter(&self) -> impl Iterator<Item = Message> + '_ {
        self.items.iter().map_while(|item| *item)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items[0].is_none()
    }

    /// Whether it is in flight.
    #[must_use]
    pub fn contains(&self, message: Message) -> bool {
        self.iter().any(|other| other == message)
    }

    /// Adds a message. `false`: there is no room, and it is lost.
    pub fn add(&mut self, message: Message) -> bool {
        if self.contains(message) {
            return true;
        }
        let Some(free) = self.items.iter().position(Option::is_none) else { return false };
        let index = self.iter().take_while(|&other| other < message).count();
        self.items.copy_within(index..free, index + 1);
        self.items[index] = Some(message);
        true
    }

    /// Takes a message out, if it is there.
    pub fn remove(&mut self, message: Message) {
        if let Some(index) = self.items.iter().position(|&item| item == Some(message)) {
            self.items.copy_within(index + 1.., index);
            self.items[N - 1] = None;
        }
    }

    /// A tick passes: each request has one less, and one whose time is over is dropped, as an agent would.
    pub fn tick(&mut self) {
        let before = *self;
        *self = Self::new();
        for message in before.iter() {
            match message {
                Message::Request(_, 0 | 1, _) => {}
                Message::Request(attempt, left, knows) => {
                    self.add(Message::Request(attempt, left - 1, knows));
                }
                Message::Submission | Message::Wake | Message::Reply(..) | Message::Command(_) => {
                    self.add(message);
                }
            }
        }
    }
}

impl<const N: usize> Default for Bag<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Bag<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bag_is_a_sorted_set_of_bounded_size() {
        let mut bag = Bag::<2>::new();
        assert!(bag.add(Message::Wake) && bag.add(Message::Submission) && bag.add(Message::Wake));
        assert_eq!(bag.iter().collect::<Vec<_>>(), [Message::Submission, Message::Wake]);
        assert!(!bag.add(Message::Command(CommandKind::Cancel)));
        bag.remove(Message::Submission);
        assert_eq!((bag.len(), bag.contains(Message::Wake), bag.contains(Message::Submission)), (1, true, false));
    }

    #[test]
    fn a_request_whose_time_is_over_is_gone_at_the_tick() {
        let attempt = Attempt { step: 0, undo: false, number: 1 };
        let mut bag = Bag::<3>::new();
        bag.add(Message::Request(attempt, 2, false));
        bag.add(Message::Wake);
        bag.tick();
        assert!(bag.contains(Message::Request(attempt, 1, false)));
        bag.tick();
        assert_eq!(bag.iter().collect::<Vec<_>>(), [Message::Wake]);
    }
}
