//! Schedules: orders that are posted at times (rule 48). A schedule is a part of `stepwarden.toml`, which the deployment
//! has as a text; the supervisor reads it there.
//!
//! What is due is a pure function of the schedule, its mark and the time. The id of an order follows from the name of its
//! schedule and its due time, so a due time that is posted twice is one order.

mod cron;
mod keys;
mod record;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use cron::{BadCron, Cron};
pub use keys::{SCHEDULE, SCHEDULES};
pub use record::{Gap, Posted, Refused, ScheduleRecord};

use crate::id::OrderId;
use crate::json::Json;
use crate::limits::{MISSED_AFTER_MS, MISSED_MAX, POSTS_OF_A_LOOK_MAX};
use crate::located::{Document, Reader, Table};
use crate::order::{BadMember, Given, SCHEDULE_SUBMITTER};
use crate::time::Timestamp;

/// The member of each order of a schedule with its due time.
pub const DUE_AT: &str = "DueAt";
/// Due times that were passed over and are counted at most.
const PASSED_MAX: usize = 10_000;
/// Reserved members that a schedule's order must not have: each of its orders would have the same.
const NOT_OF_SCHEDULES: [(&str, &str); 5] = [
    ("Workflow", "name it as `workflow` of the schedule"),
    ("NotBefore", "an order begins when it is due; a step may wait"),
    ("CompleteBy", "use complete_within of the workflow"),
    ("ReplyChannel", "its orders tell nobody; a step can call a service"),
    (DUE_AT, "it is added, with the due time"),
];

/// Orders that are posted at times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: Arc<str>,
    /// The workflow of its orders. `None`: the default one.
    pub workflow: Option<Arc<str>>,
    /// When it is due.
    pub timing: Timing,
    /// What becomes of missed due times.
    pub catch_up: CatchUp,
    /// The members of each order.
    pub order: Json,
    /// Where `order` is in the text, in bytes.
    pub order_at: usize,
    /// Where `workflow` is, or the schedule.
    pub workflow_at: usize,
}

/// When a schedule is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The times.
    pub times: Times,
    /// No due time is before it.
    pub start: Option<Timestamp>,
    /// Each due time is before it.
    pub end: Option<Timestamp>,
}

/// The times at which a schedule is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// Those of a cron, with its text.
    Cron(Cron, Arc<str>),
    /// At the start, and then at a fixed interval.
    Every {
        /// The first one.
        start: Timestamp,
        /// The interval, in milliseconds.
        every_ms: u64,
    },
}

/// What becomes of due times that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// The last one is posted, unless another one is due by now.
    #[default]
    Latest,
    /// The last [`MISSED_MAX`] are posted.
    All,
    /// None is posted.
    None,
}

impl CatchUp {
    const ALL: [Self; 3] = [Self::Latest, Self::All, Self::None];

    /// Its word in a file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::All => "all",
            Self::None => "none",
        }
    }
}

/// What a look at a schedule finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The due times to post, the earliest first; 1 to [`POSTS_OF_A_LOOK_MAX`]. The next look goes on after them.
    pub posts: Vec<Timestamp>,
    /// The due times before the posts that are passed over with the first one, if there are any.
    pub passed: Option<Gap>,
}

impl Timing {
    /// Whether this is an earlier timing in other words, or with another end that is ahead still: what was missed counts on.
    #[must_use]
    pub fn goes_on(&self, earlier: &Self, now: Timestamp) -> bool {
        let is_same = match (&self.times, &earlier.times) {
            (Times::Cron(one, _), Times::Cron(other, _)) => one == other,
            (one, other) => one == other,
        };
        is_same && self.start == earlier.start && (self.end == earlier.end || earlier.end.is_none_or(|end| now < end))
    }

    /// The first due time after `after`.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = self.start.map_or(after, |start| after.max(start.minus_ms(1)));
        let next = match &self.times {
            Times::Cron(cron, _) => cron.next(after),
            Times::Every { start, .. } if *start > after => Some(*start),
            Times::Every { start, every_ms } => Some(start.plus_ms((start.ms_until(after) / every_ms + 1) * every_ms)),
        };
        next.filter(|next| self.end.is_none_or(|end| *next < end))
    }

    /// The last `max` due times after `after` and up to `until`, the earliest first.
    fn last(&self, after: Timestamp, until: Timestamp, max: usize) -> Vec<Timestamp> {
        let after = self.start.map_or(after, |start| after.max(start.minus_ms(1)));
        let until = self.end.map_or(until, |end| until.min(end.minus_ms(1)));
        match &self.times {
            Times::Cron(cron, _) => cron.last(after, until, max),
            Times::Every { start, .. } if until < *start => Vec::new(),
            Times::Every { start, every_ms } => {
                let newest = start.ms_until(until) / every_ms;
                let oldest = if after < *start { 0 } else { start.ms_until(after) / every_ms + 1 };
                let oldest = oldest.max((newest + 1).saturating_sub(max as u64));
                (oldest..=newest).map(|number| start.plus_ms(number * every_ms)).collect()
            }
        }
    }
}

impl Schedule {
    /// The schedules in the text of `stepwarden.toml`. What has a fault is left out: no such text is applied.
    #[must_use]
    pub fn all(settings: &str) -> Vec<Self> {
        let document = Document::new(settings);
        let (mut reader, root) = document.read(SCHEDULES);
        Self::read(&mut reader, &root)
    }

    /// Reads the tables `[[schedule]]`, and blames what is wrong.
    pub fn read(reader: &mut Reader<'_>, root: &Table<'_>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for table in root.elements("schedule").into_iter().filter_map(|entry| entry.table()) {
            let Some(schedule) = Self::one(reader, &table) else { continue };
            if found.iter().any(|other| other.name == schedule.name) {
                reader.blame(table.at("name"), format!("{} is there twice: give this one another name", table.path));
            } else {
                found.push(schedule);
            }
        }
        found
    }

    fn one(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Self> {
        let path = &table.path;
        let [start, end] = ["start", "end"].map(|key| table.time(key));
        let times = match (table.get("cron"), table.get("every")) {
            (Some(cron), None) => {
                let text = cron.text()?;
                Some(Times::Cron(Cron::parse(text).ok()?, text.into()))
            }
            (None, Some(_)) if table.get("start").is_none() => {
                reader.blame(table.at("every"), format!("{path}: every needs `start`, the first due time"));
                None
            }
            (None, Some(_)) => Some(Times::Every { start: start?, every_ms: table.time_ms("every")? }),
            (Some(_), Some(every)) => {
                reader.blame(every.at, format!("{path} has cron and every: leave one of them out"));
                None
            }
            (None, None) => {
                let example = "cron = \"0 3 1 * *\", or every = \"1h\" and start";
                reader.blame(table.at, format!("{path} must say when it is due: {example}"));
                None
            }
        }?;
        let timing = Timing { times, start, end };
        if timing.next(Timestamp::from_epoch_ms(0)).is_none() {
            reader.blame(table.at("end"), format!("{path} is never due: end must be after its first due time"));
            return None;
        }
        // Another value is blamed already.
        let entry = table.get("order").filter(|entry| entry.value.is_table())?;
        let Some(order) = entry.json() else {
            reader.blame_value(&entry, "must have texts, numbers, booleans, arrays and tables only");
            return None;
        };
        if let Some((name, advice)) = NOT_OF_SCHEDULES.into_iter().find(|(name, _)| order.member(name).is_some()) {
            reader.blame_value(&entry, format_args!("must not have {name}: {advice}"));
            return None;
        }
        Some(Self {
            name: table.text("name")?.into(),
            workflow: table.text("workflow").map(Arc::from),
            timing,
            catch_up: table.word("catch_up", &CatchUp::ALL).unwrap_or_default(),
            order,
            order_at: entry.at,
            workflow_at: table.at("workflow"),
        })
    }

    /// What is to be posted at `now`, after the [mark](ScheduleRecord::mark). A due time is missed [`MISSED_AFTER_MS`] later.
    /// `None`: nothing.
    #[must_use]
    pub fn look(&self, mark: Timestamp, now: Timestamp) -> Option<Look> {
        let due = self.timing.last(mark, now, MISSED_MAX);
        let (missed, in_time): (Vec<_>, Vec<_>) = due.into_iter().partition(|at| at.ms_until(now) > MISSED_AFTER_MS);
        let mut posts = match self.catch_up {
            CatchUp::All => missed,
            CatchUp::Latest if in_time.is_empty() => missed.into_iter().next_back().into_iter().collect(),
            CatchUp::Latest | CatchUp::None => Vec::new(),
        };
        posts.extend(in_time);
        posts.truncate(POSTS_OF_A_LOOK_MAX);
        let passed = Gap { after: mark, before: *posts.first()? };
        let is_passed = self.timing.next(mark).is_some_and(|next| next < passed.before);
        Some(Look { posts, passed: is_passed.then_some(passed) })
    }

    /// The number of due times in a gap. More than `PASSED_MAX` are not counted.
    #[must_use]
    pub fn passed(&self, gap: Gap) -> usize {
        self.timing.last(gap.after, gap.before.minus_ms(1), PASSED_MAX).len()
    }

    /// The submitter of its orders. No caller has such a name.
    #[must_use]
    pub fn submitter(&self) -> Arc<str> {
        format!("{SCHEDULE_SUBMITTER}{}", self.name).into()
    }

    /// The order of a due time, as it is posted now: always the same one (rule 4).
    ///
    /// # Errors
    /// [`BadMember`] if no order may have such a member.
    pub fn order(&self, installation: &str, due_at: Timestamp, now: Timestamp) -> Result<Given, BadMember> {
        let members = self.order.text().trim().trim_start_matches('{');
        let comma = if members.trim_start().starts_with('}') { "" } else { "," };
        let text = format!("{{\"{DUE_AT}\":\"{due_at}\"{comma}{members}");
        let document = Json::document(text.as_bytes())
            .map_err(|error| BadMember { name: "order".into(), fault: error.to_string() })?;
        let submitter = self.submitter();
        let order_id = OrderId::of_installation(installation, &submitter, &due_at.to_string());
        let mut given = Given::read(document, submitter, now, || order_id)?;
        given.workflow.clone_from(&self.workflow);
        Ok(given)
    }
}
