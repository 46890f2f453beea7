//! What a rehearsal notes while a world runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::id::OrderId;
use domain::workflow::{LINE, step_of};
use rehearsal::seen::{Heard, Kind, OrderState, Seen, Try, Way};
use rehearsal::setup::Outage;
use rehearsal::watcher::Watcher;

/// The code of a step whose call could not be made.
pub(crate) const UNSENDABLE: &str = "unsendable";

/// The lines of an order of which each is told, where the story is that of no line.
const LINES_TOLD: usize = 4;

/// The notes on a world.
#[derive(Debug, Default)]
pub struct Notes {
    /// The names of the steps of each order, by their index in its record.
    pub steps: BTreeMap<OrderId, Vec<Arc<str>>>,
    /// When each order was posted that was accepted.
    pub posted_ms: BTreeMap<OrderId, i64>,
    /// When each order ended.
    pub ended_ms: BTreeMap<OrderId, i64>,
    /// The steps against which a service decided, by order and index.
    pub refused: BTreeSet<(OrderId, usize)>,
    /// The calls that could not be made, by order, index and whether they are undos.
    pub unsendable: BTreeSet<(OrderId, usize, bool)>,
    /// The first error of each order: the code, and the step's index if one is in error.
    pub errors: BTreeMap<OrderId, (String, Option<usize>, i64)>,
    /// The calls.
    pub calls: u64,
    /// The calls that were the first of their step and direction.
    pub first_calls: BTreeSet<(OrderId, usize, bool)>,
    /// The alerts.
    pub alerts: u64,
    /// What happens to the order whose story is told, with its last state, and whether it was found late.
    story: Option<Story>,
    last_state: Option<OrderState>,
    is_late: bool,
    panic: Option<String>,
}

/// What happened to one order, from the services' side.
#[derive(Debug, Clone)]
pub struct Story {
    /// The order.
    pub order: OrderId,
    /// The names of its steps, by their index in its record.
    pub steps: Vec<Arc<str>>,
    /// Each moment.
    pub moments: Vec<Moment>,
    /// Its other lines, of which nothing is told.
    pub untold: usize,
}

impl Story {
    /// The names of its lines.
    #[must_use]
    pub fn lines(&self) -> BTreeSet<&str> {
        self.steps.iter().filter_map(|name| name.split_once(LINE)).map(|(_, line)| line).collect()
    }

    /// The same, with the line of the step at this index alone, or with the slowest one, if it has many.
    #[must_use]
    pub fn about(mut self, index: Option<usize>) -> Self {
        let line_of = |index: usize| self.steps.get(index)?.split_once(LINE).map(|(_, line)| line);
        let lines = self.lines();
        let line = |moment: &Moment| line_of(moment.what.of()?.step);
        let told = match index.and_then(line_of) {
            Some(line) => line,
            None if lines.len() <= LINES_TOLD => return self,
            None => {
                let until_ms = self.moments.iter().find(|moment| moment.what == What::Late).map(|moment| moment.at_ms);
                let is_in_time = |moment: &&Moment| until_ms.is_none_or(|until_ms| moment.at_ms <= until_ms);
                let Some(last) = self.moments.iter().filter(is_in_time).rev().find_map(line) else { return self };
                last
            }
        };
        let is_told = |moment: &&Moment| line(moment).is_none_or(|line| line == told);
        let moments: Vec<Moment> = self.moments.iter().filter(is_told).cloned().collect();
        self.untold = lines.len().saturating_sub(1);
        self.moments = moments;
        self
    }

    /// The same, with the times at which services were away while it lasted.
    #[must_use]
    pub fn with_outages(mut self, outages: &[Outage]) -> Self {
        let last_ms = self.moments.last().map_or(0, |moment| moment.at_ms);
        let during = outages.iter().filter(|outage| outage.at_ms <= last_ms);
        self.moments.extend(
            during.map(|outage| Moment { at_ms: outage.at_ms, what: What::Away(outage.agent, outage.lasts_ms) }),
        );
        self.moments.sort_by_key(|moment| moment.at_ms);
        self
    }
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The time, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// What happens.
    pub what: What,
}

/// What happens to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It is accepted.
    Accepted,
    /// A call begins: attempt and number of the call.
    Called(Try, u64),
    /// Its answer is heard, and whether it says how the call ended.
    Answered(Try, u64, bool),
    /// The service of the agent with this index is away for so long, in milliseconds.
    Away(usize, u64),
    /// The service carries the step out, or takes it back.
    Effect(Try),
    /// The service decides against it.
    Refused(Try),
    /// The order comes into a state, with the code of a reason.
    State(OrderState, Option<String>),
    /// It is late.
    Late,
}

impl What {
    /// The attempt that it is about.
    #[must_use]
    pub const fn of(&self) -> Option<Try> {
        match self {
            Self::Called(of, _) | Self::Answered(of, ..) | Self::Effect(of) | Self::Refused(of) => Some(*of),
            Self::Accepted | Self::State(..) | Self::Late | Self::Away(..) => None,
        }
    }
}

impl Notes {
    /// Notes that also tell the story of an order.
    #[must_use]
    pub fn telling(order: OrderId) -> Self {
        Self { story: Some(Story { order, steps: Vec::new(), moments: Vec::new(), untold: 0 }), ..Self::default() }
    }

    /// The story.
    #[must_use]
    pub fn story(&self) -> Option<Story> {
        let story = self.story.as_ref()?;
        Some(Story { steps: self.steps.get(&story.order).cloned().unwrap_or_default(), ..story.clone() })
    }

    /// The name in its workflow of the step of an order at this index of its record.
    #[must_use]
    pub fn step_of(&self, order: OrderId, index: usize) -> Option<&str> {
        Some(step_of(self.steps.get(&order)?.get(index)?))
    }

    /// The words of a panic, if there was one.
    #[must_use]
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    fn tell(&mut self, at_ms: i64, order: OrderId, what: What) {
        if let Some(story) = self.story.as_mut().filter(|story| story.order == order)
            && story.moments.last().is_none_or(|last| last.what != what)
        {
            story.moments.push(Moment { at_ms, what });
        }
    }
}

impl Watcher for Notes {
    fn see(&mut self, now_ms: i64, seen: &Seen) {
        match seen {
            Seen::Accepted { order, posted_ms, .. } => {
                self.posted_ms.entry(*order).or_insert(*posted_ms);
                self.tell(*posted_ms, *order, What::Accepted);
            }
            Seen::Called { of, call, .. } => {
                self.calls += 1;
                self.first_calls.insert((of.order, of.step, of.way == Way::Undo));
                self.tell(now_ms, of.order, What::Called(*of, *call));
            }
            Seen::Answered { of, call, heard } => {
                self.tell(now_ms, of.order, What::Answered(*of, *call, *heard != Heard::Open));
            }
            Seen::Refused { of } => {
                self.refused.insert((of.order, of.step));
                self.tell(now_ms, of.order, What::Refused(*of));
            }
            Seen::Replied { of, code: Some(code), .. } if **code == *UNSENDABLE => {
                self.unsendable.insert((of.order, of.step, of.way == Way::Undo));
            }
            Seen::Effect { of } => self.tell(now_ms, of.order, What::Effect(*of)),
            Seen::Inserted { record, .. } | Seen::Written { record, .. } => {
                let order = record.order;
                let names = || record.steps.iter().map(|step| step.name.clone()).collect();
                self.steps.entry(order).or_insert_with(names);
                let code = record.reason.as_ref().map(|(code, _)| code.to_string());
                if record.state.is_final() {
                    self.ended_ms.entry(order).or_insert(now_ms);
                }
                if record.state == OrderState::Error {
                    let step = record.steps.iter().position(|step| step.state == rehearsal::seen::StepState::Error);
                    let error = (code.clone().unwrap_or_default(), step, now_ms);
                    self.errors.entry(order).or_insert(error);
                }
                if self.story.as_ref().is_some_and(|story| story.order == order) {
                    if self.last_state.replace(record.state) != Some(record.state) {
                        self.tell(now_ms, order, What::State(record.state, code));
                    }
                    if record.late_ms.is_some() && !std::mem::replace(&mut self.is_late, true) {
                        self.tell(now_ms, order, What::Late);
                    }
                }
            }
            Seen::Telling { kind, channel: None, .. } => {
                self.alerts += u64::from(matches!(kind, Kind::NeedsOperator | Kind::Late));
            }
            Seen::Panicked { words } => self.panic = Some(words.to_string()),
            Seen::Posted { .. }
            | Seen::PostsAgain { .. }
            | Seen::Applied { .. }
            | Seen::Kept { .. }
            | Seen::LetGo { .. }
            | Seen::TakenForOwn { .. }
            | Seen::Requested { .. }
            | Seen::Handed { .. }
            | Seen::Looked { .. }
            | Seen::Replied { .. }
            | Seen::Unsent { .. }
            | Seen::Dismissed { .. }
            | Seen::Buried { .. }
            | Seen::Confirmed { .. }
            | Seen::FetchesToken { .. }
            | Seen::SendsAgain { .. }
            | Seen::AskedToWait { .. }
            | Seen::Telling { .. }
            | Seen::Told { .. }
            | Seen::DeadLetterDue { .. }
            | Seen::LetterTold { .. }
            | Seen::DeadLetterGone { .. }
            | Seen::Wished { .. }
            | Seen::Decided { .. }
            | Seen::NoteQueued { .. }
            | Seen::NoteHandled { .. }
            | Seen::Promised { .. }
            | Seen::Granted { .. }
            | Seen::Acknowledged { .. }
            | Seen::EndIsDue { .. }
            | Seen::DrainIsDue { .. } => {}
        }
    }

    fn troubled(&mut self, _: i64) {}

    fn jumped(&mut self, _: i64) {}

    fn is_done(&self) -> bool {
        self.panic.is_some()
    }
}
