//! Any sequence of events, on any workflow: it breaks no invariant, and everything ends once all actors behave.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::cases;
use super::draw::{file, order, outcome};
use super::walker::Walker;
use crate::id::CommandId;
use crate::json::Json;
use crate::machine::{DeadLetterSubject, Dropped, Effect, Event, Verdict};
use crate::message::{Action, Command, Outcome, Reply, Settled, Settlement};
use crate::order::Order;
use crate::task::{Direction, ProcessState, StepState, Task, Watch};
use crate::time::Timestamp;
use crate::workflow::Workflow;

/// One event, for a task in any state.
#[derive(Debug, Clone)]
enum Happening {
    Wake {
        hops: u32,
        redelivered: bool,
    },
    /// An answer of a claimed attempt: the present one, or an earlier one.
    Answer {
        step: Index,
        back: u32,
        outcome: Outcome,
        redelivered: bool,
        hops: u32,
    },
    /// A message that no actor sent.
    Forged {
        step: Index,
        attempt: u32,
        undo: bool,
        outcome: Outcome,
    },
    Sweep,
    /// `back`: how many versions ago the operator looked, if the command has a version.
    Command {
        action: Action,
        back: Option<u64>,
        redelivered: bool,
    },
    /// An operator says what became of a step.
    Settle {
        step: Index,
        outcome: Settled,
        back: Option<u64>,
    },
    /// An operator writes a note, and may take the order on or let it go.
    Note {
        words: u8,
        take: Option<bool>,
        back: Option<u64>,
    },
    LostWake,
    LostAttempt {
        step: Index,
        back: u32,
    },
    /// Every notice was sent, or one.
    Sent {
        which: Option<Index>,
    },
    Pass {
        ms: u64,
    },
    /// Another instance takes over, whose clock is behind.
    GoBack {
        ms: u64,
    },
    /// Until the supervisor's next look.
    PassToTheWatch,
    /// Until the deadline of a step, and this much more.
    PassToTheDeadline {
        step: Index,
        more_ms: u64,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    let index = || any::<Index>();
    let hops = || prop_oneof![9 => 0..8_u32, 1 => 0..300_u32];
    let back = || prop_oneof![4 => Just(0_u32), 1 => 0..4_u32];
    let answer = prop_oneof![3 => Just(Outcome::Done(Json::of(&()))), 2 => outcome()];
    let action = prop_oneof![3 => Just(Action::Resubmit), 1 => Just(Action::Cancel), 1 => Just(Action::Pause), 1 => Just(Action::Resume), 1 => Just(Action::Close)];
    let settled = proptest::sample::select(&Settled::ALL);
    let ms = || prop_oneof![0..2_000_u64, 0..120_000_u64, 0..9_000_000_u64, 0..700_000_000_u64];
    prop_oneof![
        4 => (hops(), any::<bool>()).prop_map(|(hops, redelivered)| H::Wake { hops, redelivered }),
        8 => (index(), back(), answer, any::<bool>(), hops()).prop_map(|(step, back, outcome, redelivered, hops)| {
            H::Answer { step, back, outcome, redelivered, hops }
        }),
        1 => (index(), 0..9_u32, any::<bool>(), outcome()).prop_map(|(step, attempt, undo, outcome)| {
            H::Forged { step, attempt, undo, outcome }
        }),
        3 => Just(H::Sweep),
        2 => (action, proptest::option::of(0..6_u64), any::<bool>()).prop_map(|(action, back, redelivered)| {
            H::Command { action, back, redelivered }
        }),
        2 => (index(), settled, proptest::option::of(0..6_u64)).prop_map(|(step, outcome, back)| H::Settle { step, outcome, back }),
        1 => (0..40_u8, any::<Option<bool>>(), proptest::option::of(0..6_u64)).prop_map(|(words, take, back)| H::Note { words, take, back }),
        1 => Just(H::LostWake),
        1 => (index(), back()).prop_map(|(step, back)| H::LostAttempt { step, back }),
        2 => proptest::option::of(index()).prop_map(|which| H::Sent { which }),
        2 => ms().prop_map(|ms| H::Pass { ms }),
        1 => ms().prop_map(|ms| H::GoBack { ms }),
        3 => Just(H::PassToTheWatch),
        2 => (index(), 0..70_000_u64).prop_map(|(step, more_ms)| H::PassToTheDeadline { step, more_ms }),
    ]
}

impl Walker {
    fn name(&self, place: usize) -> Arc<str> {
        self.task.steps[place].name.clone()
    }

    /// A reply of a claimed attempt, `back` attempts before the present one.
    fn reply(&self, place: usize, back: u32, outcome: Outcome, hops: u32) -> Option<Reply> {
        let attempt = self.task.steps[place].attempt.checked_sub(back)?;
        let direction = *self.claims.get(&(place, attempt))?;
        let (order_id, step) = (self.order.order_id, self.name(place));
        Some(Reply { order_id, step, direction, attempt, outcome, hops, may_run_until: None, call_ms: None })
    }

    fn command(&self, action: Action, version: Option<u64>) -> Command {
        Command {
            order_id: self.order.order_id,
            action,
            by: "ann".into(),
            reason: "because".into(),
            command_id: CommandId::generate(self.now, [self.draws, 0]),
            version,
            bulk: None,
            settle: None,
            take: None,
            step: None,
        }
    }

    /// Settles a step. It counts once, for a step in `Error` in its direction.
    fn settle(&mut self, place: usize, outcome: Settled, back: Option<u64>) {
        let before = self.task.steps[place].clone();
        let version = back.map(|back| self.task.version.saturating_sub(back));
        let settle = Some(Settlement { step: before.name.clone(), outcome, output: Some(Json::of(&"by hand")) });
        let command = Command { settle, ..self.command(Action::Settle, version) };
        let verdict = self.apply(Event::Command { command: &command, redelivered: false });
        if verdict == Verdict::Taken {
            let after = &self.task.steps[place];
            assert_eq!((before.process_state, before.direction), (StepState::Error, outcome.direction()));
            // In the same write another step may be given up, so that this one is undone already.
            assert!(outcome != Settled::Dropped || after.dropped, "{after:?}");
            let is_undone_again = outcome != Settled::Undone && after.direction == Direction::Undo;
            let end = if outcome == Settled::Skipped { StepState::Skipped } else { StepState::Processed };
            let is_ended = (after.process_state, after.direction) == (end, outcome.direction());
            assert!(is_ended || is_undone_again, "{after:?}");
            assert!(outcome != Settled::Done || after.output == Some(Json::of(&"by hand")));
            let again = self.apply(Event::Command { command: &command, redelivered: false });
            assert!(matches!(again, Verdict::Refused(_)), "a settle counts twice: {again:?}");
        }
    }

    /// Writes a note. It changes nothing but the history and who has taken the order on, and counts once.
    fn note(&mut self, words: u8, take: Option<bool>, back: Option<u64>) {
        let before = self.task.clone();
        let version = back.map(|back| before.version.saturating_sub(back));
        let reason = words.to_string().into();
        let command = Command { reason, take, ..self.command(Action::Note, version.or(Some(before.version))) };
        let verdict = self.apply(Event::Command { command: &command, redelivered: false });
        if verdict == Verdict::Taken {
            let Task { version, nonce, taken, taken_version, watch_at, history, .. } = before.clone();
            let after = Task { version, nonce, taken, taken_version, watch_at, history, ..self.task.clone() };
            assert_eq!(after, before, "a note changes the order");
            let lost = before.history.iter().find(|line| line.what.is_note() && !self.task.history.contains(line));
            assert_eq!(lost, None, "a note is lost");
            let again = self.apply(Event::Command { command: &command, redelivered: true });
            assert!(matches!(again, Verdict::Refused(_)), "a note counts twice: {again:?}");
        }
    }

    fn happen(&mut self, happening: &Happening) {
        let steps = self.task.steps.len();
        match happening {
            Happening::Wake { hops, redelivered } => {
                self.apply(Event::Wake { hops: *hops, redelivered: *redelivered });
            }
            Happening::Answer { step, back, outcome, redelivered, hops } => {
                if let Some(reply) = self.reply(step.index(steps), *back, outcome.clone(), *hops) {
                    self.answer(&reply, *redelivered);
                }
            }
            Happening::Forged { step, attempt, undo, outcome } => {
                let direction = if *undo { Direction::Undo } else { Direction::Forward };
                let (order_id, step) = (self.order.order_id, self.name(step.index(steps)));
                let (attempt, outcome) = (*attempt, outcome.clone());
                let reply =
                    Reply { order_id, step, direction, attempt, outcome, hops: 0, may_run_until: None, call_ms: None };
                self.answer(&reply, false);
                let unknown = Reply { step: "nobody".into(), ..reply };
                let verdict = self.apply(Event::Reply { reply: &unknown, redelivered: false });
                assert!(matches!(verdict, Verdict::Dropped(Dropped::UnknownStep | Dropped::Finished)));
            }
            Happening::Sweep => {
                self.apply(Event::Sweep);
            }
            Happening::Command { action, back, redelivered } => {
                let command = self.command(*action, back.map(|back| self.task.version.saturating_sub(back)));
                self.apply(Event::Command { command: &command, redelivered: *redelivered });
            }
            Happening::LostWake => {
                self.apply(Event::DeadLetter { dead_letter: &DeadLetterSubject::Wake });
            }
            Happening::Note { words, take, back } => self.note(*words, *take, *back),
            Happening::Settle { step, outcome, back } => self.settle(step.index(steps), *outcome, *back),
            Happening::LostAttempt { step, back } => {
                let place = step.index(steps);
                if let Some(Reply { step, direction, attempt, .. }) =
                    self.reply(place, *back, Outcome::Done(Json::of(&())), 0)
                {
                    self.apply(Event::DeadLetter {
                        dead_letter: &DeadLetterSubject::Attempt { step, direction, attempt },
                    });
                }
            }
            Happening::Sent { which } => self.all_sent(*which),
            Happening::Pass { ms } => self.now = self.now.plus_ms(*ms),
            Happening::GoBack { ms } => self.now = self.now.minus_ms(*ms),
            Happening::PassToTheWatch => self.now = self.now.max(self.task.watch_at.unwrap_or(self.now)),
            Happening::PassToTheDeadline { step, more_ms } => {
                let deadline = self.task.steps[step.index(steps)].complete_by;
                self.now = self.now.max(deadline.unwrap_or(self.now)).plus_ms(*more_ms);
            }
        }
    }

    /// Applies a reply twice: the second time changes nothing.
    fn answer(&mut self, reply: &Reply, redelivered: bool) {
        let attempt = (reply.direction, reply.attempt);
        let claimed =
            self.task.step(&reply.step).and_then(|(place, _)| self.claims.get(&(place, reply.attempt)).copied());
        let verdict = self.apply(Event::Reply { reply, redelivered });
        if claimed != Some(reply.direction) && verdict == Verdict::Taken {
            // The attempts of both directions are one sequence, so a forged success of this direction may name one of
            // the other. A number that was never claimed must not count.
            assert!(claimed.is_some(), "an attempt that was never claimed counts: {attempt:?}");
        }
        let again = self.apply(Event::Reply { reply, redelivered: false });
        let is_trouble = matches!(reply.outcome, Outcome::Retrying(_));
        let is_nothing = matches!(again, Verdict::Dropped(_)) || (is_trouble && again == Verdict::Nothing);
        assert!(is_nothing, "a reply counts twice: {again:?}");
    }

    fn all_sent(&mut self, which: Option<Index>) {
        let mut notices = self.task.unsent.clone();
        if let Some(which) = which.filter(|_| !notices.is_empty()) {
            notices = vec![notices[which.index(notices.len())]];
        }
        self.apply(Event::Sent { notices: &notices });
    }

    /// All actors behave from now on: every request is answered, and every due task is swept.
    fn calm_down(&mut self) {
        // The steps that were given up, and the waits of a long back-off, are over.
        for _ in 0..20 * self.task.steps.len() {
            if self.task.process_state.is_settled() {
                break;
            }
            if self.task.paused.is_some() {
                let command = self.command(Action::Resume, None);
                assert_eq!(self.apply(Event::Command { command: &command, redelivered: false }), Verdict::Taken);
            }
            for place in 0..self.task.steps.len() {
                let is_asked = self.task.steps[place].process_state == StepState::Processing;
                let reply = self.reply(place, 0, Outcome::Done(Json::of(&())), 0).filter(|_| is_asked);
                if let Some(reply) = reply {
                    assert_eq!(self.apply(Event::Reply { reply: &reply, redelivered: false }), Verdict::Taken);
                }
            }
            let waits_until = self.task.steps.iter().filter_map(|step| step.not_before).max();
            self.now = self.now.max(waits_until.unwrap_or(self.now));
            self.apply(Event::Wake { hops: 0, redelivered: false });
        }
        assert!(self.task.process_state.is_settled(), "it never ends: {:?}", self.task);
        self.all_sent(None);
        let is_error = self.task.process_state == ProcessState::Error;
        let may_be_late = self.task.deadline_ahead().is_some();
        assert_eq!(matches!(self.task.watch, Some(Watch::Error(_))), is_error && !may_be_late);
        assert_eq!((self.task.unsent.len(), self.task.watch.is_some()), (0, is_error));
    }

    /// Only the supervisor wakes the task from now on, when it is due.
    fn is_found(&mut self) {
        for _ in 0..40 * self.task.steps.len().max(5) {
            if self.task.process_state.is_settled() || self.task.paused.is_some() {
                return;
            }
            self.now = self.now.max(self.task.watch_at.expect("an open task has a watch"));
            assert_eq!(self.apply(Event::Sweep), Verdict::Taken);
            assert!(
                self.task.watch_at > Some(self.now) || self.task.process_state.is_settled(),
                "it comes back at once"
            );
            // The woken scheduler claims the steps that are ready; no agent answers.
            let effects = self.effects.clone();
            self.all_sent(None);
            for effect in effects {
                if let Effect::Wake { delay_ms, hops } = effect {
                    self.now = self.now.plus_ms(delay_ms);
                    self.apply(Event::Wake { hops, redelivered: false });
                }
            }
        }
        panic!("the supervisor comes again and again: {:?}", self.task);
    }
}

fn walker() -> impl Strategy<Value = Walker> {
    (file(), order(), 1..4_u8).prop_map(|(file, order, lines)| {
        let submitted_at = Timestamp::from_epoch_ms(1_800_000_000_000);
        let document = Json::of(&serde_json::json!({ "Lines": vec![0; lines.into()] }));
        let workflow = Arc::new(file.workflow()).of_accepted(&document);
        Walker::new(Arc::unwrap_or_clone(workflow), Order { submitted_at, document, ..order })
    })
}

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Workflow { steps, supervision, .. } = &self.workflow;
        write!(f, "{supervision:?} {steps:#?}")
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn whatever_happens_no_invariant_breaks_and_it_ends(mut walker in walker(), happenings in vec(happening(), 1..60)) {
        for happening in &happenings {
            walker.happen(happening);
        }
        walker.calm_down();
    }

    #[test]
    fn the_supervisor_alone_ends_an_order_without_answers(
        mut walker in walker(),
        happenings in vec(happening(), 0..20),
    ) {
        for happening in &happenings {
            walker.happen(happening);
        }
        walker.is_found();
    }
}
