//! The five fields of cron, in UTC: minute, hour, day of the month, month, day of the week.
//!
//! It is the project's own. The well-kept parsers (croner, cron) bring chrono, a second library of times, into every
//! function, and take more than this: seconds, years, `L`, `W`, `#`. The tests compare it with another program.

use time::{Date, OffsetDateTime, Time};

use crate::time::Timestamp;

/// One field: its name, its first and last value, and the names of its values from the first on.
struct Field {
    name: &'static str,
    first: u8,
    last: u8,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, names: &[] },
    Field { name: "hour", first: 0, last: 23, names: &[] },
    Field { name: "day of the month", first: 1, last: 31, names: &[] },
    Field { name: "month", first: 1, last: 12, names: MONTHS },
    // 7 is Sunday too.
    Field { name: "day of the week", first: 0, last: 7, names: WEEKDAYS },
];
/// The most days of each month.
const DAYS_OF_MONTHS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// Days between two due times, at most: from one 29 February over a year without one, such as 2100, to the next.
const DAYS_MAX: usize = 8 * 366;

/// When something is due. Two are equal if they are due at the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
}

/// Why a text is no cron.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCron {
    /// It has another number of fields.
    #[error(
        "must have five fields: minute, hour, day of the month, month, day of the week, such as \"0 3 1 * *\" for 03:00 UTC \
         on the first of each month"
    )]
    Fields,
    /// A field that cannot be read.
    #[error(
        "has {part:?} as {field}: write {first} to {last}, a range such as {first}-{last}, a step such as */2, or several with commas{or_names}"
    )]
    Field {
        /// What is wrong.
        part: String,
        /// The name of the field.
        field: &'static str,
        /// Its first value.
        first: u8,
        /// Its last value.
        last: u8,
        /// That it may have names.
        or_names: &'static str,
    },
    /// Both days are restricted. Some programs take one of them, others both.
    #[error(
        "has a day of the month and a day of the week: leave one of them *, since programs differ in what both mean"
    )]
    BothDays,
    /// Such as 30 February.
    #[error("is never due: no such month has such a day")]
    Never,
}

impl Cron {
    /// Reads five fields.
    ///
    /// # Errors
    /// [`BadCron`], which says what to write.
    pub fn parse(text: &str) -> Result<Self, BadCron> {
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let parts: [&str; 5] = parts.try_into().map_err(|_| BadCron::Fields)?;
        let mut sets = [0; 5];
        for ((set, field), part) in sets.iter_mut().zip(&FIELDS).zip(parts) {
            *set = field.set(part)?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        // 7 is Sunday, as is 0.
        let weekdays = (weekdays | (weekdays >> 7)) & 0x7f;
        let cron = Self { minutes, hours, days, months, weekdays };
        let all = |set: u64, field: &Field| set.count_ones() == u32::from(field.last - field.first) + 1;
        if !all(days, &FIELDS[2]) && weekdays.count_ones() < 7 {
            return Err(BadCron::BothDays);
        }
        let has_day = |(month, most): (u8, u8)| has(months, month) && days & ((1 << (most + 1)) - 1) != 0;
        if !(1..).zip(DAYS_OF_MONTHS).any(has_day) {
            return Err(BadCron::Never);
        }
        Ok(cron)
    }

    /// The first due time after `after`. `None`: the years of RFC 3339 are over.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let from = OffsetDateTime::from_unix_timestamp(after.epoch_ms().div_euclid(1_000)).ok()?;
        let mut date = Some(from.date());
        for _ in 0..=DAYS_MAX {
            let day = date?;
            let found = self.times_of(day).into_iter().flatten().map(|time| at(day, time)).find(|at| *at > after);
            if found.is_some() {
                return found;
            }
            date = day.next_day();
        }
        None
    }

    /// The last `max` due times after `after` and up to `until`, the earliest first.
    #[must_use]
    pub fn last(&self, after: Timestamp, until: Timestamp, max: usize) -> Vec<Timestamp> {
        let date = |at: Timestamp| OffsetDateTime::from_unix_timestamp(at.epoch_ms().div_euclid(1_000)).ok();
        let (Some(first), Some(last)) = (date(after), date(until)) else { return Vec::new() };
        let (first, mut day, mut found) = (first.date(), Some(last.date()), Vec::new());
        while let Some(date) = day.filter(|day| *day >= first && found.len() < max) {
            let times: Vec<Timestamp> = self.times_of(date).into_iter().flatten().map(|time| at(date, time)).collect();
            found.extend(times.into_iter().rev().filter(|at| *at > after && *at <= until).take(max - found.len()));
            day = date.previous_day();
        }
        found.reverse();
        found
    }

    /// The times of a day at which it is due, if the day is one.
    fn times_of(&self, day: Date) -> Option<impl Iterator<Item = Time>> {
        let is_due = has(self.days, day.day())
            && has(self.months, u8::from(day.month()))
            && has(self.weekdays, day.weekday().number_days_from_sunday());
        let Self { minutes, hours, .. } = *self;
        let times = (0..24).filter(move |hour| has(hours, *hour)).flat_map(move |hour| {
            (0..60)
                .filter(move |minute| has(minutes, *minute))
                .filter_map(move |minute| Time::from_hms(hour, minute, 0).ok())
        });
        is_due.then_some(times)
    }
}

fn at(day: Date, time: Time) -> Timestamp {
    Timestamp::from_epoch_ms(day.with_time(time).assume_utc().unix_timestamp().saturating_mul(1_000))
}

const fn has(set: u64, value: u8) -> bool {
    set & (1 << value) != 0
}

impl Field {
    /// The values of a field, as a set.
    fn set(&self, text: &str) -> Result<u64, BadCron> {
        text.split(',').try_fold(0, |set, part| Ok(set | self.part(part).ok_or_else(|| self.wrong(part))?))
    }

    fn wrong(&self, part: &str) -> BadCron {
        let or_names = match self.names.first() {
            None => "",
            Some(&"JAN") => ", or names such as JAN",
            Some(_) => ", or names such as MON",
        };
        BadCron::Field { part: part.to_owned(), field: self.name, first: self.first, last: self.last, or_names }
    }

    /// `*`, `5`, `1-5`, each but a single value perhaps with a step: `*/2`, `1-9/2`.
    fn part(&self, text: &str) -> Option<u64> {
        let (range, step) = match text.split_once('/') {
            None => (text, 1),
            Some((range, step)) => (range, number(step).filter(|step| (1..=self.last).contains(step))?),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.first, self.last),
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            // What 5/15 means differs.
            None if text.contains('/') => return None,
            None => (self.value(range)?, self.value(range)?),
        };
        (first <= last).then(|| (first..=last).step_by(step.into()).fold(0, |set, value| set | (1 << value)))
    }

    fn value(&self, text: &str) -> Option<u8> {
        let named = self.names.iter().zip(self.first..).find(|(name, _)| text.eq_ignore_ascii_case(name));
        let value = named.map_or_else(|| number(text), |(_, value)| Some(value));
        value.filter(|value| (self.first..=self.last).contains(value))
    }
}

/// A number of digits alone.
fn number(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
