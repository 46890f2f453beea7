//! What the answers of a service say about the assumptions of the contract (rule 17, rule 16, and the three rules of a
//! service).

use agents::Answer;
use serde::Serialize;

use super::caller::Seen;
use super::marks::{Likeness, Marks};
use super::series::Observed;
use super::trial::Told;

/// The shortest call whose time says whether the service worked.
const WORK_MS_MIN: u64 = 20;
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
    /// Whether the agent's memo answers in the place of the service, so that nothing depends on it.
    pub(super) is_covered: bool,
}

impl Assumption {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Repeat => "a repeated call gets the same answer, and has no second effect",
            Self::AtOnce => "two calls at once have one effect",
            Self::HungUp => "a repeat after the caller hung up has no second effect",
            Self::OtherBody => "a key with another body has no second effect",
            Self::OtherStep => "the keys of two steps are those of two calls",
            Self::UndoOfNothing => "the undo of what was never done succeeds",
            Self::UndoTwice => "a second undo succeeds, and undoes nothing more",
            Self::ForwardAfterUndo => "a call after its undo is refused",
            Self::WrongToken => "a wrong token is refused, and rejects no order",
        }
    }

    /// What a person looks up where answers do not tell.
    pub(super) const fn look_up(self) -> &'static str {
        match self {
            Self::Repeat | Self::AtOnce | Self::HungUp | Self::OtherBody => {
                "look up the orders below at the service: each has one effect"
            }
            Self::OtherStep => "ask the provider whether the whole key counts, or a reference in the body alone",
            Self::UndoOfNothing => "ask the provider what it answers to the undo of an unknown key or reference",
            Self::UndoTwice => "look up the orders below at the service: each effect is undone once",
            Self::ForwardAfterUndo => "ask the provider what becomes of a call that comes after its undo",
            Self::WrongToken => "try a wrong token by hand: 401 or 403 is right",
        }
    }

    /// Whether a memo makes it needless.
    const fn is_of_memo(self) -> bool {
        match self {
            Self::Repeat
            | Self::AtOnce
            | Self::OtherBody
            | Self::UndoOfNothing
            | Self::UndoTwice
            | Self::ForwardAfterUndo => true,
            Self::HungUp | Self::OtherStep | Self::WrongToken => false,
        }
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

/// A verdict, why, and the answer that shows it.
type Judged<'s> = (Verdict, String, Option<&'s Seen>);

/// The verdicts on one service. `has_memo`: its agent has one.
pub(super) fn findings(observed: &Observed, has_memo: bool) -> Vec<Finding> {
    let judge = Judge::of(observed);
    let undone = observed.undo_twice.is_some();
    let judged = [
        Some((Assumption::Repeat, judge.repeat())),
        Some((Assumption::AtOnce, judge.at_once())),
        Some((Assumption::HungUp, judge.hung_up())),
        Some((Assumption::OtherBody, judge.other_body())),
        Some((Assumption::OtherStep, judge.other_step())),
        undone.then(|| (Assumption::UndoOfNothing, judge.undo_of_nothing())),
        undone.then(|| (Assumption::UndoTwice, judge.undo_twice())),
        undone.then(|| (Assumption::ForwardAfterUndo, judge.after_undo())),
        observed.wrong_token.as_ref().map(|seen| (Assumption::WrongToken, wrong_token(seen))),
    ];
    let finding = |(assumption, (verdict, why, seen)): (Assumption, Judged<'_>)| Finding {
        assumption,
        verdict,
        why,
        answer: seen.map(Seen::words),
        is_covered: has_memo && verdict == Verdict::DoesNotHold && assumption.is_of_memo(),
    };
    judged.into_iter().flatten().map(finding).collect()
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

    fn compare(&self, first: &Seen, second: &Seen) -> Likeness {
        self.marks[0].compare(first.body(), second.body())
    }

    /// Whether a call was so short that the service did not work on it.
    fn is_remembered(&self, took_ms: u64) -> bool {
        self.work_ms.is_some_and(|work_ms| took_ms < work_ms / 2)
    }

    fn repeat(&self) -> Judged<'s> {
        let repeat = match (&self.seen.repeat, self.seen.firsts.first()) {
            (Err(unseen), None) => return unknown(unseen),
            (_, Some(first)) if !first.last.is_done() => {
                return (Verdict::CannotTell, "the first call did not succeed".to_owned(), Some(&first.last));
            }
            (Err(unseen), Some(_)) => return unknown(unseen),
            (Ok(_), None) => return unknown("there was no first call"),
            (Ok(repeat), Some(first)) => (&first.last, repeat),
        };
        let (first, Told { last: second, .. }) = repeat;
        if !second.is_done() {
            return (
                not_done(second),
                "the repeat of a call that was done was answered otherwise".to_owned(),
                Some(second),
            );
        }
        match self.compare(first, second) {
            Likeness::Same => holds("the repeat got the same answer"),
            Likeness::Other(place) => (no(), format!("the repeat got another {place}"), Some(second)),
            Likeness::Unknown if self.is_remembered(second.took_ms) => holds(&self.by_time(second.took_ms)),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn at_once(&self) -> Judged<'s> {
        let both = match &self.seen.at_once {
            Err(unseen) => return unknown(unseen),
            Ok(both) => both,
        };
        if let Some(told) = both.iter().find(|told| !told.last.is_done()) {
            let is_rejected = matches!(told.last.answer, Answer::Fail(_));
            let why = if is_rejected {
                "one of both was rejected: its order would be compensated"
            } else {
                "one of both did not succeed"
            };
            return (if is_rejected { no() } else { Verdict::CannotTell }, why.to_owned(), Some(&told.last));
        }
        let busy = both.iter().find(|told| self.seen.is_busy(told));
        match (self.compare(&both[0].last, &both[1].last), busy) {
            (Likeness::Other(place), _) => (no(), format!("both succeeded, with another {place}"), Some(&both[1].last)),
            (Likeness::Same, None) => holds("both got the same answer"),
            (Likeness::Same | Likeness::Unknown, Some(told)) => {
                (Verdict::Holds, "the second one was told that the first is under way".to_owned(), Some(&told.first))
            }
            (Likeness::Unknown, None) => unmarked(&both[1].last),
        }
    }

    fn hung_up(&self) -> Judged<'s> {
        let (told, is_over) = match &self.seen.hung_up {
            Err(unseen) => return unknown(unseen),
            Ok((told, is_over, _)) => (told, *is_over),
        };
        if !told.last.is_done() {
            return (not_done(&told.last), "the repeat did not succeed".to_owned(), Some(&told.last));
        }
        if is_over {
            return unknown("it answered before the caller could hang up");
        }
        if self.seen.is_busy(told) {
            return (Verdict::Holds, "the repeat was told that the call is under way".to_owned(), Some(&told.first));
        }
        let took_ms = told.first.took_ms;
        match self.work_ms {
            Some(_) if self.is_remembered(took_ms) => holds(&self.by_time(took_ms)),
            Some(work_ms) if took_ms * 10 >= work_ms * 9 => {
                (no(), format!("{}: it worked anew", self.by_time(took_ms)), Some(&told.last))
            }
            Some(_) | None => {
                unknown("the repeat succeeded, and its time does not tell whether the service worked anew")
            }
        }
    }

    fn other_body(&self) -> Judged<'s> {
        let (first, [misused, own]) = match (&self.seen.other_body, self.seen.firsts.first()) {
            (Err(unseen), _) => return unknown(unseen),
            (Ok(_), None) => return unknown("there was no first call"),
            (Ok(both), Some(first)) => (&first.last, both),
        };
        if misused.is_done() {
            return match self.compare(first, misused) {
                Likeness::Same => holds("it got the answer to the first body"),
                Likeness::Other(place) => {
                    (no(), format!("it was taken for a new call: another {place}"), Some(misused))
                }
                Likeness::Unknown => unmarked(misused),
            };
        }
        if !own.is_done() {
            return (Verdict::CannotTell, "the body is refused under a key of its own too".to_owned(), Some(own));
        }
        match misused.is_refusal() || misused.is_under_way() {
            true => (Verdict::Holds, "it was refused".to_owned(), Some(misused)),
            false => (Verdict::CannotTell, "it was answered neither yes nor no".to_owned(), Some(misused)),
        }
    }

    fn other_step(&self) -> Judged<'s> {
        let (first, second) = match (&self.seen.other_step, self.seen.firsts.first()) {
            (Err(unseen), _) => return unknown(unseen),
            (Ok(_), None) => return unknown("there was no first call"),
            (Ok(second), Some(first)) => (&first.last, second),
        };
        if !second.is_done() {
            return (Verdict::CannotTell, "the call was not done under another key".to_owned(), Some(second));
        }
        match self.compare(first, second) {
            Likeness::Same => (no(), "it got the answer to the call of the first step".to_owned(), Some(second)),
            Likeness::Other(_) => holds("it got an answer of its own"),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn undo_of_nothing(&self) -> Judged<'s> {
        match self.seen.undo_of_nothing.as_ref() {
            None => unknown("the step has no undo"),
            Some(Err(unseen)) => unknown(unseen),
            Some(Ok(seen)) if seen.is_done() => holds("it succeeded"),
            Some(Ok(seen)) => {
                (refused(seen), "it did not succeed: a compensation would stop here".to_owned(), Some(seen))
            }
        }
    }

    fn undo_twice(&self) -> Judged<'s> {
        let [first, second] = match self.seen.undo_twice.as_ref() {
            None => return unknown("the step has no undo"),
            Some(Err(unseen)) => return unknown(unseen),
            Some(Ok(both)) => both,
        };
        if let Some((seen, which)) =
            [(first, "first"), (second, "second")].into_iter().find(|(seen, _)| !seen.is_done())
        {
            return (refused(seen), format!("the {which} undo did not succeed"), Some(seen));
        }
        match self.marks[1].compare(first.body(), second.body()) {
            Likeness::Same => holds("the second undo got the same answer"),
            Likeness::Other(place) => (no(), format!("the second undo got another {place}"), Some(second)),
            Likeness::Unknown => unmarked(second),
        }
    }

    fn after_undo(&self) -> Judged<'s> {
        let [done, undone_first] = &self.seen.after_undo;
        let again = "it had an effect after its undo";
        let is_new = |seen: &&Seen| {
            let first = self.seen.firsts.first().map(|told| &told.last);
            seen.is_done() && first.is_some_and(|first| matches!(self.compare(first, seen), Likeness::Other(_)))
        };
        match (done.as_ref().filter(is_new), undone_first) {
            (Some(seen), _) => (no(), again.to_owned(), Some(seen)),
            (None, Some(seen)) if seen.is_taken() => (no(), format!("{again}, which came first"), Some(seen)),
            (None, Some(seen)) if seen.is_refusal() => (Verdict::Holds, "it was refused".to_owned(), Some(seen)),
            (None, Some(seen)) => (Verdict::CannotTell, "it was answered neither yes nor no".to_owned(), Some(seen)),
            (None, None) => match done {
                Some(seen) if seen.is_refusal() => (Verdict::Holds, "it was refused".to_owned(), Some(seen)),
                Some(_) | None => unknown("no undo succeeded before the call"),
            },
        }
    }

    fn by_time(&self, took_ms: u64) -> String {
        format!("a repeat took {took_ms}ms, and work takes {}ms at least", self.work_ms.unwrap_or(0))
    }
}

fn wrong_token(seen: &Seen) -> Judged<'_> {
    let (verdict, why) = match &seen.answer {
        Answer::Done(_) | Answer::UnderWay { unless_alone: None, .. } => (no(), "the service does not look at it"),
        Answer::Fail(_) => (no(), "each order would be rejected while the token is wrong"),
        Answer::Misconfigured { .. } => (Verdict::Holds, "it was refused"),
        Answer::UnderWay { unless_alone: Some(_), .. }
        | Answer::Retry { .. }
        | Answer::Unknown { .. }
        | Answer::NotCalled { .. } => {
            (Verdict::CannotTell, "it was answered neither yes nor no")
        }
    };
    (verdict, why.to_owned(), Some(seen))
}

const fn no() -> Verdict {
    Verdict::DoesNotHold
}

/// A refusal breaks the rule. A failure may pass.
const fn not_done(seen: &Seen) -> Verdict {
    if seen.is_refusal() { Verdict::DoesNotHold } else { Verdict::CannotTell }
}

/// The same of an undo. What counts as a fault of the configuration is repeated until an operator comes.
const fn refused(seen: &Seen) -> Verdict {
    match &seen.answer {
        Answer::Misconfigured { .. } => Verdict::DoesNotHold,
        Answer::Done(_)
        | Answer::Retry { .. }
        | Answer::Unknown { .. }
        | Answer::UnderWay { .. }
        | Answer::NotCalled { .. }
        | Answer::Fail(_) => not_done(seen),
    }
}

fn holds<'s>(why: &str) -> Judged<'s> {
    (Verdict::Holds, why.to_owned(), None)
}

fn unknown<'s>(why: &(impl AsRef<str> + ?Sized)) -> Judged<'s> {
    (Verdict::CannotTell, why.as_ref().to_owned(), None)
}

fn unmarked(seen: &Seen) -> Judged<'_> {
    let why = "the answers have nothing that the service makes for each effect, such as an id";
    (Verdict::CannotTell, why.to_owned(), Some(seen))
}
