//! What goes wrong: the closed list of faults, which of them a world has and how often, and how often each struck.

use super::rng::Rng;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident = $name:literal, $usual:literal;)+) => {
        /// Something that goes wrong in a world, on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: [Self; [$(Self::$fault),+].len()] = [$(Self::$fault),+];

            /// What a person calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)+
                }
            }

            /// How often it strikes where it strikes now and then: so many times in 10,000 occasions. Of those that last
            /// for a while, like an outage, it is the number of times in a world.
            const fn usual(self) -> u64 {
                match self {
                    $(Self::$fault => $usual,)+
                }
            }
        }
    };
}

faults! {
    /// A message is delivered twice.
    Duplicated = "message duplicated", 400;
    /// A message is delivered again hours later.
    DuplicatedLater = "message duplicated, hours later", 150;
    /// A batch does not begin with the oldest message.
    Reordered = "messages reordered", 3_000;
    /// A message arrives hours late.
    Delayed = "message delayed for hours", 80;
    /// A send fails and nothing is queued.
    SendFailed = "send failed", 200;
    /// A send is done and its answer is lost.
    SendAnswerLost = "send done, answer lost", 200;
    /// The answer about a whole batch is lost.
    BatchAnswerLost = "answer of a batch lost", 200;
    /// Some messages of a batch are not deleted.
    DeleteLost = "delete lost", 200;
    /// A queue cannot be reached for minutes.
    QueueAway = "a queue away for minutes", 2;
    /// A function is throttled until a message is a dead letter.
    Buried = "function throttled until the message is a dead letter", 60;
    /// A dead letter is sent back to its queue, hours later.
    Redriven = "dead letter redriven, hours later", 3_000;
    /// A body that nobody can read.
    Poisoned = "poison body", 3;
    /// A reply that no agent sent.
    Forged = "forged reply", 6;
    /// A message is delivered again while its first delivery is at work.
    Overlapped = "visibility lapsed during the work", 0;
    /// A write fails and nothing is written.
    WriteFailed = "write failed", 200;
    /// A write is done and its answer is lost.
    WriteAnswerLost = "write done, answer lost", 250;
    /// A write is done, its answer is lost, and the client library writes again by itself.
    WriteRetried = "write retried, meets its own nonce", 250;
    /// A write is answered with a conflict that there is not.
    ConflictInjected = "conflict injected", 250;
    /// A call of the store is throttled.
    Throttled = "store throttled", 150;
    /// The store cannot be reached for minutes.
    StoreAway = "store away for minutes", 2;
    /// The index shows what was true some time ago.
    IndexStale = "index read stale", 3_000;
    /// The index shows an order that is not due any more.
    IndexGhost = "index showed a ghost", 0;
    /// An instance dies before a call of a port takes effect.
    KilledBefore = "instance killed before an effect", 20;
    /// An instance dies when a call took effect, before its answer.
    KilledAfter = "instance killed after an effect", 20;
    /// An instance dies somewhere else.
    KilledBetween = "instance killed between two calls", 20;
    /// An instance stands still for a while.
    Paused = "instance paused", 15;
    /// An instance stands still until its attempt is long over.
    PausedLong = "instance paused past its re-pend", 8;
    /// Clocks differ by seconds.
    SkewedBySeconds = "clock off by seconds", 1;
    /// Clocks differ by minutes.
    SkewedByMinutes = "clock off by minutes", 1;
    /// A second version of the workflow is deployed in the middle.
    Deployed = "deployment in the middle", 1;
    /// A lease is given although somebody holds it.
    TwoLeaders = "two leaders at once", 2_000;
    /// A call of the leases fails, done or not.
    LeaseLost = "lease call lost", 200;
    /// A tick comes twice.
    TickDoubled = "tick doubled", 800;
    /// Ticks do not come for a while.
    TickMissed = "tick missed", 800;
    /// A service cannot be reached for minutes or hours.
    ServiceAway = "a service away for minutes or hours", 2;
    /// A service answers that it is busy.
    ServiceBusy = "service busy (503)", 800;
    /// A service gives no answer, and does nothing.
    ServiceSilent = "service gave no answer", 400;
    /// A service does it, and its answer is lost.
    ServiceAnswerLost = "service's answer lost after its effect", 400;
    /// A service answers when the attempt is over.
    ServiceSlow = "service slower than CompleteBy", 300;
    /// A call reaches its service minutes after it was given up.
    CallLate = "call delivered late", 250;
    /// A service says no for good.
    ServiceDeclined = "service declined", 1_200;
    /// A service says no for good to an undo.
    UndoDeclined = "undo declined", 800;
    /// A service answers more than a task can hold.
    OutputTooLarge = "output too large", 150;
    /// The client code of a service panics.
    ServicePanicked = "service client panicked", 100;
    /// A service without lasting memory forgets a key once the agent has replied.
    ServiceForgot = "service forgot a key that its agent has in a memo", 6_000;
    /// A service forgets a key when the step's horizon is long over.
    KeyExpired = "service forgot a key after the horizon", 10_000;
    /// The table of the services' health fails.
    HealthAway = "health table failed", 500;
    /// The table of the memos fails, done or not.
    MemoLost = "memo call lost", 300;
    /// The event bus does not take an event.
    BusAway = "event bus away", 2_500;
    /// A reply channel does not take messages for a while.
    ChannelAway = "reply channel away", 2_500;
    /// An event is taken and the answer is lost.
    EventAnswerLost = "event taken, answer lost", 800;
    /// The table of jobs or dead letters fails.
    RecordsLost = "jobs or letters table failed", 400;
    /// A customer posts again what was accepted.
    PostedAgain = "posted again", 4_000;
    /// A customer posts another document under the same key.
    PostedOther = "another document under the same key", 2_000;
    /// An operator resubmits in the middle.
    Resubmitted = "operator resubmitted", 3;
    /// An operator cancels in the middle.
    Cancelled = "operator cancelled", 1;
    /// An operator pauses in the middle.
    Held = "operator paused", 1;
    /// An operator resumes in the middle.
    Resumed = "operator resumed", 2;
    /// An operator resubmits many at once.
    BulkResubmitted = "bulk resubmitted", 1;
}

impl Fault {
    /// Whether it is not injected by itself but counted where others lead to it.
    #[cfg(test)]
    const fn is_consequence(self) -> bool {
        self.usual() == 0
    }
}

/// How often each fault strikes in one world.
#[derive(Debug, Clone)]
pub struct Plan {
    rates: [u64; Fault::ALL.len()],
}

impl Plan {
    /// Draws a plan: no faults at all in a few worlds, a handful of faults that strike often in some, and most of them now
    /// and then in the others. A few at a time find what many together cover up.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut rates = [0; Fault::ALL.len()];
        match rng.below(20) {
            0 => {}
            1..=8 => {
                for _ in 0..rng.between(1, 5) {
                    let fault = rng.pick(&Fault::ALL);
                    rates[fault as usize] = (fault.usual() * rng.between(2, 6)).min(10_000);
                }
                // Without these two a step that fails is a rare thing.
                for fault in [Fault::ServiceDeclined, Fault::Cancelled] {
                    if rng.chance(3_000) {
                        rates[fault as usize] = fault.usual();
                    }
                }
            }
            9..=13 => {
                for fault in Fault::ALL {
                    if rng.chance(3_000) {
                        rates[fault as usize] = fault.usual() * rng.between(1, 2);
                    }
                }
            }
            _ => {
                let (share, strength) = (rng.between(3_000, 9_000), rng.between(1, 3));
                for fault in Fault::ALL {
                    if rng.chance(share) {
                        rates[fault as usize] = (fault.usual() * strength).div_ceil(2);
                    }
                }
            }
        }
        Self { rates }
    }

    /// A plan without faults.
    #[must_use]
    pub const fn none() -> Self {
        Self { rates: [0; Fault::ALL.len()] }
    }

    /// How often it strikes: times in 10,000 occasions, or in a world.
    #[must_use]
    pub const fn rate(&self, fault: Fault) -> u64 {
        self.rates[fault as usize]
    }

    /// Whether a world has it at all.
    #[must_use]
    pub const fn has(&self, fault: Fault) -> bool {
        self.rate(fault) > 0
    }
}

/// How often each fault struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts([u64; Fault::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl Counts {
    /// It struck once more.
    pub const fn add(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often it struck.
    #[must_use]
    pub const fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Adds those of another world.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Those that never struck.
    pub fn missing(&self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(|fault| self.of(*fault) == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_and_comes_up_in_some_plan() {
        let names: BTreeSet<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        let plans: Vec<Plan> = (0..200).map(|seed| Plan::draw(&mut Rng::new(seed))).collect();
        for fault in Fault::ALL.into_iter().filter(|fault| !fault.is_consequence()) {
            assert!(plans.iter().any(|plan| plan.has(fault)), "{}", fault.name());
            assert!(plans.iter().any(|plan| !plan.has(fault)), "{}", fault.name());
        }
    }

    #[test]
    fn a_fault_that_never_struck_is_missing() {
        let mut counts = Counts::default();
        Fault::ALL.into_iter().skip(1).for_each(|fault| counts.add(fault));
        assert_eq!(counts.missing().collect::<Vec<_>>(), [Fault::ALL[0]]);
    }
}
