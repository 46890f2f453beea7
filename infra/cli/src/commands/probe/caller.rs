//! The one place that makes calls. It counts them: no more are made than were announced.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent::{Call, MayBegin, Rate};
use agents::{Answer, Answered, HttpService, Proof};
use config::AgentSettings;
use domain::message::Request;
use domain::task::Direction;
use domain::text::shortened;

use super::plan::Counts;
use crate::remote::clock;

/// Calls the services.
pub(super) struct Caller(BTreeMap<Arc<str>, Callee>);

/// A service, and what may still be called there.
struct Callee {
    http: HttpService,
    timeout: Duration,
    /// Between two calls, for the service's own limit.
    pause: Duration,
    /// Forward calls and looks, and undos.
    left: [AtomicU32; 2],
    times_ms: Mutex<Vec<u64>>,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) answer: Answer,
    /// The status and the body, without secrets. `None`: no answer came.
    pub(super) said: Option<(u16, String)>,
    pub(super) took_ms: u64,
    /// What was sent of the order.
    pub(super) sent: Arc<str>,
}

impl Caller {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Lets this service be called so often.
    pub(super) fn allow(&mut self, agent: &Arc<str>, http: HttpService, settings: &AgentSettings, counts: Counts) {
        let pause_ms = settings.policy.health.rate.map_or(0, |Rate { calls, per_ms }| per_ms.div_ceil(calls.into()));
        let callee = Callee {
            http,
            timeout: Duration::from_millis(settings.policy.call_timeout_ms),
            pause: Duration::from_millis(pause_ms),
            left: [counts.forward, counts.undo].map(AtomicU32::new),
            times_ms: Mutex::default(),
        };
        self.0.insert(agent.clone(), callee);
    }

    /// Makes the call of a request.
    pub(super) async fn call(&self, request: &Request, proof: Proof) -> Seen {
        self.call_within(request, proof, None).await.unwrap_or_else(|| Seen::not_called(request, "the caller left"))
    }

    /// Makes the call, and hangs up after this time. `None`: there was no answer before that.
    pub(super) async fn call_within(&self, request: &Request, proof: Proof, hang_up: Option<Duration>) -> Option<Seen> {
        let Some(callee) = self.0.get(&request.agent) else {
            return Some(Seen::not_called(request, "no call of it was announced"));
        };
        let left = &callee.left[usize::from(request.direction == Direction::Undo)];
        if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
            return Some(Seen::not_called(request, "all calls that were announced are made"));
        }
        clock::pause(callee.pause).await;
        let timeout_ms = u64::try_from(callee.timeout.as_millis()).unwrap_or(u64::MAX);
        let call = Call::of(request, clock::now(), timeout_ms, MayBegin(&|| true));
        let began = clock::instant();
        let limit = hang_up.unwrap_or(callee.timeout);
        let answered = clock::within(limit, callee.http.once(request.direction, &call, proof)).await;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if answered.is_none() && hang_up.is_some() {
            return None;
        }
        let silent = || Answered {
            answer: Answer::unknown(format!("no answer within {}", humantime::format_duration(callee.timeout))),
            said: None,
        };
        let Answered { answer, said } = answered.unwrap_or_else(silent);
        callee.times_ms.lock().unwrap_or_else(PoisonError::into_inner).push(took_ms);
        Some(Seen { answer, said, took_ms, sent: sent(request) })
    }

    /// The times of all answers of a service, sorted.
    pub(super) fn times_ms(&self, agent: &str) -> Vec<u64> {
        let times = self.0.get(agent).map(|callee| &callee.times_ms);
        let mut times = times.map(|it| it.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default();
        times.sort_unstable();
        times
    }
}

/// All that a service could repeat of a request.
fn sent(request: &Request) -> Arc<str> {
    let body = request.body.as_ref().map_or(request.order.text(), |body| body.text());
    let outputs = request.outputs.values().map(|output| output.text());
    let headers = request.headers.values().map(|value| &**value);
    let path = request.path.as_deref().unwrap_or_default();
    let texts = [&*request.idempotency_key, path, body].into_iter().chain(outputs).chain(headers);
    texts.collect::<Vec<_>>().join("\n").into()
}

impl Seen {
    fn not_called(request: &Request, why: &str) -> Self {
        let answer = Answer::NotCalled { problem: why.to_owned() };
        Self { answer, said: None, took_ms: 0, sent: sent(request) }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.answer, Answer::Done(_))
    }

    /// Whether the service did it, or took it on.
    pub(super) const fn is_taken(&self) -> bool {
        matches!(self.answer, Answer::Done(_) | Answer::UnderWay { unless_alone: None, .. })
    }

    /// Whether the order would be compensated for it. A 409 means so where no call is under way.
    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self.answer, Answer::Fail(_) | Answer::UnderWay { unless_alone: Some(_), .. })
    }

    pub(super) const fn is_under_way(&self) -> bool {
        matches!(self.answer, Answer::UnderWay { .. })
    }

    pub(super) fn status(&self) -> Option<u16> {
        Some(self.said.as_ref()?.0)
    }

    pub(super) fn body(&self) -> &str {
        self.said.as_ref().map_or("", |(_, body)| body)
    }

    /// What was answered, in one short line.
    pub(super) fn words(&self) -> String {
        let problem = match &self.answer {
            Answer::Retry { problem, .. }
            | Answer::Unknown { problem, .. }
            | Answer::Misconfigured { problem, .. }
            | Answer::NotCalled { problem } => problem.as_str(),
            Answer::Done(_) | Answer::UnderWay { .. } | Answer::Fail(_) => "",
        };
        let Some((status, body)) = &self.said else { return problem.to_owned() };
        let line = shortened(&body.split_whitespace().collect::<Vec<_>>().join(" "));
        // The status is said already.
        let why = if problem.is_empty() || problem.starts_with("HTTP ") { "" } else { problem };
        let [body, why] = [(": ", &*line), ("; ", why)].map(|(mark, text)| match text {
            "" => String::new(),
            text => format!("{mark}{text}"),
        });
        format!("HTTP {status}{body}{why}")
    }
}
