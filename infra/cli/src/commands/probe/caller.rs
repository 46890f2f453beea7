//! The one place that makes calls. It counts them: no more are made than were announced. It keeps to the service's limit of
//! calls (`limit`), and sends what an agent would send.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent::{Call, MayBegin, Rate};
use agents::{Answer, Answered, HttpService, Proof};
use config::AgentSettings;
use domain::message::Request;
use domain::task::Direction;
use domain::text::shortened;

use super::limit::Limit;
use super::plan::{Counts, SPARE};
use crate::remote::clock;

/// Where a later result would be posted (rule 38). No such host exists (RFC 2606): such results are not awaited.
pub(super) const CALLBACK_URL: &str = "https://stepwarden.invalid/callbacks/probe";
/// The longest wait for a service: before a repeat, or between two calls.
pub(super) const PAUSE_MS_MAX: u64 = 5_000;

/// Calls the services.
pub(super) struct Caller(BTreeMap<Arc<str>, Callee>);

/// A service, and what may still be called there.
struct Callee {
    http: HttpService,
    timeout: Duration,
    /// Whether it has a memo, and so no address for later results.
    has_memo: bool,
    /// Between two calls, for the service's own limit.
    pause_ms: AtomicU64,
    /// Forward calls and looks, and undos.
    left: [AtomicU32; 2],
    /// Of these, calls that are made again since the service limits its calls, or since an undo failed.
    spare: [AtomicU32; 2],
    began: Instant,
    said: Mutex<Said>,
}

/// What a service said to all calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The times of its answers, sorted.
    pub(super) times_ms: Vec<u64>,
    /// Calls without an answer.
    pub(super) silent: u32,
    /// What it let through.
    pub(super) limit: Limit,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) answer: Answer,
    /// The status and the body, without secrets. `None`: no answer came.
    pub(super) said: Option<(u16, String)>,
    pub(super) took_ms: u64,
    /// Whether the service refused it first, since it limits its calls.
    pub(super) is_late: bool,
    /// What was sent of the order.
    pub(super) sent: Arc<str>,
}

impl Caller {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Lets this service be called so often.
    pub(super) fn allow(&mut self, agent: &Arc<str>, http: HttpService, settings: &AgentSettings, counts: Counts) {
        let pause_ms = settings.policy.health.rate.map_or(0, pause_ms);
        let callee = Callee {
            http,
            timeout: Duration::from_millis(settings.policy.call_timeout_ms),
            has_memo: settings.policy.memo.is_some(),
            pause_ms: pause_ms.into(),
            left: [counts.forward, counts.undo].map(AtomicU32::new),
            spare: [SPARE; 2].map(AtomicU32::new),
            began: clock::instant(),
            said: Mutex::default(),
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
        let mut is_late = false;
        loop {
            let mut seen = callee.once(request, proof, hang_up).await?;
            (seen.is_late, is_late) = (is_late, is_late || seen.is_limited());
            let is_undo = request.direction == Direction::Undo;
            let is_failing = seen.is_silent() || matches!(seen.answer, Answer::Retry { .. });
            let is_again = seen.is_limited() || (is_undo && is_failing);
            if !is_again || !take(&callee.spare[usize::from(is_undo)]) {
                return Some(seen);
            }
            clock::pause(Duration::from_millis(seen.asked_ms().min(PAUSE_MS_MAX))).await;
        }
    }

    /// Waits until a service that limits its calls takes two at once.
    pub(super) async fn rest(&self, agent: &str) {
        let per_ms = self.said(agent).limit.rate.map_or(0, |rate| rate.per_ms);
        clock::pause(Duration::from_millis(per_ms.min(PAUSE_MS_MAX))).await;
    }

    /// What a service said.
    pub(super) fn said(&self, agent: &str) -> Said {
        let said = self.0.get(agent).map(|callee| callee.said.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let mut said = said.unwrap_or_default();
        said.times_ms.sort_unstable();
        said
    }
}

impl Callee {
    /// One call. `None`: the caller hung up before an answer.
    async fn once(&self, request: &Request, proof: Proof, hang_up: Option<Duration>) -> Option<Seen> {
        if !take(&self.left[usize::from(request.direction == Direction::Undo)]) {
            return Some(Seen::not_called(request, "all calls that were announced are made"));
        }
        clock::pause(Duration::from_millis(self.pause_ms.load(Relaxed))).await;
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let is_told_later = request.wait_within_ms.is_some() && !self.has_memo;
        let call = Call {
            callback_url: is_told_later.then_some(CALLBACK_URL),
            ..Call::of(request, clock::now(), timeout_ms, MayBegin(&|| true))
        };
        let began = clock::instant();
        let limit = hang_up.unwrap_or(self.timeout);
        let answered = clock::within(limit, self.http.once(request.direction, &call, proof)).await;
        let took_ms = since(began);
        if answered.is_none() && hang_up.is_some() {
            return None;
        }
        let silent = || Answered {
            answer: Answer::unknown(format!("no answer within {}", humantime::format_duration(self.timeout))),
            said: None,
        };
        let Answered { answer, said } = answered.unwrap_or_else(silent);
        let seen = Seen { answer, said, took_ms, is_late: false, sent: sent(request) };
        let mut told = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_silent() {
            told.silent += 1;
        } else if seen.is_limited() {
            let rate = told.limit.refused(since(self.began), seen.asked_ms());
            self.pause_ms.fetch_max(rate.map_or(0, pause_ms).min(PAUSE_MS_MAX), Relaxed);
        } else {
            told.limit.taken(since(self.began));
            told.times_ms.push(took_ms);
        }
        Some(seen)
    }
}

/// Takes one of what is left.
fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Between two calls of this rate.
fn pause_ms(Rate { calls, per_ms }: Rate) -> u64 {
    per_ms.div_ceil(calls.into())
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
        Self { answer, said: None, took_ms: 0, is_late: false, sent: sent(request) }
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

    /// Whether no answer came, so that nothing is known of the service.
    pub(super) const fn is_silent(&self) -> bool {
        self.said.is_none()
    }

    /// Whether it was refused since the service limits its calls.
    pub(super) fn is_limited(&self) -> bool {
        self.status() == Some(429)
    }

    /// The wait that the service asked for.
    pub(super) fn asked_ms(&self) -> u64 {
        match &self.answer {
            Answer::Retry { after_ms, .. } | Answer::UnderWay { after_ms, .. } => after_ms.unwrap_or(0),
            Answer::Done(_)
            | Answer::Fail(_)
            | Answer::Unknown { .. }
            | Answer::Misconfigured { .. }
            | Answer::NotCalled { .. } => 0,
        }
    }

    /// Whether the service answers that it fails.
    pub(super) fn is_failing(&self) -> bool {
        matches!(self.answer, Answer::Retry { .. }) && !self.is_silent() && !self.is_limited()
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
        let why = match problem.strip_prefix("HTTP ") {
            Some(named) => named.split_once(", ").map_or("", |(_, why)| why),
            None => problem,
        };
        let [body, why] = [(": ", &*line), ("; ", why)].map(|(mark, text)| match text {
            "" => String::new(),
            text => format!("{mark}{text}"),
        });
        format!("HTTP {status}{body}{why}")
    }
}
