//! Reads TOML and collects all its faults, each with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use domain::workflow::settling_ms;
use toml::de::{DeTable, DeValue};

/// Every fault of a settings file, in the order of the file. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct BadSettings {
    /// The name of the file, as the user gave it.
    pub file: String,
    /// The faults.
    pub faults: Vec<SettingsFault>,
}

/// One fault, with advice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingsFault {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key and its fault. It never repeats a secret.
    pub problem: String,
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, SettingsFault { line, column, problem }) in self.faults.iter().enumerate() {
            write!(f, "{}{}:{line}:{column}: {problem}", if position > 0 { "; " } else { "" }, self.file)?;
        }
        Ok(())
    }
}

/// Collects faults. A bad value is read as `None`, so that reading goes on.
pub(super) struct Reader<'a> {
    text: &'a str,
    faults: Vec<SettingsFault>,
}

/// A value at its key.
pub(super) struct Entry<'a> {
    /// Like `agents.payment.url`.
    pub(super) path: String,
    /// Where the value begins, in bytes.
    pub(super) at: usize,
    pub(super) value: DeValue<'a>,
}

/// A table, whose keys are taken one by one. The keys that are left at its end are unknown.
pub(super) struct Table<'a> {
    pub(super) path: String,
    pub(super) at: usize,
    entries: BTreeMap<String, (usize, Entry<'a>)>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    fn new(path: String, at: usize, table: DeTable<'a>) -> Self {
        let entry = |(key, value): (toml::Spanned<std::borrow::Cow<'a, str>>, toml::Spanned<DeValue<'a>>)| {
            let key_at = key.span().start;
            let key = key.into_inner().into_owned();
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            (key, (key_at, Entry { path, at: value.span().start, value: value.into_inner() }))
        };
        let entries = table.into_iter().map(entry).collect();
        Self { path, at, entries, known: Vec::new() }
    }

    /// The value of a known key.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Entry<'a>> {
        self.known.push(key);
        self.entries.remove(key).map(|(_, entry)| entry)
    }

    /// All values that are left, for a table whose keys are names. With each comes the place of its key.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (String, usize, Entry<'a>)> + use<'a> {
        std::mem::take(&mut self.entries).into_iter().map(|(key, (at, entry))| (key, at, entry))
    }
}

impl<'a> Reader<'a> {
    /// The table of the whole text.
    pub(super) fn new(text: &'a str) -> (Self, Table<'a>) {
        let mut reader = Self { text, faults: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            reader.blame(at, format!("is not TOML: {}", error.message()));
        }
        (reader, Table::new(String::new(), 0, table.into_inner()))
    }

    /// `checked` if there is no fault.
    pub(super) fn finish<T>(self, file: &str, checked: T) -> Result<T, BadSettings> {
        let mut faults = self.faults;
        faults.sort();
        faults.dedup();
        if faults.is_empty() { Ok(checked) } else { Err(BadSettings { file: file.to_owned(), faults }) }
    }

    pub(super) fn blame(&mut self, at: usize, problem: impl Into<String>) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.faults.push(SettingsFault { line, column, problem: problem.into() });
    }

    /// A fault of a value: its path, and the problem.
    pub(super) fn blame_value(&mut self, entry: &Entry<'_>, problem: impl fmt::Display) {
        self.blame(entry.at, format!("{} {problem}", entry.path));
    }

    /// Blames every key that was not taken.
    pub(super) fn end(&mut self, table: Table<'_>) {
        let known = table.known.join(", ");
        for (_, (at, entry)) in table.entries {
            self.blame(at, format!("{} is no setting: there are {known}", entry.path));
        }
    }

    pub(super) fn table<'e>(&mut self, entry: Option<Entry<'e>>) -> Option<Table<'e>> {
        let Entry { path, at, value } = entry?;
        let DeValue::Table(table) = value else {
            self.blame(at, format!("{path} must be a table"));
            return None;
        };
        Some(Table::new(path, at, table))
    }

    /// The elements of an array of at most this many.
    pub(super) fn array<'e>(&mut self, entry: Option<Entry<'e>>, len_max: usize) -> Option<Vec<Entry<'e>>> {
        let Entry { path, at, value } = entry?;
        if let DeValue::Array(elements) = value
            && (1..=len_max).contains(&elements.len())
        {
            let element = |(index, value): (usize, toml::Spanned<DeValue<'e>>)| {
                let path = format!("{path}[{index}]");
                Entry { path, at: value.span().start, value: value.into_inner() }
            };
            return Some(elements.into_iter().enumerate().map(element).collect());
        }
        self.blame(at, format!("{path} must be an array of 1 to {len_max} elements"));
        None
    }

    /// A text without blanks at its ends, with the place for further checks.
    pub(super) fn text<'e>(&mut self, entry: Option<Entry<'e>>) -> Option<(String, Entry<'e>)> {
        let entry = entry?;
        let text = entry.value.as_str().map(|text| text.trim().to_owned());
        if text.is_none() {
            self.blame_value(&entry, "must be a text in quotes");
        }
        text.map(|text| (text, entry))
    }

    pub(super) fn flag(&mut self, entry: Option<Entry<'_>>) -> Option<bool> {
        let entry = entry?;
        let flag = entry.value.as_bool();
        if flag.is_none() {
            self.blame_value(&entry, "must be true or false");
        }
        flag
    }

    pub(super) fn number(&mut self, entry: Option<Entry<'_>>, range: RangeInclusive<u32>) -> Option<u32> {
        let entry = entry?;
        let number = entry.value.as_integer().filter(|number| number.radix() == 10);
        let number = number.and_then(|number| number.as_str().replace('_', "").parse().ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.blame_value(&entry, format_args!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// The time for which a call may have its effect, in milliseconds. The scheduler reads it by the same rule.
    pub(super) fn settling_ms(&mut self, entry: Option<Entry<'_>>) -> Option<u64> {
        let entry = entry?;
        let settling_ms = settling_ms(entry.value.as_str().unwrap_or_default());
        settling_ms.map_err(|fault| self.blame_value(&entry, fault)).ok()
    }

    /// A time such as `"10s"`, in milliseconds.
    pub(super) fn time_ms(&mut self, entry: Option<Entry<'_>>, range: RangeInclusive<u64>) -> Option<u64> {
        let entry = entry?;
        let time = entry.value.as_str().and_then(|text| humantime::parse_duration(text.trim()).ok());
        let ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).filter(|ms| range.contains(ms));
        if ms.is_none() {
            let [from, to] = [range.start(), range.end()].map(|&ms| time_text(ms));
            self.blame_value(&entry, format_args!("must be a time from \"{from}\" to \"{to}\", such as \"10s\""));
        }
        ms
    }
}

/// A time as it stands in a file.
pub(super) fn time_text(ms: u64) -> String {
    humantime::format_duration(std::time::Duration::from_millis(ms)).to_string()
}
