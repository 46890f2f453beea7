//! The bounds of the checked world.

/// Steps of an order.
pub const STEPS: usize = 2;
/// The most orders, schedulers and supervisors, each.
pub const ACTORS_MAX: usize = 2;

/// The clocks of the instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// Anything, at each look: every deadline may seem to be over or not, to any instance, at any time. The service (or
    /// the memo) refuses a forward call after its undo.
    Any,
    /// All the same time. The service answers a repeat as it answered the first time, but carries out also what it was asked
    /// to undo before, so that only the wait for `CompleteBy` (rule 9) keeps an effect from coming after its undo.
    One,
}

/// The granularity of an instance's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// To read, to decide and write, to send and acknowledge: each by itself.
    Fine,
    /// To send belongs to the action of the write: all, or nothing, and with or without the acknowledgement. It comes to the
    /// same, since nobody can tell a message that is not sent yet from one that is not delivered yet; and it is checked that
    /// it does.
    Coarse,
}

/// The dependency of an order's two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The second step depends on the first.
    Chain,
    /// The steps run in parallel.
    Wide,
    /// One step for each of two lines. A line that fails is dropped, and the last one compensates the order (rule 50).
    Lines,
}

/// The bounds of the checked world. Everything else is unbounded: each message may be redelivered in any order and with any
/// delay, or be lost; each instance may die at any time.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// For the report.
    pub name: &'static str,
    /// The dependency of the steps.
    pub shape: Shape,
    /// 1 or 2.
    pub orders: usize,
    /// 1 or 2.
    pub schedulers: usize,
    /// 0 to 2.
    pub supervisors: usize,
    /// Failures at which a step is given up, in each direction.
    pub attempts: u32,
    /// The most messages in flight for each order. Beyond it, a message has to be lost first.
    pub in_flight_max: usize,
    /// An operator's commands for each order: resubmit, cancel, pause, resume, settle, note, close.
    pub commands: [u8; 7],
    /// An agent's deferrals for each order.
    pub deferrals: u8,
    /// Whether the service may reject a step.
    pub declines: bool,
    /// Whether the service may reject an undo.
    pub undo_declines: bool,
    /// Ticks for which a call may go on after its begin, though its caller left. 0: every effect is there at once. Only with
    /// the one clock.
    pub settles: u8,
    /// Whether the service may take the second step on, and tell its result later, at any time and as often as it likes
    /// (rules 36 and 38). Only where clocks show anything.
    pub callbacks: bool,
    /// Whether messages may become dead letters, which a supervisor settles.
    pub dead_letters: bool,
    /// Whether an operator applies other versions of workflows in the middle. Then orders are posted at any time.
    pub applies: bool,
    /// The clocks.
    pub clocks: Clocks,
    /// The granularity of actions.
    pub detail: Detail,
    /// Whether the check includes that orders end, from every state, once the faults stop.
    pub drains: bool,
}

impl Bounds {
    /// One order with one instance of each function: the smallest meaningful world.
    pub const ONE: Self = Self {
        name: "one order",
        shape: Shape::Chain,
        orders: 1,
        schedulers: 1,
        supervisors: 1,
        attempts: 2,
        in_flight_max: 2,
        commands: [0; 7],
        deferrals: 0,
        declines: true,
        undo_declines: true,
        settles: 0,
        callbacks: false,
        dead_letters: false,
        applies: false,
        clocks: Clocks::Any,
        detail: Detail::Fine,
        drains: true,
    };
}

/// One order, coarse: the basis of most worlds.
const COARSE: Bounds = Bounds { detail: Detail::Coarse, ..Bounds::ONE };
/// Calls may have their effect after their caller left.
const LINGERING: Bounds = Bounds { clocks: Clocks::One, settles: 2, ..COARSE };
/// A request is sent again, after a restart, while its service is at work on it.
const SENT_AGAIN: Bounds = Bounds {
    attempts: 1,
    in_flight_max: 3,
    declines: false,
    undo_declines: false,
    supervisors: 0,
    drains: false,
    ..LINGERING
};
/// Two of all instances. That every order ends is checked in the smaller worlds, which costs as much again.
const TWO_OF_ALL: Bounds = Bounds { schedulers: 2, supervisors: 2, drains: false, ..COARSE };
/// The result of the second step may come later.
const LATER: Bounds = Bounds { callbacks: true, attempts: 1, ..COARSE };
/// Two lines, of which one may be dropped.
const LINES: Bounds = Bounds { shape: Shape::Lines, attempts: 1, ..COARSE };
/// Two orders that share a scheduler and a supervisor.
const TWO_ORDERS: Bounds = Bounds { orders: 2, attempts: 1, declines: false, undo_declines: false, ..COARSE };

/// Two orders of two workflows, of each the version that new orders have when it is posted.
const TWO_WORKFLOWS: Bounds = Bounds { applies: true, supervisors: 0, declines: true, drains: false, ..TWO_ORDERS };

/// For a few seconds.
pub const SMALL: [Bounds; 7] = [
    Bounds { name: "one order, clocks that show anything", ..COARSE },
    Bounds { name: "one order, one clock", clocks: Clocks::One, ..COARSE },
    Bounds { name: "one order, calls that outlive their attempt", attempts: 1, ..LINGERING },
    Bounds { name: "one order, a request that is sent again while its service is at work", ..SENT_AGAIN },
    Bounds { name: "one order, a result that comes later", ..LATER },
    Bounds { name: "one order, another default is applied", applies: true, attempts: 1, ..COARSE },
    Bounds { name: "one order, two lines", undo_declines: false, ..LINES },
];

/// For some minutes: every kind of fault and of command, with one of each instance.
pub const MEDIUM: [Bounds; 22] = [
    Bounds { name: "one order, clocks that show anything, every action by itself", ..Bounds::ONE },
    Bounds { name: "one order, one clock, a deferral", clocks: Clocks::One, deferrals: 1, ..COARSE },
    Bounds { name: "one order, a deferral", deferrals: 1, ..COARSE },
    Bounds { name: "one order, dead letters", dead_letters: true, ..COARSE },
    Bounds { name: "one order, an operator cancels", attempts: 1, commands: [0, 1, 0, 0, 0, 0, 0], ..COARSE },
    Bounds { name: "one order, an operator resubmits", attempts: 1, commands: [1, 0, 0, 0, 0, 0, 0], ..COARSE },
    Bounds {
        name: "one order, an operator pauses and resumes",
        attempts: 1,
        commands: [0, 0, 1, 1, 0, 0, 0],
        ..COARSE
    },
    Bounds { name: "one order, an operator pauses and notes", attempts: 1, commands: [0, 0, 1, 0, 0, 1, 0], ..COARSE },
    Bounds { name: "one order, an operator settles", attempts: 1, commands: [0, 0, 0, 0, 1, 0, 0], ..COARSE },
    Bounds { name: "one order, an operator closes", attempts: 1, commands: [1, 0, 0, 0, 0, 0, 1], ..COARSE },
    Bounds { name: "one order, steps side by side", shape: Shape::Wide, ..COARSE },
    Bounds { name: "calls that outlive their attempt, a deferral", deferrals: 1, ..LINGERING },
    Bounds {
        name: "calls that outlive their attempt, an operator cancels",
        attempts: 1,
        commands: [0, 1, 0, 0, 0, 0, 0],
        ..LINGERING
    },
    Bounds {
        name: "calls that outlive their attempt, an operator closes",
        shape: Shape::Wide,
        attempts: 1,
        commands: [0, 0, 0, 0, 0, 0, 1],
        ..LINGERING
    },
    Bounds { name: "results that come later, two attempts", attempts: 2, ..LATER },
    Bounds {
        name: "results that come later, an operator cancels, no supervisor",
        supervisors: 0,
        commands: [0, 1, 0, 0, 0, 0, 0],
        drains: false,
        ..LATER
    },
    Bounds { name: "results that come later, dead letters", dead_letters: true, ..LATER },
    Bounds { name: "two workflows, other versions are applied, no supervisor", ..TWO_WORKFLOWS },
    Bounds { name: "two lines, clocks that show anything", ..LINES },
    Bounds { name: "two lines, one clock", clocks: Clocks::One, ..LINES },
    Bounds { name: "two lines, an operator cancels", commands: [0, 1, 0, 0, 0, 0, 0], clocks: Clocks::One, ..LINES },
    Bounds { name: "two lines, calls that outlive their attempt", shape: Shape::Lines, attempts: 1, ..LINGERING },
];

/// For half an hour.
pub const FULL: [Bounds; 12] = [
    Bounds { name: "two of all instances, clocks that show anything", ..TWO_OF_ALL },
    Bounds { name: "two of all instances, one clock", clocks: Clocks::One, ..TWO_OF_ALL },
    Bounds { name: "two supervisors, dead letters", supervisors: 2, dead_letters: true, ..COARSE },
    Bounds {
        name: "two schedulers, an operator cancels",
        schedulers: 2,
        attempts: 1,
        commands: [0, 1, 0, 0, 0, 0, 0],
        ..COARSE
    },
    Bounds { name: "three messages in flight", in_flight_max: 3, ..COARSE },
    Bounds { name: "an operator cancels", commands: [0, 1, 0, 0, 0, 0, 0], ..COARSE },
    Bounds { name: "an operator resubmits", commands: [1, 0, 0, 0, 0, 0, 0], ..COARSE },
    Bounds {
        name: "one attempt, an operator resubmits and cancels",
        attempts: 1,
        commands: [1, 1, 0, 0, 0, 0, 0],
        ..COARSE
    },
    Bounds {
        name: "one attempt, an operator settles, cancels and resubmits",
        attempts: 1,
        commands: [1, 1, 0, 0, 2, 0, 0],
        ..COARSE
    },
    Bounds { name: "results that come later, two schedulers", schedulers: 2, drains: false, ..LATER },
    Bounds { name: "two orders", ..TWO_ORDERS },
    Bounds { name: "two workflows, other versions are applied", supervisors: 1, declines: false, ..TWO_WORKFLOWS },
];
