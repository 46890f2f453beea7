//! Whose word counts (rule 45): what the sender of a message may tell the scheduler.
//!
//! The queue names the sender of each message, and no sender can change that. So nothing in a message has to prove it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::machine::Dropped;
use crate::message::{Outcome, Reply, SchedulerMessage};
use crate::task::{Step, Task};
use crate::workflow::ORDERS;

/// The senders that a deployment knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Senders {
    /// The functions that may send anything.
    pub system: BTreeSet<Arc<str>>,
    /// The function of all agents without queues of their own.
    pub agents: Arc<str>,
    /// The senders of each agent with queues of its own. Without one, any sender that is not named may answer for it.
    pub own: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// Only the system gives commands and wakes.
    #[error("an agent only replies, and other senders tell the scheduler nothing")]
    NotAReply,
    /// The step is another agent's.
    #[error("the sender does not carry out the steps of this agent")]
    OtherAgent,
}

impl Senders {
    /// Whether this sender may send anything.
    #[must_use]
    pub fn is_of_system(&self, sender: &str) -> bool {
        self.system.contains(sender)
    }

    /// The reply, if a sender outside the system may send a message of this kind.
    ///
    /// # Errors
    /// [`Untrusted::NotAReply`].
    pub const fn reply(message: &SchedulerMessage) -> Result<&Reply, Untrusted> {
        match message {
            SchedulerMessage::Reply(reply) => Ok(reply),
            SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => {
                Err(Untrusted::NotAReply)
            }
        }
    }

    /// Whether a sender outside the system may give this reply. A reply about no step of the task changes nothing.
    ///
    /// # Errors
    /// [`Dropped::Untrusted`].
    pub fn allow(&self, sender: &str, reply: &Reply, task: &Task) -> Result<(), Dropped> {
        match task.step(&reply.step) {
            Some((_, step)) if is_declined_before(reply, step) || self.may_answer_for(sender, &step.agent) => Ok(()),
            Some(_) => Err(Dropped::Untrusted),
            None => Ok(()),
        }
    }

    fn may_answer_for(&self, sender: &str, agent: &str) -> bool {
        match self.own.get(agent) {
            // Only the system tells the end of a child order (rule 49).
            _ if *agent == *ORDERS => false,
            None => *self.agents == *sender,
            Some(named) if named.is_empty() => !self.is_named(sender),
            Some(named) => named.contains(sender),
        }
    }

    fn is_named(&self, sender: &str) -> bool {
        *self.agents == *sender || self.own.values().any(|named| named.contains(sender))
    }
}

/// Whether an agent says once more that it declined an attempt, since its message came twice. The step may have another
/// agent by now (rule 21). It changes nothing.
fn is_declined_before(reply: &Reply, step: &Step) -> bool {
    reply.attempt <= step.declined && matches!(reply.outcome, Outcome::Deferred(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::machine::testing::Case;
    use crate::message::Deferral;

    fn senders() -> Senders {
        Senders {
            system: BTreeSet::from(["api".into()]),
            agents: "agents".into(),
            own: BTreeMap::from([
                ("customs".into(), BTreeSet::from(["of-customs".into()])),
                ("earlier".into(), BTreeSet::new()),
            ]),
        }
    }

    #[test]
    fn rule_45_an_agent_may_decline_twice_although_its_step_is_anothers_by_now() {
        let mut case = Case::new(&[("a", &[], "")], false);
        let step = &mut case.task.steps[0];
        (step.agent, step.attempt, step.declined) = ("customs".into(), 2, 1);
        let deferred = || Outcome::Deferred(Deferral { wait_ms: 0, fallback: None });
        let declined = Reply { attempt: 1, ..case.reply_of("a", deferred()) };
        for (reply, expected) in [
            (declined.clone(), Ok(())),
            (Reply { attempt: 2, ..declined.clone() }, Err(Dropped::Untrusted)),
            (Reply { outcome: Outcome::Done(Json::of(&1)), ..declined }, Err(Dropped::Untrusted)),
        ] {
            assert_eq!(senders().allow("agents", &reply, &case.task), expected, "{reply:?}");
        }
    }

    #[test]
    fn rule_45_each_sender_answers_for_its_own_agents_alone() {
        for (sender, agent, expected) in [
            ("agents", "payment", true),
            ("agents", "customs", false),
            ("agents", "earlier", false),
            ("of-customs", "customs", true),
            ("of-customs", "payment", false),
            ("of-customs", "earlier", false),
            ("another", "earlier", true),
            ("another", "customs", false),
            ("another", "payment", false),
            ("", "payment", false),
            ("agents", "orders", false),
        ] {
            assert_eq!(senders().may_answer_for(sender, agent), expected, "{sender} for {agent}");
        }
    }
}
