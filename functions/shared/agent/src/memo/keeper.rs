//! Reads and writes the memos of one request.

use std::sync::Arc;

use domain::limits::CONFLICTS_MAX;
use domain::message::{Outcome, Request, idempotency_key};
use domain::ports::{Commit, Environment, Memo, MemoState, PortError, Records, Seen};
use domain::task::Direction;
use domain::time::Timestamp;

use crate::memo::MemoPolicy;
use crate::memo::plan::{self, Plan, Times, nothing_to_undo};
use crate::ports::AgentPorts;

/// Tries to store a result before the reply is sent without a memo.
const TRIES_MAX: u32 = 3;
/// The wait between these tries, in milliseconds.
const WAIT_MS: u64 = 100;

/// The memos of one request, as last read or written.
#[derive(Debug)]
pub(crate) struct Keeper {
    retention_ms: u64,
    sent_at: Timestamp,
    attempt: u32,
    was_done: bool,
    key: Arc<str>,
    own: Option<Memo>,
    /// Only for an undo.
    forward: Option<Forward>,
    /// The version of the claim that this request holds.
    held: Option<u64>,
}

#[derive(Debug)]
struct Forward {
    key: Arc<str>,
    memo: Option<Memo>,
}

/// The outcome of a claim before a call, or of declining one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It holds: no other request calls until its end, or none for what was declined.
    Held,
    /// Another request was first: plan again.
    Lost,
}

impl Keeper {
    pub(crate) fn new(policy: &MemoPolicy, request: &Request, sent_at: Timestamp) -> Self {
        let forward = match request.direction {
            Direction::Forward => None,
            Direction::Undo => {
                let key = idempotency_key(request.order_id, &request.step, Direction::Forward);
                Some(Forward { key, memo: None })
            }
        };
        let key = request.idempotency_key.clone();
        let (retention_ms, attempt, was_done) = (policy.retention_ms, request.attempt, request.was_done);
        Self { retention_ms, sent_at, attempt, was_done, key, own: None, forward, held: None }
    }

    /// The next action for the request.
    ///
    /// # Errors
    /// [`PortError`] if it cannot be known.
    pub(crate) async fn plan(&mut self, ports: &impl AgentPorts) -> Result<Plan, PortError> {
        for _ in 0..CONFLICTS_MAX {
            let plan = self.read_and_plan(ports).await?;
            if plan != Plan::MarkOnly {
                return Ok(plan);
            }
            if self.mark_undone(ports).await? == Claim::Held {
                return Ok(Plan::Answer(nothing_to_undo()));
            }
        }
        Err(PortError::unavailable("memos.set_memo", "too many writers"))
    }

    /// Ensures that no other request calls until `until` and, for an undo, that no forward call is made any more.
    ///
    /// # Errors
    /// [`PortError`] if that is not certain.
    pub(crate) async fn claim(&mut self, ports: &impl AgentPorts, until: Timestamp) -> Result<Claim, PortError> {
        if self.write(ports, MemoState::InProgress(until)).await? == Commit::Conflict {
            self.held = None;
            return Ok(Claim::Lost);
        }
        self.held = self.own.as_ref().map(|own| own.version);
        self.mark_undone(ports).await
    }

    /// Whether no agent ever called for this step, as the last reading says. An undo may not ask.
    pub(crate) fn is_uncalled(&self) -> bool {
        let was_called = self.own.as_ref().is_some_and(|own| own.state != MemoState::Declined);
        self.forward.is_none() && !was_called
    }

    /// Ensures that no delivery of this attempt or an earlier one calls any more.
    ///
    /// # Errors
    /// [`PortError`] if that is not certain.
    pub(crate) async fn decline(&mut self, ports: &impl AgentPorts) -> Result<Claim, PortError> {
        let memo = self.next(ports, MemoState::Declined);
        Ok(match write(ports, &mut self.own, Memo { declined: self.attempt, ..memo }).await? {
            Commit::Committed => Claim::Held,
            Commit::Conflict => Claim::Lost,
        })
    }

    /// Stores the result of the call, and returns the one that counts. If this claim had lapsed and a duplicate was
    /// faster, that is the duplicate's result.
    pub(crate) async fn complete(&mut self, ports: &impl AgentPorts, outcome: Outcome) -> Outcome {
        if self.held.take().is_none() {
            return outcome;
        }
        for _ in 0..TRIES_MAX {
            let written = match self.write(ports, MemoState::Completed(outcome.clone())).await {
                Ok(Commit::Committed) => return outcome,
                Ok(Commit::Conflict) => self.read_own(ports).await,
                Err(error) => Err(error),
            };
            match (written, self.own.as_ref().map(|own| &own.state)) {
                (Ok(()), Some(MemoState::Completed(first))) => return first.clone(),
                (Ok(()), Some(MemoState::Undone)) => {
                    tracing::error!(key = &*self.key, "a call that lasted beyond its time-out ended after its undo");
                    return outcome;
                }
                (Ok(()), Some(MemoState::InProgress(_) | MemoState::Declined) | None) => {}
                (Err(error), _) => {
                    tracing::warn!(key = &*self.key, "the result cannot be stored: {error}");
                    ports.environment().sleep(WAIT_MS).await;
                }
            }
        }
        tracing::error!(key = &*self.key, "replied without a memo: a repeat would call the service again");
        outcome
    }

    /// Releases the claim early, after a call without a result.
    pub(crate) async fn release(&mut self, ports: &impl AgentPorts) {
        let now = ports.environment().now();
        let held = self.held.take();
        // The last memo read may hold the claim of another request, made after this one had lapsed.
        let lasts = self.own.as_ref().is_some_and(|own| match own.state {
            MemoState::InProgress(until) => held == Some(own.version) && now < until,
            MemoState::Completed(_) | MemoState::Undone | MemoState::Declined => false,
        });
        if !lasts {
            return;
        }
        // No clock is behind this time. A clock that is ahead would else hold up all others (rule 23).
        if let Err(error) = self.write(ports, MemoState::InProgress(Timestamp::default())).await {
            tracing::warn!(key = &*self.key, "the claim lasts until its time is over: {error}");
        }
    }

    async fn read_and_plan(&mut self, ports: &impl AgentPorts) -> Result<Plan, PortError> {
        let Self { sent_at, retention_ms, attempt, was_done, .. } = *self;
        let times = Times { now: ports.environment().now(), sent_at, retention_ms, attempt, was_done };
        match &mut self.forward {
            // If another request took the claim, the next write of this request fails.
            None if self.held.is_some() => Ok(Plan::Call),
            None => {
                self.own = remembered(ports, &self.key, times.now).await?;
                Ok(plan::forward(self.own.as_ref(), self.held, times))
            }
            Some(forward) => {
                // In this order: the undo's own memo is written before the mark that it explains.
                forward.memo = remembered(ports, &forward.key, times.now).await?;
                self.own = remembered(ports, &self.key, times.now).await?;
                Ok(plan::undo(self.own.as_ref(), forward.memo.as_ref(), self.held, times))
            }
        }
    }

    async fn read_own(&mut self, ports: &impl AgentPorts) -> Result<(), PortError> {
        self.own = remembered(ports, &self.key, ports.environment().now()).await?;
        Ok(())
    }

    /// For an undo: marks the forward key, if it is not marked yet.
    async fn mark_undone(&mut self, ports: &impl AgentPorts) -> Result<Claim, PortError> {
        let Some(forward) = &mut self.forward else { return Ok(Claim::Held) };
        if forward.memo.as_ref().is_some_and(|memo| memo.state == MemoState::Undone) {
            return Ok(Claim::Held);
        }
        let expires_at = ports.environment().now().plus_ms(self.retention_ms);
        let mark = next(&forward.key, forward.memo.as_ref(), MemoState::Undone, self.attempt, expires_at);
        Ok(match write(ports, &mut forward.memo, mark).await? {
            Commit::Committed => Claim::Held,
            Commit::Conflict => Claim::Lost,
        })
    }

    async fn write(&mut self, ports: &impl AgentPorts, state: MemoState) -> Result<Commit, PortError> {
        let memo = self.next(ports, state);
        write(ports, &mut self.own, memo).await
    }

    fn next(&self, ports: &impl AgentPorts, state: MemoState) -> Memo {
        let expires_at = ports.environment().now().plus_ms(self.retention_ms);
        next(&self.key, self.own.as_ref(), state, self.attempt, expires_at)
    }
}

fn next(key: &Arc<str>, before: Option<&Memo>, state: MemoState, attempt: u32, expires_at: Timestamp) -> Memo {
    // What was declined stays so, also once another agent has called. A late answer of an earlier attempt is one for the
    // attempt that called since, too.
    let (version, declined, latest) = before.map_or((0, 0, 0), |memo| (memo.version, memo.declined, memo.attempt));
    Memo { key: key.clone(), version: version + 1, state, declined, attempt: attempt.max(latest), expires_at }
}

/// The memo of this key, unless it has expired.
async fn remembered(ports: &impl AgentPorts, key: &str, now: Timestamp) -> Result<Option<Memo>, PortError> {
    Ok(ports.records().get(key).await?.filter(|memo: &Memo| now < memo.expires_at))
}

async fn write(ports: &impl AgentPorts, known: &mut Option<Memo>, after: Memo) -> Result<Commit, PortError> {
    let seen = Seen::version(after.version - 1, ports.environment().now());
    let commit = ports.records().put(seen, &after).await?;
    if commit == Commit::Committed {
        *known = Some(after);
    }
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_of_an_earlier_attempt_stands_for_the_one_that_called_since() {
        let (key, at) = ("k".into(), Timestamp::from_epoch_ms(1_000_000));
        let claimed = next(&key, None, MemoState::InProgress(at), 2, at);
        assert_eq!(next(&key, Some(&claimed), MemoState::Undone, 1, at).attempt, 2);
        assert_eq!(next(&key, Some(&claimed), MemoState::Undone, 3, at).attempt, 3);
    }
}
