//! The service of the tests: it follows a script.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use domain::task::Direction;

use super::{START, World};
use crate::{Answer, Call, Service};

/// The service's reaction to one call.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Answers at once.
    Answer(Answer),
    /// Answers after this many milliseconds, unless the call is given up before.
    Within(u64, Answer),
    /// This much time passes at once, as for a frozen instance, and then there is an answer.
    Frozen(u64, Answer),
    /// Prepares the call for this many milliseconds, and calls if it still may.
    Prepared(u64, Answer),
    /// Never answers.
    Hang,
    /// Panics.
    Panic,
    /// Another event happens during the call, and then it goes on.
    Meanwhile(Meanwhile, Box<Act>),
}

/// An event during a call.
#[derive(Clone)]
pub(crate) struct Meanwhile(pub(super) Arc<dyn Fn(&World) + Send + Sync>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Act {
    pub(crate) fn after(meanwhile: impl Fn(&World) + Send + Sync + 'static, act: Self) -> Self {
        Self::Meanwhile(Meanwhile(Arc::new(meanwhile)), Box::new(act))
    }
}

/// The service's reaction after the end of the script, by the time in milliseconds since the start and the call's key.
#[derive(Clone)]
pub(super) struct Behaviour(pub(super) Arc<Behave>);

pub(super) type Behave = dyn Fn(u64, &str) -> Act + Send + Sync;

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Behaviour")
    }
}

/// One call as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number of the service object, in the order of their making.
    pub(crate) object: usize,
    pub(crate) direction: Direction,
    pub(crate) step: String,
    pub(crate) key: String,
    pub(crate) attempt: u32,
    /// Milliseconds since the start of the test.
    pub(crate) at_ms: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) callback_url: Option<String>,
    pub(crate) is_look: bool,
}

/// The service.
pub(crate) struct Scripted<'a> {
    pub(super) object: usize,
    pub(super) world: &'a World,
}

impl Scripted<'_> {
    async fn act(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let act = self.world.lock(|state| {
            state.seen.push(Seen {
                object: self.object,
                direction,
                step: call.step.to_owned(),
                key: call.idempotency_key.to_owned(),
                attempt: call.attempt,
                at_ms: START.ms_until(call.started_at),
                timeout_ms: call.timeout_ms,
                callback_url: call.callback_url.map(str::to_owned),
                is_look: call.look.is_some(),
            });
            state.acts.pop_front()
        });
        let behaviour = self.world.behaviour.as_ref();
        let act = act.or_else(|| behaviour.map(|Behaviour(act)| act(self.world.now_ms(), call.idempotency_key)));
        let mut act = act.expect("the script has an act for every call");
        while let Act::Meanwhile(Meanwhile(happen), then) = act {
            happen(self.world);
            act = *then;
        }
        match act {
            Act::Answer(answer) => answer,
            Act::Within(ms, answer) if ms <= call.timeout_ms => {
                self.world.pass_ms(ms);
                answer
            }
            Act::Frozen(ms, answer) => {
                self.world.pass_ms(ms);
                answer
            }
            Act::Prepared(ms, answer) => {
                self.world.pass_ms(ms);
                let late = Answer::NotCalled { problem: "late".to_owned() };
                if (call.may_begin.0)() { answer } else { late }
            }
            Act::Within(..) | Act::Hang => pending().await,
            Act::Panic => panic!("as the script says"),
            Act::Meanwhile(..) => unreachable!("taken off above"),
        }
    }
}

impl Service for Scripted<'_> {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Forward, call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Undo, call).await
    }

    async fn look(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Forward, call).await
    }
}
