//! The part that an agent's author writes: one trait for one remote service.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Failure, Look, Request};
use domain::template::{PollPath, Template};
use domain::time::Timestamp;
use domain::workflow::{Encoding, Method};

/// One remote service.
///
/// An object serves one message, and may be called again after an answer that asks for it, such as [`Answer::Retry`]. When the time of a call is over,
/// its future is dropped at its present await. The object is then dropped too, as after a panic, and the next call
/// gets a fresh one. The objects that the agent's `make_service` makes share what must outlive a message, such as a
/// pool of connections.
pub trait Service: Send {
    /// Carries the step out. A repeat with the same idempotency key must have no second effect.
    fn forward(&mut self, call: &Call<'_>) -> impl Future<Output = Answer> + Send;

    /// Undoes the step. The undo of a step that was never done succeeds.
    fn undo(&mut self, call: &Call<'_>) -> impl Future<Output = Answer> + Send;

    /// Asks for the state of a call that was taken on with a place for it: see `look` of the call. It must have no effect. Only
    /// [`Answer::Done`] and [`Answer::Fail`] count.
    fn look(&mut self, _call: &Call<'_>) -> impl Future<Output = Answer> + Send {
        ready(Answer::under_way())
    }
}

/// The input of a call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The order of the step.
    pub order_id: OrderId,
    /// The step's name in the workflow.
    pub step: &'a str,
    /// The same over all calls for this step in this direction (rule 4).
    pub idempotency_key: &'a str,
    /// The order's document.
    pub order: &'a Json,
    /// Outputs of the steps that this one comes after and, for an undo, its own.
    pub outputs: &'a BTreeMap<Arc<str>, Json>,
    /// The method.
    pub method: Method,
    /// What the workflow sends to this service, if it says so. An agent sends this alone: `order` and `outputs` are empty
    /// then. They are empty without it too where the method has no body.
    pub body: Option<&'a Json>,
    /// The encoding of this body.
    pub encode: Encoding,
    /// The path below the URL of the operation, with its query, percent-encoded.
    pub path: Option<&'a str>,
    /// Headers that the workflow names.
    pub headers: &'a BTreeMap<Arc<str>, Arc<str>>,
    /// What the workflow keeps of the answer. If it [is of a response](Template::is_of_response), done is answered with
    /// what [`Template::response`] makes.
    pub keep: Option<&'a Template>,
    /// Where the service may tell the result later, if it takes the call on (rule 38). The same over all calls for this
    /// step in this direction. `None`: it must answer at once, or the deployment has no such addresses.
    pub callback_url: Option<&'a str>,
    /// Where the state is asked from now on, if the service takes the call on. `None`: nowhere.
    pub poll: Option<&'a PollPath>,
    /// Not a call, but a look at the state of one.
    pub look: Option<&'a Look>,
    /// Whether it shows if a service that failed is well again. Its name may have another address by now.
    pub is_probe: bool,
    /// The attempt of the step, from 1. There may be several calls for one attempt.
    pub attempt: u32,
    /// The start of the call, by the clock that the service sees too: a signature has it.
    pub started_at: Timestamp,
    /// The time-out of the call, in milliseconds.
    pub timeout_ms: u64,
    /// Whether it may still begin.
    pub may_begin: MayBegin<'a>,
}

impl<'a> Call<'a> {
    /// The call of a request, without an address for a later result.
    #[must_use]
    pub fn of(request: &'a Request, started_at: Timestamp, timeout_ms: u64, may_begin: MayBegin<'a>) -> Self {
        Self {
            order_id: request.order_id,
            step: &request.step,
            idempotency_key: &request.idempotency_key,
            order: &request.order,
            outputs: &request.outputs,
            method: request.method,
            body: request.body.as_ref(),
            encode: request.encode,
            path: request.path.as_deref(),
            headers: &request.headers,
            keep: request.keep.as_ref(),
            callback_url: None,
            poll: request.poll.as_ref(),
            look: request.look.as_ref(),
            is_probe: false,
            attempt: request.attempt,
            started_at,
            timeout_ms,
            may_begin,
        }
    }
}

/// Whether a call may still begin, or its attempt may be over by now (rule 6). What takes time before anything is sent,
/// such as the fetch of a token, is followed by this question. If the answer is no, so is that of the service:
/// [`Answer::NotCalled`].
#[derive(Clone, Copy)]
pub struct MayBegin<'a>(pub &'a (dyn Fn() -> bool + Sync));

impl fmt::Debug for MayBegin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MayBegin")
    }
}

/// The result of a call. There is no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The service did the work, now or earlier.
    Done(Json),
    /// It said that it fails, and may work later. Ask again with the same key.
    Retry {
        /// The time for which the service asks not to be called, in milliseconds.
        after_ms: Option<u64>,
        /// The fault. It is logged, so it must not contain data of the order.
        problem: String,
    },
    /// No answer came, or one that leaves the effect open, such as a broken connection or a gateway's time-out. Ask again
    /// with the same key.
    Unknown {
        /// The time for which the service asks not to be called, in milliseconds.
        after_ms: Option<u64>,
        /// The fault. It is logged, so it must not contain data of the order.
        problem: String,
    },
    /// It is at work on a call with this key. Ask again with the same key; this is no failure of the service.
    UnderWay {
        /// The time for which the service asks not to be called, in milliseconds.
        after_ms: Option<u64>,
        /// The rejection that the answer means if no earlier call with this key can be at work. Such an answer is HTTP's
        /// 409. `None`: this call was taken on.
        unless_alone: Option<Failure>,
        /// Where its state is asked, as the call's `poll` says, or why this answer names no such place. `None`: nowhere.
        poll: Option<Result<Arc<str>, String>>,
    },
    /// It refuses every call, because of a fault in its configuration or in the agent's, such as a wrong password. Ask
    /// again with the same key. It counts as a failure of the service, and never as a rejection of the step.
    Misconfigured {
        /// The time for which the service asks not to be called, in milliseconds.
        after_ms: Option<u64>,
        /// The fault. It is logged and shown, so it must not contain data of the order or a secret.
        problem: String,
    },
    /// No call could be made, for want of something on the agent's own machine, such as a file descriptor, or of time
    /// ([`MayBegin`]). It says nothing about the service. Ask again with the same key.
    NotCalled {
        /// The fault. It is logged, so it must not contain data of the order.
        problem: String,
    },
    /// The service rejected the step for good.
    Fail(Failure),
}

impl Answer {
    /// Ask again after the back-off.
    pub fn retry(problem: impl Into<String>) -> Self {
        Self::Retry { after_ms: None, problem: problem.into() }
    }

    /// No answer came, and the effect is unknown.
    pub fn unknown(problem: impl Into<String>) -> Self {
        Self::Unknown { after_ms: None, problem: problem.into() }
    }

    /// The call was taken on, and its result will come. Ask again after the back-off.
    #[must_use]
    pub const fn under_way() -> Self {
        Self::UnderWay { after_ms: None, unless_alone: None, poll: None }
    }

    /// A fault of the configuration.
    pub fn misconfigured(problem: impl Into<String>) -> Self {
        Self::Misconfigured { after_ms: None, problem: problem.into() }
    }

    /// A rejection for good: a stable code for programs, a message for people.
    pub fn fail(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::Fail(Failure { code: code.into(), message: message.into() })
    }
}
