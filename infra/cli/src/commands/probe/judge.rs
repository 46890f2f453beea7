//! What the answers of a service say about the assumptions of the contract (rule 17, rule 16, and the three rules of a
//! service).

use agents::Answer;
use serde::Serialize;

use super::caller::Seen;
use super::marks::{Likeness, Marks};
use super::plan::AGAIN;
use super::series::{Observed, Unseen};
use super::trial::Told;

/// The shortest call whose time says whether the service worked.
const WORK_MS_MIN: u64 = 20;
/// Why a 202 says nothing.
const TAKEN_ON: &str = "it was taken on, and its result is not awaited";
/// So many calls say how long work takes.
const CALLS_MIN: usize = 3;

/// What is assumed of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Assumption {
    Repeat,
    AtOnce,
    HungUp,
    OtherBody,
    OtherStep,
    UndoOfNothing,
    UndoTwice,
    ForwardAfterUndo,
    WrongToken,
}

/// Whether it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Holds,
    DoesNotHold,
    CannotTell,
}

/// The verdict on one assumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) assumption: Assumption,
    pub(super) verdict: Verdict,
    pub(super) why: String,
    /// What was answered.
    pub(super) answer: Option<String>,
    /// Why nothing depends on it, though it does not hold.
    pub(super) covered: Option<&'static str>,
}

impl Assumption {
    /// Its sentence, and what a person looks up where answers do not tell.
    pub(super) const fn words(self) -> [&'static str; 2] {
        const ONE: &str = "look up the orders below at the service: each has one effect";
        match self {
            Self::Repeat => ["a repeated call gets the same answer, and has no second effect", ONE],
            Self::AtOnce => ["two calls at once have one effect", ONE],
            Self::HungUp => ["a repeat after the caller hung up has no second effect", ONE],
            Self::OtherBody => ["a key with another body has no second effect", ONE],
            Self::OtherStep => [
                "the keys of two steps are those of two calls",
                "ask the provider whether the whole key counts, or a reference in the body alone",
            ],
            Self::UndoOfNothing => [
                "the undo of what was never done succeeds",
                "ask the provider what it answers to the undo of an unknown key or reference",
            ],
            Self::UndoTwice => [
                "a second undo succeeds, and undoes nothing more",
                "look up the orders below at the service: each effect is undone once",
            ],
            Self::ForwardAfterUndo => [
                "a call after its undo is refused",
                "ask the provider what becomes of a call that comes after its undo",
            ],
            Self::WrongToken => {
                ["a wrong token is refused, and rejects no order", "try a wrong token by hand: 401 or 403 is right"]
            }
        }
    }

    /// Whether a memo makes it needless.
    const fn is_of_memo(self) -> bool {
        !matches!(self, Self::HungUp | Self::OtherStep | Self::WrongToken)
    }
}

impl Verdict {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// A verdict, why, and the answer that shows it; or why it was not looked at.
type Judged<'s> = Result<(Verdict, String, Option<&'s Seen>), &'s Unseen>;

/// The verdicts on one service. `has_memo`: its agent has one; `is_only`: the probed step is the only one of it.
pub(super) fn findings(observed: &Observed, has_memo: bool, is_only: bool) -> Vec<Finding> {
    let judge = Judge::of(observed);
    let judged = [
        (Assumption::Repeat, Some(judge.repeat())),
        (Assumption::AtOnce, Some(judge.at_once())),
        (Assumption::HungUp, Some(judge.hung_up())),
        (Assumption::OtherBody, Some(judge.other_body())),
        (Assumption::OtherStep, Some(judge.other_step())),
        (Assumption::UndoOfNothing, observed.undo_of_nothing.as_ref().map(undo_of_nothing)),
        (Assumption::UndoTwice, observed.undo_twice.as_ref().map(|both| judge.undo_twice(both))),
        (Assumption::ForwardAfterUndo, observed.undo_twice.as_ref().map(|_| judge.after_undo())),
        (Assumption::WrongToken, observed.wrong_token.as_ref().map(wrong_token)),
    ];
    let finding = |(assumption, judged): (Assumption, Option<Judged<'_>>)| {
        let unseen = |why: &Unseen| (Verdict::CannotTell, why.clone(), None);
        let (verdict, why, seen) = judged?.unwrap_or_else(unseen);
        let covered = if assumption == Assumption::OtherStep && is_only {
            Some("no other step calls this service")
        } else if has_memo && assumption.is_of_memo() {
            Some("the agent's memo answers in its place")
        } else {
            None
        };
        let covered = covered.filter(|_| verdict == Verdict::DoesNotHold);
        Some(Finding { assumption, verdict, why, answer: seen.map(Seen::words), covered })
    };
    judged.into_iter().filter_map(finding).collect()
}

/// Whether a repeat had an effect of its own.
pub(super) fn is_done_anew(observed: &Observed) -> bool {
    let repeat = &observed.repeat.last;
    repeat.is_done() && matches!(Judge::of(observed).compare(repeat), Likeness::Other(_))
}

struct Judge<'s> {
    seen: &'s Observed,
    /// Of forward calls, and of undos.
    marks: [Marks; 2],
    /// How long work takes at least, if that can be told.
    work_ms: Option<u64>,
}

impl<'s> Judge<'s> {
    fn of(seen: &'s Observed) -> Self {
        fn said(seen: &Seen) -> (&str, &str) {
            (seen.body(), &seen.sent)
        }
        let forward: Vec<_> = seen.firsts.iter().map(|told| said(&told.last)).collect();
        let undo: Vec<_> = seen.undos.iter().filter(|seen| seen.is_done()).map(said).collect();
        let times = seen.firsts.iter().filter(|told| told.first.is_done()).map(|told| told.first.took_ms);
        let times: Vec<u64> = times.collect();
        let work_ms = times.iter().min().copied().filter(|ms| times.len() >= CALLS_MIN && *ms >= WORK_MS_MIN);
        Self { seen, marks: [Marks::of(&forward), Marks::of(&undo)], work_ms }
    }

    /// What an answer says beside that to the first call.
    fn compare(&self, second: &Seen) -> Likeness {
        self.marks[0].compare(self.seen.first_answer().body(), second.body())
    }

    /// Whether a call was so short that the service did not work on it.
    fn is_remembered(&self, took_ms: u64) -> bool {
        self.work_ms.is_some_and(|work_ms| took_ms < work_ms / 2)
    }

    fn repeat(&self) -> Judged<'s> {
        let told = &self.seen.repeat;
        let second = &told.last;
        if !second.is_done() {
            let why = "the repeat of a call that was done was answered otherwise";
            return shown(told_not_done(told), &again(told, why), second);
        }
        match self.compare(second) {
            Likeness::Same => holds("the repeat got the same answer"),
            Likeness::Mixed(places) => holds(&format!("the repeat got {}", mixed(&places))),
            Likeness::Other(place) => shown(no(), &format!("the repeat got another {place}"), second),
            Likeness::Lacks(place) => shown(no(), &format!("the repeat got no {place}"), second),
            Likeness::Unknown if self.is_remembered(second.took_ms) => holds(&self.by_time(second.took_ms)),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn at_once(&self) -> Judged<'s> {
        let [one, other] = self.seen.at_once.as_ref()?;
        if let Some(told) = [one, other].into_iter().find(|told| !told.last.is_done()) {
            let is_one_done = one.last.is_done() || other.last.is_done();
            return match told.last.is_refusal() && (is_one_done || matches!(told.last.answer, Answer::Fail(_))) {
                true => shown(no(), "one of both was rejected: its order would be compensated", &told.last),
                false if is_one_done => shown(told_not_done(told), &again(told, "one did not succeed"), &told.last),
                false => shown(Verdict::CannotTell, "neither succeeded", &told.last),
            };
        }
        if let Some(told) = [one, other].into_iter().find(|told| told.first.is_late) {
            return shown(Verdict::CannotTell, "the service limits its calls, and took one of both later", &told.last);
        }
        let busy = [one, other].into_iter().find(|told| self.seen.is_busy(told));
        match (self.marks[0].compare(one.last.body(), other.last.body()), busy) {
            (Likeness::Other(place), _) => shown(no(), &format!("both succeeded, with another {place}"), &other.last),
            (Likeness::Lacks(place), _) => shown(no(), &format!("both succeeded, one without {place}"), &other.last),
            (Likeness::Same, None) => holds("both got the same answer"),
            (Likeness::Mixed(places), None) => holds(&format!("both got {}", mixed(&places))),
            (Likeness::Same | Likeness::Mixed(_) | Likeness::Unknown, Some(told)) => {
                shown(Verdict::Holds, "the second one was told that the first is under way", &told.first)
            }
            (Likeness::Unknown, None) => unmarked(&other.last),
        }
    }

    fn hung_up(&self) -> Judged<'s> {
        let (told, is_over, _) = self.seen.hung_up.as_ref()?;
        let took_ms = told.first.took_ms;
        if !told.last.is_done() {
            return shown(told_not_done(told), &again(told, "the repeat did not succeed"), &told.last);
        }
        if *is_over {
            return cannot_tell("it answered before the caller could hang up");
        }
        if self.seen.is_busy(told) {
            return shown(Verdict::Holds, "the repeat was told that the call is under way", &told.first);
        }
        match self.work_ms {
            Some(_) if self.is_remembered(took_ms) => holds(&self.by_time(took_ms)),
            // A service that is slow at each repeat has not worked for that.
            Some(work_ms) if took_ms * 10 >= work_ms * 9 && !self.is_slow_repeat() => {
                shown(no(), &format!("{}: it worked anew", self.by_time(took_ms)), &told.last)
            }
            Some(_) | None => cannot_tell("its time does not tell whether the service worked anew"),
        }
    }

    /// Whether the repeat of a call that was done took as long as work.
    fn is_slow_repeat(&self) -> bool {
        let told = &self.seen.repeat;
        let is_one = matches!(self.compare(&told.last), Likeness::Same | Likeness::Mixed(_));
        told.last.is_done() && is_one && !self.is_remembered(told.first.took_ms)
    }

    fn other_body(&self) -> Judged<'s> {
        let [misused, own] = self.seen.other_body.as_ref()?;
        if misused.is_done() {
            return match self.compare(misused) {
                Likeness::Same | Likeness::Mixed(_) => holds("it got the answer to the first body"),
                Likeness::Other(place) => {
                    shown(no(), &format!("it was taken for a new call: another {place}"), misused)
                }
                Likeness::Lacks(_) if misused.body() == self.seen.repeat.last.body() => {
                    shown(Verdict::Holds, "it was answered like a repeat", misused)
                }
                Likeness::Lacks(place) => shown(Verdict::CannotTell, &format!("it got no {place}"), misused),
                Likeness::Unknown => unmarked(misused),
            };
        }
        if !own.is_done() {
            return shown(Verdict::CannotTell, "the body is refused under a key of its own too", own);
        }
        if misused.is_taken() {
            return shown(Verdict::CannotTell, TAKEN_ON, misused);
        }
        refused_or_not(misused.is_refusal(), misused)
    }

    fn other_step(&self) -> Judged<'s> {
        let second = &self.seen.other_step;
        if !second.is_done() {
            return shown(Verdict::CannotTell, "the call was not done under another key", second);
        }
        match self.compare(second) {
            Likeness::Same => shown(no(), "it got the answer to the call of the first step", second),
            Likeness::Other(_) => holds("it got an answer of its own"),
            Likeness::Mixed([same, _]) => {
                shown(Verdict::CannotTell, &format!("it got the {same} of the first step"), second)
            }
            Likeness::Lacks(place) => shown(Verdict::CannotTell, &format!("it got no {place}"), second),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn undo_twice(&self, both: &'s Result<[Seen; 2], Unseen>) -> Judged<'s> {
        let [first, second] = both.as_ref()?;
        if !first.is_done() {
            let why = match first.status() {
                Some(404 | 405 | 410) => "no undo succeeded: is its path right?",
                _ => "the first undo did not succeed",
            };
            return shown(undo_not_done(first), why, first);
        }
        if !second.is_done() {
            return shown(undo_not_done(second), "the second undo did not succeed", second);
        }
        match self.marks[1].compare(first.body(), second.body()) {
            Likeness::Same => holds("the second undo got the same answer"),
            Likeness::Mixed(places) => holds(&format!("the second undo got {}", mixed(&places))),
            Likeness::Lacks(place) => holds(&format!("the second undo succeeded, and got no {place}")),
            Likeness::Other(place) => shown(no(), &format!("the second undo got another {place}"), second),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn after_undo(&self) -> Judged<'s> {
        let is_new = |seen: &&Seen| seen.is_done() && matches!(self.compare(seen), Likeness::Other(_));
        match &self.seen.after_undo {
            [Some(done), _] if is_new(&done) => shown(no(), "it had a second effect after its undo", done),
            [_, Some(seen)] if seen.is_done() => shown(no(), "it was done after its undo, which came first", seen),
            [_, Some(seen)] if seen.is_taken() => shown(Verdict::CannotTell, TAKEN_ON, seen),
            [_, Some(seen)] | [Some(seen), None] if seen.is_refusal() => refused_or_not(true, seen),
            [_, Some(seen)] => refused_or_not(false, seen),
            [_, None] => cannot_tell("no undo succeeded that came before its call"),
        }
    }

    fn by_time(&self, took_ms: u64) -> String {
        format!("a repeat took {took_ms}ms, and work takes {}ms at least", self.work_ms.unwrap_or(0))
    }
}

fn undo_of_nothing(seen: &Result<Seen, Unseen>) -> Judged<'_> {
    let seen = seen.as_ref()?;
    match seen.is_done() {
        true => holds("it succeeded"),
        false => shown(undo_not_done(seen), "it did not succeed: a compensation would stop here", seen),
    }
}

fn wrong_token(seen: &Seen) -> Judged<'_> {
    if seen.is_taken() {
        return shown(no(), "it was answered with success", seen);
    }
    if matches!(seen.answer, Answer::Fail(_)) {
        return shown(no(), "each order would be rejected while the token is wrong", seen);
    }
    let is_redirect = seen.status().is_some_and(|status| (300..400).contains(&status));
    refused_or_not(matches!(seen.answer, Answer::Misconfigured { .. }) || is_redirect, seen)
}

const fn no() -> Verdict {
    Verdict::DoesNotHold
}

/// A refusal breaks the rule. A failure may pass.
const fn not_done(seen: &Seen) -> Verdict {
    if seen.is_refusal() { Verdict::DoesNotHold } else { Verdict::CannotTell }
}

/// The same of a call that was repeated: a service that fails at each repeat, and at nothing else, has no answer to it.
fn told_not_done(told: &Told) -> Verdict {
    if told.last.is_failing() { Verdict::DoesNotHold } else { not_done(&told.last) }
}

/// Why, with how often it was repeated.
fn again(told: &Told, why: &str) -> String {
    if told.last.is_failing() { format!("{why}, {} times", 1 + AGAIN) } else { why.to_owned() }
}

/// An answer that is the same in what counts.
fn mixed([same, other]: &[String; 2]) -> String {
    format!("the same {same}; {other} is made for each answer")
}

/// The same of an undo. What counts as a fault of the configuration is repeated until an operator comes.
const fn undo_not_done(seen: &Seen) -> Verdict {
    if matches!(seen.answer, Answer::Misconfigured { .. }) { Verdict::DoesNotHold } else { not_done(seen) }
}

fn refused_or_not(is_refused: bool, seen: &Seen) -> Judged<'_> {
    match is_refused {
        true => shown(Verdict::Holds, "it was refused", seen),
        false => shown(Verdict::CannotTell, "it was answered neither yes nor no", seen),
    }
}

/// No answer, and no place within a limit of calls, say nothing of the assumption.
fn shown<'s>(verdict: Verdict, why: &str, seen: &'s Seen) -> Judged<'s> {
    let (verdict, why) = match seen {
        _ if seen.is_silent() => (Verdict::CannotTell, "no answer came"),
        _ if seen.is_limited() => (Verdict::CannotTell, "the service limits its calls"),
        _ => (verdict, why),
    };
    Ok((verdict, why.to_owned(), Some(seen)))
}

fn holds<'s>(why: &str) -> Judged<'s> {
    Ok((Verdict::Holds, why.to_owned(), None))
}

fn cannot_tell<'s>(why: &str) -> Judged<'s> {
    Ok((Verdict::CannotTell, why.to_owned(), None))
}

fn unmarked(seen: &Seen) -> Judged<'_> {
    let why = "the answers have nothing that the service makes for each effect, such as an id";
    shown(Verdict::CannotTell, why, seen)
}
