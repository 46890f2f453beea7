//! The closed list of faults, the faults of a world and their rates, and the count of each.

use crate::rng::Rng;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident = $name:literal, $usual:literal;)+) => {
        /// An injected fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: [Self; [$(Self::$fault),+].len()] = [$(Self::$fault),+];

            /// Its name for people.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)+
                }
            }

            /// Its usual rate: times in 10,000 occasions. For a lasting fault such as an outage: times in a world.
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
    /// A send succeeds and its answer is lost.
    SendAnswerLost = "send done, answer lost", 200;
    /// The answer about a whole batch is lost.
    BatchAnswerLost = "answer of a batch lost", 200;
    /// Some messages of a batch are not deleted.
    DeleteLost = "delete lost", 200;
    /// A queue cannot be reached for minutes.
    QueueAway = "a queue away for minutes", 2;
    /// A function is throttled until a message is a dead letter.
    Buried = "function throttled until the message is a dead letter", 60;
    /// A dead letter is redriven to its queue, hours later.
    Redriven = "dead letter redriven, hours later", 3_000;
    /// An unreadable body.
    Poisoned = "poison body", 3;
    /// A reply that no agent sent.
    Forged = "forged reply", 6;
    /// A message is delivered again while its first delivery is in flight.
    Overlapped = "visibility lapsed during the work", 0;
    /// A write fails and nothing is written.
    WriteFailed = "write failed", 200;
    /// Several writes fail one after the other.
    WritesFailed = "writes failed in a row", 60;
    /// A write succeeds and its answer is lost.
    WriteAnswerLost = "write done, answer lost", 250;
    /// A write succeeds, its answer is lost, and the client library retries by itself.
    WriteRetried = "write retried, meets its own nonce", 250;
    /// A write is answered with a false conflict.
    ConflictInjected = "conflict injected", 250;
    /// A call of the store is throttled.
    Throttled = "store throttled", 150;
    /// The store cannot be reached for minutes.
    StoreAway = "store away for minutes", 2;
    /// The index is stale.
    IndexStale = "index read stale", 3_000;
    /// The index shows an order that is no longer due.
    IndexGhost = "index showed a ghost", 0;
    /// An instance dies before a call of a port takes effect.
    KilledBefore = "instance killed before an effect", 20;
    /// An instance dies after a call took effect, before its answer.
    KilledAfter = "instance killed after an effect", 20;
    /// An instance dies somewhere else.
    KilledBetween = "instance killed between two calls", 20;
    /// An instance pauses for a while.
    Paused = "instance paused", 15;
    /// An instance pauses until its attempt is long over.
    PausedLong = "instance paused past its re-pend", 8;
    /// Clocks differ by seconds.
    SkewedBySeconds = "clock off by seconds", 1;
    /// Clocks differ by minutes.
    SkewedByMinutes = "clock off by minutes", 1;
    /// Clocks jump by seconds to hours in either direction, are wrong for seconds to hours, and then right again: those of
    /// all instances, or that of one.
    ClockJumped = "a clock jumped", 2;
    /// A second version of the workflow is deployed during the run.
    Deployed = "deployment in the middle", 1;
    /// Workflows and settings are applied during the run, and orders name workflows.
    Applied = "definitions applied in the middle", 1;
    /// A lease is granted although it is held.
    TwoLeaders = "two leaders at once", 2_000;
    /// A call of the leases fails, done or not.
    LeaseLost = "lease call lost", 200;
    /// A tick is duplicated.
    TickDoubled = "tick doubled", 800;
    /// Ticks are absent for a while.
    TickMissed = "tick missed", 800;
    /// A service cannot be reached for minutes or hours.
    ServiceAway = "a service away for minutes or hours", 2;
    /// A service answers that it is busy.
    ServiceBusy = "service busy (503)", 800;
    /// A service neither answers nor carries out the call.
    ServiceSilent = "service gave no answer", 400;
    /// A service carries out the call, and its answer is lost.
    ServiceAnswerLost = "service's answer lost after its effect", 400;
    /// A service answers after the attempt is over.
    ServiceSlow = "service slower than CompleteBy", 300;
    /// A call reaches its service minutes after its time-out.
    CallLate = "call delivered late", 250;
    /// A service works on a call for seconds or minutes before its effect.
    EffectDelayed = "effect long after the call began", 1_000;
    /// Its caller has left by then.
    EffectUnheard = "effect after the caller left", 0;
    /// A service answers 409 to a repeat, since it works on the key.
    KeyInUse = "409 while a call was at work", 0;
    /// A service answers 202, and has the result later.
    TakenOn = "service answered 202, result later", 2_500;
    /// A service tells the result of a call at its address.
    ToldLater = "service told a result later", 0;
    /// A look finds the result of a call that was taken on.
    Polled = "result found by a look", 0;
    /// An undo finds no effect and leaves no mark.
    ServiceCareless = "undo that looked only for an effect", 4_000;
    /// A service answers 401 to all calls for minutes or hours.
    ServiceMisconfigured = "a service answered 401 for minutes or hours", 1;
    /// An agent declines a step while its service is failing, and another agent is asked.
    AskedInstead = "another agent asked while a service failed", 0;
    /// A service rejects a call with 409.
    DeclinedByConflict = "service declined with 409", 400;
    /// A service rejects a call.
    ServiceDeclined = "service declined", 1_200;
    /// A service rejects an undo.
    UndoDeclined = "undo declined", 800;
    /// A service's output is larger than a task can hold.
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
    /// A customer posts an accepted order again.
    PostedAgain = "posted again", 4_000;
    /// A customer posts another document under the same key.
    PostedOther = "another document under the same key", 2_000;
    /// An operator resubmits an unfinished order.
    Resubmitted = "operator resubmitted", 3;
    /// An operator cancels an unfinished order.
    Cancelled = "operator cancelled", 1;
    /// An operator pauses an unfinished order.
    Held = "operator paused", 1;
    /// An operator resumes an unfinished order.
    Resumed = "operator resumed", 2;
    /// An operator mends a step by hand, and settles it.
    Settled = "operator settled", 2;
    /// An operator writes a note on an unfinished order.
    Noted = "operator noted", 3;
    /// An operator closes an order in `Error`.
    Closed = "operator closed", 1;
    /// A person decides on an order.
    Decided = "person decided", 8;
    /// An operator resubmits many orders as a bulk job.
    BulkResubmitted = "bulk resubmitted", 1;
    /// An operator posts many compensated orders again as a bulk job, and perhaps one of them by itself.
    BulkPostedAgain = "bulk posted again", 1;
    /// The body of an answer comes in two pieces.
    BodySlow = "body in pieces", 500;
    /// A service refuses all tokens of before.
    TokenRevoked = "tokens revoked", 1_000;
    /// The endpoint of the tokens gives none.
    TokenRefused = "no token", 1_500;
}

impl Fault {
    /// Those of HTTP, the last of all. They are drawn after the others, so that these stay as they are.
    const OF_HTTP: [Self; 3] = [Self::BodySlow, Self::TokenRevoked, Self::TokenRefused];

    /// Whether it is one of HTTP.
    pub(crate) fn is_of_http(self) -> bool {
        Self::OF_HTTP.contains(&self)
    }

    /// Whether it is only counted as a consequence of other faults.
    #[cfg(test)]
    const fn is_consequence(self) -> bool {
        self.usual() == 0
    }
}

/// The rate of each fault in one world.
#[derive(Debug, Clone)]
pub struct Plan {
    rates: [u64; Fault::ALL.len()],
}

impl Plan {
    /// Draws a plan: no faults in a few worlds, a few frequent faults in some, and most faults at low rates in the others.
    /// A few faults alone find bugs that many faults together hide.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut rates = [0; Fault::ALL.len()];
        let (others, of_http) = Fault::ALL.split_at(Fault::ALL.len() - Fault::OF_HTTP.len());
        let kind = rng.below(20);
        match kind {
            0 => {}
            1..=8 => {
                for _ in 0..rng.between(1, 5) {
                    let fault = rng.pick(others);
                    rates[fault as usize] = (fault.usual() * rng.between(2, 6)).min(10_000);
                }
                // Without these two, steps rarely fail.
                for fault in [Fault::ServiceDeclined, Fault::Cancelled] {
                    if rng.chance(3_000) {
                        rates[fault as usize] = fault.usual();
                    }
                }
            }
            9..=13 => {
                for &fault in others {
                    if rng.chance(3_000) {
                        rates[fault as usize] = fault.usual() * rng.between(1, 2);
                    }
                }
            }
            _ => {
                let (share, strength) = (rng.between(3_000, 9_000), rng.between(1, 3));
                for &fault in others {
                    if rng.chance(share) {
                        rates[fault as usize] = (fault.usual() * strength).div_ceil(2);
                    }
                }
            }
        }
        // In most worlds a service is at work when a call is repeated, and something makes an instance repeat it.
        if rng.chance(7_000) {
            let often = rates[Fault::EffectDelayed as usize].max(Fault::EffectDelayed.usual() * rng.between(1, 5));
            rates[Fault::EffectDelayed as usize] = often;
            for fault in [
                Fault::WritesFailed,
                Fault::WriteAnswerLost,
                Fault::KilledAfter,
                Fault::KilledBetween,
                Fault::DeleteLost,
            ] {
                if rng.chance(4_000) {
                    rates[fault as usize] = rates[fault as usize].max(fault.usual());
                }
            }
        }
        for &fault in of_http {
            if kind > 0 && rng.chance(3_000) {
                rates[fault as usize] = fault.usual() * rng.between(1, 3);
            }
        }
        Self { rates }
    }

    /// A plan without faults.
    #[must_use]
    pub const fn none() -> Self {
        Self { rates: [0; Fault::ALL.len()] }
    }

    /// Sets the rate of a fault: times in 10,000 occasions, or in a world.
    pub const fn set(&mut self, fault: Fault, rate: u64) {
        self.rates[fault as usize] = rate;
    }

    /// The rate of a fault: times in 10,000 occasions, or in a world.
    #[must_use]
    pub const fn rate(&self, fault: Fault) -> u64 {
        self.rates[fault as usize]
    }

    /// Whether a world has the fault.
    #[must_use]
    pub const fn has(&self, fault: Fault) -> bool {
        self.rate(fault) > 0
    }
}

/// The count of each fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts([u64; Fault::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl Counts {
    /// Counts a fault.
    pub const fn add(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// The count of a fault.
    #[must_use]
    pub const fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Adds the counts of another world.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The faults that never occurred.
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
        assert!(Fault::ALL.ends_with(&Fault::OF_HTTP));
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
